"""Local policyRefs: deployed to `mgmt/mgmt` for the clusters of a profile, deleted with them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from bellhop.cli.deployed import AddOnFilter, list_addons
from bellhop.core.sveltos_annotations import OWNER
from bellhop.diagnosis import profile_manifests
from bellhop.errors import UnreachableError
from bellhop.operations import previews
from bellhop.operations.rollback import rollback
from bellhop.state.cluster import MANAGEMENT
from tests.fakes.fleet import Fleet
from tests.fakes.hosted import (
    CONFIG,
    EACH,
    TEMPLATE,
    hosted,
    local,
    management,
    names,
    outcome,
    two,
)
from tests.fakes.kept import require_value
from tests.fakes.kube import FakeKube
from tests.fakes.manifests import FOR_EACH, INSTANTIATE, config, holder, join, profile, trigger
from tests.fakes.manifests import source as watching


def forget(fleet: Fleet, name: str) -> None:
    """Take a cluster away."""
    fleet.declare.deregister(name)
    fleet.pump()


def test_local_objects_are_deployed_to_mgmt_for_each_cluster(fleet: Fleet) -> None:
    """Each cluster gets the Remote objects, and `mgmt/mgmt` the Local objects of both."""
    east, west, mgmt = two(fleet)

    fleet.deploy(join(local(), hosted(config(EACH))))

    assert (names(east), names(west)) == ({"own"}, {"own"})
    assert names(mgmt) == {"about-east", "about-west"}
    assert outcome(fleet, MANAGEMENT).phase == "Provisioned"


def test_a_host_misses_nothing_that_is_for_others(fleet: Fleet) -> None:
    """Remote objects are not for it: none of them is missing there."""
    *_, mgmt = two(fleet)
    fleet.deploy(join(local(), hosted("{{ if false }}x{{ end }}")))

    found = outcome(fleet, MANAGEMENT)
    assert (found.phase, found.message, names(mgmt)) == ("Provisioned", "", set())


def test_what_two_clusters_ask_for_alike_goes_with_the_last(fleet: Fleet) -> None:
    """One object is deployed for both, and stays until neither matches."""
    *_, mgmt = two(fleet)
    fleet.deploy(join(local(), hosted(config("shared", "for: all"))))
    assert names(mgmt) == {"shared"}

    fleet.declare.label("fleet/east", {"env": "test"})
    fleet.pump()
    assert names(mgmt) == {"shared"}

    fleet.declare.label("fleet/west", {"env": "test"})
    fleet.pump()
    assert names(mgmt) == set()
    assert fleet.records.outcomes.get(MANAGEMENT, "own") is None


def test_one_object_in_two_forms_is_a_conflict(fleet: Fleet) -> None:
    """The sentence names both clusters, and the Remote half is deployed all the same."""
    east, _, mgmt = two(fleet)

    fleet.deploy(join(local(), hosted(config("one", "of: '{{ .Cluster.metadata.name }}'"))))

    found = outcome(fleet, MANAGEMENT)
    assert (found.phase, found.reason, names(mgmt)) == ("FailedNonRetriable", "Conflict", set())
    assert "it is Local" in found.message
    assert "'fleet/east'" in found.message
    assert "'fleet/west'" in found.message
    assert names(east) == {"own"}


def test_what_cannot_be_rendered_for_one_cluster_harms_no_other(fleet: Fleet) -> None:
    """The other cluster's object is applied, none is removed, and the outcome names the cluster."""
    *_, mgmt = two(fleet)
    fleet.deploy(join(local(), hosted(config(EACH))))

    fails = '{{ if eq .Cluster.metadata.name "west" }}{{ fail "no" }}{{ end }}'
    fleet.deploy(hosted(config(f"new-{EACH}{fails}")))

    found = outcome(fleet, MANAGEMENT)
    assert names(mgmt) == {"about-east", "about-west", "new-about-east"}
    assert found.phase == "FailedNonRetriable"
    assert found.message.startswith("for cluster 'fleet/west': ")


