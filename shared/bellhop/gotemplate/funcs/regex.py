"""Regular expressions through RE2, the engine Go's are modelled on.

RE2 takes time in proportion to the size of the compiled expression times the length of the text
where its automaton has too many states, so the product of the two is bounded.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from bellhop.gotemplate.errors import FunctionError
from bellhop.gotemplate.functions import Table
from bellhop.gotemplate.limits import SLOW
from bellhop.gotemplate.literals import quote, to_bytes, to_text
from bellhop.gotemplate.values import StringList

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from bellhop.gotemplate.limits import Budget

FUNCTIONS = Table()
_add = FUNCTIONS.add

_META = str.maketrans({character: f"\\{character}" for character in r"\.+*?()|[]{}^$"})
_INNER = frozenset(bytes([byte]) for byte in range(0x80, 0xC0))
_LONGEST_NUMBER = 9
_STEPS_PER_MATCH = 3
_NAME = re.compile(r"\w+", re.ASCII)
_MOST_CARRIED, _GROUPS_PER_COST = 1_000_000, 16
_LONGEST, _MEMORY = 100_000, 2_000_000
_COMPLAINTS = {
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "invalid named capture group": "invalid named capture",
    "no argument for repetition operator": "missing argument to repetition operator",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid escape sequence": "invalid escape sequence",
    "trailing \\": "trailing backslash at end of expression",
    "invalid repetition size": "invalid repeat count",
}


class PatternError(FunctionError):
    """A pattern is none."""

    def __init__(self, pattern: str, message: str) -> None:
        super().__init__(message)
        self.pattern = pattern


@lru_cache(maxsize=16)
def _compiled(pattern: str) -> Any:
    import re2  # noqa: PLC0415 - only templates that ask for it pay for it

    if len(pattern) > _LONGEST:
        raise FunctionError("error parsing regexp: expression too large")
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MEMORY
    try:
        return re2.compile(_clean(pattern), options)
    except re2.error as error:
        raise PatternError(pattern, _complaint(pattern, error)) from error


def _complaint(pattern: str, error: Exception) -> str:
    text = error.args[0] if error.args else ""
    text = text.decode("utf-8", "replace") if isinstance(text, bytes) else str(text)
    code, _, fragment = text.partition(": ")
    code = _COMPLAINTS.get(code, code)
    if code in ("missing closing )", "unexpected )"):
        fragment = pattern
    return f"error parsing regexp: {code}: `{fragment}`"


def _clean(text: str) -> str:
    """Return a text that can be encoded: bytes that are not UTF-8 become replacement marks."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return to_bytes(text).decode("utf-8", "replace")
    return text


