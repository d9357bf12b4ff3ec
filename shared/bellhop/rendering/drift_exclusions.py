"""Paths that are others' to decide: what stands there is not written again once an object is there.

    created ─► all is written ─► another decides: the field is his, and is not written any more
                              └► nobody did: the field is ours, and is written as it stands

A field of ours that was simply left out would be taken away by server-side apply. A path is a JSON
pointer into the object as it is applied; a step into a list is the place of an entry, which is
found by its name in the cluster where it has one.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bellhop.rendering.drift import fields_digest, our_fields
from bellhop.rendering.patches.target import admits
from bellhop.state.content import Exclusion

_NOTHING = object()


def paths(exclusions: Iterable[Exclusion], manifest: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the paths that are excluded of an object, as it is applied."""
    return tuple(
        path for each in exclusions if admits(each.target, manifest) for path in each.paths
    )


def withheld(
    manifest: Mapping[str, Any], there: Mapping[str, Any], excluded: Sequence[str]
) -> dict[str, Any]:
    """Return an object as it is written to one that is there, with its excluded paths as they are.

    Fields that others set or removed there are left out; ours stay as they stand.
    """
    written = copy.deepcopy(dict(manifest))
    ours = our_fields(there)
    for path in excluded:
        _withhold(written, there, ours, _steps(path))
    return written


def own_fields_but(there: Mapping[str, Any], manager: str, excluded: Sequence[str]) -> str:
    """Return a digest of the fields of an object that are ours, but for excluded paths."""
    ours = copy.deepcopy(our_fields(there, manager))
    for path in excluded:
        _prune(ours, there, _steps(path))
    return fields_digest(there, ours)


def kept(there: Mapping[str, Any], excluded: Sequence[str]) -> list[dict[str, Any]]:
    """Return the JSON patch that gives an object what is there at excluded paths."""
    found = ((path, _at(there, _steps(path))) for path in excluded)
    return [
        {"op": "remove", "path": path}
        if value is _NOTHING
        else {"op": "replace", "path": path, "value": value}
        for path, value in found
    ]


def _steps(path: str) -> list[str]:
    return [each.replace("~1", "/").replace("~0", "~") for each in path.split("/")[1:]]


def _at(there: Any, steps: Sequence[str]) -> Any:
    """Return what is at a path; a step into a list is a place."""
    for step in steps:
        if isinstance(there, list):
            there = there[int(step)] if step.isdigit() and int(step) < len(there) else _NOTHING
        else:
            there = there.get(step, _NOTHING) if isinstance(there, dict) else _NOTHING
    return there


def _prune(ours: Sequence[Any], there: Any, steps: Sequence[str]) -> None:
    """Take a path out of fields that are ours, and branches that led only to it."""
    step, rest = steps[0], steps[1:]
    place: Any = int(step) if isinstance(there, list) and step.isdigit() else step
    below, fields = _below(there, ours, place, _at(there, [step]))
    # A leaf has nothing in it: what is below it is not noted.
    branches = [each for each in fields if each]
    if rest:
        _prune(branches, below, rest)
    for each in ours:
        for name, found in list(each.items()):
            removed = not found and any(found is one for one in branches)
            if removed or (not rest and any(found is one for one in fields)):
                del each[name]


def _withhold(written: Any, there: Any, ours: Sequence[Any], steps: Sequence[str]) -> None:
    """Follow the steps through the object, the one that is there, and whose its fields are."""
    step, rest = steps[0], steps[1:]
    place: Any = step
    if isinstance(written, list):
        place = int(step) if step.isdigit() and int(step) < len(written) else None
    if place is None or not isinstance(written, dict | list):
        return
    if isinstance(written, dict) and place not in written:
        return
    below, fields = _below(there, ours, place, written[place])
    if rest:
        if fields or below is not _NOTHING:
            _withhold(written[place], below, fields, rest)
    elif below is _NOTHING or not fields:
        del written[place]
    else:
        written[place] = copy.deepcopy(below)


def _below(there: Any, ours: Sequence[Any], place: Any, entry: Any) -> tuple[Any, list[Any]]:
    """Return what is there at a place, and what of its fields is ours, if any."""
    if isinstance(place, str):
        below = there.get(place, _NOTHING) if isinstance(there, dict) else _NOTHING
        return below, [each[f"f:{place}"] for each in ours if f"f:{place}" in each]
    below = _entry(there, place, entry)
    return below, [
        fields
        for each in ours
        for key, fields in each.items()
        if key.startswith("k:") and _has(below, key)
    ]


def _entry(there: Any, place: int, entry: Any) -> Any:
    """Find an entry of a list, by its name or else its place."""
    if not isinstance(there, list):
        return _NOTHING
    name = entry.get("name") if isinstance(entry, dict) else None
    if name:
        named = (each for each in there if isinstance(each, dict) and each.get("name") == name)
        return next(named, _NOTHING)
    return there[place] if place < len(there) else _NOTHING


def _has(entry: Any, key: str) -> bool:
    try:
        asked = json.loads(key[2:])
    except ValueError:
        return False
    return isinstance(entry, dict) and asked.items() <= entry.items()