def test_a_cluster_that_is_forgotten_takes_its_local_objects_along(fleet: Fleet) -> None:
    """Nothing is removed in the cluster itself, and what was Local for it goes."""
    east, _, mgmt = two(fleet)
    fleet.deploy(join(local(), hosted(config(EACH))))

    forget(fleet, "fleet/east")

    assert (names(east), names(mgmt)) == ({"own"}, {"about-west"})


@pytest.mark.parametrize("gone", ["ref", "profile"])
def test_local_objects_are_removed_with_their_ref_or_profile(fleet: Fleet, gone: str) -> None:
    """Nothing of them is left in `mgmt/mgmt`."""
    east, _, mgmt = two(fleet)
    fleet.deploy(join(local(), hosted(config(EACH))))

    if gone == "ref":
        fleet.apply(profile())
    else:
        fleet.declare.delete([("ClusterProfile", "", "own")])
    fleet.pump()

    assert names(mgmt) == set()
    assert names(east) == ({"own"} if gone == "ref" else set())
    assert fleet.records.outcomes.get(MANAGEMENT, "own") is None


def test_without_mgmt_remote_objects_are_deployed_and_the_status_says_so(fleet: Fleet) -> None:
    """One sentence says which cluster to register; then the Local objects follow."""
    east = fleet.register("east", env="production")

    fleet.deploy(join(local(), hosted(config(EACH))))

    found = outcome(fleet, "fleet/east")
    assert (names(east), found.phase, found.reason) == ({"own"}, "FailedNonRetriable", "Missing")
    assert found.message == (
        "cannot deploy what is Local of 'own': no cluster is registered as 'mgmt/mgmt'; register"
        " the one that it is for by that name"
    )

    mgmt = management(fleet)
    fleet.pump()

    assert names(mgmt) == {"about-east"}
    assert outcome(fleet, "fleet/east").phase == "Provisioned"

    forget(fleet, MANAGEMENT)

    assert outcome(fleet, "fleet/east").reason == "Missing"


def test_mgmt_may_be_one_of_the_clusters_itself(fleet: Fleet) -> None:
    """It gets what is Remote for itself, and what is Local for all, as one whole."""
    fleet.register("east", env="production")
    mgmt = management(fleet, env="production")

    fleet.deploy(join(local(), hosted(config(EACH))))
    assert names(mgmt) == {"own", "about-east", "about-mgmt"}
    assert outcome(fleet, MANAGEMENT).phase == "Provisioned"

    fleet.declare.label(MANAGEMENT, {"env": "test"})
    fleet.pump()
    assert names(mgmt) == {"about-east"}


def test_a_mgmt_that_is_away_keeps_no_other_cluster_waiting(fleet: Fleet) -> None:
    """The clusters get what is theirs, and what is Local follows once it answers."""
    east, west, mgmt = two(fleet)
    mgmt.fail_with(UnreachableError("it does not answer"))

    fleet.deploy(join(local(), hosted(config(EACH))))

    assert (names(east), names(west)) == ({"own"}, {"own"})
    assert outcome(fleet, MANAGEMENT).phase == "Failed"
    assert outcome(fleet, "fleet/east").phase == "Provisioned"


def test_a_label_of_a_cluster_renders_local_objects_again(fleet: Fleet) -> None:
    """The objects of the former label are removed from `mgmt/mgmt`."""
    *_, mgmt = two(fleet)
    by_label = "{{ .Cluster.metadata.labels.zone }}"
    fleet.declare.label("fleet/east", {"env": "production", "zone": "a"})
    fleet.declare.label("fleet/west", {"env": "production", "zone": "b"})
    fleet.deploy(join(local(), hosted(config(by_label))))
    assert names(mgmt) == {"a", "b"}

    fleet.declare.label("fleet/east", {"env": "production", "zone": "c"})
    fleet.pump()

    assert names(mgmt) == {"b", "c"}


