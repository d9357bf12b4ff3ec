"""Charts whose deployment fails, or whose worker dies."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from bellhop.errors import (
    BellhopError,
    ConflictError,
    InvalidError,
    TemporaryError,
    TooLargeError,
    UnauthorizedError,
    UnreachableError,
)
from tests.fakes import rig
from tests.fakes.fleet import Fleet, OpenFleet
from tests.fakes.kube import FakeKube
from tests.fakes.manifests import holder, join
from tests.fakes.releases import (
    CRD,
    TWO,
    chart,
    charts,
    data,
    die,
    held,
    outcome,
)
from tests.fakes.share import SHARE

REFS = "policyRefs: [{kind: ConfigMap, namespace: default, name: refs}]"


SAID = TemporaryError("cannot deploy the release 'apps/web': connection refused: Unauthorized")


ITSELF = (UnauthorizedError("it refuses the credentials"), UnreachableError("it does not answer"))


SECRET = """
apiVersion: v1
kind: Secret
metadata: {name: more, namespace: default}
type: addons.projectsveltos.io/cluster-profile
stringData: {values: "password: hush-hush"}
"""


def test_what_helm_refuses_right_after_new_definitions_is_tried_again_soon(
    fleet: Fleet, east: FakeKube
) -> None:
    """The API server has not published their schema; a refusal after that is the chart's."""
    upgrade = "options: {upgradeOptions: {upgradeCRDs: true}}"
    definition = {
        "apiVersion": CRD.api_version,
        "kind": CRD.kind,
        "metadata": {"name": "gauges.example.org"},
        "spec": {
            "group": "example.org",
            "names": {"kind": "Gauge", "plural": "gauges"},
            "scope": "Namespaced",
            "versions": [{"name": "v1", "served": True, "storage": True}],
        },
    }
    fleet.deploy(charts(of=chart(upgrade)))
    fleet.charts.crds = json.dumps(definition)
    fleet.charts.failures["web"] = InvalidError('unknown field "most"')
    fleet.deploy(charts(of=chart(upgrade, version="1.1.0")))
    kept = fleet.status_of("p")
    assert (kept.reason, kept.failures) == ("Temporary", 1)
    assert "the definitions of the chart were just changed" in kept.message
    assert len(east.objects(CRD)) == 1

    fleet.wait(timedelta(seconds=5))
    assert "just changed" not in outcome(fleet)[1]

    del fleet.charts.failures["web"]
    fleet.wait(timedelta(seconds=10))
    assert outcome(fleet) == ("Provisioned", "")


def test_nothing_is_deployed_once_the_lease_is_over(fleet: Fleet, east: FakeKube) -> None:
    """A worker that took too long to find a chart starts again: another one may have the lease."""
    deployed: list[int] = []
    fleet.repositories.meanwhile = [
        lambda: deployed.append(len(fleet.charts.deployed)),
        lambda: fleet.clock.advance(timedelta(minutes=3)),
    ]
    fleet.deploy(charts())
    assert deployed == [0]
    assert len(fleet.charts.deployed) == 1
    assert set(data(east)) == {"web-config"}
    assert outcome(fleet) == ("Provisioned", "")


def test_an_error_of_helm_is_reported_and_later_charts_wait(fleet: Fleet, east: FakeKube) -> None:
    fleet.charts.failures["web"] = InvalidError("cannot deploy the release 'apps/web': no values")
    fleet.deploy(charts(of=TWO))
    assert outcome(fleet)[1] == "cannot deploy the release 'apps/web': no values"
    assert [each.name for each in fleet.charts.deployed].count("second") == 0
    # What Helm had begun is there, and goes with the profile.
    assert "helm.sh/Release/apps/web" in held(fleet)

    fleet.charts.failures.clear()
    fleet.wait(timedelta(minutes=20))
    assert set(data(east)) == {"web-config", "second-config"}


@pytest.mark.usefixtures("east")
def test_an_installation_that_failed_is_installed_again(fleet: Fleet) -> None:
    """Helm runs the hooks of an installation in no upgrade; one that was deployed is upgraded."""
    fleet.charts.failures["web"] = TemporaryError("failed pre-install")
    fleet.deploy(charts())
    fleet.wait(timedelta(minutes=30), 2)
    assert [(each.again, each.there) for each in fleet.charts.deployed] == [
        (False, False),
        (True, False),
        (True, False),
    ]

    fleet.charts.failures.clear()
    fleet.wait(timedelta(minutes=30))
    fleet.deploy(charts(of=chart(version="1.1.0")))
    assert [(each.again, each.there) for each in fleet.charts.deployed[3:]] == [
        (True, False),
        (False, True),
    ]


def test_with_continue_on_error_the_rest_is_deployed(fleet: Fleet, east: FakeKube) -> None:
    fleet.charts.failures["web"] = InvalidError("no values")
    fleet.deploy(charts(of=TWO, more="continueOnError: true"))
    assert set(data(east)) == {"second-config"}
    assert outcome(fleet)[1] == "no values"


@pytest.mark.parametrize("where", ["its hook times out", "its repository is down"])
def test_with_continue_on_error_a_release_that_fails_for_now_delays_no_other(
    fleet: Fleet, east: FakeKube, where: str
) -> None:
    """Either may pass: the release is tried again, and the next one is deployed."""
    error = TemporaryError(f"cannot deploy 'web': {where}")

    def fail() -> None:
        raise error

    if "hook" in where:
        fleet.charts.failures["web"] = error
    else:
        fleet.repositories.meanwhile.append(fail)
    fleet.deploy(charts(of=TWO, more="continueOnError: true"))
    assert set(data(east)) == {"second-config"}
    assert outcome(fleet) == ("Failed", str(error))

    fleet.charts.failures.clear()
    fleet.wait(timedelta(minutes=20))
    assert set(data(east)) == {"web-config", "second-config"}
    assert outcome(fleet) == ("Provisioned", "")


