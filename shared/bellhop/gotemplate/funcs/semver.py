"""Semantic versions and constraints on them, as Masterminds/semver reads both."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from bellhop.gotemplate.errors import FunctionError
from bellhop.gotemplate.functions import Function, Table
from bellhop.gotemplate.literals import MAX_UINT, quote
from bellhop.gotemplate.values import Opaque

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

FUNCTIONS = Table()
_add = FUNCTIONS.add

_TAIL = (
    r"(?:-(?P<pre>[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?"
    r"(?:\+(?P<meta>[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?"
)
_VERSION = re.compile(
    rf"v?(?P<major>[0-9]+)(?:\.(?P<minor>[0-9]+))?(?:\.(?P<patch>[0-9]+))?{_TAIL}"
)
_WILD = r"v?(?P<major>[0-9|xX*]+)(?:\.(?P<minor>[0-9|xX*]+))?(?:\.(?P<patch>[0-9|xX*]+))?"
_OPERATOR = r"(?P<operator>=>|=<|!=|>=|<=|~>|=|>|<|~|\^|)"
_CONSTRAINT = re.compile(rf"\s*{_OPERATOR}\s*(?P<version>{_WILD}{_TAIL})\s*(?:,\s*|(?=\s)|\Z)")
_ONE = re.sub(r"\?P<\w+>", "?:", f"{_WILD}{_TAIL}")
_RANGE = re.compile(rf"\s*({_ONE})\s+-\s+({_ONE})\s*")
_LONGEST = 1000


class Version(Opaque):
    """A version; its methods are those templates call."""

    __slots__ = ("core", "metadata", "original", "pre")
    go_type = "*semver.Version"
    kind = "ptr"
    methods: Mapping[str, Function] = {}

    def __init__(self, original: str) -> None:
        match = _VERSION.fullmatch(original) if len(original) <= _LONGEST else None
        if match is None:
            raise FunctionError("Invalid Semantic Version")
        self.original = original
        self.core = tuple(_segment(match[name] or "0") for name in ("major", "minor", "patch"))
        self.pre = match["pre"] or ""
        self.metadata = match["meta"] or ""
        for part in self.pre.split("."):
            if part.isdigit() and len(part) > 1 and part[0] == "0":
                raise FunctionError("Version segment starts with 0")

    def go_string(self) -> str:
        text = ".".join(map(str, self.core))
        text += f"-{self.pre}" if self.pre else ""
        return f"{text}+{self.metadata}" if self.metadata else text

    def compare(self, other: Version) -> int:
        """Return a negative number, 0 or a positive one, by precedence."""
        if self.core != other.core:
            return -1 if self.core < other.core else 1
        return _compare_pre(self.pre, other.pre)


def _segment(digits: str) -> int:
    value = int(digits)
    if value > MAX_UINT:
        reason = f"strconv.ParseUint: parsing {quote(digits)}: value out of range"
        raise FunctionError(f"Error parsing version segment: {reason}")
    return value


def _compare_pre(one: str, other: str) -> int:
    if one == other:
        return 0
    if not one or not other:
        return 1 if not one else -1
    return -1 if list(map(_pre_key, one.split("."))) < list(map(_pre_key, other.split("."))) else 1


def _pre_key(part: str) -> tuple[int, int, str]:
    return (0, int(part), "") if part.isdigit() else (1, 0, part)


def _method(name: str, call: Callable[..., Any], *parameters: str) -> tuple[str, Function]:
    return name, Function(name, call, parameters)


Version.methods = dict(
    (
        _method("Major", lambda version: version.core[0]),
        _method("Minor", lambda version: version.core[1]),
        _method("Patch", lambda version: version.core[2]),
        _method("Prerelease", lambda version: version.pre),
        _method("Metadata", lambda version: version.metadata),
        _method("Original", lambda version: version.original),
        _method("String", lambda version: version.go_string()),
        _method("Compare", lambda one, other: one.compare(other), Version.go_type),
        _method("Equal", lambda one, other: one.compare(other) == 0, Version.go_type),
        _method("LessThan", lambda one, other: one.compare(other) < 0, Version.go_type),
        _method("GreaterThan", lambda one, other: one.compare(other) > 0, Version.go_type),
    )
)


class _Constraint(NamedTuple):
    """One comparison; `exact` counts the segments that are not wildcards."""

    operator: str
    version: Version
    exact: int

    def holds(self, version: Version) -> bool:
        """Return whether a version is admitted."""
        operator = _ALIASES.get(self.operator, self.operator)
        dirty = self.exact < len(version.core)
        skips_check = operator == "!=" and not dirty
        if version.pre and not self.version.pre and not skips_check:
            return False
        return _CHECKS[operator](self, version)


_ALIASES = {"=>": ">=", "=<": "<=", "~>": "~", "": "="}


def _equal(constraint: _Constraint, version: Version) -> bool:
    if constraint.exact < len(version.core):
        return _tilde(constraint, version)
    return version.compare(constraint.version) == 0


def _unequal(constraint: _Constraint, version: Version) -> bool:
    if constraint.exact in (0, len(version.core)):
        return version.compare(constraint.version) != 0
    if version.core[: constraint.exact] != constraint.version.core[: constraint.exact]:
        return True
    return constraint.exact == 2 and bool(_compare_pre(version.pre, constraint.version.pre))  # noqa: PLR2004 - x.y


def _greater(constraint: _Constraint, version: Version) -> bool:
    if constraint.exact in (1, 2):
        return version.core[: constraint.exact] > constraint.version.core[: constraint.exact]
    return version.compare(constraint.version) > 0


def _at_most(constraint: _Constraint, version: Version) -> bool:
    if constraint.exact == len(version.core):
        return version.compare(constraint.version) <= 0
    exact = 1 if constraint.exact == 1 else 2
    return version.core[:exact] <= constraint.version.core[:exact]


def _tilde(constraint: _Constraint, version: Version) -> bool:
    if version.compare(constraint.version) < 0:
        return False
    if constraint.version.core == (0, 0, 0) and constraint.exact in (0, 3):
        return True
    exact = 1 if constraint.exact == 1 else 2
    return version.core[:exact] == constraint.version.core[:exact]


def _caret(constraint: _Constraint, version: Version) -> bool:
    if version.compare(constraint.version) < 0:
        return False
    major, minor, _ = constraint.version.core
    if major > 0 or constraint.exact == 1:
        return version.core[0] == major
    if minor > 0 or constraint.exact == 2:  # noqa: PLR2004 - x.y
        return version.core[:2] == (0, minor)
    return version.core == constraint.version.core


_CHECKS: dict[str, Callable[[_Constraint, Version], bool]] = {
    "=": _equal,
    "!=": _unequal,
    ">": _greater,
    "<": lambda constraint, version: version.compare(constraint.version) < 0,
    ">=": lambda constraint, version: version.compare(constraint.version) >= 0,
    "<=": _at_most,
    "~": _tilde,
    "^": _caret,
}


def _parse(text: str) -> list[list[_Constraint]]:
    """Read alternatives of constraints."""
    if len(text) > _LONGEST:
        raise FunctionError("improper constraint: too long")
    text = _RANGE.sub(r">= \1, <= \2", text)
    return [_parse_all(part) for part in text.split("||")]


def _parse_all(text: str) -> list[_Constraint]:
    found: list[_Constraint] = []
    position = 0
    while position < len(text) or not found:
        match = _CONSTRAINT.match(text, position)
        if match is None or match.end() == position:
            if found and not text[position:].strip():
                break
            raise FunctionError(f"improper constraint: {text}")
        found.append(_constraint(match))
        position = match.end()
    return found


def _constraint(match: re.Match[str]) -> _Constraint:
    numbers: list[str] = []
    for name in ("major", "minor", "patch"):
        segment = match[name]
        if not segment or segment in ("x", "X", "*"):
            break
        numbers.append(segment)
    tail = f"-{match['pre']}" if match["pre"] else ""
    version = ".".join([*numbers, *["0"] * (3 - len(numbers))])
    try:
        return _Constraint(match["operator"], Version(version + tail), len(numbers))
    except FunctionError as error:
        raise FunctionError("constraint Parser Error") from error


@_add("semver", "string")
def semver(text: str) -> Version:
    """Read a version; its parts are .Major, .Minor, .Patch, .Prerelease and .Metadata."""
    return Version(text)


@_add("semverCompare", "string", "string")
def semver_compare(constraint: str, version: str) -> bool:
    """Return whether a version meets a constraint such as `>=1.2, <2` or `~1.4 || ^2`."""
    alternatives = _parse(constraint)
    candidate = Version(version)
    return any(all(one.holds(candidate) for one in every) for every in alternatives)