def test_one_time_deploys_local_objects_for_each_new_cluster(fleet: Fleet) -> None:
    """Changed manifests are ignored; a cluster that is selected later gets its Local objects."""
    fleet.register("east", env="production")
    mgmt = management(fleet)
    fleet.deploy(join(local("syncMode: OneTime"), hosted(config(EACH, "v: one"))))

    fleet.deploy(hosted(config(EACH, "v: two")))
    (found,) = mgmt.objects(CONFIG)
    assert found["data"] == {"v": "one"}

    fleet.register("west", env="production")
    fleet.pump()
    assert names(mgmt) == {"about-east", "about-west"}


@pytest.mark.parametrize(("gone", "left"), [("cluster", "about-east"), ("ref", "")])
def test_what_is_left_for_a_cluster_stays_without_marks(fleet: Fleet, gone: str, left: str) -> None:
    """By LeavePolicies what was Local for a cluster stays with it; with its ref it goes."""
    *_, mgmt = two(fleet)
    leaves = "stopMatchingBehavior: LeavePolicies"
    fleet.deploy(join(local(leaves), hosted(config(EACH))))

    if gone == "cluster":
        fleet.declare.label("fleet/east", {"env": "test"})
    else:
        other = "{kind: ConfigMap, name: other, namespace: default, deploymentType: Local}"
        kept = local(leaves).replace(
            "{kind: ConfigMap, name: here, namespace: default, deploymentType: Local}", other
        )
        fleet.apply(join(kept, holder("other", config("other"))))
    fleet.pump()

    there = {each["metadata"]["name"]: each["metadata"] for each in mgmt.objects(CONFIG)}
    unmarked = [
        name for name, metadata in there.items() if OWNER not in (metadata.get("annotations") or {})
    ]
    assert unmarked == [left] * bool(left)
    assert ("about-east" in there) == bool(left)


def test_checks_and_steps_are_not_about_mgmt(fleet: Fleet) -> None:
    """No check asks it, no maxUpdate counts it, and no dependsOn waits for it."""
    _, _, mgmt = two(fleet)
    check = "{name: never, featureID: Resources, group: '', version: v1, kind: ConfigMap, "
    asks = f"preDeployChecks: [{check}evaluateCEL: [{{name: never, rule: 'false'}}]}}]"
    more = f"maxUpdate: 1\n  dependsOn: [first]\n  {asks}"

    fleet.deploy(join(local(more), hosted(config(EACH))))

    assert names(mgmt) == {"about-east", "about-west"}
    assert outcome(fleet, "fleet/east").reason == "Waiting"


def test_a_profile_deploys_local_objects_only_to_its_own_namespace(fleet: Fleet) -> None:
    """Objects without a namespace go there; another namespace, or none at all, is refused."""
    fleet.register("east", env="production")
    mgmt = management(fleet)
    one = local(namespace="fleet")
    own = holder("own", config("own"), namespace="fleet")
    bare = config("bare").replace(", namespace: default", "")
    fleet.deploy(join(one, own, holder("here", bare, namespace="fleet")))
    (found,) = mgmt.objects(CONFIG)
    assert found["metadata"]["namespace"] == "fleet"

    fleet.deploy(holder("here", config("elsewhere"), namespace="fleet"))

    said = outcome(fleet, MANAGEMENT, "fleet/own")
    assert said.phase == "FailedNonRetriable"
    assert said.message == (
        "cannot deploy Local ConfigMap 'elsewhere' in namespace 'default': what is Local of Profile"
        " 'fleet/own' can only be in its own namespace; write it into 'fleet', or a ClusterProfile"
    )


def service(name: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {}}


def test_a_trigger_deploys_local_objects_for_each_event(fleet: Fleet) -> None:
    """They are removed from `mgmt/mgmt` when the event is over."""
    fleet.register("east", env="production")
    mgmt = management(fleet)
    made = trigger().replace(
        "name: made, namespace: default}]",
        "name: made, namespace: default, deploymentType: Local}]",
    )
    brought = holder("made", config(FOR_EACH), annotations=INSTANTIATE)
    fleet.apply(join(watching(), made, brought))

    stored = fleet.write("east", service("web"))
    fleet.pump()
    assert names(mgmt) == {"for-web"}

    fleet.drop("east", stored)
    fleet.pump()
    assert names(mgmt) == set()