@pytest.mark.parametrize(
    "manifest",
    [
        "{apiVersion: none.example/v1, kind: Gadget, metadata: {name: one, namespace: apps}}",
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: '{{ .Wrong', namespace: apps}}",
    ],
    ids=["a kind that is not served", "a template that cannot be parsed"],
)
def test_with_continue_on_error_objects_that_fail_delay_no_chart(
    fleet: Fleet, east: FakeKube, manifest: str
) -> None:
    """The outcome says of each feature how it ended; without the field no chart is deployed."""
    objects = holder("refs", manifest, annotations="projectsveltos.io/template: ok")
    fleet.deploy(join(objects, charts(more=REFS)))
    assert data(east) == {}

    fleet.apply(charts(more=f"{REFS}\n  continueOnError: true"))
    fleet.wait(timedelta(minutes=1))
    assert set(data(east)) == {"web-config"}
    kept = fleet.status_of("p")
    assert kept.phase.startswith("Failed")
    phases = {each.feature: each.phase for each in kept.features}
    assert phases == {"Resources": kept.phase, "Helm": "Provisioned"}


def test_a_repository_that_is_down_is_not_the_clusters_fault(fleet: Fleet, east: FakeKube) -> None:
    fleet.repositories.failure = UnreachableError("cannot read 'https://charts.example.com'")
    fleet.deploy(charts())
    assert outcome(fleet)[1] == "cannot read 'https://charts.example.com'"
    assert fleet.records.circuits.get("fleet/east") is None
    assert held(fleet) == {"helm.sh/Release/apps/web"}

    fleet.repositories.failure = None
    fleet.wait(timedelta(minutes=20))
    assert set(data(east)) == {"web-config"}


@pytest.mark.usefixtures("east")
@pytest.mark.parametrize("error", [SAID, InvalidError("no values")])
def test_what_helm_says_is_not_what_its_cluster_says(fleet: Fleet, error: BellhopError) -> None:
    """A chart may write such words; each try counts for maxConsecutiveFailures."""
    fleet.charts.failures["web"] = error
    fleet.deploy(charts(more="maxConsecutiveFailures: 3"))
    fleet.wait(timedelta(minutes=20), 8)
    assert fleet.records.health.get("fleet/east").value.state == "Healthy"
    assert fleet.records.circuits.get("fleet/east") is None
    assert outcome(fleet)[1].startswith(str(error))
    assert len(fleet.charts.deployed) == 3


@pytest.mark.parametrize("own", ITSELF, ids=["refuses", "away"])
def test_a_cluster_is_asked_itself_after_helm_has_failed(
    fleet: Fleet, east: FakeKube, own: BellhopError
) -> None:
    """Also where what Helm says may quote a Secret."""
    more = "valuesFrom: [{kind: Secret, namespace: default, name: more}]"
    fleet.charts.failures["web"] = SAID
    fleet.charts.meanwhile.append(lambda: east.fail_with(own))
    fleet.deploy(join(SECRET, charts(of=chart(more))))
    refused = isinstance(own, UnauthorizedError)
    state = fleet.records.health.get("fleet/east").value.state
    assert (state == "Unauthorized") == refused
    assert (fleet.records.circuits.get("fleet/east") is None) == refused


@pytest.mark.parametrize("error", [TemporaryError("wait"), ConflictError("an object is theirs")])
def test_what_had_begun_is_deployed_again(
    fleet: Fleet, east: FakeKube, error: TemporaryError | ConflictError
) -> None:
    fleet.charts.failures["web"] = error
    fleet.deploy(charts())
    assert outcome(fleet)[1] == str(error)
    fleet.charts.failures.clear()
    fleet.wait(timedelta(minutes=20))
    assert outcome(fleet) == ("Provisioned", "")
    assert set(data(east)) == {"web-config"}


@pytest.mark.rest
def test_death_at_any_step_leaves_what_is_wanted(open_fleet: OpenFleet) -> None:
    """If a worker dies while a release is installed, upgraded or removed, the next one ends it.

    It takes seconds: a process dies at a share of 120 steps, three times.
    """
    for steps in range(1, 120, SHARE):
        fleet = open_fleet()
        fleet.repositories.put("web", "1.0.0", "1.1.0")
        east, fake = fleet.register("east", env="production"), fleet.charts
        fate = rig.make_mortal(fleet)

        die(fleet, fate, steps, charts())
        assert data(east) == {"web-config": {"chart": "web-1.0.0", "replicas": "one"}}
        die(fleet, fate, steps, charts(of=chart(version="1.1.0")))
        assert data(east) == {"web-config": {"chart": "web-1.1.0", "replicas": "one"}}
        assert outcome(fleet) == ("Provisioned", "")
        die(fleet, fate, steps, charts(of="policyRefs: []"))
        assert data(east) == {}
        assert fake.releases == {}
        assert held(fleet) == set()
        assert list(fleet.records.owners.of("fleet/east")) == []


def test_a_chart_whose_templates_take_too_long_is_refused_before_helm_begins(
    fleet: Fleet, east: FakeKube
) -> None:
    """It is rendered without a cluster first, so that no release is left half done.

    It is not tried again: only another chart, or other values, may render sooner.
    """
    del east
    slow = TooLargeError("cannot render the chart: it took more than 5 s of processor time")
    fleet.charts.refused_renders["web"] = slow
    fleet.deploy(charts())

    fleet.wait(timedelta(minutes=5))

    phase, message = outcome(fleet)
    assert phase == "FailedNonRetriable"
    assert "more than 5 s of processor time" in message
    assert fleet.charts.deployed == []
    assert len(fleet.charts.rendered) == 1