def _found(budget: Budget, pattern: str, data: bytes) -> Any:
    """Return the compiled expression, if so long a text may be searched by it."""
    expression = _compiled(pattern)
    # Each place of the expression where a match may be carries what the groups have matched.
    if expression.programsize * expression.groups > _MOST_CARRIED:
        raise FunctionError("error parsing regexp: expression too large")
    cost = expression.programsize * (1 + expression.groups // _GROUPS_PER_COST)
    budget.multiply("the size of the expression times that of the text", cost, len(data))
    return expression


def _matches(budget: Budget, pattern: str, data: bytes, most: int) -> Iterator[Any]:
    """Yield matches from the left, at most so many unless negative.

    An empty match right after another does not count, nor one inside of a character.
    """
    last_end = -1
    for match in _found(budget, pattern, data).finditer(data):
        if most == 0:
            return
        budget.spend(_STEPS_PER_MATCH)
        budget.look()
        start, end = match.span()
        if end == start and (start == last_end or data[start : start + 1] in _INNER):
            continue
        yield match
        most -= 1
        last_end = end


@_add("regexMatch", "string", "string", budgeted=True)
def regex_match(budget: Budget, pattern: str, text: str) -> bool:
    """Return whether a text has a match; a pattern that is none has none."""
    try:
        return must_regex_match(budget, pattern, text)
    except FunctionError:
        return False


@_add("mustRegexMatch", "string", "string", budgeted=True)
def must_regex_match(budget: Budget, pattern: str, text: str) -> bool:
    data = to_bytes(text)
    return _found(budget, pattern, data).search(data) is not None


@_add("mustRegexFind", "string", "string", budgeted=True)
def regex_find(budget: Budget, pattern: str, text: str) -> str:
    """Return the first match, or an empty text."""
    data = to_bytes(text)
    match = _found(budget, pattern, data).search(data)
    return to_text(match.group()) if match is not None else ""


@_add("mustRegexFindAll", "string", "string", "int", budgeted=True)
def regex_find_all(budget: Budget, pattern: str, text: str, most: int) -> StringList:
    """Return the matches, at most so many; -1 for all."""
    found = _matches(budget, pattern, to_bytes(text), most)
    return StringList(to_text(match.group()) for match in found)


@_add("mustRegexReplaceAll", "string", "string", "string", budgeted=True)
def regex_replace_all(budget: Budget, pattern: str, text: str, replacement: str) -> str:
    """Replace every match; $1 and ${name} stand for its groups."""
    parts = _template(replacement)
    return _replace(budget, pattern, text, parts)


@_add("mustRegexReplaceAllLiteral", *["string"] * 3, budgeted=True)
def regex_replace_all_literal(budget: Budget, pattern: str, text: str, replacement: str) -> str:
    """Replace every match with a text as it stands."""
    return _replace(budget, pattern, text, [(to_bytes(replacement), None)])


_Part = tuple[bytes, str | None]


def _replace(budget: Budget, pattern: str, text: str, parts: list[_Part]) -> str:
    data = to_bytes(text)
    out: list[bytes] = []
    size = position = 0
    for match in _matches(budget, pattern, data, -1):
        out.append(data[position : match.start()])
        piece = b"".join(plain if group is None else _group(match, group) for plain, group in parts)
        out.append(piece)
        size += len(piece)
        budget.reserve(size)
        position = match.end()
    out.append(data[position:])
    return to_text(b"".join(out))


def _group(match: Any, name: str) -> bytes:
    key: str | int = int(name) if name.isdigit() and len(name) < _LONGEST_NUMBER else name
    known = range(match.re.groups + 1) if isinstance(key, int) else match.re.groupindex
    return (match.group(key) or b"") if key in known else b""


def _template(replacement: str) -> list[_Part]:
    """Split a replacement into texts and the groups it names."""
    parts: list[_Part] = []
    position = 0
    while position < len(replacement):
        dollar = replacement.find("$", position)
        if dollar < 0:
            parts.append((to_bytes(replacement[position:]), None))
            break
        if dollar > position:
            parts.append((to_bytes(replacement[position:dollar]), None))
        name, position = _reference(replacement, dollar)
        parts.append((b"$", None) if name is None else (b"", name))
    return parts


def _reference(replacement: str, dollar: int) -> tuple[str | None, int]:
    """Read what follows a dollar: a group's name and where it ends, or None for a mere dollar."""
    if replacement.startswith("$$", dollar):
        return None, dollar + 2
    brace = replacement.startswith("${", dollar)
    match = _NAME.match(replacement, dollar + 1 + brace)
    if match is None:
        return None, dollar + 1
    if not brace:
        return match[0], match.end()
    if replacement.startswith("}", match.end()):
        return match[0], match.end() + 1
    return None, dollar + 1


@_add("mustRegexSplit", "string", "string", "int", budgeted=True)
def regex_split(budget: Budget, pattern: str, text: str, most: int) -> StringList:
    """Split at matches into at most so many parts; -1 for all."""
    data = to_bytes(text)
    if most == 0:
        return StringList()
    if pattern and not data:
        return StringList([""])
    parts: list[bytes] = []
    begin = end = 0
    for match in _matches(budget, pattern, data, most):
        if most > 0 and len(parts) == most - 1:
            break
        end = match.start()
        if match.end() != 0:
            parts.append(data[begin:end])
        begin = match.end()
    if end != len(data):
        parts.append(data[begin:])
    return StringList(map(to_text, parts))


@_add("regexQuoteMeta", "string", most=SLOW)
def regex_quote_meta(text: str) -> str:
    """Escape what means something in a pattern."""
    return text.translate(_META)


def _panicking(call: Callable[..., Any]) -> Callable[..., Any]:
    """Word a bad pattern as the forms without must do, which panic in Go."""

    def called(*arguments: Any) -> Any:
        try:
            return call(*arguments)
        except PatternError as error:
            quoted = f"`{error.pattern}`" if "`" not in error.pattern else quote(error.pattern)
            raise FunctionError(f"regexp: Compile({quoted}): {error}") from error

    return called


for _name in ("Find", "FindAll", "ReplaceAll", "ReplaceAllLiteral", "Split"):
    _must = FUNCTIONS[f"mustRegex{_name}"]
    FUNCTIONS[f"regex{_name}"] = _must._replace(name=f"regex{_name}", call=_panicking(_must.call))
