"""Profiles and Sets of a namespace reach only its clusters, its sets and its contents."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from functools import partial

import pytest

from bellhop.core.sveltos_annotations import OWNER
from bellhop.state.cluster import Cluster, SetSelection
from bellhop.state.deployment import DeploymentStatus
from tests.fakes.clock import START
from tests.fakes.fleet import Fleet
from tests.fakes.kept import value_of
from tests.fakes.kube import CONFIG, FakeKube
from tests.fakes.manifests import cluster_set, config, holder, join

PROD = "clusterSelector: {matchLabels: {env: production}}"


def profile(namespace: str = "a", *, selected: str = PROD, ref: str = "own", more: str = "") -> str:
    """Return a Profile, or without a namespace a ClusterProfile, by the name `x`."""
    kind, place = ("Profile", f", namespace: {namespace}") if namespace else ("ClusterProfile", "")
    return f"""
apiVersion: config.projectsveltos.io/v1beta1
kind: {kind}
metadata: {{name: x{place}}}
spec:
  {selected}
  policyRefs: [{{kind: ConfigMap, name: {ref}, namespace: b}}]
  {more}
"""


a_set = partial(cluster_set, name="x")


def contents(namespace: str, *names: str, ref: str = "own", annotations: str = "") -> str:
    """Return what a profile refers to, in a namespace."""
    return holder(ref, *map(config, names), annotations=annotations, namespace=namespace)


def register(fleet: Fleet, *keys: str) -> list[FakeKube]:
    """Register clusters in production, each in the namespace that its key has."""
    for key in keys:
        namespace, _, name = key.partition("/")
        fleet.access.clusters.setdefault(key, FakeKube(key))
        labels = {"env": "production"}
        fleet.declare.register(Cluster(namespace, name, labels, "v1.34.2", key, START))
    return [fleet.access.clusters[key] for key in keys]


def deployed(kube: FakeKube) -> dict[str, tuple[str, str]]:
    """Return the objects that are in a cluster by name, with the kind and name of their owner."""
    found = {}
    for each in kube.objects(CONFIG):
        marks: Mapping[str, str] = each["metadata"].get("annotations") or {}
        owner = marks.get("projectsveltos.io/owner-kind", ""), marks.get(OWNER, "")
        found[each["metadata"]["name"]] = owner
    return found


def ended(fleet: Fleet) -> DeploymentStatus:
    """Return how it ended with the Profile of namespace a in its cluster `one`."""
    found = value_of(fleet.records.outcomes.get("a/one", "a/x"))
    assert found
    return found


def goes(fleet: Fleet, name: str) -> tuple[str, ...]:
    """Return the clusters that a profile goes to."""
    found = fleet.records.profiles.get("", "", name)
    return found.value.destinations if found else ()


def chosen(fleet: Fleet) -> dict[str, SetSelection]:
    return {place: kept.value for place, kept in fleet.records.choices.all().items()}


@pytest.mark.parametrize(
    "selected",
    [
        PROD,
        "clusterRefs: [{name: one}, {namespace: b, name: two}]",
        "setRefs: [x]",
    ],
)
def test_a_profile_reaches_only_the_clusters_of_its_namespace(fleet: Fleet, selected: str) -> None:
    """By labels, by name and by a set; what it refers to is in its own namespace, too."""
    here, there = register(fleet, "a/one", "b/two")
    fleet.apply(profile(selected=selected), contents("a", "mine"), contents("b", "theirs"))
    fleet.deploy(a_set(namespace="a"), a_set(namespace="b"), a_set())

    assert deployed(here) == {"mine": ("Profile", "a/x")}
    assert deployed(there) == {}


def test_three_of_one_name_are_three(fleet: Fleet) -> None:
    """Two Profiles and a ClusterProfile; one that goes takes its own along."""
    one, two = register(fleet, "a/one", "b/two")
    fleet.apply(profile(), profile("b"), profile("", ref="all"))
    fleet.deploy(contents("a", "of-a"), contents("b", "of-b"), contents("b", "of-all", ref="all"))
    everybody = {"of-all": ("ClusterProfile", "x")}
    assert deployed(one) == {"of-a": ("Profile", "a/x"), **everybody}
    assert deployed(two) == {"of-b": ("Profile", "b/x"), **everybody}

    fleet.delete("Profile", "x", "a")

    assert deployed(one) == everybody
    assert set(deployed(two)) == {"of-b", "of-all"}
    fleet.delete("ClusterProfile", "x")
    assert (deployed(one), set(deployed(two))) == ({}, {"of-b"})


def test_of_a_profile_and_a_clusterprofile_the_lower_tier_has_the_object(fleet: Fleet) -> None:
    """Both are called x; who comes first keeps it, until the other asks with a lower tier."""
    (kube,) = register(fleet, "a/one")
    fleet.deploy(profile(""), contents("b", "shared"))
    fleet.deploy(profile(), contents("a", "shared"))
    assert deployed(kube) == {"shared": ("ClusterProfile", "x")}
    assert "profile 'x' of tier 100 has it; give 'a/x' a lower tier" in ended(fleet).message

    fleet.deploy(profile(more="tier: 50"))
    assert deployed(kube) == {"shared": ("Profile", "a/x")}

    fleet.delete("Profile", "x", "a")
    assert deployed(kube) == {"shared": ("ClusterProfile", "x")}


def test_sets_of_one_name_choose_by_themselves(fleet: Fleet) -> None:
    """Each among the clusters that it may have; one that goes leaves the others' choices."""
    register(fleet, "a/one", "a/two", "b/one")
    fleet.deploy(a_set(namespace="a"), a_set(2, namespace="b"), a_set())
    assert chosen(fleet) == {
        "a/x": SetSelection(("a/one",)),
        "b/x": SetSelection(("b/one",)),
        "x": SetSelection(("a/one",)),
    }

    fleet.declare.label("a/one", {"env": None})
    fleet.pump()
    assert chosen(fleet)["a/x"] == chosen(fleet)["x"] == SetSelection(("a/two",))
    fleet.delete("Set", "x", "a")
    assert chosen(fleet) == {"b/x": SetSelection(("b/one",)), "x": SetSelection(("a/two",))}


