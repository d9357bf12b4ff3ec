"""Follows a list: a row that comes or changes is printed again, one that goes is named."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from bellhop.cli import output
from bellhop.cli.options import NAME

if TYPE_CHECKING:
    from bellhop.cli.queries import Asked
    from bellhop.installation.installation import Installation

_PAUSE = 0.5
_AGEING = ("age", "changed", "lastSweep")
"""What changes by itself is no change."""

Rows = Mapping[str, Mapping[str, Any]]


def watch(here: Installation, what: Asked, form: str, listed: Iterable[Mapping[str, Any]]) -> None:
    """Print what changes since it was listed until Ctrl-C, which ends it and is no failure."""
    try:
        before = _by_name(what, listed)
        while True:
            time.sleep(_PAUSE)
            now = _by_name(what, what.kind.view.rows(here, what.query))
            for name, row in now.items():
                if _steady(before.get(name)) != _steady(row):
                    _tell(what, name, row, form)
            for name in before.keys() - now.keys():
                output.say(f"{name} deleted", err=True)
            before = now
    except KeyboardInterrupt:
        output.say("", err=True)


def _by_name(what: Asked, rows: Iterable[Mapping[str, Any]]) -> Rows:
    return {what.kind.object_name(row): row for row in rows}


def _steady(row: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    return row and {key: value for key, value in row.items() if key not in _AGEING}


def _tell(what: Asked, name: str, row: Mapping[str, Any], form: str) -> None:
    if form == NAME:
        output.say(name)
    else:
        output.table(what.kind.view.columns, [row], form, nothing="", headers=False)
    output.flush()