def test_what_templates_read_is_read_for_each_cluster(fleet: Fleet) -> None:
    """Each cluster's own ConfigMap is in what is Local for it, and followed when it changes."""
    *_, mgmt = two(fleet)
    reads = "{kind: ConfigMap, apiVersion: v1, name: 'of-{{ .Cluster.metadata.name }}'}"
    more = f"templateResourceRefs: [{{identifier: Own, resource: {reads}}}]"
    made = config(EACH, "v: '{{ (getResource \"Own\").data.v }}'")

    def given(name: str, value: str) -> str:
        return config(f"of-{name}", f"v: {value}", namespace="fleet")

    fleet.deploy(join(local(more), hosted(made), given("east", "one"), given("west", "two")))
    found = {each["metadata"]["name"]: each["data"]["v"] for each in mgmt.objects(CONFIG)}
    assert found == {"about-east": "one", "about-west": "two"}

    fleet.deploy(given("west", "three"))
    found = {each["metadata"]["name"]: each["data"]["v"] for each in mgmt.objects(CONFIG)}
    assert found == {"about-east": "one", "about-west": "three"}


def test_a_dry_run_reports_local_objects_and_writes_nothing(fleet: Fleet) -> None:
    """Only the preview of `mgmt/mgmt` lists them."""
    *_, mgmt = two(fleet)

    fleet.deploy(join(local("syncMode: DryRun"), hosted(config(EACH))))

    told = {
        cluster: [(each.action, each.key.name) for each in kept.value.changes]
        for cluster in (MANAGEMENT, "fleet/east")
        if (kept := fleet.records.previews.get(cluster, "own"))
    }
    assert told == {
        MANAGEMENT: [("Create", "about-east"), ("Create", "about-west")],
        "fleet/east": [("Create", "own")],
    }
    assert names(mgmt) == set()

    found = list(previews.preview_now(fleet.installation(), "own", MANAGEMENT))
    assert [
        each.change.key.name for each in found if isinstance(each, previews.PreviewedChange)
    ] == [
        "about-east",
        "about-west",
    ]


def test_a_rollback_restores_local_objects(fleet: Fleet) -> None:
    """A revision without Local objects removes them from `mgmt/mgmt` again."""
    *_, mgmt = two(fleet)
    fleet.deploy(join(local(), hosted(config(EACH))))
    fleet.deploy(profile())
    assert names(mgmt) == set()

    rollback(fleet.installation(), "own")
    fleet.pump()
    assert names(mgmt) == {"about-east", "about-west"}

    rollback(fleet.installation(), "own", 2)
    fleet.pump()
    assert names(mgmt) == set()


def test_users_see_where_local_objects_are_and_for_which_clusters(fleet: Fleet) -> None:
    """The list of add-ons names the cluster; the manifest has the ref as it was declared."""
    two(fleet)
    fleet.deploy(join(local(), hosted(config(EACH))))
    here = fleet.installation()

    rows = {
        (row["cluster"], row["deploymentType"])
        for row in list_addons(here, AddOnFilter(profile="own"))
    }
    assert rows == {
        (MANAGEMENT, "Management cluster"),
        ("fleet/east", "Managed cluster"),
        ("fleet/west", "Managed cluster"),
    }
    kept = require_value(fleet.records.profiles.get("", "", "own"))
    spec = profile_manifests.manifest(kept, "")["spec"]
    assert [each["name"] for each in spec["clusterRefs"]] == ["east", "west"]
    assert [each.get("deploymentType") for each in spec["policyRefs"]] == [None, "Local"]
    assert kept.destinations == ("fleet/east", "fleet/west", MANAGEMENT)


def test_many_clusters_are_read_in_one_query(fleet: Fleet) -> None:
    """Each of them has what is Local for it, and nobody reads them one by one."""
    fleet.register("east", env="production")
    mgmt = management(fleet)
    many = [f"c{number}" for number in range(40)]
    for name in many:
        fleet.register(name, env="production")

    fleet.deploy(join(local(), hosted(config(EACH))))

    assert names(mgmt) == {f"about-{name}" for name in ["east", *many]}


