"""Takes away what others hold in an object and contradicts what is applied.

An API server merges some lists by a key, and an apply adds to what others hold. If somebody changes
a port of a Service, the apply adds the port of before beside it, both have one name, and the API
server refuses that. The same happens where somebody replaces `value` by `valueFrom`. The refusal
names the fields. These are handed to us in `managedFields`, and the apply is sent again: what we
hold and do not apply is removed by it, so that the object changes once.

Up to 1.20 such an apply leaves the parent of a removed field if that is nested in another one, as
in `valueFrom`: there the apply stays refused.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from http import HTTPStatus
from operator import itemgetter
from typing import Any, NamedTuple

from bellhop.adapters.kube.old_servers import Server, is_writable
from bellhop.adapters.kube.refusal import Refusal
from bellhop.core.identity import MANAGER
from bellhop.ports.kube import Manifest

_ROUNDS = 3
"""Refusals of one apply that are answered: an API server may check one thing after another."""

_STEP = re.compile(r"\.?([^.\[\]]+)|\[(\d+)\]")
_DUPLICATE = "FieldValueDuplicate"
_REASONS = {_DUPLICATE, "FieldValueForbidden", "FieldValueInvalid"}
_UNION = "may not specify more than 1"
_ENTRY, _FIELD = "k:", "f:"
_ANY = 0
"""The step into an entry of a list, whatever its number."""

Steps = Sequence[str | int]
Path = tuple[str, ...]
"""The path of a field in `fieldsV1`."""


class _Cause(NamedTuple):
    steps: Steps
    duplicate: bool
    union: bool


def resolve(server: Server, answer: Any, body: Manifest) -> Any:
    """Return the answer to an apply, made again without what contradicted it.

    Any other answer is returned as it is. Only the version of the object that was read is changed.
    """
    for _ in range(_ROUNDS):
        # All entries of a list are compared for one of them.
        causes = list(dict.fromkeys(_causes(answer))) if isinstance(answer, Refusal) else []
        live: Any = server.read() if causes else None
        if not is_writable(live) or not _is_same(live["metadata"], body["metadata"]):
            break
        metadata = live["metadata"]
        owners = _hand_over(live, body, causes)
        if owners == metadata.get("managedFields"):
            break
        version = metadata["resourceVersion"]
        patched = server.merge({"metadata": {"resourceVersion": version, "managedFields": owners}})
        if not is_writable(patched):
            break
        if body["metadata"].get("resourceVersion"):
            now = patched["metadata"]["resourceVersion"]
            body = {**body, "metadata": {**body["metadata"], "resourceVersion": now}}
        answer = server.apply(body)
    return answer


def _is_same(there: Manifest, meant: Manifest) -> bool:
    """Say whether metadata is of the life, and of the version, that is meant."""
    return all(meant.get(each) in (None, there.get(each)) for each in ("uid", "resourceVersion"))


def _causes(refusal: Refusal) -> Iterator[_Cause]:
    for each in refusal.causes() if refusal.code == HTTPStatus.UNPROCESSABLE_ENTITY else ():
        field = str(each.get("field") or "")
        found = list(_STEP.finditer(field))
        reason, message = each.get("reason"), str(each.get("message"))
        if reason in _REASONS and field and "".join(step[0] for step in found) == field:
            steps = tuple(step[1] or _ANY for step in found)
            yield _Cause(steps, reason == _DUPLICATE, _UNION in message)


def _hand_over(live: Manifest, body: Manifest, causes: Iterable[_Cause]) -> list[Manifest]:
    """Return the managers of an object after what contradicts an apply became ours."""
    owners: list[Manifest] = copy.deepcopy(live["metadata"].get("managedFields") or [])
    ours = {"manager": MANAGER, "operation": "Apply", "apiVersion": body["apiVersion"]}
    mine = next((each for each in owners if ours.items() <= each.items()), None)
    made = mine or {**ours, "fieldsType": "FieldsV1", "fieldsV1": {}}
    for cause in causes:
        for owner in owners:
            fields: Any = owner.get("fieldsV1")
            if owner is mine:
                continue
            for path in list(_find_contradictions(fields, live, body, cause.steps, cause)):
                _move(path, fields, made["fieldsV1"])
    return owners if mine or not made["fieldsV1"] else [*owners, made]


def _find_contradictions(
    fields: Any, live: Any, ours: Any, steps: Steps, cause: _Cause
) -> Iterator[Path]:
    """Yield the fields of another manager that contradict ours at what a refusal names.

    It numbers entries as they would have been merged, so that all entries of a list are compared.
    """
    step, rest = steps[0], steps[1:]
    if not isinstance(fields, dict):
        return
    if isinstance(step, int):
        yield from _entries(fields, live, ours, rest, cause)
        return
    name = f"{_FIELD}{step}"
    if not isinstance(ours, Mapping) or not isinstance(live, Mapping):
        return
    if rest:
        if name in fields and step in ours:
            below = _find_contradictions(fields[name], live.get(step), ours[step], rest, cause)
            yield from ((name, *path) for path in below)
    elif step not in ours:
        yield from (each for each in [(name,)] if name in fields)
    elif cause.union:
        others = (each for each in fields if each.startswith(_FIELD))
        yield from ((each,) for each in others if each.removeprefix(_FIELD) not in ours)


def _entries(fields: Manifest, live: Any, ours: Any, rest: Steps, cause: _Cause) -> Iterator[Path]:
    if not isinstance(live, list) or not isinstance(ours, list):
        return
    if not rest:
        return
    lives, mines = _Entries(live), _Entries(ours)
    taken = {_text(_get(each, rest)) for each in ours} if cause.duplicate else set()
    for name in fields:
        key = _key(name)
        there = lives.find(key) if key else None
        if not key or not there:
            continue
        if mine := mines.find(key):
            below = _find_contradictions(fields[name], there, mine, rest, cause)
            yield from ((name, *path) for path in below)
        elif _text(_get(there, rest)) in taken:
            yield (name,)


def _key(name: str) -> dict[str, Any] | None:
    """Read the key of an entry from the name of its fields; None if it has none."""
    try:
        key = json.loads(name.removeprefix(_ENTRY)) if name.startswith(_ENTRY) else None
    except ValueError:
        return None
    return key if isinstance(key, dict) else None


class _Entries:
    """The entries of a list by the fields of a key, read once for each sort of key: it may be long.

    An entry may leave out fields of its key that have a default.
    """

    def __init__(self, entries: Sequence[Any]) -> None:
        self._entries = [each for each in entries if isinstance(each, Mapping)]
        self._found: dict[Path, dict[Path, dict[str, tuple[int, Mapping[str, Any]]]]] = {}

    def find(self, key: Mapping[str, Any]) -> Mapping[str, Any] | None:
        names = tuple(key)
        if names not in self._found:
            self._found[names] = self._read(names)
        found = [
            entries[text]
            for there, entries in self._found[names].items()
            if (text := _values(key, there)) in entries
        ]
        return min(found, key=itemgetter(0))[1] if found else None

    def _read(self, names: Path) -> dict[Path, dict[str, tuple[int, Mapping[str, Any]]]]:
        """Group the entries by the fields that they have, and by the values of these."""
        read: dict[Path, dict[str, tuple[int, Mapping[str, Any]]]] = {}
        for at, entry in enumerate(self._entries):
            there = tuple(name for name in names if name in entry)
            if any(map(entry.get, there)):
                read.setdefault(there, {}).setdefault(_values(entry, there), (at, entry))
        return read


def _values(tree: Mapping[str, Any], names: Path) -> str:
    return _text([tree[name] for name in names])


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)


def _get(tree: Any, steps: Steps) -> Any:
    for step in steps:
        tree = tree.get(step) if isinstance(tree, Mapping) else None
    return tree


def _move(path: Path, source: Manifest, target: Manifest) -> None:
    """Move a field from one manager to another, with the parents that have no other field.

    Up to 1.20 a list of which a manager has no entry counts as one of which it has all.
    """
    first, rest = path[0], path[1:]
    if not rest:
        target[first] = source.pop(first)
        return
    _move(rest, source[first], target.setdefault(first, {}))
    if not source[first].keys() - {"."}:
        del source[first]
