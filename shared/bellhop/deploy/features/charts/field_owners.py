"""Field owners of an object, which show that somebody wrote over what Helm had just applied.

    Helm applies ──► it owns each field of its manifest
    somebody writes one before we read ──► that manager owns it, and Helm no longer does

The object is read only after Helm has ended, so what is read may be changed already. A field that
nobody owns proves nothing: an API server drops fields that it does not know. Only labels,
annotations and data are always stored as they are applied.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from bellhop.rendering.drift import HELM, our_fields, their_fields

_STORED_AS_APPLIED = ("/metadata/labels", "/metadata/annotations", "/data")
_SERVERS = "/status"

_MARKS = {
    "metadata": {
        "labels": {"app.kubernetes.io/managed-by": "Helm"},
        "annotations": {"meta.helm.sh/release-name": "-", "meta.helm.sh/release-namespace": "-"},
    }
}
"""Metadata that Helm adds to each object of a release; only the names matter here."""

Trees = Sequence[Mapping[str, Any]]
"""Fields as an API server notes them: trees of `f:`, `k:` and `v:`."""

_Keys = tuple[str, ...]


def is_overwritten(
    manifest: Mapping[str, Any], there: Mapping[str, Any], excluded: Iterable[str] = ()
) -> bool:
    """Say whether a field that Helm applied is another's by now, but for excluded paths.

    If Helm updates an object, and does not apply it, the fields do not show this.
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
            yield step, below, partial(_field_in, f"f:{key}")
    elif isinstance(value, list):
        read: dict[int, _Entries] = {}
        for number, entry in enumerate(value):
            yield str(number), entry, partial(_entry_in, entry, read)


def _field_in(name: str, tree: Mapping[str, Any]) -> tuple[str, ...]:
    return (name,) if name in tree else ()


def _entry_in(entry: Any, read: dict[int, _Entries], tree: Mapping[str, Any]) -> list[str]:
    if id(tree) not in read:
        read[id(tree)] = _Entries(tree)
    return read[id(tree)].names(entry)


class _Entries:
    """The names of a list's entries in a tree, which is read once: a list may be long."""

    def __init__(self, tree: Iterable[str]) -> None:
        self._keyed: dict[_Keys, list[tuple[Mapping[str, Any], str]]] = {}
        self._values: dict[str, list[str]] = {}
        self._found: dict[tuple[_Keys, _Keys], dict[str, list[str]]] = {}
        for name in tree:
            kind, _, text = name.partition(":")
            with suppress(ValueError):
                decoded = json.loads(text) if kind in {"k", "v"} else None
                if kind == "k" and isinstance(decoded, dict):
                    self._keyed.setdefault(tuple(decoded), []).append((decoded, name))
                elif kind == "v":
                    self._values.setdefault(json.dumps(decoded), []).append(name)

    def names(self, entry: Any) -> list[str]:
        """Return the names of an entry of a manifest, to which servers add defaults of keys."""
        if not isinstance(entry, Mapping):
            return self._values.get(json.dumps(entry, default=str), [])
        return [name for keys in self._keyed for name in self._with(keys, entry)]

    def _with(self, keys: _Keys, entry: Mapping[str, Any]) -> list[str]:
        there = tuple(key for key in keys if key in entry)
        if not there:
            return []
        found = self._found.get((keys, there))
        if found is None:
            found = self._found[keys, there] = {}
            for decoded, name in self._keyed[keys]:
                found.setdefault(_text(decoded, there), []).append(name)
        return found.get(_text(entry, there), [])


def _text(entry: Mapping[str, Any], keys: _Keys) -> str:
    return json.dumps([entry[key] for key in keys], default=str)
