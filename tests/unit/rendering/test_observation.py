"""From objects to what is kept of them."""

from __future__ import annotations

from typing import Any

import pytest

from bellhop.core.gvk import GVK, ObjectKey
from bellhop.rendering.observation import bury, observe
from tests.fakes.clock import START

WEB = ObjectKey(GVK("apps", "v1", "Deployment"), "default", "web")


def deployment(**metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default", **metadata},
    }


def test_keeps_the_object_without_managed_fields() -> None:
    """They are as large as the object and nobody asks for them; the given object is not touched."""
    given = deployment(uid="u", resourceVersion="17", managedFields=[{"manager": "x"}])

    seen = observe("fleet/east", given, START)

    assert (seen.cluster, seen.key, seen.uid, seen.resource_version) == ("fleet/east", WEB, "u", 17)
    assert seen.manifest == deployment(uid="u", resourceVersion="17")
    assert not seen.gone
    assert "managedFields" in given["metadata"]


@pytest.mark.parametrize(
    "version",
    [
        pytest.param(None, id="none"),
        pytest.param("", id="empty"),
        pytest.param("abc", id="no number"),
        pytest.param("-3", id="less than nothing"),
        pytest.param("1.5", id="half"),
    ],
)
def test_a_version_that_is_no_number_is_older_than_any(version: str | None) -> None:
    """Whatever a sender makes up."""
    assert observe("c", deployment(resourceVersion=version), START).resource_version == 0


def test_a_tombstone_has_no_object() -> None:
    """Only who it was, and when it was last known."""
    buried = bury("fleet/east", WEB, "u", 17, START)

    assert buried.gone
    assert (buried.key, buried.uid, buried.resource_version, buried.seen_at) == (
        WEB,
        "u",
        17,
        START,
    )
