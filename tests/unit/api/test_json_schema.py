"""JSON Schemas accept what the kinds accept, and refuse what editors can see."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bellhop.api.kinds import of
from bellhop.documents.document import read_documents
from bellhop.errors import InvalidError
from tests.unit.api.schemas import MODELS, mistakes_of

LIB = "lib.projectsveltos.io/v1beta1"
ROOT = Path(__file__).parents[3]
_FENCE = re.compile(r"^```yaml[^\n]*\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def texts() -> Iterator[str]:
    """Yield the YAML of all pages and examples, and the manifests of users of Sveltos."""
    for path in (ROOT / "docs").rglob("*.md"):
        yield from _FENCE.findall(path.read_text())
    for folder in (ROOT / "docs/examples", Path(__file__).parent / "manifests"):
        yield from (path.read_text() for path in folder.rglob("*.yaml"))


def manifests() -> Iterator[dict[str, Any]]:
    """Yield the manifests in these texts, of which some are templates, and no YAML yet."""
    for text in texts():
        try:
            documents = read_documents(text, source="")
        except InvalidError:
            continue
        yield from (each.data for each in documents if whole(each.data))


def whole(data: Any) -> bool:
    """Return whether a document is a manifest, and no part of one that a page explains."""
    return isinstance(data, dict) and data.get("kind") in MODELS and "metadata" in data


def test_every_manifest_of_the_documentation_is_accepted() -> None:
    """A schema that refuses one of them refuses a field that its reader was asked to write."""
    found = list(manifests())

    assert len(found) > 200
    assert [(each["kind"], mistakes_of(each)) for each in found if mistakes_of(each)] == []


def test_a_field_without_a_value_is_accepted() -> None:
    """As it is read: of each type that a field can have."""
    spec: dict[str, Any] = {
        "eventSourceName": "s",
        "sourceClusterSelector": {"matchLabels": None},
        "destinationClusterSelector": None,
        "syncMode": None,
        "maxUpdate": None,
        "policyRefs": [{"kind": "Secret", "name": "a", "remoteURL": None, "optional": None}],
        "patches": None,
    }
    metadata = {"name": "x", "labels": None, "creationTimestamp": None}
    manifest = {"apiVersion": LIB, "kind": "EventTrigger", "metadata": metadata, "spec": spec}

    assert of(manifest)
    assert mistakes_of(manifest) == []


@pytest.mark.parametrize(
    ("kind", "spec", "mistake"),
    [
        ("EventTrigger", {"eventSourcName": "s"}, "$.spec: Additional properties are not allowed"),
        ("EventTrigger", {}, "$.spec: 'eventSourceName' is a required property"),
        ("EventSource", {"selector": {"matchLabel": {}}}, "$.spec.selector: Additional"),
        (
            "ClusterProfile",
            {"helmCharts": [{"chartname": "nginx"}]},
            "$.spec.helmCharts[0]: Additional properties are not allowed ('chartname' ",
        ),
        ("ClusterProfile", {"tier": "1"}, "$.spec.tier: '1' is not of type 'integer', 'null'"),
        ("ClusterProfile", {"syncMode": "Always"}, "$.spec.syncMode: 'Always' is not one of ["),
        ("SveltosCluster", {"activeWindow": {"form": ""}}, "$.spec.activeWindow: Additional"),
    ],
)
def test_a_mistake_is_refused(kind: str, spec: dict[str, Any], mistake: str) -> None:
    """At the top, and inside parts that the models load later."""
    api_version = MODELS[kind][1][0]
    manifest = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}, "spec": spec}

    assert any(each.startswith(mistake) for each in mistakes_of(manifest)), mistakes_of(manifest)
