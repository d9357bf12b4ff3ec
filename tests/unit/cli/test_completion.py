"""Completion as it is typed: a tab in real shells."""

from __future__ import annotations

import os
import pty
import re
import shlex
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete

from bellhop.cli import completion
from bellhop.cli.main import cli
from bellhop.installation import Installation
from bellhop.state.ingest_policy import Sender, WatchedKind
from tests.missing import find_program
from tests.unit.cli import fleet
from tests.unit.cli.conftest import Bellhop
from tests.unit.promotions.conftest import promotion
from tests.waiting import eventually

PROGRAMS = Path(sys.executable).parent
PATIENCE = 30.0

LINES = [
    pytest.param("bellhop serv", "bellhop serve", id="a command"),
    pytest.param("bellhop get eventso", "bellhop get eventsources", id="a kind"),
    pytest.param("bellhop get cm,eventso", "bellhop get cm,eventsources", id="a second kind"),
    pytest.param("bellhop get clusters def", "bellhop get clusters default/workload", id="a name"),
    pytest.param(
        "bellhop delete cm default/net", "bellhop delete cm default/network-policy", id="to delete"
    ),
    pytest.param("bellhop resync def", "bellhop resync default/workload", id="a cluster"),
    pytest.param("bellhop delete orph", "bellhop delete orphans", id="orphans"),
    pytest.param(
        "bellhop delete orphans --cluster def",
        "bellhop delete orphans --cluster default/workload",
        id="a cluster of orphans",
    ),
    pytest.param("bellhop context use la", "bellhop context use lab", id="a context"),
    pytest.param("bellhop --context la", "bellhop --context lab", id="a context as an option"),
    pytest.param("bellhop apply -f manif", "bellhop apply -f manifest.yaml", id="a file"),
    pytest.param(
        "bellhop explain default/workload serv",
        "bellhop explain default/workload service",
        id="a kind that counts",
    ),
    pytest.param(
        "bellhop explain default/workload service default/my",
        "bellhop explain default/workload service default/my-service",
        id="an object",
    ),
    pytest.param(
        "bellhop explain trigger serv",
        "bellhop explain trigger service-network-policy",
        id="a trigger",
    ),
    pytest.param(
        "bellhop sender remove default/workload sto",
        "bellhop sender remove default/workload store",
        id="a sender",
    ),
    pytest.param(
        "bellhop approve promotion ag", "bellhop approve promotion agent", id="a promotion"
    ),
    pytest.param(
        "bellhop rollback promotion agent --stage prod",
        "bellhop rollback promotion agent --stage production",
        id="a stage",
    ),
    pytest.param(
        "bellhop pause promotion ag", "bellhop pause promotion agent", id="a promotion to pause"
    ),
    pytest.param(
        "bellhop history promotion ag", "bellhop history promotion agent", id="its history"
    ),
]


@pytest.fixture
def desk(tmp_path: Path, state: Path, here: Installation, bellhop: Bellhop) -> dict[str, str]:
    """The example deployed, a context and a file; the environment of a shell there."""
    fleet.populate(here)
    fleet.declare(here, promotion({"name": "staging"}, {"name": "production"}))
    kinds = [WatchedKind(fleet.SERVICE.gvk, "services")]
    here.records.gates.put("default/workload", fleet.cluster().gate(kinds, 10**6))
    here.records.senders.put(Sender("default/workload", "store", fleet.now()))
    assert bellhop("context", "add", "lab", "--state", str(state)).exit_code == 0
    (tmp_path / "desk").mkdir()
    (tmp_path / "desk" / "manifest.yaml").touch()
    return {
        **os.environ,
        "PATH": os.pathsep.join([str(PROGRAMS), os.environ["PATH"]]),
        "BELLHOP_STATE": str(state),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "HOME": str(tmp_path),
        "ZDOTDIR": str(tmp_path),
        "TERM": "dumb",
        "PS1": "$ ",
    }


class Terminal:
    """A shell in a terminal of its own."""

    def __init__(self, argv: list[str], environment: dict[str, str], folder: Path) -> None:
        self._ours, theirs = pty.openpty()
        self._process = subprocess.Popen(
            argv,
            env=environment,
            cwd=folder,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)
        os.set_blocking(self._ours, False)
        self.screen = ""

    def type(self, keys: str) -> None:
        os.write(self._ours, keys.encode())

    def wait_for(self, pattern: str) -> re.Match[str]:
        """Read the screen until something is on it."""

        def seen() -> re.Match[str] | None:
            with suppress(BlockingIOError):
                self.screen += os.read(self._ours, 65536).decode(errors="replace")
            return re.search(pattern, self.screen)

        found = eventually(lambda: f"{pattern!r} is in {self.screen!r}", seen)
        assert found
        return found

    def close(self) -> None:
        self._process.kill()
        self._process.wait(PATIENCE)
        os.close(self._ours)


