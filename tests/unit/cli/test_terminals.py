"""Output on a terminal, unlike in a pipe: colour, lines that fit, and texts that steer nothing."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
import yaml
from click.testing import Result
from msgspec.structs import replace

import bellhop.cli
from bellhop.adapters.local.queue import SqliteQueue
from bellhop.cli.output import text_width
from bellhop.core.gvk import GVK, ObjectKey
from bellhop.core.printable import steers
from bellhop.installation import Installation
from bellhop.ports.queue import GivenUp, Message
from bellhop.state.cluster import Health
from bellhop.state.content import Content
from bellhop.state.deployment import Held, Inventory
from bellhop.state.match import Match
from tests.unit.cli import fleet
from tests.unit.cli.conftest import Bellhop

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
def test_sentences_wrap_between_words(
    terminal: Terminal, crowded: Installation, arguments: tuple[str, ...], columns: int
) -> None:
    """Stories and timelines fit, but for a name that is longer than the terminal is wide."""
    words = " ".join(f"word{number}" for number in range(40))
    crowded.records.ledger.note(fleet.entry("failed", detail=words))
    shown = plain(terminal(*arguments, COLUMNS=str(columns)))
    printed_words = " ".join(shown).split()

    assert [each for each in printed_words if each.startswith("word")] == words.split()
    assert all(len(line) <= columns or len(line.split()) <= 2 for line in shown)


OVER = "\r\x1b[K"


def test_a_terminal_shows_which_cluster_is_called(
    terminal: Terminal, here: Installation, bellhop: Callable[..., Result]
) -> None:
    fleet.populate(here)
    screen = terminal("diff", fleet.PROFILE, status=2)
    begun, _, rest = screen.partition("asking default/workload (1 of 1) …")

    assert begun == OVER
    assert rest.startswith(OVER)
    assert "asking" not in bellhop("diff", fleet.PROFILE).stderr
    assert "asking" not in terminal("diff", fleet.PROFILE, TERM="dumb", status=2)


def test_a_line_that_is_written_over_fits(terminal: Terminal, crowded: Installation) -> None:
    crowded.records.outcomes.put(fleet.outcome(cluster=f"production/{LONG}"))
    assert OVER in terminal("redeploy", COLUMNS="12")
    progress = [each for each in terminal("redeploy", COLUMNS="12").split(OVER) if "deploy" in each]

    assert progress[0] == "1 deploymen"


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
    assert text_width(text) == columns


# Texts of others ----------------------------------------------------------------------------------


HOSTILE = "\x1b[2Jgone\x1b]0;title\x07 \x9b31m \x7f\x08 \u202egnp.exe\u2066 \u200b\ufeff\U000e0041"
KINDS = ("clusters", "eventsources", "eventtriggers", "eventreports", "clusterprofiles")
FORMS = ("wide", "json", "yaml")
COMMANDS = [
    *(f"get {kind} -o {form}" for kind in KINDS for form in ("table", "wide", "yaml", "json")),
    *(f"describe {kind}" for kind in KINDS),
    *(f"show {what} -o {form}" for what in ("addons", "failures") for form in FORMS),
    *(f"show events -o {form}" for form in ("table", "wide", "json", "yaml")),
    *(f"dead-letters list -o {form}" for form in FORMS),
]
QUIET = (
    *("get eventtriggers", "describe eventtriggers", "get eventsources"),
    *("get eventreports -o table", "get clusterprofiles -o table"),
)
"""Commands that show no text of others."""


@pytest.fixture
def hostile(here: Installation) -> Installation:
    """An installation in which every text from outside is hostile."""
    fleet.populate(here)
    here.declare.register(replace(fleet.cluster(), labels={"env": "fv", "x": HOSTILE}))
    here.records.health.put("default/workload", Health("Down", message=HOSTILE))
    key = ObjectKey(GVK("", "v1", f"Kind{HOSTILE}"), HOSTILE, f"{HOSTILE}\nsecond line")
    for name, error in ((fleet.SERVICE, ""), (key, HOSTILE)):
        match = Match("default/workload", "sveltos-service", name, not error, "x", fleet.now())
        here.records.matches.put(replace(match, message=HOSTILE, error=error))
    manifest = {
        "apiVersion": "v1",
        "kind": key.gvk.kind,
        "metadata": {"name": key.name, "namespace": key.namespace},
    }
    contents = (Content(f"ConfigMap default/{HOSTILE}", HOSTILE, (manifest,)),)
    here.records.profiles.put(fleet.profile(contents=contents, object=str(key), error=HOSTILE))
    here.records.outcomes.put(fleet.outcome(phase="Failed", message=f"{HOSTILE}\n{HOSTILE}"))
    held = {key: Held("d", f"ConfigMap default/{HOSTILE}", fleet.now())}
    here.records.inventories.put(Inventory("default/workload", fleet.PROFILE, held))
    here.records.ledger.note(fleet.entry("rang", trace=f"\x1b{HOSTILE}"))
    here.records.ledger.note(fleet.entry("failed", detail=HOSTILE, object=str(key)))
    here.records.ledger.note(fleet.entry("held", trace="", context={"source": HOSTILE}))
    queue = here.dead["deploy"]
    assert isinstance(queue, SqliteQueue)
    queue.publish([Message({"do": HOSTILE}, "group")])
    (delivery,) = queue.receive(1, wait=timedelta(seconds=5))
    queue.settle(delivery, GivenUp(HOSTILE))
    return here


@pytest.mark.usefixtures("hostile")
@pytest.mark.parametrize("command", COMMANDS)
def test_nothing_that_steers_reaches_a_pipe(bellhop: Bellhop, command: str) -> None:
    """Whatever is listed, what cannot be seen is spelled; JSON and YAML stay what they are."""
    result = bellhop(*command.split())

    assert result.exit_code == 0
    assert not steers(result.stdout)
    assert not steers(result.stderr)
    if command.endswith("json") and "events" not in command:
        json.loads(result.stdout)
    if command.endswith("yaml"):
        yaml.safe_load(result.stdout)
    if not command.startswith(QUIET):
        assert "gone" in result.stdout


@pytest.mark.usefixtures("hostile")
@pytest.mark.parametrize(
    "command",
    [
        "get clusters -o wide",
        "describe clusterprofiles",
        "show events",
        "show failures",
        "show addons",
    ],
)
def test_nothing_that_steers_reaches_a_terminal(terminal: Terminal, command: str) -> None:
    """The escapes on a screen are those of our own colours."""
    path = os.environ.get("PYTHONPATH", "")
    screen = terminal(*command.split(), COLUMNS="400", PYTHONPATH=path).replace("\r\n", "\n")

    assert not steers(ESCAPE.sub("", screen))
    assert "gone" in screen


def test_an_error_is_one_line_that_steers_nothing(bellhop: Bellhop, tmp_path: Path) -> None:
    text = f"apiVersion: v1\nkind: {json.dumps(HOSTILE)}\nmetadata: {{name: x}}\n"
    (tmp_path / "x.yaml").write_text(text)

    result = bellhop("apply", "-f", str(tmp_path / "x.yaml"), "--validate-only")

    assert result.exit_code == 2
    assert not steers(result.stderr)
    assert len(result.stderr.splitlines()) == 1


def test_comments_of_a_rendering_cannot_be_left(bellhop: Bellhop, tmp_path: Path) -> None:
    """The name of an object cannot end the comment that has it and begin a manifest."""
    (tmp_path / "all.yaml").write_text(fleet.MANIFESTS.replace('"kind: NetworkPolicy"', '""'))
    thing = fleet.service()
    thing["metadata"]["name"] = f"x\n---\nkind: Injected\n{HOSTILE}"
    (tmp_path / "x.json").write_text(json.dumps(thing))

    result = bellhop(
        *("render", "-f", str(tmp_path / "all.yaml"), "--object", str(tmp_path / "x.json")),
        *("--cluster", "a/b,env=fv", "--show", "profiles"),
    )

    assert result.exit_code == 0, result.stderr
    assert not steers(result.stdout + result.stderr)
    assert [each["kind"] for each in yaml.safe_load_all(result.stdout)] == ["ClusterProfile"]


def _modules() -> list[Path]:
    return sorted(Path(str(bellhop.cli.__file__)).parent.rglob("*.py"))


@pytest.mark.parametrize("module", _modules(), ids=lambda path: path.stem)
def test_only_one_module_prints(module: Path) -> None:
    """Commands print through `output`, which lets nothing through; completion prints a script."""
    text = module.read_text()

    if module.stem not in {"output", "completion"}:
        assert "click.echo" not in text
        assert "print(" not in text
