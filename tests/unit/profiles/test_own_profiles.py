"""Users' own profiles: what their refs mean in each cluster, and what templates may ask there."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from msgspec.structs import replace

from tests.fakes.fleet import Fleet
from tests.fakes.kube import CONFIG, FakeKube
from tests.fakes.manifests import config, holder, join, profile


def own(optional: str = "false") -> str:
    """Return a profile of which one ref names no namespace."""
    ref = f"policyRefs: [{{kind: ConfigMap, name: own, optional: {optional}}}"
    both = f"{ref}, {{kind: ConfigMap, name: shared, namespace: default}}]"
    return profile().replace("policyRefs: [{kind: ConfigMap, name: own, namespace: default}]", both)


def in_namespace(namespace: str, name: str) -> str:
    return holder("own", config(name)).replace("namespace: default", f"namespace: {namespace}", 1)


def two(fleet: Fleet) -> tuple[FakeKube, FakeKube]:
    """Register a cluster in each of two namespaces."""
    east = fleet.register("east", env="production")
    found = fleet.records.clusters.get("fleet/east")
    assert found
    west = fleet.access.clusters["other/west"] = FakeKube("other/west")
    fleet.declare.register(replace(found.value, namespace="other", name="west"))
    return east, west


def test_a_ref_without_a_namespace_means_that_of_the_cluster(fleet: Fleet) -> None:
    """Each cluster gets what is in its own namespace."""
    east, west = two(fleet)
    everywhere = holder("shared", config("shared"))
    fleet.deploy(
        join(
            own(),
            everywhere,
            in_namespace("fleet", "for-fleet"),
            in_namespace("other", "for-other"),
        )
    )
    assert (set(east.names()), set(west.names())) == (
        {"for-fleet", "shared"},
        {"for-other", "shared"},
    )

    fleet.deploy(in_namespace("other", "other"))

    assert (set(east.names()), set(west.names())) == (
        {"for-fleet", "shared"},
        {"other", "shared"},
    )


REF = "{kind: ConfigMap, name: own, namespace: default}"
BY_LABELS = "{kind: ConfigMap, name: '{{ .Cluster.metadata.labels.zone }}', namespace: '%s'}"


def by_cluster(namespace: str = "zones") -> str:
    """Return a profile whose ref each cluster's labels name."""
    return profile().replace(REF, BY_LABELS % namespace)


def zone(name: str, namespace: str = "zones") -> str:
    return holder(name, config(f"for-{name}"), namespace=namespace)


def test_a_ref_that_a_cluster_names_is_rendered_for_each(fleet: Fleet) -> None:
    """Each cluster gets its own, and another one with another label; each field may be read."""
    east, west = two(fleet)
    label = fleet.declare.label
    label("fleet/east", {"env": "production", "zone": "a"})
    label("other/west", {"env": "production", "zone": "b"})
    fleet.deploy(by_cluster(), zone("a"), zone("b"))
    assert (set(east.names()), set(west.names())) == ({"for-a"}, {"for-b"})

    label("fleet/east", {"env": "production", "zone": "b"})
    fleet.pump()
    assert (set(east.names()), set(west.names())) == ({"for-b"}, {"for-b"})

    fleet.deploy(holder("b", config("changed"), namespace="zones"))
    assert (set(east.names()), set(west.names())) == ({"changed"}, {"changed"})

    fleet.declare.annotate("fleet/east", {"in": "mine"})
    fleet.deploy(by_cluster("{{ .Cluster.metadata.annotations.in }}"), zone("b", "mine"))
    assert (set(east.names()), set(west.names())) == ({"for-b"}, {"changed"})


@pytest.mark.parametrize(
    ("template", "name"),
    [
        ("{{ .Cluster.kind | lower }}", "sveltoscluster"),
        ("{{ .Cluster.metadata.namespace }}", "fleet"),
        ("{{ .Cluster.spec.data.ring }}", "first"),
        ('{{ .Cluster.status.version | replace "." "-" }}', "v1-20-2"),
    ],
)
def test_a_ref_reads_every_field_of_a_cluster(fleet: Fleet, template: str, name: str) -> None:
    """Not only its labels."""
    east = fleet.register("east", env="production")
    fleet.declare.annotate("fleet/east", {}, {"ring": "first"})
    ref = f"{{kind: ConfigMap, namespace: zones, name: {json.dumps(template)}}}"
    fleet.deploy(profile().replace(REF, ref), zone(name))

    assert set(east.names()) == {f"for-{name}"}


