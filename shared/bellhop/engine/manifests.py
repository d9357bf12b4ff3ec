"""From rendered text to Kubernetes objects, with errors that show the rendered line."""

from __future__ import annotations

from typing import Any

from bellhop.errors import InvalidError
from bellhop.model.document import Document, read_documents


def read_manifests(text: str, *, source: str) -> tuple[dict[str, Any], ...]:
    """Read the objects of a rendered text, in order; nothing at all is fine.

    `kind: List` is expanded. Empty documents are skipped.

    Raises:
        InvalidError: the text is not YAML, or a document is not a Kubernetes object.
    """
    found: list[dict[str, Any]] = []
    for document in read_documents(text, source=source):
        _check(document, document.data, text)
        found.extend(_expand(document, text))
    return tuple(found)


def _expand(document: Document, text: str) -> list[dict[str, Any]]:
    data = document.data
    if data["kind"] != "List" or "items" not in data:
        return [data]
    for item in data["items"] or []:
        _check(document, item, text)
    return list(data["items"] or [])


def _check(document: Document, data: Any, text: str) -> None:
    wrong = _mistake(data)
    if wrong:
        lines = text.splitlines()
        shown = lines[document.line - 1].strip() if document.line <= len(lines) else ""
        where = f"{document.source}, rendered line {document.line}"
        raise InvalidError(f"{wrong}; the document begins with '{shown[:80]}'", where=where)


def _mistake(data: Any) -> str:
    if not isinstance(data, dict):
        return "not a Kubernetes object but " + ("a list" if isinstance(data, list) else "a scalar")
    for field in ("apiVersion", "kind"):
        if not isinstance(data.get(field), str) or not data[field]:
            return f"the object has no '{field}'"
    if data["kind"].endswith("List") and "items" in data:
        return ""
    metadata = data.get("metadata")
    if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str):
        return f"the {data['kind']} has no 'metadata.name'"
    if not metadata["name"]:
        return f"the {data['kind']} has an empty 'metadata.name'"
    return ""