def test_a_set_that_changes_moves_its_profile(fleet: Fleet) -> None:
    """Half-way too: what the cluster that is left has got by then is taken back."""
    one, two = register(fleet, "a/one", "a/two")
    fleet.deploy(profile(selected="setRefs: [x]"), contents("a", "mine"), a_set(namespace="a"))
    assert (set(deployed(one)), set(deployed(two))) == ({"mine"}, set())

    fleet.apply(a_set(namespace="a", env="test"))
    fleet.declare.label("a/two", {"env": "test"})
    fleet.pump()

    assert (set(deployed(one)), set(deployed(two))) == (set(), {"mine"})


def test_a_cluster_that_moves_to_another_namespace_is_another_cluster(fleet: Fleet) -> None:
    """It gets the add-ons of the Profile there; of the first one nothing is asked any more."""
    (kube,) = register(fleet, "a/one")
    fleet.deploy(profile(), profile("b"), contents("a", "of-a"), contents("b", "of-b"))
    assert set(deployed(kube)) == {"of-a"}

    fleet.declare.deregister("a/one")
    fleet.access.clusters["b/one"] = kube
    register(fleet, "b/one")
    fleet.pump()

    assert set(deployed(kube)) == {"of-a", "of-b"}
    assert (goes(fleet, "a/x"), goes(fleet, "b/x")) == ((), ("b/one",))
    assert not list(fleet.records.inventories.of("a/one"))


def test_a_profile_that_goes_while_its_cluster_leaves_leaves_nothing(fleet: Fleet) -> None:
    """Neither in the clusters nor in the records, whichever is quicker."""
    one, two = register(fleet, "a/one", "a/two")
    fleet.deploy(profile(), contents("a", "mine"))

    fleet.declare.label("a/one", {"env": "test"})
    fleet.declare.delete([("Profile", "a", "x")])
    fleet.declare.deregister("a/two")
    fleet.pump()

    assert deployed(one) == {}
    assert set(deployed(two)) == {"mine"}
    assert fleet.records.profiles.get("", "", "a/x") is None
    assert not list(fleet.records.outcomes.of("a/one"))


