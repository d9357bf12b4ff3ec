"""Texts of strangers in every list, description and error: none of them steers a terminal."""

from __future__ import annotations

import json
import os
from datetime import timedelta
from pathlib import Path

import pytest
import yaml
from msgspec.structs import replace

import bellhop.cli
from bellhop.adapters.local.queue import SqliteQueue
from bellhop.core.gvk import GVK, ObjectKey
from bellhop.core.printable import steers
from bellhop.installation.installation import Installation
from bellhop.ports.queue import GivenUp, Message
from bellhop.state.record import Content, Health, Held, Inventory, Match
from tests.unit.cli import fleet
from tests.unit.cli.conftest import Bellhop
from tests.unit.cli.test_terminals import ESCAPE, Terminal, terminal

__all__ = ["terminal"]

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
"""What shows no word of a stranger."""


@pytest.fixture
def hostile(here: Installation) -> Installation:
    """An installation in which every text that a stranger may choose is hostile."""
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
    """What a file says is quoted in its error, spelled."""
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
