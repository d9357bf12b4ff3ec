"""Which of all that is declared concerns a cluster."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from bellhop.api.kinds import (
    ClusterProfile,
    ClusterSet,
    DeclarationKey,
    EventSource,
    EventTrigger,
    of,
)
from bellhop.catalog.catalog import Catalog, cluster_object
from bellhop.core.gvk import GVK, Resource
from bellhop.declarations.diff import compare_catalogs
from bellhop.registration.permissions import list_watched
from bellhop.state.cluster import Cluster, SetSelection
from tests.fakes.clock import START

SERVICE, POD = GVK("", "v1", "Service"), GVK("", "v1", "Pod")
LIB = "lib.projectsveltos.io/v1beta1"
REFS = [{"kind": "ConfigMap", "name": "c", "namespace": "default"}]


def cluster(name: str, **labels: str) -> Cluster:
    return Cluster("fleet", name, labels, "v1.34.2", "digest", START)


def source(name: str, *kinds: str, **spec: Any) -> EventSource:
    selectors = [{"group": "", "version": "v1", "kind": kind} for kind in kinds]
    found = of(
        {
            "apiVersion": LIB,
            "kind": "EventSource",
            "metadata": {"name": name},
            "spec": {"resourceSelectors": selectors, **spec},
        }
    )
    assert isinstance(found, EventSource)
    return found


def trigger(name: str, origin: str, **spec: Any) -> EventTrigger:
    found = of(
        {
            "apiVersion": LIB,
            "kind": "EventTrigger",
            "metadata": {"name": name},
            "spec": {
                "sourceClusterSelector": {"matchLabels": {"env": "prod"}},
                "eventSourceName": origin,
                "policyRefs": REFS,
                **spec,
            },
        }
    )
    assert isinstance(found, EventTrigger)
    return found


def profile(**spec: Any) -> ClusterProfile:
    found = of(
        {
            "apiVersion": "config.projectsveltos.io/v1beta1",
            "kind": "ClusterProfile",
            "metadata": {"name": "p"},
            "spec": {"policyRefs": REFS, **spec},
        }
    )
    assert isinstance(found, ClusterProfile)
    return found


CLUSTERS = (cluster("east", env="prod"), cluster("west", env="prod", dep="eng"), cluster("idle"))


def catalog(*kinds: EventSource | EventTrigger | ClusterProfile) -> Catalog:
    return Catalog(
        1,
        CLUSTERS,
        (kind for kind in kinds if isinstance(kind, EventSource)),
        (kind for kind in kinds if isinstance(kind, EventTrigger)),
        (kind for kind in kinds if isinstance(kind, ClusterProfile)),
    )


def test_a_source_is_in_force_where_a_trigger_selects_the_cluster() -> None:
    """Without a trigger it is nowhere; a trigger without its source puts none into force."""
    known = catalog(
        source("used", "Service", "Pod"),
        source("unused", "Pod"),
        trigger("b", "used"),
        trigger("a", "used"),
        trigger("c", "missing"),
    )

    assert known.sources_in("fleet/east") == ("used",)
    assert known.kinds_in("fleet/east") == (POD, SERVICE)
    assert known.sources_for("fleet/east", SERVICE) == (known.sources["used"],)
    assert known.sources_for("fleet/east", GVK("", "v1", "Node")) == ()
    assert set(known.triggers_on("fleet/east", "used")) == {"a", "b"}
    assert known.source_of(known.triggers["a"], "fleet/east") == known.sources["used"]
    assert known.source_of(known.triggers["c"], "fleet/east") is None
    for cluster_name in ("fleet/idle", "fleet/unknown"):
        assert known.sources_in(cluster_name) == ()
        assert known.kinds_in(cluster_name) == ()
        assert known.triggers_on(cluster_name, "used") == ()


def test_a_source_may_be_named_by_a_template_over_the_cluster() -> None:
    """Each cluster has the source that its own name or labels lead to."""
    known = catalog(
        source("of-east", "Service"),
        source("of-eng", "Pod"),
        trigger("named", "of-{{ .Cluster.metadata.name }}"),
        trigger("labelled", 'of-{{ index .Cluster.metadata.labels "dep" | default "east" }}'),
    )

    assert known.sources_in("fleet/east") == ("of-east",)
    assert set(known.triggers_on("fleet/east", "of-east")) == {"named", "labelled"}
    assert known.sources_in("fleet/west") == ("of-eng",)
    assert known.triggers_on("fleet/west", "of-eng") == ("labelled",)


def test_a_trigger_that_names_no_source_says_why_and_harms_no_other() -> None:
    """It is in force except in clusters for which its template fails."""
    known = catalog(
        source("eng", "Service"),
        trigger("broken", "{{ .Cluster.metadata.labels.dep }}"),
        trigger("sound", "eng"),
    )

    assert known.triggers_on("fleet/east", "eng") == ("sound",)
    assert set(known.triggers_on("fleet/west", "eng")) == {"broken", "sound"}
    assert list(known.problems_in("fleet/east")) == ["broken"]
    assert "dep" in str(known.problems_in("fleet/east")["broken"])
    assert known.problems_in("fleet/west") == {}
    assert known.problems_in("fleet/unknown") == {}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({}, ("fleet/east",), id="no selector means the source itself"),
        pytest.param(
            {"destinationClusterSelector": {"matchLabels": {"dep": "eng"}}},
            ("fleet/west",),
            id="another cluster",
        ),
        pytest.param(
            {"destinationClusterSelector": {"matchLabels": {"env": "prod"}}},
            ("fleet/east", "fleet/west"),
            id="the source is one of several",
        ),
        pytest.param(
            {"destinationClusterSelector": {}}, ("fleet/east",), id="an empty one is none at all"
        ),
    ],
)
def test_destinations_are_those_selected(spec: dict[str, Any], expected: tuple[str, ...]) -> None:
    """By name, so that a profile is the same each time."""
    known = catalog(trigger("t", "s", **spec))

    assert known.destinations(known.triggers["t"], "fleet/east") == expected


def test_a_deleted_source_is_no_destination() -> None:
    """What would go to the cluster of the event goes nowhere once it is forgotten."""
    known = catalog(trigger("t", "s"))

    assert known.destinations(known.triggers["t"], "fleet/unknown") == ()


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param(
            {"clusterSelector": {"matchLabels": {"dep": "eng"}}}, ("fleet/west",), id="selected"
        ),
        pytest.param(
            {"clusterRefs": [{"namespace": "fleet", "name": "idle"}]}, ("fleet/idle",), id="named"
        ),
        pytest.param(
            {
                "clusterSelector": {"matchLabels": {"dep": "eng"}},
                "clusterRefs": [
                    {"namespace": "fleet", "name": "west"},
                    {"namespace": "fleet", "name": "gone"},
                    {"namespace": "other", "name": "idle"},
                ],
            },
            ("fleet/west",),
            id="both, and names of nobody",
        ),
        pytest.param({}, (), id="neither"),
    ],
)
def test_profiles_go_where_they_say(spec: dict[str, Any], expected: tuple[str, ...]) -> None:
    """Each cluster once."""
    assert catalog().profile_destinations(profile(**spec)) == expected


@pytest.mark.parametrize(
    ("changed", "same"),
    [
        pytest.param(catalog(source("s", "Service"), trigger("t", "s")), True, id="nothing"),
        pytest.param(
            catalog(source("s", "Service"), source("x", "Pod"), trigger("t", "s")),
            True,
            id="a source that is not in force",
        ),
        pytest.param(catalog(source("s", "Pod"), trigger("t", "s")), False, id="a kind"),
        pytest.param(
            catalog(source("s", "Service", collectResources=True), trigger("t", "s")),
            False,
            id="what is collected",
        ),
        pytest.param(
            catalog(source("s", "Service"), trigger("t", "s"), trigger("u", "s")),
            True,
            id="who is told",
        ),
        pytest.param(catalog(source("s", "Service")), False, id="no trigger"),
    ],
)
def test_an_evaluation_changes_with_its_inputs(changed: Catalog, *, same: bool) -> None:
    """And with nothing else, so that resyncs evaluate everything only when they must."""
    before = catalog(source("s", "Service"), trigger("t", "s"))

    assert (changed.judgement("fleet/east") == before.judgement("fleet/east")) is same
    assert changed.judgement("fleet/idle") == before.judgement("fleet/idle")


def cluster_set(name: str, **spec: Any) -> ClusterSet:
    found = of({"apiVersion": LIB, "kind": "ClusterSet", "metadata": {"name": name}, "spec": spec})
    assert isinstance(found, ClusterSet)
    return found


PROD = {"clusterSelector": {"matchLabels": {"env": "prod"}}}
ONE = cluster_set("one", **PROD, maxReplicas=1)
BY_SET: dict[str, Any] = {"sourceClusterSelector": {}, "clusterSetRefs": ["one", "absent"]}


def with_selection(*clusters: str) -> Catalog:
    sets = {"one": SetSelection(clusters)}
    return Catalog(
        1, CLUSTERS, [source("s", "Service")], [trigger("t", "s", **BY_SET)], (), [ONE], sets
    )


def test_a_set_has_the_clusters_that_it_chose_while_it_selects_them() -> None:
    """A choice is older than the labels; one of a set that is not there says nothing."""
    known = with_selection("fleet/idle", "fleet/west", "fleet/gone")

    assert [key for key in known.clusters if known.has("one", key)] == ["fleet/west"]
    assert known.pool("one") == ["fleet/east", "fleet/west"]
    assert known.sources_in("fleet/west") == ("s",)
    assert known.sources_in("fleet/east") == ()
    assert known.profile_destinations(profile(setRefs=["one", "absent"])) == ("fleet/west",)


@pytest.mark.parametrize("rules", [False, True])
def test_a_choice_changes_what_is_known_of_those_it_moves(*, rules: bool) -> None:
    """The rules may be read again beside it or not."""
    known = with_selection("fleet/west")
    assert [*map(known.sources_in, known.clusters)] == [(), ("s",), ()]
    sets = {"one": SetSelection(("fleet/east",))}

    later = (
        known.with_rules(2, CLUSTERS, {}, sets) if rules else known.with_clusters(2, CLUSTERS, sets)
    )

    assert [*map(later.sources_in, later.clusters)] == [("s",), (), ()]


def test_a_changed_set_changes_only_its_triggers() -> None:
    """Without its limit it has all that it selects; deleted, none."""
    known = with_selection("fleet/west")
    assert known.sources_in("fleet/east") == ()
    all_of_them = cluster_set("one", **PROD)

    wider = known.with_rules(2, CLUSTERS, {ONE.key: all_of_them})
    deleted = wider.with_rules(3, CLUSTERS, {ONE.key: None})

    assert [*map(wider.sources_in, wider.clusters)] == [("s",), ("s",), ()]
    assert [*map(deleted.sources_in, deleted.clusters)] == [(), (), ()]
    assert compare_catalogs(wider, deleted, [ONE.key]).instantiated == {
        ("t", "fleet/east"),
        ("t", "fleet/west"),
    }


def test_registration_reckons_with_being_chosen() -> None:
    """The kinds that a set counts in a cluster that it may select."""

    class Served:
        def resource(self, gvk: GVK) -> Resource:
            return Resource(gvk, "services", namespaced=True)

    found = list_watched(Served(), with_selection("fleet/west"), cluster("new", env="prod"))

    assert [each.gvk for each in found] == [SERVICE]
    assert list_watched(Served(), with_selection("fleet/west"), cluster("other")) == []


def test_templates_see_a_cluster_as_sveltos_has_it() -> None:
    """Its name, labels, annotations, spec and version; neither token nor address."""
    described = replace(
        cluster("east", env="prod"), annotations={"a": "b"}, spec={"data": {"c": "d"}}
    )

    assert cluster_object(described) == {
        "apiVersion": LIB,
        "kind": "SveltosCluster",
        "metadata": {
            "namespace": "fleet",
            "name": "east",
            "labels": {"env": "prod"},
            "annotations": {"a": "b"},
        },
        "spec": {"data": {"c": "d"}},
        "status": {"ready": True, "version": "v1.34.2"},
    }


class Read(dict[str, str]):
    """Labels that count how often they are read."""

    times = 0

    def get(self, key: str, default: Any = None) -> Any:
        Read.times += 1
        return super().get(key, default)


def test_answers_about_clusters_that_did_not_change_stand() -> None:
    """Beside a cluster that changed, came or went, the others' labels are not read again."""
    rules = [source("s", "Service"), trigger("t", "s")]
    fleet = [Cluster("fleet", str(n), Read(env="prod"), "v1", "d", START) for n in range(9)]
    first = Catalog(1, fleet, rules[:1], rules[1:], ())  # type: ignore[arg-type]
    for key in first.clusters:
        assert first.sources_in(key) == ("s",)
    Read.times = 0
    changed = [*fleet[1:], Cluster("fleet", "1", Read(env="test"), "v1", "d", START)]

    later = first.with_clusters(2, changed)

    assert {key for key in later.clusters if later.sources_in(key)} == {
        each.key for each in fleet[2:]
    }
    assert Read.times == 1
    assert (first.revision, later.revision) == (1, 2)
    assert first.sources_in("fleet/0") == ("s",)
    assert later.sources_in("fleet/0") == ()