def test_contents_that_change_follow_in_their_namespace(fleet: Fleet) -> None:
    """A ConfigMap of that name in another namespace changes nothing, though the ref names it."""
    (kube,) = register(fleet, "a/one")
    fleet.deploy(profile(), contents("a", "first"))
    fleet.apply(contents("b", "other"))
    assert fleet.pump() == 0
    fleet.deploy(contents("a", "second"))

    assert set(deployed(kube)) == {"second"}


READS = (
    "templateResourceRefs: [{identifier: It, resource: "
    "{apiVersion: v1, kind: Secret, namespace: b, name: login}}]"
)
SECRET = (
    "apiVersion: v1\nkind: Secret\nmetadata: {name: login, namespace: %s}\nstringData: {u: %s}\n"
)
DEPLOY_TIME = "projectsveltos.io/template: ok"
WRITES = """
apiVersion: v1
kind: ConfigMap
metadata: {name: made, namespace: default}
data: {u: '{{ (getResource "It").data.u }}'}
"""


def test_templates_read_only_their_own_namespace(fleet: Fleet) -> None:
    """A Secret of another namespace is not there, whatever the ref says."""
    (kube,) = register(fleet, "a/one")
    text = holder("own", WRITES, annotations=DEPLOY_TIME, namespace="a")
    fleet.deploy(profile(more=READS), text, SECRET % ("b", "theirs"))
    assert "cannot find Secret 'a/login'" in ended(fleet).message

    fleet.apply(SECRET % ("a", "mine"))
    fleet.wait(timedelta(minutes=1))
    (made,) = kube.objects(CONFIG)
    assert made["data"] == {"u": "bWluZQ=="}


def test_templates_read_nothing_that_has_no_namespace(fleet: Fleet) -> None:
    """A tenant may not read objects without a namespace; a ClusterProfile may."""
    (kube,) = register(fleet, "a/one")
    reads = READS.replace("v1, kind: Secret", "lib.projectsveltos.io/v1beta1, kind: ClusterSet")
    reads = reads.replace("name: login", "name: x")
    name = '{{ (getResource "It").metadata.name }}'
    for namespace in ("a", "b"):
        fleet.apply(contents(namespace, name, annotations=DEPLOY_TIME))
    fleet.deploy(a_set(), profile(more=reads))
    assert ended(fleet).phase == "FailedNonRetriable"
    assert "cannot read ClusterSet 'x' for Profile 'a/x'" in ended(fleet).message
    assert deployed(kube) == {}

    fleet.deploy(profile("", more=reads))
    assert deployed(kube) == {"x": ("ClusterProfile", "x")}


def test_a_profile_may_be_tried_dry_and_paused(fleet: Fleet) -> None:
    """As a ClusterProfile: what would change is noted, and nothing is done."""
    (kube,) = register(fleet, "a/one")
    fleet.deploy(profile(more="syncMode: DryRun"), contents("a", "mine"))
    assert deployed(kube) == {}
    (preview,) = fleet.records.previews.of("a/one")
    assert (preview.profile, [each.action for each in preview.changes]) == ("a/x", ["Create"])

    paused = profile().replace(
        "namespace: a}", "namespace: a, annotations: {profile.projectsveltos.io/paused: ''}}"
    )
    fleet.deploy(join(profile()))
    fleet.deploy(paused, contents("a", "other"))
    assert set(deployed(kube)) == {"mine"}


def test_an_object_that_a_profile_may_not_apply_is_refused_by_its_name(fleet: Fleet) -> None:
    """The annotation counts for a Profile, too."""
    (kube,) = register(fleet, "a/one")
    fleet.deploy(
        profile().replace(
            "namespace: a}", "namespace: a, annotations: {bellhop.dev/allow: Secret in a}}"
        ),
        contents("a", "mine"),
    )

    assert deployed(kube) == {}
    found = value_of(fleet.records.profiles.get("", "", "a/x"))
    assert found
    assert "Profile 'a/x' may not deploy a ConfigMap" in found.error
