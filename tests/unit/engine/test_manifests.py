"""From texts to objects: Lists, empty documents, and names that cannot be."""

from __future__ import annotations

import pytest

from bellhop.engine.manifests import read_manifests
from bellhop.errors import InvalidError


def names(text: str) -> list[str]:
    return [each["metadata"]["name"] for each in read_manifests(text, source="default/a/main.yaml")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("", [], id="nothing"),
        pytest.param("---\n# a comment\n---\n", [], id="empty documents"),
        pytest.param("{apiVersion: v1, kind: List, items: []}", [], id="an empty List"),
        pytest.param(
            "apiVersion: v1\nkind: List\nitems:\n"
            "- {apiVersion: v1, kind: Pod, metadata: {name: a}}\n"
            "- {apiVersion: v1, kind: Pod, metadata: {name: b}}\n",
            ["a", "b"],
            id="a List",
        ),
        pytest.param(
            "apiVersion: v1\nkind: PodList\nitems:\n"
            "- {apiVersion: v1, kind: Pod, metadata: {name: a}}\n",
            ["a"],
            id="a List of one kind",
        ),
        pytest.param(
            "{apiVersion: v1, kind: Pod, metadata: {name: 'system:a', labels: null}}",
            ["system:a"],
            id="a colon and null labels",
        ),
        pytest.param(
            "apiVersion: example.org/v1\nkind: WatchList\nmetadata: {name: w}\n",
            ["w"],
            id="a kind that only sounds like a List",
        ),
    ],
)
def test_reads_objects_in_their_order(text: str, expected: list[str]) -> None:
    """Lists are taken apart, once."""
    assert names(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("{name: a, labels: [x]}", "'metadata.labels' of the Pod is no", id="labels"),
        pytest.param("{name: a, annotations: x}", "'metadata.annotations' of the Pod", id="notes"),
        pytest.param("{name: a, namespace: 7}", "'metadata.namespace' of the Pod is no", id="7"),
        pytest.param("{name: a/b}", "'metadata.name' of the object is no name", id="slash"),
        pytest.param("{name: a, namespace: b/c}", "'metadata.namespace' of the object", id="place"),
    ],
)
def test_refuses_metadata_that_cannot_be(text: str, expected: str) -> None:
    """Here, where it is told with its line, and not when it is applied."""
    with pytest.raises(InvalidError) as caught:
        names(f"apiVersion: v1\nkind: Pod\nmetadata: {text}\n")

    assert expected in str(caught.value)
    assert "default/a/main.yaml, line 1" in str(caught.value)


@pytest.mark.parametrize(
    ("version", "kind"),
    [
        pytest.param("a/b/v1", "Pod", id="two slashes in apiVersion"),
        pytest.param("v1", "Pod/status", id="a slash in kind"),
    ],
)
def test_refuses_kinds_that_cannot_be(version: str, kind: str) -> None:
    """Keys join group, version and kind by slashes."""
    with pytest.raises(InvalidError, match="it has a slash"):
        names(f"apiVersion: {version}\nkind: {kind}\nmetadata: {{name: a}}\n")
