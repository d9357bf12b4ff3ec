"""The digest of our own fields: it changes where another client changes one of them."""

from __future__ import annotations

from typing import Any

import pytest

from bellhop.rendering.drift import is_ignored, own_fields

SPEC = {"f:spec": {"f:replicas": {}, "f:paused": {}}}


def there(*managers: dict[str, Any], replicas: int = 2) -> dict[str, Any]:
    return {"metadata": {"managedFields": list(managers)}, "spec": {"replicas": replicas}}


def entry(fields: dict[str, Any], manager: str = "bellhop", **more: str) -> dict[str, Any]:
    return {"manager": manager, "operation": "Apply", "fieldsV1": fields, **more}


OURS = entry(SPEC)
FEWER = entry({"f:spec": {"f:paused": {}}})


@pytest.mark.parametrize(
    "now",
    [
        pytest.param(there({**OURS, "time": "2026-11-22T10:00:00Z"}), id="written again"),
        pytest.param(there(entry({"f:data": {}}, "kubectl"), OURS), id="more that is another's"),
        pytest.param(there(OURS, entry({}, subresource="status")), id="a status of ours"),
        pytest.param(
            there(OURS, {"manager": "bellhop", "operation": "Update"}), id="a cleared map"
        ),
    ],
)
def test_what_is_ours_still_is_no_drift(now: dict[str, Any]) -> None:
    """Independent of other writers and times."""
    assert own_fields(now) == own_fields(there(OURS))


@pytest.mark.parametrize(
    "now",
    [
        pytest.param(there(FEWER, entry({"f:spec": {"f:replicas": {}}}, "kubectl")), id="taken"),
        pytest.param(there(FEWER), id="taken away"),
        pytest.param(there(), id="all of it"),
        pytest.param({"metadata": {}}, id="an object that a backup brought back"),
        pytest.param({"metadata": {"managedFields": "odd"}}, id="what no API server sends"),
        pytest.param(there(OURS, replicas=5), id="scaled, and nobody noted it"),
    ],
)
def test_what_is_ours_no_more_is_drift(now: dict[str, Any]) -> None:
    """A field that another has or nobody, and a number of replicas that is another one now."""
    assert own_fields(now) != own_fields(there(OURS))


def test_replicas_of_others_may_be_any() -> None:
    """Replicas that Bellhop does not set are left unchanged."""
    assert own_fields(there(FEWER, replicas=5)) == own_fields(there(FEWER))


@pytest.mark.parametrize("value", ["ok", "false", ""])
def test_an_annotation_has_an_object_left_unchanged(value: str) -> None:
    """With any value, as in Sveltos."""
    marked = {"metadata": {"annotations": {"projectsveltos.io/driftDetectionIgnore": value}}}

    assert is_ignored(marked)
    assert not is_ignored({"metadata": {"annotations": None}})
