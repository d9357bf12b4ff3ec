"""Versions of charts: the choice by an exact version, a range as Helm has them, or the newest."""

from __future__ import annotations

import re
from collections.abc import Iterable

from semantic_version import NpmSpec, Version

from bellhop.errors import InvalidError, MissingError

_EXACT = re.compile(r"v?\d+\.\d+\.\d+(?:[-+][0-9A-Za-z.+-]+)?")
_EARLY = re.compile(r"\d-[0-9A-Za-z]")
_AND = re.compile(r"\s*,\s*")
_SPACED = re.compile(r"([<>=~^!])\s+(?=[vVxX*\d])")
_OTHERWISE = {"=>": ">=", "=<": "<=", "~>": "~", "*-0": ">=0.0.0-0"}
"""How Helm lets one write what the library here writes otherwise."""

_BUT = re.compile(r"!=\s*([vV]?[\d.xX*][^\s,|]*)")
_SHOWN = 5
_LONGEST = 256
"""Characters of a version or range: the time that a range takes to read grows with their square."""


def choose(versions: Iterable[str], requested: str, *, of: str) -> str:
    """Return the version to use, spelled as in the list; `of` names the chart in errors.

    A range means its newest version. Pre-releases count where the range names one. Without a range
    the newest release is meant.

    Raises:
        MissingError: there is no such version; the message names some that are there.
        InvalidError: the request is neither a version nor a range.
    """
    if len(requested) > _LONGEST:
        raise InvalidError(
            f"cannot choose a version of {of}: it has {len(requested):,} characters, and at most"
            f" {_LONGEST} are read; check the template that writes it"
        )
    there = {version: each for each in versions if (version := _version(each))}
    if is_exact(requested):
        exact = _version(requested.strip())
        found = [each for version, each in there.items() if version == exact]
        if found:
            return found[0]
        raise _missing_error(there, requested, of)
    spec = _spec(_BUT.sub("", requested), of)
    with_early = bool(_EARLY.search(requested)) or "*-0" in requested
    but = [_spec(each, of) for each in _BUT.findall(requested)]
    if but and "||" in requested:
        raise InvalidError(
            f"cannot choose a version of {of}: {requested!r} has != beside ||; write the ranges"
        )
    matching = [
        each
        for each in there
        if (each in spec or (with_early and _release(each) in spec))
        and not any(each in other for other in but)
    ]
    if not matching:
        raise _missing_error(there, requested, of)
    return there[max(matching)]


def is_exact(requested: str) -> bool:
    """Return whether one version is meant, and no range."""
    return _EXACT.fullmatch(requested.strip()) is not None


def newest_first(versions: Iterable[str]) -> list[str]:
    """Return what are versions, by their precedence."""
    there = {version: each for each in versions if (version := _version(each))}
    return [there[each] for each in sorted(there, reverse=True)]


def newer_than(versions: Iterable[str], current: str) -> tuple[str, str]:
    """Return the newest version after one that is in use, and the newest patch of that one.

    Either is empty where there is none. Pre-releases count where one is in use.
    """
    there = {version: each for each in versions if (version := _version(each))}
    now = _version(current)
    if now is None:
        return "", ""
    newer = [each for each in there if each > now and (now.prerelease or not each.prerelease)]
    same = [each for each in newer if (each.major, each.minor) == (now.major, now.minor)]
    newest, patch = (there[max(several)] if several else "" for several in (newer, same))
    return newest, patch


def _version(text: str) -> Version | None:
    """Read a version, which may leave out its last numbers or begin with v; None if it is none."""
    if len(text) > _LONGEST:
        return None
    try:
        return Version(text.strip().removeprefix("v"))
    except ValueError:
        return None


def _release(version: Version) -> Version:
    """Return the release that a pre-release comes before."""
    return Version(f"{version.major}.{version.minor}.{version.patch}")


def _spec(requested: str, of: str) -> NpmSpec:
    text = requested
    for written, meant in _OTHERWISE.items():
        text = text.replace(written, meant)
    text = _SPACED.sub(r"\1", _AND.sub(" ", text).strip()) or "*"
    text = re.sub(r"(?<![0-9A-Za-z.-])v(?=\d)", "", text)
    try:
        return NpmSpec(text)
    except ValueError as error:
        raise InvalidError(
            f"cannot choose a version of {of}: {requested!r} is neither a version nor a range"
        ) from error


def _missing_error(there: dict[Version, str], requested: str, of: str) -> MissingError:
    newest = newest_first(there.values())[:_SHOWN]
    named = f"; the newest are {', '.join(newest)}" if newest else "; there is no version at all"
    return MissingError(f"cannot find version {requested or 'any'!r} of {of}{named}")
