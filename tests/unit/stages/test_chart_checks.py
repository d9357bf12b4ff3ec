"""Checks of a profile that hold its charts."""

from __future__ import annotations

from datetime import timedelta

from tests.fakes.fleet import Fleet
from tests.fakes.kube import FakeKube
from tests.unit.stages.test_charts import CONFIG, TWO, chart, charts, data, east, outcome  # noqa: F401

# ruff: noqa: F811 - a fixture

CHECK = """preDeleteChecks:
  - name: drained
    featureID: Helm
    version: v1
    kind: ConfigMap
    namespace: apps
    script: |
      function evaluate()
        return {healthy = obj.metadata.name ~= "busy", message = "it is busy"}
      end
"""
BUSY = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "busy", "namespace": "apps"},
    "data": {},
}


def test_a_chart_that_a_profile_drops_stays_until_its_checks_pass(
    fleet: Fleet, east: FakeKube
) -> None:
    """All else of the profile is deployed meanwhile."""
    fleet.apply(charts(of=TWO, more=CHECK))
    fleet.pump()
    east.put(BUSY)
    fleet.apply(charts(of=chart(values="replicas: two"), more=CHECK))
    fleet.pump()
    assert set(data(east)) == {"web-config", "second-config", "busy"}
    assert data(east)["web-config"]["replicas"] == "two"
    phase, message = outcome(fleet)
    assert phase == "Provisioning"
    assert message == "waits for check 'drained': ConfigMap 'apps/busy' is not healthy: it is busy"

    east.drop(CONFIG, "apps", "busy")
    fleet.clock.advance(timedelta(minutes=20))
    fleet.pump()
    assert set(data(east)) == {"web-config"}
    assert outcome(fleet) == ("Provisioned", "")
    assert len(fleet.charts.deployed) == 3
