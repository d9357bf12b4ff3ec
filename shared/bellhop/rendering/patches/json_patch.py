"""A JSON patch (RFC 6902), as lenient as kustomize is with it.

An `add` makes the objects on its way, a `replace` of what is not there adds it, a `remove` of that
has no effect, and a negative place counts from the end of its list.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from bellhop.errors import InvalidError, TooLargeError

_NEEDS = {
    "add": ("path", "value"),
    "replace": ("path", "value"),
    "test": ("path", "value"),
    "remove": ("path",),
    "move": ("path", "from"),
    "copy": ("path", "from"),
}

_LARGEST_COPIES = 20_000
"""Values that the copies of one patch may have: each may double an object."""

_DIGITS = 10


def check(operations: Sequence[Any]) -> None:
    """See that each entry of a list is an operation.

    Raises:
        InvalidError: one is not; the message says which and why.
    """
    for number, each in enumerate(operations):
        if not isinstance(each, dict):
            raise InvalidError(f"operation {number} must be a map")
        needs = _NEEDS.get(str(each.get("op")))
        if needs is None:
            raise InvalidError(
                f"operation {number} has the op {each.get('op')!r}; use one of {', '.join(_NEEDS)}"
            )
        for field in needs:
            if field not in each:
                raise InvalidError(f"operation {number} ({each['op']}) has no {field}")
            if field != "value" and not str(each[field]).startswith("/"):
                raise InvalidError(
                    f"operation {number} has the {field} {each[field]!r}; begin it with /"
                )


def patched(manifest: Mapping[str, Any], operations: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return an object as checked operations leave it; what was given stays as it is.

    Raises:
        InvalidError: an operation cannot be applied; the message says which and why.
    """
    import jsonpatch  # noqa: PLC0415 - of use only to profiles with such a patch
    import jsonpointer  # noqa: PLC0415

    made = copy.deepcopy(dict(manifest))
    left = _LARGEST_COPIES
    for number, each in enumerate(operations):
        if each["op"] == "copy":
            left -= _count(_follow(made, _steps(each["from"]), makes=False))
        if left < 0:
            raise TooLargeError(
                f"operation {number} (copy {each['path']}) copies too much: all copies of a patch"
                f" may have {_LARGEST_COPIES} values"
            )
        try:
            if operation := _plain(made, each):
                made = jsonpatch.apply_patch(made, [operation], in_place=True)
        # Of what lies in a text or a number the library says so by a TypeError.
        except (
            jsonpatch.JsonPatchException,
            jsonpointer.JsonPointerException,
            TypeError,
            ValueError,
        ) as error:
            # The library's words quote values, which may be a Secret's.
            why = "another value is there" if each["op"] == "test" else "its path leads nowhere"
            raise InvalidError(
                f"operation {number} ({each['op']} {each['path']}) does not fit: {why}"
            ) from error
    return made


def _plain(there: dict[str, Any], operation: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return an operation as RFC 6902 has it, if there is anything to do; make its way."""
    steps = _steps(operation["path"])
    op = operation["op"]
    parent = _follow(there, steps[:-1], makes=op == "add")
    last = _counted(parent, steps[-1])
    is_there = last in parent if isinstance(parent, dict) else _is_place(parent, last)
    if op == "remove" and not is_there:
        return None
    if op == "replace" and not is_there and isinstance(parent, dict):
        op = "add"
    path = _pointer([*_counted_all(there, steps[:-1]), last])
    return {**operation, "op": op, "path": path}


def _count(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + sum(map(_count, value.values()))
    return 1 + sum(map(_count, value)) if isinstance(value, list) else 1


def _steps(path: str) -> list[str]:
    return [each.replace("~1", "/").replace("~0", "~") for each in path.split("/")[1:]]


def _pointer(steps: Sequence[str]) -> str:
    return "".join("/" + each.replace("~", "~0").replace("/", "~1") for each in steps)


def _follow(there: Any, steps: Sequence[str], *, makes: bool) -> Any:
    """Return what lies at the end of some steps, if anything; objects on the way can be made."""
    for step in steps:
        if isinstance(there, dict):
            if makes and there.get(step) is None:
                there[step] = {}
            there = there.get(step)
        else:
            place = _counted(there, step)
            there = there[int(place)] if _is_place(there, place) else None
    return there


def _counted_all(there: Any, steps: Sequence[str]) -> list[str]:
    """Return steps in which no place of a list counts from its end."""
    counted = []
    for step in steps:
        counted.append(_counted(there, step))
        there = _follow(there, [step], makes=False)
    return counted


def _counted(there: Any, step: str) -> str:
    if isinstance(there, list) and step[:1] == "-" and _is_number(step[1:]):
        return str(len(there) - int(step[1:]))
    return step


def _is_place(there: Any, step: str) -> bool:
    return isinstance(there, list) and _is_number(step) and int(step) < len(there)


def _is_number(step: str) -> bool:
    """Say whether a step is a place: digits of other scripts are none, nor are hundreds of them."""
    return step.isascii() and step.isdigit() and len(step) < _DIGITS
