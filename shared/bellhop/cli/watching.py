"""Follows a list: a row that comes or changes is printed again, one that goes is named."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from bellhop.cli import output
from bellhop.cli.options import NAME

if TYPE_CHECKING:
    from bellhop.cli.asking import Asked
    from bellhop.fleet.installation import Installation

_PAUSE = 0.5
_AGEING = ("age", "changed", "lastSweep")
"""What changes by itself is no change."""

Rows = Mapping[str, Mapping[str, Any]]


def watch(here: Installation, what: Asked, form: str) -> None:
    """Print what changes until Ctrl-C, which is how it ends and no failure."""
    try:
        before = _rows(here, what)
        while True:
            time.sleep(_PAUSE)
            now = _rows(here, what)
            for name, row in now.items():
                if _steady(before.get(name)) != _steady(row):
                    _tell(what, name, row, form)
            for name in before.keys() - now.keys():
                output.say(f"{name} deleted", err=True)
            before = now
    except KeyboardInterrupt:
        output.say("", err=True)


def _rows(here: Installation, what: Asked) -> Rows:
    return {what.kind.object_name(row): row for row in what.kind.view.rows(here, what.query)}


def _steady(row: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    return row and {key: value for key, value in row.items() if key not in _AGEING}


def _tell(what: Asked, name: str, row: Mapping[str, Any], form: str) -> None:
    if form == NAME:
        output.say(name)
    else:
        output.table(what.kind.view.columns, [row], form, nothing="", headers=False)
    output.flush()