class Slow(FakeKube):
    """A cluster in which something else happens while an object is applied, once."""

    def __init__(self, meanwhile: Callable[[], object]) -> None:
        super().__init__(MANAGEMENT)
        self._left = [meanwhile]

    def apply(self, *args: Any, **kwargs: Any) -> Any:
        if self._left:
            self._left.pop()()
        return super().apply(*args, **kwargs)


def test_a_label_that_changes_meanwhile_is_seen_at_the_end(fleet: Fleet) -> None:
    """A slow worker reads the clusters for which it rendered once more."""
    fleet.register("east", env="production", zone="a")

    def relabel() -> None:
        found = require_value(fleet.records.clusters.get("fleet/east"))
        labels = {"env": "production", "zone": "b"}
        fleet.records.clusters.put(replace(found, labels=labels))

    management(fleet)
    mgmt = fleet.access.clusters[MANAGEMENT] = Slow(relabel)
    fleet.deploy(join(local(), hosted(config("{{ .Cluster.metadata.labels.zone }}"))))

    assert names(mgmt) == {"b"}


def zoned(fleet: Fleet, zone: str) -> None:
    """Label a cluster by what the Local object is named after."""
    fleet.declare.label("fleet/east", {"env": "production", "zone": zone})
    fleet.pump()


ZONED = "{{ .Cluster.metadata.labels.zone }}"


def declared_before(fleet: Fleet) -> str:
    """Have a profile made of what is Local, and then of what is not; return its name."""
    fleet.deploy(join(local(), hosted(config(ZONED))))
    fleet.apply(profile())
    return "own"


def triggered_before(fleet: Fleet) -> str:
    """Have a trigger's profile made of what is Local, and then of what is not; return its name."""
    ref = "name: made, namespace: default}]"
    made = trigger().replace(ref, ref.replace("}", ", deploymentType: Local}"))
    fleet.apply(join(watching(), made, holder("made", config(ZONED), annotations=TEMPLATE)))
    fleet.write("east", service("web"))
    fleet.pump()
    fleet.apply(trigger())
    (found,) = fleet.records.profiles.heads("made")
    return found.name


@pytest.fixture(params=[declared_before, triggered_before])
def rolled_back(fleet: Fleet, request: pytest.FixtureRequest) -> str:
    """Have a profile hold what is Local, though nothing that is declared is."""
    fleet.register("east", env="production")
    zoned(fleet, "a")
    name: str = request.param(fleet)
    fleet.pump()
    rollback(fleet.installation(), name)
    fleet.pump()
    return name


@pytest.mark.usefixtures("rolled_back")
def test_what_was_rolled_back_follows_the_labels_of_its_clusters(fleet: Fleet) -> None:
    """Its Local objects are rendered again, though no present manifest is Local."""
    mgmt = management(fleet)
    fleet.pump()
    assert names(mgmt) == {"a"}

    zoned(fleet, "b")

    assert names(mgmt) == {"b"}


def test_what_was_rolled_back_goes_to_a_mgmt_that_comes(fleet: Fleet, rolled_back: str) -> None:
    """The status says that there is none, before it is registered and after it is deregistered."""
    assert outcome(fleet, "fleet/east", rolled_back).reason == "Missing"

    mgmt = management(fleet)
    fleet.pump()
    assert names(mgmt) == {"a"}
    assert outcome(fleet, "fleet/east", rolled_back).phase == "Provisioned"

    forget(fleet, MANAGEMENT)

    assert outcome(fleet, "fleet/east", rolled_back).reason == "Missing"


def test_the_label_of_a_cluster_asks_for_nothing_local_of_others(fleet: Fleet) -> None:
    """A profile that was rolled back is not applied for a cluster that it does not select."""
    fleet.register("west", env="test")
    fleet.register("east", env="production")
    mgmt = management(fleet)
    zoned(fleet, "a")
    name = declared_before(fleet)
    fleet.pump()
    rollback(fleet.installation(), name)
    fleet.pump()
    mgmt.calls.clear()
    fleet.declare.label("fleet/west", {"zone": "x"})
    fleet.pump()

    assert (names(mgmt), mgmt.calls) == ({"a"}, [])
