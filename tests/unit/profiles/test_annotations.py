"""Every label and annotation that steers Sveltos is honoured, or refused with a sentence."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from bellhop.api.kinds import KINDS, InvalidDocuments, of
from bellhop.core import sveltos_annotations
from bellhop.core.sveltos_annotations import ACCOUNT_NAME, ACCOUNT_NAMESPACE
from tests.fakes.fleet import SERVICE, Fleet, service
from tests.fakes.kube import CONFIG, FakeKube
from tests.fakes.manifests import INSTANTIATE, config, holder, join, profile, source, trigger

DATA = Path(__file__).parents[2] / "payloads/sveltos/marks.yaml"
KNOWN: list[dict[str, Any]] = yaml.safe_load(DATA.read_text("utf-8"))
SPECS = {
    "EventSource": {},
    "EventTrigger": {"sourceClusterSelector": {}, "eventSourceName": "s"},
    "EventBasedAddOn": {"sourceClusterSelector": {}, "eventSourceName": "s"},
    "ClusterProfile": {},
    "Profile": {},
    "ClusterPromotion": {"stages": [{"name": "staging"}]},
    "RoleRequest": {"serviceAccountName": "ann", "serviceAccountNamespace": "team"},
}


def add_service(fleet: Fleet, name: str) -> dict[str, Any]:
    """Create a Service, and do all that follows."""
    written = fleet.write("east", service(name))
    fleet.pump()
    return written


def resync(fleet: Fleet) -> None:
    """Resync the cluster as a user does."""
    fleet.resync(full=True)


def annotated(manifest: str, mark: str, value: str = "ok") -> str:
    return manifest.replace("metadata: {", f"metadata: {{annotations: {{{mark}: '{value}'}}, ", 1)


def is_rendered_with_the_event(fleet: Fleet, east: FakeKube) -> None:
    """A ConfigMap with `instantiate` sees the object; without, it is applied as it is."""
    named = config("{{ .Resource.metadata.name }}")
    fleet.apply(join(source(), trigger(), holder("made", named, annotations=INSTANTIATE)))
    add_service(fleet, "shop")

    assert set(east.names()) == {"shop"}


def is_rendered_for_the_cluster(fleet: Fleet, east: FakeKube) -> None:
    """A ConfigMap with `template` sees the destination."""
    named = config("in-{{ .Cluster.metadata.name }}")
    fleet.deploy(
        join(profile(), holder("own", named, annotations="projectsveltos.io/template: ok"))
    )

    assert set(east.names()) == {"in-east"}


def has_the_same_functions(fleet: Fleet, east: FakeKube) -> None:
    """With `tex-template` the functions are those without it."""
    named = config("{{ .Cluster.metadata.name | upper | lower | trunc 2 }}")
    own = annotated(profile(), "projectsveltos.io/tex-template")
    fleet.deploy(join(own, holder("own", named, annotations="projectsveltos.io/template: ok")))

    assert set(east.names()) == {"ea"}


def pauses_a_trigger(fleet: Fleet, east: FakeKube) -> None:
    """While a trigger is paused no event makes or withdraws anything; then all of them count."""
    named = config("{{ .Resource.metadata.name }}")
    rest = join(source(), holder("made", named, annotations=INSTANTIATE))
    fleet.apply(join(trigger(), rest))
    before = add_service(fleet, "before")
    fleet.apply(annotated(trigger(), sveltos_annotations.TRIGGER_PAUSED))
    add_service(fleet, "meanwhile")
    fleet.drop("east", before)
    fleet.pump()
    resync(fleet)
    assert set(east.names()) == {"before"}

    fleet.deploy(trigger())

    assert set(east.names()) == {"meanwhile"}


def pauses_a_profile(fleet: Fleet, east: FakeKube) -> None:
    """While a profile is paused its objects are neither changed, put back nor withdrawn."""
    fleet.deploy(join(profile(), holder("own", config("kept", "v: '1'"))))
    fleet.apply(annotated(profile("clusterSelector: {}"), sveltos_annotations.PROFILE_PAUSED))
    fleet.deploy(holder("own", config("kept", "v: '2'"), config("more")))
    assert [each["data"]["v"] for each in east.objects(CONFIG)] == ["1"]
    east.drop(CONFIG, "default", "kept")
    resync(fleet)
    assert set(east.names()) == set()

    fleet.deploy(profile())

    assert set(east.names()) == {"kept", "more"}


def is_created_again(fleet: Fleet, east: FakeKube) -> None:
    """An object with immutable fields is deleted and created again."""
    fleet.deploy(join(profile(), holder("own", fixed("1"))))
    (first,) = east.objects(CONFIG)
    fleet.deploy(holder("own", fixed("2")))

    (second,) = east.objects(CONFIG)
    assert second["data"] == {"v": "2"}
    assert second["metadata"]["uid"] != first["metadata"]["uid"]


def is_not_watched(fleet: Fleet, east: FakeKube) -> None:
    """Without drift detection a change by hand stays."""
    ignored = annotated(config("own", "v: '1'"), "projectsveltos.io/driftDetectionIgnore")
    fleet.deploy(join(profile(), holder("own", ignored)))
    (there,) = east.objects(CONFIG)
    east.put({**there, "data": {"v": "by hand"}})
    resync(fleet)

    assert [each["data"] for each in east.objects(CONFIG)] == [{"v": "by hand"}]


def limits_what_is_written(fleet: Fleet, east: FakeKube) -> None:
    """The service account that labels name applies what it may write, and nothing else."""
    own = profile().replace(
        "metadata: {",
        f"metadata: {{labels: {{{ACCOUNT_NAME}: ann, {ACCOUNT_NAMESPACE}: team}}, ",
        1,
    )
    east.rbac.grant("team/ann", "ConfigMap", "default")
    east.rbac.grant("team/ann", "Namespace")
    fleet.deploy(join(own, holder("own", config("hers"), config("other", namespace="kube-system"))))

    assert set(east.names()) == {"hers"}


def limits_what_matches(fleet: Fleet, east: FakeKube) -> None:
    """Of the objects that a source selects those match that its account may get and list."""
    for each in ("a", "b"):
        east.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": each}})
        east.put(service(f"in-{each}", namespace=each))
    east.rbac.grant("team/ann", "Service", "a", "get", "list")
    hers = source().replace(
        "metadata: {",
        f"metadata: {{labels: {{{ACCOUNT_NAME}: ann, {ACCOUNT_NAMESPACE}: team}}, ",
        1,
    )
    named = config("{{ .Resource.metadata.name }}")
    fleet.deploy(join(hers, trigger(), holder("made", named, annotations=INSTANTIATE)))

    assert set(east.names()) == {"in-a"}


def is_a_script(fleet: Fleet, east: FakeKube) -> None:
    """A text that it returns is applied."""
    made = "{apiVersion: v1, kind: ConfigMap, metadata: {name: written, namespace: default}}"
    script = f"function evaluate() return {{resources = '{made}'}} end"
    fleet.deploy(
        join(profile(), holder("own", script, annotations=f"{sveltos_annotations.LUA}: ok"))
    )

    assert set(east.names()) == {"written"}


def has_its_status_written(fleet: Fleet, east: FakeKube) -> None:
    """The status in a manifest is applied."""
    status = {"loadBalancer": {"ingress": [{"ip": "203.0.113.7"}]}}
    made = service("balanced") | {"status": status}
    asking = f"{sveltos_annotations.SUBRESOURCES}: status"
    fleet.deploy(join(profile(), holder("own", json.dumps(made), annotations=asking)))

    [there] = east.objects(SERVICE)
    assert there["status"] == status


PROOFS: dict[tuple[str, str], Callable[[Fleet, FakeKube], None]] = {
    ("projectsveltos.io/instantiate", "ConfigMap"): is_rendered_with_the_event,
    ("projectsveltos.io/template", "ConfigMap"): is_rendered_for_the_cluster,
    (sveltos_annotations.LUA, "ConfigMap"): is_a_script,
    (sveltos_annotations.SUBRESOURCES, "ConfigMap"): has_its_status_written,
    ("projectsveltos.io/tex-template", "ClusterProfile"): has_the_same_functions,
    (sveltos_annotations.TRIGGER_PAUSED, "EventTrigger"): pauses_a_trigger,
    (sveltos_annotations.PROFILE_PAUSED, "ClusterProfile"): pauses_a_profile,
    (ACCOUNT_NAME, "ClusterProfile"): limits_what_is_written,
    (ACCOUNT_NAMESPACE, "ClusterProfile"): limits_what_is_written,
    (ACCOUNT_NAME, "EventSource"): limits_what_matches,
    (ACCOUNT_NAMESPACE, "EventSource"): limits_what_matches,
    (sveltos_annotations.FORCE_RECREATE, "object"): is_created_again,
    ("projectsveltos.io/driftDetectionIgnore", "object"): is_not_watched,
}
"""For each annotation a check that it has its effect, on one of the kinds that share the code."""
BESIDE = {
    ACCOUNT_NAME: {ACCOUNT_NAMESPACE: "ok"},
    ACCOUNT_NAMESPACE: {ACCOUNT_NAME: "ok"},
}
"""Annotations that have no effect without another field."""
SHARED = {
    "EventBasedAddOn": "EventTrigger",
    "Secret": "ConfigMap",
    "EventTrigger": "ClusterProfile",
    "Profile": "ClusterProfile",
}


def fixed(value: str, force: str = "true") -> str:
    return (
        annotated(config("fixed", f"v: '{value}'"), sveltos_annotations.FORCE_RECREATE, force)
        + "immutable: true\n"
    )


def manifest(kind: str, part: str, mark: str) -> dict[str, Any]:
    spec = {"spec": SPECS[kind]} if kind in SPECS else {}
    metadata = {
        "name": "x",
        part: {mark: "ok", **(BESIDE.get(mark, {}) if proven(mark, kind) else {})},
    }
    return {"apiVersion": KINDS[kind][1][0], "kind": kind, "metadata": metadata, **spec}


def proven(mark: str, kind: str) -> bool:
    while (mark, kind) not in PROOFS and kind in SHARED:
        kind = SHARED[kind]
    return (mark, kind) in PROOFS


@pytest.mark.parametrize(
    ("mark", "part", "kind"),
    [
        pytest.param(each["name"], each["part"], kind, id=f"{each['name']} on {kind}")
        for each in KNOWN
        for kind in each["on"]
    ],
)
def test_an_annotation_is_honoured_or_refused(mark: str, part: str, kind: str) -> None:
    """No annotation of Sveltos is accepted and ignored."""
    if proven(mark, kind):
        if kind != "object":
            assert of(manifest(kind, part, mark)).name == "x"
        return
    with pytest.raises(InvalidDocuments) as caught:
        of(manifest(kind, part, mark))

    assert f"metadata.{part}['{mark}']: " in str(caught.value)


@pytest.mark.parametrize("proof", PROOFS.values(), ids=lambda each: each.__name__)
def test_what_is_honoured_works(proof: Callable[[Fleet, FakeKube], None], fleet: Fleet) -> None:
    """Each mark that is not refused does what it does in Sveltos."""
    proof(fleet, fleet.register("east", env="production"))


@pytest.mark.parametrize(
    ("kind", "part", "mark"),
    [
        pytest.param(kind, mark.part, name, id=f"{name} on {kind}")
        for name, mark in sveltos_annotations.MARKS.items()
        for kind in mark.refused
    ],
)
def test_what_is_refused_has_a_sentence_of_its_own(kind: str, part: str, mark: str) -> None:
    """The sentence is reported with its place."""
    with pytest.raises(InvalidDocuments) as caught:
        of(manifest(kind, part, mark))

    failure = (
        f"manifest, metadata.{part}['{mark}']: {sveltos_annotations.MARKS[mark].refused[kind]}"
    )
    assert str(caught.value) == failure


def test_without_the_mark_a_refused_change_stays_refused(fleet: Fleet) -> None:
    """An object is recreated only where its owner asked for it."""
    east = fleet.register("east", env="production")
    fleet.deploy(join(profile(), holder("own", fixed("1", force="false"))))
    fleet.deploy(holder("own", fixed("2", force="false")))

    assert [each["data"] for each in east.objects(CONFIG)] == [{"v": "1"}]
    (outcome,) = fleet.records.outcomes.of("fleet/east")
    assert (outcome.phase, outcome.reason) == ("Failed", "Invalid")


def test_a_paused_profile_that_is_deleted_is_withdrawn(fleet: Fleet) -> None:
    """A deletion is no change of contents: otherwise no user could end the pause."""
    east = fleet.register("east", env="production")
    fleet.deploy(join(profile(), holder("own", config("kept"))))
    fleet.deploy(annotated(profile(), sveltos_annotations.PROFILE_PAUSED))

    fleet.delete("ClusterProfile", "own")

    assert set(east.names()) == set()


def test_a_profile_that_is_paused_from_the_start_deploys_nothing(fleet: Fleet) -> None:
    """Until the pause ends no cluster is touched."""
    east = fleet.register("east", env="production")
    fleet.deploy(
        join(
            annotated(profile(), sveltos_annotations.PROFILE_PAUSED), holder("own", config("kept"))
        )
    )
    assert set(east.names()) == set()

    fleet.deploy(profile())

    assert set(east.names()) == {"kept"}


def test_a_pause_that_ends_deploys_what_changed_meanwhile(fleet: Fleet) -> None:
    """An object that another profile released, and a lost one, is there again."""
    east = fleet.register("east", env="production")
    shared = holder("own", config("kept", "v: '1'"), config("both", "v: 'own'"))
    fleet.apply(join(profile(), shared))
    other = profile(name="other", more="tier: 50")
    fleet.deploy(join(other, holder("other", config("both", "v: 'other'"))))
    assert {each["data"]["v"] for each in east.objects(CONFIG)} == {"1", "other"}
    fleet.deploy(annotated(profile(), sveltos_annotations.PROFILE_PAUSED))
    fleet.delete("ClusterProfile", "other")
    east.drop(CONFIG, "default", "kept")
    resync(fleet)
    assert set(east.names()) == set()

    fleet.deploy(profile())

    assert {each["data"]["v"] for each in east.objects(CONFIG)} == {"1", "own"}