def test_many_rules_that_change_at_once_ask_each_cluster_once() -> None:
    """Declaring a hundred triggers costs what a hundred triggers cost, not their square."""
    reads = []
    for count in (10, 100):
        rules = [trigger(f"t{n}", "s") for n in range(count)]
        fleet = [Cluster("fleet", str(n), Read(env="prod"), "v1", "d", START) for n in range(5)]
        before = Catalog(1, fleet, [source("s", "Service")], (), ())
        after = Catalog(2, fleet, [source("s", "Service")], rules, ())
        Read.times = 0
        touched = compare_catalogs(
            before, after, [("EventTrigger", "", each.name) for each in rules]
        )
        reads.append(Read.times)
        assert touched.gates == touched.resynced == set(after.clusters)
        assert len(touched.instantiated) == count

    assert reads[1] <= 10 * reads[0]


def test_knows_whose_templates_read_other_objects() -> None:
    """As rules come, change and go; a cluster that comes changes nothing of it."""
    resource = {"apiVersion": "v1", "kind": "ConfigMap", "name": "c"}
    refs = {"templateResourceRefs": [{"resource": resource, "identifier": "C"}]}
    plain, reads = trigger("t", "s"), trigger("t", "s", **refs)
    key = DeclarationKey("EventTrigger", "", "t")
    catalog = Catalog(1, [], [], [plain], [])
    assert catalog.reading_triggers == {}

    for changed, expected in ((reads, {"t"}), (plain, set()), (reads, {"t"}), (None, set())):
        catalog = catalog.with_rules(2, [], {key: changed})
        assert set(catalog.reading_triggers) == expected
        assert set(catalog.with_clusters(3, []).reading_triggers) == expected


def test_clusters_that_are_selected_alike_share_what_is_found() -> None:
    """A fleet of a thousand clusters in which the same is in force takes the memory of one."""
    rules = [source("s", "Service"), trigger("t", "s"), trigger("later", "not-there")]
    one = Catalog(
        1,
        [cluster("a", env="prod"), cluster("b", env="prod", more="labels"), cluster("c", env="x")],
        rules[:1],
        rules[1:],
        [],
    )
    for key in one.clusters:
        one.kinds_in(key)
    assert one._found["fleet/a"] is one._found["fleet/b"] is not one._found["fleet/c"]

    added = source("not-there", "Pod")
    assert isinstance(added, EventSource)
    key = DeclarationKey("EventSource", "", "not-there")
    later = one.with_rules(2, one.clusters.values(), {key: added})
    assert later.kinds_in("fleet/a") == later.kinds_in("fleet/b") == (POD, SERVICE)
    assert one.kinds_in("fleet/a") == (SERVICE,)
