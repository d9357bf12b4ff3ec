"""A strategic merge: what a patch says of an object, merged into it as kustomize does.

    an object   field by field; null, or `$patch: delete` in it, deletes; `$patch: replace` replaces
    a list      entry by entry where its kind has a merge key, else it is replaced; in an entry
                `$patch: delete` deletes that of its key, `$patch: replace` replaces the list
    else        is replaced

New entries come first. Where the key is one field, entries that the patch names come in its order,
before the others; where it is several, entries stay in their place.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from bellhop.errors import InvalidError, TooLargeError
from bellhop.rendering.patches.merge_keys import Shape, shape_of

DELETED = object()
"""The rest of a value that the patch deletes."""

_DIRECTIVE = "$patch"
_OTHERS = ("$retainKeys", "$setElementOrder", "$deleteFromPrimitiveList")
_LARGEST_LISTS = 1_000_000
"""Entries of two lists that are merged, multiplied: each is looked for among the others."""

_USUAL = {"protocol": "TCP"}
"""The value of a field of a merge key that is not written. kustomize does not know it: it passes
over a patch that says a port's protocol where the object does not."""


def merged(manifest: Mapping[str, Any], patch: Mapping[str, Any]) -> Any:
    """Return an object with a patch merged into it, or DELETED; the given one stays as it is.

    Raises:
        InvalidError: the patch says something that cannot be merged; the message names the path.
    """
    shape = shape_of(str(manifest.get("apiVersion")), str(manifest.get("kind")))
    return _merge(copy.deepcopy(dict(manifest)), patch, shape, "")


def _merge(there: Any, patch: Any, shape: Shape, path: str) -> Any:
    if patch is None:
        return DELETED
    if isinstance(patch, dict):
        return _merge_object(there, patch, shape, path)
    if isinstance(patch, list):
        return _merge_list(there, patch, shape, path)
    if isinstance(there, dict | list):
        raise _mismatch(there, "a single value", path)
    return patch


def _merge_object(there: Any, patch: Mapping[str, Any], shape: Shape, path: str) -> Any:
    directive = _directive(patch, path)
    if directive == "delete":
        return DELETED
    if directive == "replace" or there is None:
        there = {}
    if not isinstance(there, dict):
        raise _mismatch(there, "a mapping", path)
    for name, value in patch.items():
        if name == _DIRECTIVE:
            continue
        below = shape.fields.get(name, Shape())
        result = _merge(there.get(name), value, below, f"{path}.{name}" if path else name)
        if result is DELETED:
            there.pop(name, None)
        else:
            there[name] = result
    return there


def _merge_list(there: Any, patch: Sequence[Any], shape: Shape, path: str) -> Any:
    if not (there is None or isinstance(there, list)):
        raise _mismatch(there, "a list", path)
    entries = list(there or ())
    if len(entries) * len(patch) > _LARGEST_LISTS:
        raise TooLargeError(f"{path} is too long to be merged; replace it, or have fewer entries")
    if shape.is_set:
        if not all(isinstance(each, str) for each in patch):
            raise InvalidError(f"{path} must have only strings")
        return [*dict.fromkeys(patch), *(each for each in entries if each not in patch)]
    if not shape.keys:
        return [_fresh(each, Shape(), path) for each in patch]
    marked = [(each, _directive_of_entry(each, shape, path)) for each in patch]
    if any(directive == "replace" for _, directive in marked):
        entries = []
        marked = [(each, directive) for each, directive in marked if directive != "replace"]
    return _merge_entries(entries, marked, shape, path)


def _merge_entries(
    entries: list[Any], marked: Sequence[tuple[Any, str]], shape: Shape, path: str
) -> list[Any]:
    fresh: list[Any] = []
    for each, directive in marked:
        place = _place_of(each, entries, shape)
        if directive == "delete":
            if place is not None:
                del entries[place]
            continue
        below = Shape(fields=shape.fields)
        if place is None:
            fresh.append(_fresh(each, below, path))
        elif len(shape.keys) > 1:
            entries[place] = _merge(entries[place], each, below, path)
        else:
            fresh.append(_merge(entries.pop(place), each, below, path))
    return fresh + entries


def _fresh(entry: Any, shape: Shape, path: str) -> Any:
    """Return a new entry of a list: what the patch deletes in it never was there."""
    if not isinstance(entry, dict):
        return copy.deepcopy(entry)
    made = _merge(None, entry, shape, path)
    if made is DELETED:
        raise InvalidError(
            f"{path} has '{_DIRECTIVE}: delete' in a list that is replaced as a whole"
        )
    return made


def _place_of(entry: Mapping[str, Any], entries: Sequence[Any], shape: Shape) -> int | None:
    own = _key(entry, shape)
    found = (number for number, each in enumerate(entries) if _key(each, shape) == own)
    return next(found, None)


def _key(entry: Any, shape: Shape) -> tuple[Any, ...] | None:
    if not isinstance(entry, dict):
        return None
    return tuple(entry.get(field, _USUAL.get(field)) for field in shape.keys)


def _directive_of_entry(entry: Any, shape: Shape, path: str) -> str:
    """Return the directive of an entry, of which all but a `replace` need the merge key."""
    if not isinstance(entry, dict):
        raise InvalidError(f"{path} must have only maps")
    directive = _directive(entry, path)
    if directive != "replace" and entry.get(shape.keys[0]) is None:
        raise InvalidError(
            f"{path} has an entry without '{shape.keys[0]}', by which they are merged"
        )
    return directive


def _directive(patch: Mapping[str, Any], path: str) -> str:
    where = path or "the patch"
    for name in patch:
        if name.startswith(_OTHERS):
            raise InvalidError(
                f"{where} has '{name}', which only API servers know; use '{_DIRECTIVE}'"
            )
    directive = patch.get(_DIRECTIVE, "merge")
    if directive not in ("merge", "replace", "delete"):
        raise InvalidError(f"{where} has '{_DIRECTIVE}: {directive}'; use merge, replace or delete")
    return str(directive)


def _mismatch(there: Any, given: str, path: str) -> InvalidError:
    has = (
        "a mapping"
        if isinstance(there, dict)
        else "a list"
        if isinstance(there, list)
        else "a single value"
    )
    return InvalidError(f"{path or 'the object'} is {has} in the object, and {given} in the patch")