def test_a_ref_without_a_namespace_that_a_cluster_names_lies_in_its_own(fleet: Fleet) -> None:
    """A template may leave the namespace to the cluster, and what is optional may be missing."""
    east, west = two(fleet)
    more = "{kind: ConfigMap, optional: true, name: 'for-{{ .Cluster.metadata.name }}'}"
    fleet.deploy(profile().replace(REF, more), zone("for-east", "fleet"), zone("for-west", "fleet"))

    assert (set(east.names()), set(west.names())) == ({"for-for-east"}, set())
    (outcome,) = fleet.records.outcomes.of("other/west")
    assert outcome.phase == "Provisioned"


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        pytest.param({"zone": None}, 'map has no entry for key "zone"', id="a label is missing"),
        pytest.param({"zone": "c"}, "cannot find ConfigMap zones/c that policyRefs", id="missing"),
        pytest.param({"zone": "A"}, "cannot determine which ConfigMap is meant", id="no name"),
    ],
)
def test_a_ref_that_one_cluster_cannot_name_affects_only_that_one(
    fleet: Fleet, labels: dict[str, str | None], said: str
) -> None:
    """It keeps what it has, says why, and follows once it can."""
    east, west = two(fleet)
    label = fleet.declare.label
    for key in ("fleet/east", "other/west"):
        label(key, {"env": "production", "zone": "a"})
    fleet.deploy(by_cluster(), zone("a"), zone("b"))

    label("other/west", {"env": "production", **labels})
    fleet.deploy(holder("a", config("changed"), namespace="zones"))
    assert (set(east.names()), set(west.names())) == ({"changed"}, {"for-a"})
    (outcome,) = fleet.records.outcomes.of("other/west")
    assert outcome.phase == "FailedNonRetriable"
    assert said in outcome.message

    label("other/west", {"env": "production", "zone": "b"})
    fleet.pump()
    assert (set(east.names()), set(west.names())) == ({"changed"}, {"for-b"})


CHARTED = """{repositoryURL: https://charts.example.com, chartName: web,
    releaseName: web, releaseNamespace: apps"""
NOTHING = """{kind: ConfigMap, namespace: zones, optional: true,
    name: 'in-{{ index .Cluster.metadata.labels "region" }}'}"""


@pytest.mark.parametrize(
    "more",
    [
        f"policyRefs: [REF, {NOTHING}]",
        f"policyRefs: [REF]\n  kustomizationRefs: [{NOTHING}]",
        f"policyRefs: [REF]\n  patchesFrom: [{NOTHING}]",
        f"policyRefs: [REF]\n  helmCharts: [{CHARTED}, valuesFrom: [{NOTHING}]}}]",
    ],
    ids=["policyRefs", "kustomizationRefs", "patchesFrom", "valuesFrom"],
)
def test_an_optional_ref_without_a_name_is_skipped(fleet: Fleet, more: str) -> None:
    """A label that the cluster lacks makes no name, so no object can have it."""
    fleet.repositories.put("web", "1.0.0")
    east = fleet.register("east", env="production")
    text = profile().replace(f"policyRefs: [{REF}]", more.replace("REF", REF))
    fleet.deploy(text, holder("own", config("a")))

    (outcome,) = fleet.records.outcomes.of("fleet/east")
    assert (outcome.phase, outcome.message) == ("Provisioned", "")
    assert "a" in east.names()


def test_a_patch_ends_with_the_label_that_names_it(fleet: Fleet) -> None:
    """The reference names nothing from then on, so the object is as without it."""
    east = fleet.register("east", env="production", region="north")
    patch = "patch: '[{op: replace, path: /data/v, value: north}]'"
    north = holder("in-north", f"target: {{kind: ConfigMap, name: a}}\n{patch}", namespace="zones")
    fleet.apply(profile(more=f"patchesFrom: [{NOTHING}]"), holder("own", config("a", "v: any")))
    fleet.deploy(north)
    assert [each["data"] for each in east.objects(CONFIG)] == [{"v": "north"}]

    fleet.declare.label("fleet/east", {"region": None})
    fleet.pump()
    assert [each["data"] for each in east.objects(CONFIG)] == [{"v": "any"}]


def test_a_ref_that_is_missing_in_one_namespace_affects_only_its_clusters(fleet: Fleet) -> None:
    """The outcome says which ConfigMap is to be applied; once it is there, it follows."""
    east, west = two(fleet)
    fleet.deploy(
        join(own(), holder("shared", config("shared")), in_namespace("fleet", "for-fleet"))
    )

    assert (set(east.names()), set(west.names())) == ({"for-fleet", "shared"}, set())
    (outcome,) = fleet.records.outcomes.of("other/west")
    assert (outcome.phase, outcome.reason) == ("FailedNonRetriable", "Missing")
    assert "cannot find ConfigMap other/own that policyRefs names" in outcome.message

    fleet.apply(in_namespace("other", "for-other"))
    fleet.wait(timedelta(minutes=1))
    assert set(west.names()) == {"for-other", "shared"}


def test_what_is_optional_may_be_missing_in_a_namespace(fleet: Fleet) -> None:
    """The rest of the profile is applied."""
    east, west = two(fleet)
    fleet.deploy(join(own("true"), holder("shared", config("shared")), in_namespace("fleet", "a")))

    assert (set(east.names()), set(west.names())) == ({"a", "shared"}, {"shared"})


def test_a_cluster_of_another_namespace_that_comes_gets_its_own(fleet: Fleet) -> None:
    """A profile is resolved for namespaces that its selection comes to."""
    fleet.register("east", env="production")
    fleet.deploy(join(own("true"), holder("shared", config("shared")), in_namespace("other", "b")))
    _, west = two(fleet)
    fleet.pump()

    assert set(west.names()) == {"b", "shared"}


def test_functions_of_deploy_time_take_identifiers(fleet: Fleet) -> None:
    """`getResource "Id"` reads by an identifier; an unknown one is nothing."""
    east = fleet.register("east", env="production")
    text = config('{{ if getResource "Id" }}there{{ else }}nothing{{ end }}')
    fleet.deploy(join(profile(), holder("own", text, annotations="projectsveltos.io/template: ok")))

    assert set(east.names()) == {"nothing"}
