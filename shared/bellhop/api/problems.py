"""Errors of the validator as sentences that name the place and the correction."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from bellhop.api.fields import choices_of, closest, field_at, fields_of, model_in, nearest
from bellhop.api.unsupported import NOT_YET
from bellhop.documents.document import Path

_TYPES = {
    bool: "a boolean",
    int: "a number",
    float: "a number",
    str: "a string",
    list: "a list",
    dict: "a mapping",
    type(None): "nothing",
}
_EXPECTED = {
    "string_type": "a string",
    "int_type": "a whole number",
    "bool_type": "true or false",
    "tuple_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
}


def mistakes(
    error: ValidationError, model: type[BaseModel], refused: Iterable[Path]
) -> Iterator[tuple[Path, str]]:
    """Yield every mistake, but none below a field that is refused as a whole."""
    seen: set[tuple[Path, str]] = set()
    details = error.errors(include_url=False, include_context=True)
    misspelt = {_meant(detail["loc"], model) for detail in details if _is_unknown(detail)}
    for detail in details:
        path = (*detail["loc"], *detail.get("ctx", {}).get("place", ()))
        if detail["type"] == "too_short" and detail["input"]:
            # It has entries, which are wrong, and are reported themselves.
            continue
        # Who wrote `eventSourcName` needs not hear that `eventSourceName` is missing, too.
        if detail["type"] == "missing" and path in misspelt:
            continue
        if any(path[: len(prefix)] == prefix for prefix in refused):
            continue
        sentence = _sentence(detail, path, model)
        if (path, sentence) not in seen:
            seen.add((path, sentence))
            yield path, sentence


def refusals(kind: str, model: type[BaseModel], data: dict[str, Any]) -> Iterator[tuple[Path, str]]:
    """Find what the manifest asks for that is not built yet, with the sentence that says so."""
    for steps, value, sentence in _NOT_YET.get(kind, ()):
        for path, found in _found(data, steps, ()):
            asked = found == value if value else not _is_default(found, model, path)
            if asked:
                yield path, sentence


def _parted(spelled: str, sentence: str) -> tuple[list[str], str, str]:
    """Part a line of what is not built yet into the steps to a field, a value and the sentence."""
    place, _, value = spelled.partition("=")
    return place.replace("[]", ".[]").split("."), value, sentence


_NOT_YET = {kind: [_parted(*line) for line in lines.items()] for kind, lines in NOT_YET.items()}


def _found(data: Any, steps: list[str], path: Path) -> Iterator[tuple[Path, Any]]:
    for number, step in enumerate(steps, 1):
        if step == "[]" and isinstance(data, list):
            for position, item in enumerate(data):
                yield from _found(item, steps[number:], (*path, position))
            return
        if not isinstance(data, dict) or step not in data:
            return
        data, path = data[step], (*path, step)
    yield path, data


def _is_default(value: Any, model: type[BaseModel], path: Path) -> bool:
    if value is None or value in ("", [], {}, False):
        return True
    info = field_at(model, path)
    return info is not None and bool(value == info.default)


def _is_unknown(detail: ErrorDetails) -> bool:
    return detail["type"] == "extra_forbidden"


def _meant(path: Path, model: type[BaseModel]) -> Path:
    return (*path[:-1], closest(str(path[-1]), _known_beside(path, model)))


def _known_beside(path: Path, model: type[BaseModel]) -> list[str]:
    parent = field_at(model, path[:-1])
    owner = model_in(parent.annotation) if parent else model
    return list(fields_of(owner)) if owner else []


def _sentence(detail: ErrorDetails, path: Path, model: type[BaseModel]) -> str:
    kind = detail["type"]
    if kind in _EXPECTED:
        return _wrong_type(_EXPECTED[kind], detail["input"])
    describe = _SENTENCES.get(kind)
    return describe(detail, path, model) if describe else detail["msg"]


def _wrong_type(expected: str, given: Any) -> str:
    hint = ""
    if expected == "a string" and isinstance(given, bool | int | float):
        hint = "; put it in quotes"
    elif isinstance(given, str) and expected in {"a whole number", "true or false"}:
        hint = "; take the quotes away"
    found = _TYPES.get(type(given), "something else")
    if expected == "a whole number" and isinstance(given, float):
        found = "a fraction"
    return f"this must be {expected}, not {found}{hint}"


def _unknown(_detail: ErrorDetails, path: Path, model: type[BaseModel]) -> str:
    word = str(path[-1])
    guess = nearest(word, _known_beside(path, model))
    if len(path) == 1 and not guess:
        # A document whose indentation was lost has the fields of its parts beside them.
        parts = [part for part in ("metadata", "spec") if field_at(model, (part, word))]
        guess = f"; it belongs under '{parts[0]}': indent it" if parts else ""
    return f"unknown field '{word}'{guess}"


def _enumerated(detail: ErrorDetails, path: Path, model: type[BaseModel]) -> str:
    info = field_at(model, path)
    choices = choices_of(info.annotation) if info else ()
    given = detail["input"]
    if not isinstance(given, str):
        return _wrong_type("a string", given)
    guess = nearest(given, choices)
    return f"{given!r} is not one of {', '.join(choices)}{guess}"


_SENTENCES: dict[str, Callable[[ErrorDetails, Path, type[BaseModel]], str]] = {
    "mistake": lambda detail, _path, _model: detail["ctx"]["sentence"],
    "missing": lambda _detail, path, _model: f"the field '{path[-1]}' is missing",
    "extra_forbidden": _unknown,
    "literal_error": _enumerated,
    "string_too_short": lambda _detail, _path, _model: "this must not be empty",
    "too_short": lambda _detail, _path, _model: "this list must not be empty",
    "greater_than_equal": lambda detail, _path, _model: (
        f"this must be at least {detail['ctx']['ge']}"
    ),
    "less_than_equal": lambda detail, _path, _model: f"this must be at most {detail['ctx']['le']}",
}
