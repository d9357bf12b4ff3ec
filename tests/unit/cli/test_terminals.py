"""What a terminal gets that a pipe does not: colour, and lines that fit."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bellhop.fleet.installation import Installation
from bellhop.model.record import Health
from tests.unit.cli import fleet

PROGRAM = Path(sys.executable).parent / "bellhop"
ESCAPE = re.compile(r"\x1b\[[0-9;]*m")

Terminal = Callable[..., str]


@pytest.fixture
def terminal(state: Path) -> Terminal:
    """Run the program with a terminal as its output; return what reached the screen."""

    def run(*arguments: str, **environment: str) -> str:
        ours, theirs = pty.openpty()
        process = subprocess.Popen(
            [PROGRAM, *arguments],
            env={
                **os.environ,
                "BELLHOP_STATE": str(state),
                "TERM": "xterm-256color",
                "COLUMNS": "60",
                **environment,
            },
            stdout=theirs,
            stderr=theirs,
        )
        os.close(theirs)
        screen = b""
        try:
            while part := os.read(ours, 65536):
                screen += part
        except OSError:
            pass  # How a terminal says that its other side is closed.
        os.close(ours)
        assert process.wait(10) == 0
        return screen.decode()

    return run


@pytest.mark.parametrize(
    "arguments",
    [("get", "clusters"), ("describe", "cluster"), ("show", "events"), ("show", "failures")],
    ids=" ".join,
)
@pytest.mark.parametrize(
    ("environment", "coloured"),
    [
        pytest.param({}, True, id="a terminal"),
        pytest.param({"NO_COLOR": "1"}, False, id="NO_COLOR"),
        pytest.param({"TERM": "dumb"}, False, id="a dumb terminal"),
    ],
)
def test_colours_what_a_terminal_shows(
    terminal: Terminal,
    here: Installation,
    arguments: tuple[str, ...],
    environment: dict[str, str],
    *,
    coloured: bool,
) -> None:
    """Colour is for terminals that want it."""
    fleet.populate(here)
    here.records.health.put("default/workload", Health("Down", message="no answer"))
    here.records.ledger.note(fleet.entry("rang"))
    screen = terminal(*arguments, **environment)

    found = {code for code in ESCAPE.findall(screen) if re.search(r"3[0-9]|9[0-7]", code)}
    assert bool(found) == coloured
    assert "workload" in screen


def test_long_cells_are_folded_not_cut(terminal: Terminal, here: Installation) -> None:
    """On a narrow terminal every word can still be read."""
    fleet.populate(here)
    words = " ".join(f"word{number}" for number in range(40))
    here.records.health.put("default/workload", Health("Down", message=words))
    screen = ESCAPE.sub("", terminal("show", "failures"))

    assert all(f"word{number}" in screen.replace("\r\n", "") for number in (0, 39))
    assert max(map(len, screen.splitlines())) <= 60
