"""Whether somebody wrote over what Helm had just applied, by the field owners of an object.

    Helm applies ──► it owns each field of its manifest
    somebody writes one before we read ──► that manager owns it, and Helm no longer does

The object is read only after Helm has ended, so what is read may be changed already. A field that
nobody owns proves nothing: an API server drops fields that it does not know. Only labels,
annotations and data are always stored as they are applied.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from bellhop.engine.drifting import HELM, our_fields, their_fields

_STORED_AS_APPLIED = ("/metadata/labels", "/metadata/annotations", "/data")
_SERVERS = "/status"

_MARKS = {
    "metadata": {
        "labels": {"app.kubernetes.io/managed-by": "Helm"},
        "annotations": {"meta.helm.sh/release-name": "-", "meta.helm.sh/release-namespace": "-"},
    }
}
"""What Helm adds to each object of a release; only the names matter here."""

Trees = Sequence[Mapping[str, Any]]
"""Fields as an API server notes them: trees of `f:`, `k:` and `v:`."""


def is_overwritten(
    manifest: Mapping[str, Any], there: Mapping[str, Any], excluded: Iterable[str] = ()
) -> bool:
    """Say whether a field that Helm applied is another's by now, but for excluded paths.

    Where Helm updates an object, and does not apply it, nobody can tell.
    """
    ours = our_fields(there, HELM)
    if not ours:
        return False
    theirs, but = their_fields(there, HELM), frozenset((*excluded, _SERVERS))
    return any(_is_lost(each, ours, theirs, "", but) for each in (manifest, _MARKS))


def _is_lost(value: Any, ours: Trees, theirs: Trees, path: str, but: frozenset[str]) -> bool:
    for step, below, names in _steps(value):
        place = f"{path}/{step}"
        if place in but or below in (None, {}, []):
            continue
        own = [each[name] for each in ours for name in names(each)]
        others = [each[name] for each in theirs for name in names(each)]
        if not own and (others or path in _STORED_AS_APPLIED):
            return True
        # A leaf is owned as a whole.
        if all(own) and _is_lost(below, own, others, place, but):
            return True
    return False


def _steps(
    value: Any,
) -> Iterator[tuple[str, Any, Callable[[Mapping[str, Any]], Iterable[str]]]]:
    """Yield the parts of a value, each with its step, and what finds its names in a tree."""
    if isinstance(value, Mapping):
        for key, below in value.items():
            step = str(key).replace("~", "~0").replace("/", "~1")
            yield step, below, {f"f:{key}"}.intersection
    elif isinstance(value, list):
        for number, entry in enumerate(value):
            yield str(number), entry, partial(_names_in, entry)


def _names_in(entry: Any, tree: Mapping[str, Any]) -> list[str]:
    return [name for name in tree if _names(name, entry)]


def _names(name: str, entry: Any) -> bool:
    """Say whether a name in a tree is that of an entry of a list, to which servers add defaults."""
    kind, _, text = name.partition(":")
    try:
        told = json.loads(text) if kind in {"k", "v"} else None
    except ValueError:
        return False
    if kind == "k" and isinstance(entry, Mapping) and isinstance(told, Mapping):
        return all(entry.get(key, value) == value for key, value in told.items())
    return kind == "v" and bool(told == entry)
