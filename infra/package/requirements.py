"""Write the requirements of a function whose cloud installs them itself, each by its hashes.

pip takes hashes for all or for none: everything that is needed is named, with what these need in
turn, as far as the distributions that are installed here say so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import metadata

from packaging.requirements import Requirement

from bellhop.errors import InvalidError
from infra.package.parts import THERE
from infra.package.wheels import Pin, pins


def requirements(names: Iterable[str]) -> str:
    """Return the text of a requirements file for distributions, and all that they need.

    Raises:
        InvalidError: one of them is not locked, or is not installed here as it is locked.
    """
    locked = _locked()
    wanted = sorted(_closed(names))
    return "".join(f"{_lines(locked[name])}\n" for name in wanted)


@cache
def _locked() -> Mapping[str, Pin]:
    return pins()


def _closed(names: Iterable[str]) -> set[str]:
    seen: set[tuple[str, str]] = set()
    waiting = [(name, "") for name in names]
    while waiting:
        each = waiting.pop()
        if each not in seen:
            seen.add(each)
            waiting += _needs(*each)
    return {name for name, _ in seen}


@cache
def _needs(name: str, extra: str) -> frozenset[tuple[str, str]]:
    """Return what a distribution needs where functions run, for one of its extras or without."""
    found: set[tuple[str, str]] = set()
    for text in _installed(name, _locked()).requires or ():
        asked = Requirement(text)
        if asked.marker is None or asked.marker.evaluate({**THERE, "extra": extra}):
            needed = re.sub(r"[-_.]+", "-", asked.name).lower()
            found |= {(needed, ""), *((needed, more) for more in asked.extras)}
    return frozenset(found)


def _installed(name: str, locked: Mapping[str, Pin]) -> metadata.Distribution:
    if name not in locked:
        raise InvalidError(f"cannot package {name}: not in requirements.lock; run `make lock`")
    try:
        found = metadata.distribution(name)
    except metadata.PackageNotFoundError as error:
        raise InvalidError(
            f"cannot package {name}: it is not installed here; run `make install`"
        ) from error
    if found.version != locked[name].version:
        raise InvalidError(
            f"cannot package {name}: {found.version} is installed here, and"
            f" {locked[name].version} is locked; run `make install`"
        )
    return found


def _lines(pin: Pin) -> str:
    return " \\\n    ".join([f"{pin.name}=={pin.version}", *pin.options()])
