"""A field that somebody wrote after Helm is another's; all else proves nothing."""

from __future__ import annotations

from typing import Any

import pytest

from bellhop.deploy.features.charts.field_owners import is_overwritten

RENDERED = {
    "metadata": {"name": "web", "labels": {"app": "web"}, "annotations": {"a/b": "1"}},
    "spec": {
        "replicas": 2,
        "unknown": {"dropped": True},
        "paused": None,
        "selector": {},
        "template": {"args": ["a"], "ports": [{"containerPort": 80, "name": "http"}]},
    },
    "status": {"phase": "new"},
}
PORT = 'k:{"containerPort":80,"protocol":"TCP"}'
MANAGED = "f:app.kubernetes.io/managed-by"
RELEASE = {"f:meta.helm.sh/release-name": {}, "f:meta.helm.sh/release-namespace": {}}
LABELS = {"f:labels": {"f:app": {}, MANAGED: {}}, "f:annotations": {"f:a/b": {}, **RELEASE}}
TEMPLATE = {"f:args": {}, "f:ports": {PORT: {".": {}, "f:name": {}}}}
HELM = {"f:metadata": LABELS, "f:spec": {"f:replicas": {}, "f:template": TEMPLATE}}


def entry(fields: dict[str, Any], manager: str = "helm", operation: str = "Apply") -> Any:
    return {"manager": manager, "operation": operation, "fieldsV1": fields}


def there(*entries: Any) -> dict[str, Any]:
    return {"metadata": {"managedFields": list(entries)}}


def edited(fields: dict[str, Any]) -> Any:
    return entry(fields, "kubectl-edit", "Update")


def without(*path: str) -> dict[str, Any]:
    """Return what Helm owns but for one field."""

    def cut(tree: dict[str, Any], steps: tuple[str, ...]) -> dict[str, Any]:
        first, rest = steps[0], steps[1:]
        if not rest:
            return {key: each for key, each in tree.items() if key != first}
        below = cut(tree[first], rest)
        # API servers note no branch without leaves.
        return {**tree, first: below} if below else cut(tree, (first,))

    return cut(HELM, path)


@pytest.mark.parametrize(
    "now",
    [
        pytest.param(there(entry(HELM)), id="as Helm applied it"),
        pytest.param(there(entry(HELM), edited(HELM)), id="the same values by another"),
        pytest.param(there(entry(HELM), edited({"f:spec": {"f:more": {}}})), id="more fields"),
        pytest.param(there(entry(HELM), edited({"f:status": {"f:phase": {}}})), id="a status"),
        pytest.param(there(entry(without("f:spec", "f:replicas"))), id="dropped by the server"),
        pytest.param(
            there(entry({}, operation="Update"), edited(HELM)), id="updated, not applied, by Helm"
        ),
        pytest.param({}, id="an object without managers"),
    ],
)
def test_what_helm_applied_is_as_it_was(now: dict[str, Any]) -> None:
    """Nobody else has a field of the manifest."""
    assert not is_overwritten(RENDERED, now)


@pytest.mark.parametrize(
    ("path", "by"),
    [
        (("f:spec", "f:replicas"), {"f:spec": {"f:replicas": {}}}),
        (("f:spec", "f:template", "f:args"), {"f:spec": {"f:template": {"f:args": {}}}}),
        (
            ("f:spec", "f:template", "f:ports", PORT, "f:name"),
            {"f:spec": {"f:template": {"f:ports": {PORT: {"f:name": {}}}}}},
        ),
        (("f:metadata", "f:labels", "f:app"), {"f:metadata": {"f:labels": {"f:app": {}}}}),
        (("f:metadata", "f:labels", "f:app"), {}),
        (("f:metadata", "f:annotations"), {}),
        (("f:metadata", "f:labels", MANAGED), {}),
    ],
    ids=[
        "a value",
        "a list",
        "in an entry",
        "a label",
        "a label removed",
        "all annotations",
        "a label of Helm",
    ],
)
def test_a_field_that_another_wrote_since_is_noticed(
    path: tuple[str, ...], by: dict[str, Any]
) -> None:
    """Only the other owns it now, or it is deleted where no server drops a field."""
    assert is_overwritten(RENDERED, there(entry(without(*path)), edited(by)))


def test_excluded_paths_are_others_to_write() -> None:
    """By a JSON pointer into the object as the chart renders it."""
    fields = {"f:spec": {"f:replicas": {}}, "f:metadata": {"f:annotations": {"f:a/b": {}}}}
    now = there(entry(without("f:spec", "f:replicas")), edited(fields))

    assert is_overwritten(RENDERED, now)
    assert not is_overwritten(RENDERED, now, ["/spec/replicas", "/metadata/annotations/a~1b"])


def test_a_list_of_many_entries_is_read_in_time_that_grows_with_its_length() -> None:
    """The time-out of a test ends what compares each entry with each name."""
    many = range(10_000)
    keys: dict[str, Any] = {f'k:{{"name":"V{each}"}}': {"f:name": {}} for each in many}
    data: dict[str, Any] = {f"f:V{each}": {} for each in many}
    now = there(entry({"f:metadata": LABELS, "f:env": keys, "f:data": data}))
    env = [{"name": f"V{each}"} for each in many]

    assert not is_overwritten({"env": env, "data": {f"V{each}": "x" for each in many}}, now)
