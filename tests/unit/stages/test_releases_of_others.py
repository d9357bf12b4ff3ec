"""Releases that somebody else deletes, or puts in the place of one that a profile deployed."""

from __future__ import annotations

import pytest

from bellhop.core.gvk import GVK
from bellhop.ports.charts import DEPLOYED, Release
from tests.fakes.fleet import Fleet
from tests.fakes.kube import FakeKube
from tests.unit.stages.test_charts import chart, charts, data, east, held, outcome  # noqa: F401

# ruff: noqa: F811 - a fixture

KEY = ("fleet/east", "apps", "web")
THEIRS = Release("web", "apps", 1, DEPLOYED, "web", "1.0.0")
"""It has the revision and the chart of the one that the profile deployed."""

TAKEN = {"meta.helm.sh/release-name": "other", "meta.helm.sh/release-namespace": "apps"}


@pytest.mark.usefixtures("east")
def test_a_release_that_somebody_installed_again_stays_when_its_profile_goes(fleet: Fleet) -> None:
    fleet.apply(charts())
    fleet.pump()
    fleet.charts.releases[KEY] = THEIRS

    fleet.declare.delete([("ClusterProfile", "", "p")])
    fleet.release()
    fleet.pump()
    assert fleet.charts.releases[KEY] == THEIRS
    assert fleet.charts.removals == []
    assert held(fleet) == set()


@pytest.mark.usefixtures("east")
def test_a_release_that_somebody_installed_again_is_not_upgraded(fleet: Fleet) -> None:
    """It is a conflict, as one that was there before, until the profile is to take it over."""
    fleet.apply(charts())
    fleet.pump()
    fleet.charts.releases[KEY] = THEIRS

    fleet.apply(charts(of=chart(version="1.1.0"), more="syncMode: DryRun"))
    fleet.pump()
    kept = fleet.records.previews.get("fleet/east", "p")
    assert kept
    assert [each.action for each in kept.value.changes] == ["Conflict"]

    fleet.apply(charts(of=chart(version="1.1.0")))
    fleet.pump()
    assert "no profile made it" in outcome(fleet)[1]
    assert fleet.charts.releases[KEY] == THEIRS
    assert held(fleet) == set()

    more = "options: {installOptions: {takeOwnership: true}}"
    fleet.apply(charts(of=chart(more, version="1.1.0")))
    fleet.pump()
    assert outcome(fleet) == ("Provisioned", "")
    assert fleet.charts.releases[KEY].revision == 2


@pytest.mark.parametrize("taken", [False, True])
def test_the_objects_of_a_release_without_a_record_are_removed(
    fleet: Fleet, east: FakeKube, *, taken: bool
) -> None:
    """But for those that have become another release's."""
    fleet.apply(charts())
    fleet.pump()
    del fleet.charts.releases[KEY]
    if taken:
        there = east.get(GVK("", "v1", "ConfigMap"), "apps", "web-config")
        assert there
        east.put({**there, "metadata": {**there["metadata"], "annotations": TAKEN}})

    fleet.declare.delete([("ClusterProfile", "", "p")])
    fleet.release()
    fleet.pump()
    assert set(data(east)) == ({"web-config"} if taken else set())
    assert held(fleet) == set()
