"""The one place that knows CEL's runtime: its environment, and the sense of its answers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from bellhop.celbox.errors import (
    CelLimitError,
    CelMissingError,
    CelRuntimeError,
    CelSyntaxError,
)

_PLACE = re.compile(r"ERROR: <input>:(-?\d+):(-?\d+): (.*)")
_STATUS = re.compile(r"^(?:[A-Z_]+: )?(.*?)(?: \[[A-Z_]+\])?$", re.DOTALL)
_NOISE = re.compile(r" expecting (?:\{.*|'[^']*'|[A-Z_]+)$| \(in container ''\)$|^Syntax error: ")
_DEEP = "recursion"
_LONGEST = 300
_SURROGATES = re.compile("[\ud800-\udfff]")
_SURROGATE_BYTES = re.compile(b"\xed[\xa0-\xbf]")


@cache
def environment() -> Any:
    """Return what compiles rules; nothing of it depends on a rule.

    Raises:
        ImportError: the runtime is not installed.
    """
    # Not at the top: a process that compiles no rule must not pay for these.
    from cel_expr_python import cel  # noqa: PLC0415
    from cel_expr_python.ext import ext_strings  # noqa: PLC0415

    from bellhop.celbox.library import functions  # noqa: PLC0415

    types = {
        "bool": cel.Type.BOOL,
        "int": cel.Type.INT,
        "double": cel.Type.DOUBLE,
        "string": cel.Type.STRING,
        "list": cel.Type.LIST,
        "map": cel.Type.Map(cel.Type.STRING, cel.Type.DYN),
        "any": cel.Type.DYN,
    }
    overloads: dict[str, list[Any]] = {}
    for each in functions():
        overloads.setdefault(each.name, []).append(
            cel.Overload(
                "_".join(("bellhop", each.name, *each.takes)),
                return_type=types[each.gives],
                parameters=[types[name] for name in each.takes],
                is_member=each.method,
                impl=each.does,
            )
        )
    return cel.NewEnv(
        variables={"resource": cel.Type.DYN},
        extensions=[ext_strings.ExtStrings()],
        functions=[cel.FunctionDecl(name, found) for name, found in overloads.items()],
    )


def compiled(text: str, name: str) -> Any:
    """Return a rule as the runtime has it.

    Raises:
        CelSyntaxError: it is no CEL, or what it gives is no bool.
        CelMissingError: the runtime is not installed.
    """
    if _SURROGATES.search(text):
        raise CelSyntaxError("it has half a letter, a surrogate without its pair", name=name)
    try:
        made = environment().compile(text)
    except ImportError:
        raise CelMissingError(name=name) from None
    except RuntimeError as error:
        raise _syntax_error(str(error), name) from None
    gives = made.return_type().name()
    if gives not in {"BOOL", "DYN"}:
        wording = f"it gives {_kind(gives)}, and must be true or false"
        raise CelSyntaxError(wording, name=name, line=1, column=1)
    return made


def activation(obj: Mapping[str, Any], written: bytes) -> Any:
    """Return an object, and the same as marshal writes it, as rules are given it."""
    if b"\xed" in written and _SURROGATE_BYTES.search(written):
        obj = _mended(obj)
    return environment().Activation({"resource": obj})


def verdict(made: Any, activation: Any, name: str) -> bool:
    """Evaluate a rule with nothing but the runtime's own limits.

    Raises:
        CelRuntimeError: it fails, or gives no bool.
        CelLimitError: its loops take too many rounds.
    """
    try:
        value = made.eval(activation)
        given = value.value()
    except RuntimeError as error:
        if "Iteration budget" in str(error):
            wording = "its loops took more than 10000 rounds together"
            raise CelLimitError(wording, kind="iterations", name=name) from None
        raise CelRuntimeError(_plain(str(error)), name=name) from None
    if given is True or given is False:
        return given
    kind = value.type().name()
    if kind == "ERROR":
        raise CelRuntimeError(_plain(str(given)), name=name)
    raise CelRuntimeError(f"it gave {_kind(kind)}, and must be true or false", name=name)


def _syntax_error(text: str, name: str) -> CelSyntaxError:
    found = _PLACE.search(text)
    wording = found[3] if found else _plain(text)
    if _DEEP in wording:
        wording = "it is nested more than 32 levels deep"
    while (cleaned := _NOISE.sub("", wording)) != wording:
        wording = cleaned
    wording = wording.removesuffix(" [INVALID_ARGUMENT]")[:_LONGEST]
    wording = wording.replace("mismatched input '<EOF>'", "it ends too early")
    if not found or int(found[1]) < 1:
        return CelSyntaxError(wording, name=name)
    return CelSyntaxError(wording, name=name, line=int(found[1]), column=int(found[2]))


def _plain(text: str) -> str:
    """Return the runtime's words without the names of its statuses."""
    found = _STATUS.match(text)
    return (found[1] if found else text)[:_LONGEST]


def _kind(name: str) -> str:
    word = name.partition("<")[0].lower()
    return f"{'an' if word[0] in 'aiu' else 'a'} {word}"


def _mended(value: Any) -> Any:
    """Return a value with halves of surrogate pairs, which UTF-8 lacks, as U+FFFD."""
    if isinstance(value, str):
        return _SURROGATES.sub("\ufffd", value)
    if isinstance(value, dict):
        return {_mended(key): _mended(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_mended(each) for each in value]
    return value