def completed_in_terminal(name: str, line: str, desk: dict[str, str]) -> str:
    """Type a line and a tab; return what the shell then has on its line."""
    if name == "bash":
        argv = [str(find_program("bash", "bash")), "--norc", "--noprofile", "-i"]
        setup = "source <(bellhop completion bash)"
    else:
        argv = [str(find_program("zsh", "zsh")), "-d", "-i"]
        setup = (
            "PROMPT='$ '; unsetopt prompt_cr zle_bracketed_paste; bindkey -e;"
            " autoload -Uz compinit; compinit -u -D; source <(bellhop completion zsh)"
        )
        (Path(desk["ZDOTDIR"]) / ".zshrc").touch()
    terminal = Terminal(argv, desk, Path(desk["HOME"]) / "desk")
    try:
        terminal.type(f"{setup}; echo rea''dy\n")
        terminal.wait_for("ready")
        terminal.screen = ""
        # The line is read back by having the shell print it, whatever it drew.
        terminal.type(f"{line}\t\x01echo '<' \x05 '>'\n")
        return terminal.wait_for(r"(?m)^< (.*?) >\r?$")[1].strip()
    finally:
        terminal.close()


def completed_in_fish(line: str, desk: dict[str, str]) -> str:
    """Ask fish what a tab would complete; the only candidate takes the last word's place."""
    asked = f"bellhop completion fish | source; complete -C {shlex.quote(line)}"
    done = subprocess.run(
        [str(find_program("fish", "fish")), "--no-config", "-c", asked],
        env=desk,
        cwd=Path(desk["HOME"]) / "desk",
        capture_output=True,
        text=True,
        check=True,
    )
    (found,) = [each.partition("\t")[0] for each in done.stdout.splitlines()]
    return " ".join([*line.split(" ")[:-1], found])


@pytest.mark.parametrize(
    "name", ["bash", *(pytest.param(name, marks=pytest.mark.rest) for name in ("zsh", "fish"))]
)
@pytest.mark.parametrize(("line", "whole"), LINES)
def test_a_tab_completes(desk: dict[str, str], name: str, line: str, whole: str) -> None:
    """Commands, kinds, names, contexts, files, and what may be explained."""
    if name == "fish":
        assert completed_in_fish(line, desk) == whole
    else:
        assert completed_in_terminal(name, line, desk) == whole


def candidates(*words: str) -> list[str]:
    """Ask for completion as shells do, without one."""
    *before, incomplete = words

    class Asked(ShellComplete):
        name = "asked"
        source_template = ""

    asked = Asked(cli, {}, "bellhop", "_BELLHOP_COMPLETE")
    return [each.value for each in asked.get_completions(list(before), incomplete)]


@pytest.mark.parametrize(
    "words", [("get", "clusters", ""), ("resync", ""), ("explain", "trigger", "")], ids=" ".join
)
def test_where_there_is_no_state_there_is_nothing_to_complete(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    """Nothing is made, and nothing is said."""
    state = tmp_path / "none"

    assert candidates("--state", str(state), *words) == []
    assert not state.exists()


def test_the_state_that_was_typed_is_completed_from(here: Installation, state: Path) -> None:
    """Before the command or behind it."""
    fleet.populate(here)

    assert candidates("--state", str(state), "get", "clusters", "") == ["default/workload"]
    assert candidates("get", "--state", str(state), "clusters", "") == ["default/workload"]


def test_a_shell_is_not_given_thousands_of_names(here: Installation, state: Path) -> None:
    """Beyond some hundred one types on."""
    fleet.populate(here)
    for number in range(300):
        here.records.manifests.put("EventTrigger", "", f"t{number}", {"kind": "EventTrigger"})

    assert len(candidates("--state", str(state), "explain", "trigger", "t")) == 200


def test_a_kind_that_is_not_there_has_no_names() -> None:
    """A shell is not to show errors."""
    command = cli.get_command(click.Context(cli), "get")
    assert command
    ctx = click.Context(command)
    ctx.params["kind"] = "nothing"

    assert completion.complete_name(ctx, command.params[1], "") == []
