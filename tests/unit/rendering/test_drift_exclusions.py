"""Which paths of which objects are others' to decide, and what is then written to one."""

from __future__ import annotations

from typing import Any

import pytest

from bellhop.rendering.drift_exclusions import kept, own_fields_but, paths, withheld
from bellhop.state.content import Exclusion, Target

WEB = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {
        "name": "web",
        "namespace": "shop",
        "labels": {"tier": "front"},
        "annotations": {"a/b": "x"},
    },
    "spec": {"replicas": 2, "containers": [{"name": "web", "image": "web:1"}]},
}
REPLICAS = ("/spec/replicas",)


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        pytest.param({}, True, id="all objects"),
        pytest.param({"group": "apps", "version": "v1", "kind": "Deployment"}, True, id="a kind"),
        pytest.param({"kind": "Deploy.*|Job"}, True, id="kinds by an expression"),
        pytest.param({"kind": "Deploy"}, False, id="a part of the kind"),
        pytest.param({"group": "batch"}, False, id="another group"),
        pytest.param({"version": "v2"}, False, id="another version"),
        pytest.param({"kind": "Job"}, False, id="another kind"),
        pytest.param({"namespace": "sh.*", "name": "w.b"}, True, id="names by expressions"),
        pytest.param({"name": "we"}, False, id="a part of the name"),
        pytest.param({"namespace": "default"}, False, id="another namespace"),
        pytest.param({"labels": "tier in (front,back)"}, True, id="a label"),
        pytest.param({"labels": "tier=back"}, False, id="another label"),
        pytest.param({"annotations": "a/b"}, True, id="an annotation"),
        pytest.param({"annotations": "!a/b"}, False, id="an annotation that it has"),
    ],
)
def test_an_exclusion_means_what_fits_all_that_it_says(asked: dict[str, str], meant: bool) -> None:  # noqa: FBT001
    """An object of which anything does not fit keeps all its paths."""
    assert paths([Exclusion(REPLICAS, Target(**asked))], WEB) == (REPLICAS if meant else ())


def there(spec: dict[str, Any], ours: dict[str, Any]) -> dict[str, Any]:
    entry = {"manager": "bellhop", "operation": "Apply", "fieldsV1": {"f:spec": ours}}
    return {**WEB, "metadata": {**WEB["metadata"], "managedFields": [entry]}, "spec": spec}  # type: ignore[dict-item]


IMAGE: dict[str, Any] = {'k:{"name":"web"}': {".": {}, "f:name": {}, "f:image": {}}}
NO_IMAGE = {'k:{"name":"web"}': {".": {}, "f:name": {}}}
SIDE = {"name": "side", "image": "side:1"}


@pytest.mark.parametrize(
    ("path", "now", "ours", "written"),
    [
        pytest.param("/spec/replicas", {"replicas": 5}, {}, None, id="another's is left out"),
        pytest.param("/spec/replicas", {"replicas": 5}, {"f:replicas": {}}, 5, id="ours, as it is"),
        pytest.param("/spec/replicas", {}, {}, None, id="taken away by another"),
        pytest.param("/spec/none", {"replicas": 5}, {}, 2, id="a path that is not deployed"),
        pytest.param("/spec/replicas/x", {"replicas": 5}, {"f:replicas": {}}, 2, id="too deep"),
        pytest.param("/spec/containers/7", {}, {}, 2, id="no such entry"),
        pytest.param("/spec/containers/x", {}, {}, 2, id="no number"),
    ],
)
def test_what_another_decided_is_not_written(
    path: str, now: dict[str, Any], ours: dict[str, Any], written: int | None
) -> None:
    """What is ours still would be taken away if it were left out: it is written as it stands."""
    assert withheld(WEB, there(now, ours), [path])["spec"].get("replicas") == written


@pytest.mark.parametrize(
    ("fields", "image"),
    [pytest.param(NO_IMAGE, None, id="another's"), pytest.param(IMAGE, "web:2", id="ours")],
)
def test_an_entry_is_found_by_its_name(fields: dict[str, Any], image: str | None) -> None:
    """Whatever was put before it."""
    now = {"containers": [SIDE, {"name": "web", "image": "web:2"}]}
    found = withheld(WEB, there(now, {"f:containers": fields}), ["/spec/containers/0/image"])

    (entry,) = found["spec"]["containers"]
    assert entry.get("image") == image
    assert WEB["spec"]["containers"][0]["image"] == "web:1"  # type: ignore[index]


def test_slashes_and_tildes_are_written_as_json_pointers_have_them() -> None:
    """An annotation's name has a slash."""
    manifest = {**WEB, "metadata": {"annotations": {"a/b": "x", "c~d": "y"}}}

    found = withheld(manifest, WEB, ["/metadata/annotations/a~1b", "/metadata/annotations/c~0d"])

    assert found["metadata"]["annotations"] == {}


def managed(*managers: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    """Return the object as its API server notes whose fields are whose."""
    entries = [
        {"manager": name, "operation": "Apply", "fieldsV1": fields} for name, fields in managers
    ]
    return {**WEB, "metadata": {**WEB["metadata"], "managedFields": entries}}  # type: ignore[dict-item]


LABELS: dict[str, Any] = {"f:metadata": {"f:labels": {"f:tier": {}}}}
SCALED = {"f:spec": {"f:replicas": {}}}
IMAGE = {"f:spec": {"f:containers": {'k:{"name":"web"}': {".": {}, "f:image": {}}}}}


@pytest.mark.parametrize(
    ("ours", "path"),
    [
        pytest.param(SCALED, "/spec/replicas", id="a field"),
        pytest.param(IMAGE, "/spec/containers/0", id="an entry of a list"),
        pytest.param({"f:spec": {**SCALED["f:spec"], **IMAGE["f:spec"]}}, "/spec", id="a branch"),
    ],
)
def test_whose_an_excluded_field_is_counts_for_nothing(ours: dict[str, Any], path: str) -> None:
    """Neither does the branch that led only to it; all else counts."""
    before, after = managed(("helm", {**LABELS, **ours})), managed(("helm", LABELS))
    assert own_fields_but(before, "helm", [path]) == own_fields_but(after, "helm", [path])
    assert own_fields_but(before, "helm", []) != own_fields_but(after, "helm", [])
    released = managed(("helm", {}))
    assert own_fields_but(before, "helm", [path]) != own_fields_but(released, "helm", [path])


def test_what_is_there_is_kept_by_a_patch() -> None:
    """What others took away stays away."""
    found = kept(WEB, ["/spec/replicas", "/metadata/annotations/a~1b", "/spec/containers/1/image"])
    assert found == [
        {"op": "replace", "path": "/spec/replicas", "value": 2},
        {"op": "replace", "path": "/metadata/annotations/a~1b", "value": "x"},
        {"op": "remove", "path": "/spec/containers/1/image"},
    ]
