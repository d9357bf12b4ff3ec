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
from click.testing import Result

from bellhop.cli.output import span
from bellhop.installation.installation import Installation
from bellhop.state.record import Health
from tests.unit.cli import fleet

PROGRAM = Path(sys.executable).parent / "bellhop"
ESCAPE = re.compile(r"\x1b\[[0-9;]*m")

Terminal = Callable[..., str]


@pytest.fixture
def terminal(state: Path) -> Terminal:
    """Run the program with a terminal as its output; return what reached the screen."""

    def run(*arguments: str, status: int = 0, **environment: str) -> str:
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
        assert process.wait(10) == status
        return screen.decode()

    return run


@pytest.mark.parametrize(
    ("command", "environment", "coloured"),
    [
        pytest.param("get clusters", {}, True, id="get"),
        pytest.param("describe cluster", {}, True, id="describe"),
        pytest.param("show events", {}, True, id="show"),
        pytest.param("get clusters", {"NO_COLOR": "1"}, False, id="NO_COLOR"),
        pytest.param("get clusters", {"TERM": "dumb"}, False, id="a dumb terminal"),
    ],
)
def test_colours_what_a_terminal_shows(
    terminal: Terminal,
    here: Installation,
    command: str,
    environment: dict[str, str],
    *,
    coloured: bool,
) -> None:
    """Colour is for terminals that want it."""
    fleet.populate(here)
    here.records.health.put("default/workload", Health("Down", message="no answer"))
    here.records.ledger.note(fleet.entry("rang"))
    screen = terminal(*command.split(), COLUMNS="120", **environment)

    found = {code for code in ESCAPE.findall(screen) if re.search(r"3[0-9]|9[0-7]", code)}
    assert bool(found) == coloured
    assert "workload" in screen


WIDTHS = (60, 200)
LONG = "a-cluster-with-a-name-that-is-as-long-as-names-of-clusters-are"


def plain(screen: str) -> list[str]:
    return ESCAPE.sub("", screen).splitlines()


@pytest.fixture
def crowded(here: Installation) -> Installation:
    """An installation with long names, long labels and a long sentence."""
    fleet.populate(here)
    labels = {f"label-number-{number}": f"value-{number}" for number in range(9)}
    here.declare.register(fleet.cluster("production", LONG, **labels))
    words = " ".join(f"word{number}" for number in range(40))
    here.records.health.put(f"production/{LONG}", Health("Down", message=words))
    here.records.ledger.note(fleet.entry("rang"))
    return here


@pytest.mark.parametrize("columns", [80, 200])
@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (("get", "clusters"), [LONG, "workload"]),
        (("show", "addons"), ["default/workload", "front-my-service"]),
    ],
)
@pytest.mark.usefixtures("crowded")
def test_a_row_is_a_line(
    terminal: Terminal, arguments: tuple[str, ...], names: list[str], columns: int
) -> None:
    """Cells are cut, and marked where they are, but for names, which other commands take."""
    shown = plain(terminal(*arguments, COLUMNS=str(columns)))

    assert len(shown) == (3 if arguments[0] == "get" else 2)
    assert LONG in names or max(map(len, shown)) <= columns
    assert any("…" in line for line in shown) == (columns < 200 or arguments[0] == "get")
    assert all(any(name in line.split() for line in shown[1:]) for name in names)


@pytest.mark.usefixtures("crowded")
def test_wide_has_all_on_the_narrowest_terminal(terminal: Terminal) -> None:
    """Who asks for all is given all, however long the lines are."""
    shown = plain(terminal("get", "clusters", "-o", "wide"))

    assert "…" not in "".join(shown)
    assert any(LONG in line and "label-number-8=value-8" in line for line in shown)


@pytest.mark.parametrize("columns", WIDTHS)
@pytest.mark.usefixtures("crowded")
def test_a_sentence_goes_on_below_itself(terminal: Terminal, columns: int) -> None:
    """On a narrow terminal every word of it can still be read, and none is parted."""
    shown = plain(terminal("show", "failures", COLUMNS=str(columns)))
    words = " ".join(shown).split()

    assert [f"word{number}" for number in range(40)] == [w for w in words if w.startswith("word")]
    assert max(map(len, shown)) <= columns


@pytest.mark.usefixtures("crowded")
def test_a_pipe_gets_everything(bellhop: Callable[..., Result]) -> None:
    """Neither cut nor folded, whatever the width of the terminal behind it."""
    shown = bellhop("get", "clusters", COLUMNS="60").stdout

    assert LONG in shown
    assert "…" not in shown


@pytest.mark.parametrize("columns", WIDTHS)
@pytest.mark.usefixtures("crowded")
def test_an_explanation_parts_no_name(terminal: Terminal, columns: int) -> None:
    """Its sentences are folded between words, under their beginning."""
    shown = plain(
        terminal("explain", f"production/{LONG}", "service", "default/web", COLUMNS=str(columns))
    )

    assert shown[0] == f"Service default/web in production/{LONG}"
    longest = max((line for line in shown if " " in line.strip()), key=len)
    assert len(longest) <= max(columns, len(shown[0]), len(LONG) + 40)
    assert "Next:" in "\n".join(shown)
    assert f"'production/{LONG}'" in " ".join(shown)


@pytest.mark.parametrize("columns", WIDTHS)
@pytest.mark.parametrize(
    "arguments",
    [("describe", "cluster", f"production/{LONG}"), ("show", "events"), ("events", "-o", "wide")],
    ids=" ".join,
)
def test_what_is_told_is_parted_between_words(
    terminal: Terminal, crowded: Installation, arguments: tuple[str, ...], columns: int
) -> None:
    """Stories and timelines fit, but for a name that is longer than the terminal is wide."""
    words = " ".join(f"word{number}" for number in range(40))
    crowded.records.ledger.note(fleet.entry("failed", detail=words))
    shown = plain(terminal(*arguments, COLUMNS=str(columns)))
    told = " ".join(shown).split()

    assert [each for each in told if each.startswith("word")] == words.split()
    assert all(len(line) <= columns or len(line.split()) <= 2 for line in shown)


OVER = "\r\x1b[K"


def test_a_terminal_is_told_which_cluster_is_asked(
    terminal: Terminal, here: Installation, bellhop: Callable[..., Result]
) -> None:
    """In one line that is written over, and is gone before anything is printed; a pipe is not."""
    fleet.populate(here)
    screen = terminal("diff", fleet.PROFILE, status=2)
    begun, _, rest = screen.partition("asking default/workload (1 of 1) …")

    assert begun == OVER
    assert rest.startswith(OVER)
    assert "asking" not in bellhop("diff", fleet.PROFILE).stderr
    assert "asking" not in terminal("diff", fleet.PROFILE, TERM="dumb", status=2)


def test_a_line_that_is_written_over_has_room(terminal: Terminal, crowded: Installation) -> None:
    """What is longer than the terminal is cut, for nobody could take it away."""
    crowded.records.outcomes.put(fleet.outcome(cluster=f"production/{LONG}"))
    assert OVER in terminal("redeploy", COLUMNS="12")
    told = [each for each in terminal("redeploy", COLUMNS="12").split(OVER) if "deploy" in each]

    assert told[0] == "1 deploymen"


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        pytest.param("plain", 5, id="letters"),
        pytest.param("\x1b[31mred\x1b[0m", 3, id="colours take no room"),
        pytest.param("日本", 4, id="wide letters take two"),
        pytest.param("e\u0301", 1, id="accents take none"),
    ],
)
def test_measures_what_is_seen(text: str, columns: int) -> None:
    """A cell is as wide as a terminal shows it."""
    assert span(text) == columns
