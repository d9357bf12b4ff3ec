"""Status of the objects that users write, from records: fields of Sveltos, and conditions."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest

from bellhop.configuration.conditions import stall
from bellhop.configuration.status import make_status
from bellhop.errors import InvalidError, UnreachableError
from tests.fakes.fleet import Fleet, service
from tests.fakes.health import Watched, cluster_check, health_check
from tests.fakes.kube import FakeKube
from tests.fakes.manifests import cluster_set, config, holder, join, profile, source, trigger

OWN = join(profile(), holder("own", config("a", 'v: "1"')))
PROFILE = ("ClusterProfile", "", "own")
EVENTS = join(source(), trigger(), holder("made", config("m")))
TRIGGER = ("EventTrigger", "", "made")
CLASSIFIER = """
apiVersion: lib.projectsveltos.io/v1beta1
kind: Classifier
metadata: {name: new}
spec:
  classifierLabels: [{key: age, value: new}]
  kubernetesVersionConstraints: [{version: 1.20.0, comparison: GreaterThan}]
"""


def status_of(fleet: Fleet, which: tuple[str, str, str], **more: Any) -> dict[str, Any]:
    found = make_status(fleet.installation(), *which, **more)
    assert found is not None
    return found


def truths(status: Mapping[str, Any]) -> dict[str, str]:
    """Return Ready, Reconciling and Stalled."""
    return {each["type"]: each["status"] for each in status["conditions"]}


def names(refs: list[dict[str, str]]) -> list[str]:
    return [f"{each['namespace']}/{each['name']}" for each in refs]


READY = {"Ready": "True", "Reconciling": "False", "Stalled": "False"}
PROGRESSING = {"Ready": "Unknown", "Reconciling": "True", "Stalled": "False"}
RETRIED = {"Ready": "False", "Reconciling": "True", "Stalled": "False"}
STALLED = {"Ready": "False", "Reconciling": "False", "Stalled": "True"}


# Profiles -----------------------------------------------------------------------------------------


def test_a_deployed_profile_is_ready(fleet: Fleet, east: FakeKube) -> None:
    """It names its clusters, and the generation that it is of."""
    assert east.version()
    fleet.deploy(OWN)

    status = status_of(fleet, PROFILE, generation=3)

    assert names(status["matchingClusters"]) == ["fleet/east"]
    assert names(status["updatedClusters"]["clusters"]) == ["fleet/east"]
    assert "updatingClusters" not in status
    assert "failedClusters" not in status
    assert status["observedGeneration"] == 3
    assert {each["observedGeneration"] for each in status["conditions"]} == {3}
    assert truths(status) == READY


def test_an_unrendered_profile_is_reconciled(fleet: Fleet, east: FakeKube) -> None:
    """Its clusters are known before the first worker has read it."""
    assert east.version()
    fleet.apply(OWN)

    status = status_of(fleet, PROFILE)

    assert names(status["matchingClusters"]) == ["fleet/east"]
    assert truths(status) == PROGRESSING


def test_a_failure_that_may_pass_is_retried(fleet: Fleet, east: FakeKube) -> None:
    """The cluster is among those that failed, with the reason."""
    fleet.register("west", env="production")
    east.fail_with(UnreachableError("cannot reach 'fleet/east': no route"), "apply")
    fleet.deploy(OWN)

    status = status_of(fleet, PROFILE)

    [failed] = status["failedClusters"]
    assert names([failed["clusterRef"]]) == ["fleet/east"]
    assert "no route" in failed["failureMessage"]
    assert failed["lastFailureTime"].endswith("Z")
    assert names(status["updatedClusters"]["clusters"]) == ["fleet/west"]
    assert truths(status) == RETRIED


def test_a_template_that_fails_stalls_a_profile(fleet: Fleet, east: FakeKube) -> None:
    """Only a change of its inputs can help."""
    assert east.version()
    broken = holder("own", config("{{ .Nothing }}"), annotations="projectsveltos.io/template: ok")
    fleet.deploy(join(profile(), broken))

    status = status_of(fleet, PROFILE)

    assert truths(status) == STALLED
    assert names([status["failedClusters"][0]["clusterRef"]]) == ["fleet/east"]


def test_a_profile_without_a_cluster_is_ready(fleet: Fleet) -> None:
    """There is nothing to do."""
    fleet.deploy(OWN)

    status = status_of(fleet, PROFILE)

    assert "matchingClusters" not in status
    assert truths(status) == READY
    assert status["conditions"][0]["reason"] == "NoClusters"


def test_a_dry_run_is_ready_and_updates_nothing(fleet: Fleet, east: FakeKube) -> None:
    """What it would change is in the reports."""
    assert east.version()
    fleet.deploy(join(profile(more="syncMode: DryRun"), holder("own", config("a"))))

    status = status_of(fleet, PROFILE)

    assert "updatedClusters" not in status
    assert truths(status) == READY
    assert status["conditions"][0]["reason"] == "DryRun"


def test_a_gradual_profile_updates_a_few_clusters(fleet: Fleet) -> None:
    """Those that wait for their place are in neither list."""
    for name in ("a", "b", "c"):
        kube = fleet.register(name, env="production")
        kube.fail_with(UnreachableError("no route"), "apply")
    fleet.deploy(join(profile(more="maxUpdate: 1"), holder("own", config("a"))))

    status = status_of(fleet, PROFILE)

    assert len(status["matchingClusters"]) == 3
    assert len(status["failedClusters"]) == 1
    assert "updatedClusters" not in status


def test_a_paused_profile_says_so(fleet: Fleet, east: FakeKube) -> None:
    """Under the names that Sveltos has for it."""
    assert east.version()
    paused = profile().replace(
        "{name: own}", "{name: own, annotations: {profile.projectsveltos.io/paused: ok}}"
    )
    fleet.deploy(join(paused, holder("own", config("a"))))

    status = status_of(fleet, PROFILE)

    assert status["reconciliationSuspended"] is True
    assert status["suspensionReason"]
    assert "matchingClusters" not in status


def test_a_profile_of_a_namespace_has_its_own_clusters(fleet: Fleet, east: FakeKube) -> None:
    """It is found by its namespace and name."""
    assert east.version()
    text = profile(namespace="fleet").replace("namespace: default}]", "namespace: fleet}]")
    fleet.deploy(join(text, holder("own", config("a"), namespace="fleet")))

    assert truths(status_of(fleet, ("Profile", "fleet", "own"))) == READY
    assert make_status(fleet.installation(), *PROFILE) is None


def test_the_time_of_a_condition_is_kept_while_its_status_is(fleet: Fleet, east: FakeKube) -> None:
    """A later status moves the times of those that changed."""
    fleet.deploy(OWN)
    first = status_of(fleet, PROFILE)
    fleet.clock.advance(timedelta(hours=1))
    east.fail_with(InvalidError("refused"), "apply")
    fleet.deploy(holder("own", config("a", 'v: "2"')))

    later = status_of(fleet, PROFILE, previous=first)

    begun, moved = (
        {x["type"]: x["lastTransitionTime"] for x in each["conditions"]} for each in (first, later)
    )
    assert begun["Stalled"] == moved["Stalled"]
    assert begun["Ready"] < moved["Ready"]


@pytest.mark.parametrize(
    "previous",
    [
        pytest.param({"conditions": "none"}, id="no list"),
        pytest.param({"conditions": ["Ready"]}, id="no mappings"),
        pytest.param({"conditions": [{"type": "Ready", "lastTransitionTime": 7}]}, id="no time"),
        pytest.param(
            {"conditions": [{"type": "Ready", "lastTransitionTime": "2026-01-01T00:00:00"}]},
            id="no zone",
        ),
    ],
)
def test_a_strange_previous_status_is_passed_over(
    fleet: Fleet, east: FakeKube, previous: dict[str, Any]
) -> None:
    """Somebody else may have written it."""
    assert east.version()
    fleet.deploy(OWN)

    assert truths(status_of(fleet, PROFILE, previous=previous)) == READY


def test_a_refused_change_keeps_the_fields_of_what_is_in_force(
    fleet: Fleet, east: FakeKube
) -> None:
    """Its conditions say why it is not in force; a new object has only these."""
    assert east.version()
    fleet.deploy(OWN)
    refusal = stall("Invalid", "spec.tier: must be at least 1")

    changed = status_of(fleet, PROFILE, refusal=refusal)
    new = status_of(fleet, ("EventTrigger", "", "new"), refusal=refusal)

    assert names(changed["matchingClusters"]) == ["fleet/east"]
    assert truths(changed) == truths(new) == STALLED
    assert new.keys() == {"conditions"}
    assert new["conditions"][0]["message"] == "spec.tier: must be at least 1"


def test_what_is_not_known_has_no_status(fleet: Fleet) -> None:
    """Nor has a kind without one."""
    fleet.apply(source())

    for which in (PROFILE, TRIGGER, ("EventSource", "", "watched"), ("ClusterSet", "", "x")):
        assert make_status(fleet.installation(), *which) is None


# Other rules --------------------------------------------------------------------------------------


def test_a_trigger_names_the_clusters_where_its_source_is_in_force(
    fleet: Fleet, east: FakeKube
) -> None:
    """Its condition is that of its profiles."""
    assert east.version()
    fleet.deploy(EVENTS)
    fleet.write("east", service("a"))
    fleet.pump()

    status = status_of(fleet, TRIGGER)

    assert names(status["matchingClusters"]) == ["fleet/east"]
    [info] = status["clusterInfo"]
    assert (info["cluster"]["name"], info["status"]) == ("east", "Provisioned")
    assert info["hash"]
    assert truths(status) == READY
    assert status["conditions"][0]["message"] == "1 profile"


def test_a_trigger_without_its_source_waits(fleet: Fleet, east: FakeKube) -> None:
    """It neither works nor is it stalled: the source may come."""
    assert east.version()
    fleet.deploy(join(trigger(), holder("made", config("m"))))

    status = status_of(fleet, TRIGGER)

    assert status["clusterInfo"][0]["status"] == "Provisioning"
    assert truths(status) == {"Ready": "False", "Reconciling": "False", "Stalled": "False"}
    assert "watched" in status["conditions"][0]["message"]


def test_a_trigger_is_as_its_worst_profile(fleet: Fleet, east: FakeKube) -> None:
    """One that cannot be rendered stalls it."""
    assert east.version()
    broken = holder(
        "made", config("{{ .Resource.nothing }}"), annotations="projectsveltos.io/instantiate: ok"
    )
    fleet.deploy(join(source(), trigger(), broken))
    fleet.write("east", service("a"))
    fleet.pump()

    status = status_of(fleet, TRIGGER)

    assert truths(status) == STALLED
    assert status["conditions"][0]["message"].startswith("1 of 1 profiles: ")


def test_a_name_of_a_source_that_fails_is_a_failure_of_its_cluster(
    fleet: Fleet, east: FakeKube
) -> None:
    """The others are not concerned."""
    assert east.version()
    fleet.deploy(
        join(source(), trigger(origin="{{ .Cluster.nothing }}"), holder("made", config("m")))
    )

    [info] = status_of(fleet, TRIGGER)["clusterInfo"]

    assert info["status"] == "Failed"
    assert "nothing" in info["failureMessage"]


def test_a_set_has_the_clusters_that_match_and_those_that_are_selected(fleet: Fleet) -> None:
    """With maxReplicas these are fewer."""
    for name in ("a", "b", "c"):
        fleet.register(name, env="production")
    fleet.deploy(cluster_set(2))

    status = status_of(fleet, ("ClusterSet", "", "active"))

    assert len(status["matchingClusterRefs"]) == 3
    assert len(status["selectedClusterRefs"]) == 2
    assert truths(status) == READY


def test_a_classifier_names_the_clusters_with_their_labels(fleet: Fleet, east: FakeKube) -> None:
    """In the field that Sveltos misspells."""
    assert east.version()
    fleet.deploy(CLASSIFIER)
    fleet.resync()

    status = status_of(fleet, ("Classifier", "", "new"))

    [found] = status["machingClusterStatuses"]
    assert names([found["clusterRef"]]) == ["fleet/east"]
    assert found["managedLabels"] == ["age"]
    assert [each["status"] for each in status["clusterInfo"]] == ["Provisioned"]
    assert truths(status) == READY


def test_a_health_check_has_the_condition_of_each_cluster(tmp_path: Any) -> None:
    """Unhealthy clusters do not make the check itself fail."""
    fleet = Watched(tmp_path)
    fleet.register("east", env="production")
    fleet.deploy(health_check(), cluster_check())
    bad = service("bad")
    bad["metadata"]["annotations"] = {"state": "Degraded"}
    fleet.write("east", bad)
    fleet.resync()
    fleet.wait(timedelta(minutes=1), times=3)

    status = status_of(fleet, ("ClusterHealthCheck", "", "production"))

    assert names(status["matchingClusters"]) == ["fleet/east"]
    [found] = status["clusterCondition"]
    assert found["clusterInfo"]["cluster"]["name"] == "east"
    [condition] = found["conditions"]
    assert (condition["name"], condition["status"]) == ("services", "False")
    assert "bad" in condition["message"]
    assert truths(status) == READY
    fleet.close()
