"""Checks by metrics: what Prometheus says decides, and only a clear answer passes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.fakes.fleet import Fleet
from tests.fakes.kube import FakeKube
from tests.fakes.manifests import config, holder, profile
from tests.fakes.prometheus import FakePrometheus, one
from tests.lab.http_server import Response

ERRORS = 'sum(rate(errors{cluster="east"}[5m]))'
SECRET = """
apiVersion: v1
kind: Secret
metadata: {{name: prom, namespace: {namespace}}}
type: {type}
stringData: {{{data}}}
"""
SVELTOS = "addons.projectsveltos.io/cluster-profile"


@pytest.fixture
def prometheus() -> Iterator[FakePrometheus]:
    with FakePrometheus() as server:
        yield server


def check(prometheus: FakePrometheus, when: str = "validateHealths", source: str = "") -> str:
    """Return a check by what errors there are, each cluster's own."""
    return f"""{when}:
  - name: errors
    featureID: Resources
    metricSource:
      url: {prometheus.address}/
      {source}
    metricQueries:
    - name: errorRate
      query: sum(rate(errors{{cluster="{{{{ .Cluster.metadata.name }}}}"}}[5m]))
    script: |
      function evaluate()
        if metrics["errorRate"] > 0.05 then
          return {{healthy = false, message = "errors: " .. metrics["errorRate"]}}
        end
        return {{healthy = obj == nil, message = ""}}
      end"""


def deploy_own(fleet: Fleet, more: str, *others: str) -> None:
    fleet.deploy(profile(more=more), holder("own", config("a")), *others)


def secret(data: str, *, namespace: str = "fleet", kind: str = SVELTOS) -> str:
    return SECRET.format(data=data, namespace=namespace, type=kind)


@pytest.mark.usefixtures("east")
def test_is_deployed_once_its_metrics_are_fine(fleet: Fleet, prometheus: FakePrometheus) -> None:
    """The script is asked once, without an object, about the cluster's own numbers."""
    prometheus.values[ERRORS] = one("0.25")
    deploy_own(fleet, check(prometheus))

    assert fleet.status_of().phase == "Provisioning"
    message = "waits for check 'errors': it is not healthy: errors: 0.25"
    assert fleet.status_of().message == message

    prometheus.values[ERRORS] = one("0.01")
    fleet.wait()
    assert fleet.status_of().phase == "Provisioned"
    assert set(prometheus.asked) == {ERRORS}


def test_nothing_is_applied_on_ground_with_errors(
    fleet: Fleet, east: FakeKube, prometheus: FakePrometheus
) -> None:
    """Before a deployment metrics decide as well."""
    prometheus.values[ERRORS] = one("1")
    deploy_own(fleet, check(prometheus, "preDeployChecks"))
    assert [each for each in east.calls if each.verb == "apply"] == []


@pytest.mark.usefixtures("east")
def test_a_query_that_finds_nothing_does_not_pass(fleet: Fleet, prometheus: FakePrometheus) -> None:
    """Its name has no value, and a script that compares it fails."""
    deploy_own(fleet, check(prometheus))
    assert "attempt to compare" in fleet.status_of().message
    assert fleet.status_of().phase == "Provisioning"


@pytest.mark.usefixtures("east")
def test_waits_for_a_server_that_does_not_know(fleet: Fleet, prometheus: FakePrometheus) -> None:
    """That is no failure of the profile, and ends by itself."""
    prometheus.reply = Response(503)
    deploy_own(fleet, f"maxConsecutiveFailures: 1\n  {check(prometheus)}")
    fleet.wait()
    where = f"{prometheus.address}/api/v1/query"
    said = f"cannot query metric 'errorRate' at '{where}': it answers 503"
    assert fleet.status_of().message == f"waits for check 'errors': {said}"
    assert fleet.status_of().counted == 0

    prometheus.reply, prometheus.values[ERRORS] = None, "0"
    fleet.wait()
    assert fleet.status_of().phase == "Provisioned"


@pytest.mark.usefixtures("east")
@pytest.mark.parametrize(("named", "there"), [("", "fleet"), (", namespace: default", "default")])
def test_signs_in_with_what_its_secret_holds(
    fleet: Fleet, prometheus: FakePrometheus, named: str, there: str
) -> None:
    """The Secret is the cluster's namespace's where no other is named, and is read each time."""
    prometheus.authorization = "Bearer hunter2"
    prometheus.values[ERRORS] = one("0")
    more = check(prometheus, source=f"secretRef: {{name: prom{named}}}")
    deploy_own(fleet, more, secret("token: old-token", namespace=there))
    said = fleet.status_of().message
    assert said.endswith("it answers 401; see whether the Secret of secretRef still counts there")
    assert "old-token" not in said

    fleet.apply(secret("token: hunter2", namespace=there))
    fleet.wait()
    assert fleet.status_of().phase == "Provisioned"


@pytest.mark.usefixtures("east")
@pytest.mark.parametrize(
    ("others", "message"),
    [
        pytest.param(
            [],
            "cannot find Secret 'fleet/prom' that metricSource.secretRef names; apply it",
            id="missing",
        ),
        pytest.param(
            [secret("pass: hunter2")],
            "cannot use Secret 'fleet/prom': it has none of the keys token, username, password, ca",
            id="without keys",
        ),
        pytest.param(
            [secret("token: hunter2", kind="Opaque")],
            "cannot use Secret 'fleet/prom' in metricSource.secretRef: unsupported secret type"
            f" 'Opaque'; it must be '{SVELTOS}'",
            id="not for profiles",
        ),
        pytest.param(
            [secret("ca: hunter2")],
            "cannot query metric 'errorRate'",
            id="an authority that is none, and not asked for",
        ),
    ],
)
def test_says_what_its_secret_lacks(
    fleet: Fleet, prometheus: FakePrometheus, others: list[str], message: str
) -> None:
    """One sentence, and no word of the Secret."""
    prometheus.reply = Response(500)
    deploy_own(fleet, check(prometheus, source="secretRef: {name: prom}"), *others)
    said = fleet.status_of().message
    assert said.startswith(f"waits for check 'errors': {message}")
    assert "hunter2" not in said


@pytest.mark.usefixtures("east")
def test_a_profile_takes_the_secret_of_its_own_namespace(
    fleet: Fleet, prometheus: FakePrometheus
) -> None:
    """Any other namespace in the ref is ignored: nobody signs in with another tenant's Secret."""
    more = check(prometheus, source="secretRef: {name: prom, namespace: other}")
    own = profile(namespace="fleet", more=more)
    fleet.apply(own, holder("own", config("a"), namespace="fleet"))
    fleet.deploy(secret("token: x", namespace="other"))
    found = fleet.status_of("fleet/own")
    assert "cannot find Secret 'fleet/prom'" in found.message


@pytest.mark.usefixtures("east")
def test_a_template_that_fails_says_so(fleet: Fleet, prometheus: FakePrometheus) -> None:
    """Its error names the place, as of every template."""
    more = check(prometheus).replace(".Cluster.metadata.name", ".Cluster.metadata.region")
    deploy_own(fleet, more)
    said = 'map has no entry for key "region"'
    assert said in fleet.status_of().message
