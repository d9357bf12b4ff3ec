"""The diff of an object for people: line by line, without values of Secrets."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

from bellhop.core.digest import same
from bellhop.core.gvk import Identity
from bellhop.core.sveltos_annotations import ADOPTED, LAST_APPLIED, WITHHELD, WRITTEN_BY_SVELTOS
from bellhop.rendering.secrecy import KIND as SECRET
from bellhop.state.deployment import Change

WITHHELD_DIFF = "how is withheld, for it may hold what a Secret does"
"""Text instead of the diff of an object that has values of a Secret."""

OWNERSHIP_ONLY = "only Bellhop's labels and annotations"
"""Text for an object of which only the owner changes."""

NOT_COMPARED = "it is as applied by Bellhop's records, and was not compared with the cluster"
"""The message about an object that the cluster was not asked about."""

HIDDEN = "<hidden>"
OTHER = "<hidden, and another>"
"""Texts for a value of a Secret, and for the one that would replace it."""

_LONGEST = 256 * 1024
"""Characters of an object of which each line is compared with each: that takes long."""
_MOST_LINES = 400

_SERVERS_OWN = ("managedFields", "resourceVersion", "uid", "creationTimestamp", "generation")


def uncompared(key: Identity) -> Change:
    """Return no change for an object that was not compared with the cluster."""
    return Change(key, "No Action", NOT_COMPARED)


def compare(
    there: Mapping[str, Any], then: Mapping[str, Any], *, secret: bool
) -> tuple[bool, str, str]:
    """Compare an object with what would become of it.

    Returns whether anything but marks of ours would change, and that in a sentence and as a
    unified diff. Of a `secret` one there is none.
    """
    old, new = _shown(there), _shown(then)
    if same(old, new):
        return False, OWNERSHIP_ONLY, ""
    marked = any(WITHHELD in _annotations(each) for each in (there, then))
    holds = new.get("kind") == SECRET or marked
    if secret and not holds:
        return True, WITHHELD_DIFF, ""
    if holds:
        old, new = _masked(old, old), _masked(new, old)
    before, after = (_text(each) for each in (old, new))
    if len(before) + len(after) > _LONGEST:
        return True, "it is too long to show how", ""
    lines = list(
        difflib.unified_diff(before.splitlines(), after.splitlines(), "is", "would be", lineterm="")
    )
    more = len(lines) - _MOST_LINES
    if more > 0:
        lines = [*lines[:_MOST_LINES], f"… and {more} more lines"]
    changed = sum(line[0] in "+-" for line in lines[2:])
    return True, f"{changed} line{'s' if changed > 1 else ''}", "\n".join(lines) + "\n"


def _shown(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object without the fields of its API server, and without ownership labels."""
    shown = {key: value for key, value in manifest.items() if key != "status"}
    metadata = dict(shown.get("metadata") or {})
    for field in _SERVERS_OWN:
        metadata.pop(field, None)
    for field in ("labels", "annotations"):
        marks = {ADOPTED, LAST_APPLIED, *WRITTEN_BY_SVELTOS}
        kept = {
            key: value for key, value in (metadata.get(field) or {}).items() if key not in marks
        }
        metadata.pop(field, None)
        metadata |= {field: kept} if kept else {}
    return {**shown, "metadata": metadata}


def _masked(manifest: Mapping[str, Any], old: Mapping[str, Any]) -> dict[str, Any]:
    """Hide the values of a Secret, and what may quote them; what is not the `old` one says so."""
    metadata = _hidden(manifest["metadata"], old["metadata"], "labels", "annotations")
    masked = _hidden(manifest, old, "data", "stringData", "binaryData")
    return {**masked, "metadata": metadata}


def _hidden(texts: Mapping[str, Any], old: Mapping[str, Any], *fields: str) -> dict[str, Any]:
    hidden = {}
    for field in fields:
        known = old.get(field) or {}
        hidden[field] = {
            key: OTHER if key in known and known[key] != value else HIDDEN
            for key, value in (texts.get(field) or {}).items()
        }
    return {**texts, **{field: values for field, values in hidden.items() if values}}


def _annotations(manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    return (manifest.get("metadata") or {}).get("annotations") or {}


def _text(manifest: Mapping[str, Any]) -> str:
    import yaml  # noqa: PLC0415 - dear, and only what is tried dry is written out

    return yaml.safe_dump(manifest, default_flow_style=False, width=2**16, allow_unicode=True)
