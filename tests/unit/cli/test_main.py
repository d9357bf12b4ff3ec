"""The command line as a whole: help, exit codes, completion, and how quickly it answers."""

from __future__ import annotations

import fcntl
import os
import re
import resource
import shlex
import signal
import struct
import subprocess
import sys
import termios
from pathlib import Path
from typing import IO

import click
import pytest
from click.testing import CliRunner

from bellhop.cli.main import COMMANDS, GROUPS, cli
from bellhop.documents.document import InvalidDocuments
from bellhop.errors import (
    CloudDeniedError,
    ConflictError,
    DeniedError,
    InvalidError,
    MissingError,
    ThrottledError,
    UnreachableError,
)
from infra.cli_page import commands as every_command
from tests.unit.cli.conftest import Bellhop
from tests.waiting import eventually

PROGRAM = Path(sys.executable).parent / "bellhop"
HELP_SECONDS = 1.0


EVERY = every_command()


@pytest.mark.parametrize("name", EVERY)
def test_every_command_has_an_example_in_its_help(bellhop: Bellhop, name: str) -> None:
    result = bellhop(*name.split()[1:], "--help")

    assert result.exit_code == 0
    assert "Example" in result.output
    assert "  bellhop " in result.output.split("Example")[1]


EXAMPLES = sorted({line for each in EVERY.values() for line in getattr(each, "examples", ())})


@pytest.mark.parametrize("line", EXAMPLES)
def test_every_example_of_the_help_can_be_typed(line: str) -> None:
    """An example names commands and options that there are, with values that they take."""
    ours = re.search(r"\bbellhop\b[^|>)]*", line)
    assert ours is not None
    words = shlex.split(ours[0])
    names = ["bellhop"]
    while len(words) > len(names) and " ".join([*names, words[len(names)]]) in EVERY:
        names.append(words[len(names)])
    command, words = EVERY[" ".join(names)], words[len(names) :]
    assert not isinstance(command, click.Group), line
    options = {
        option: parameter
        for parameter in command.params
        if isinstance(parameter, click.Option)
        for option in (*parameter.opts, *parameter.secondary_opts)
    }
    typed = [word for word in words if word.startswith("-") and word != "-" and "=" not in word]

    assert [word for word in typed if word not in options and word not in {"-h", "--help"}] == []
    required = [
        parameter.opts
        for parameter in command.params
        if isinstance(parameter, click.Option) and parameter.required
    ]
    given = {word.partition("=")[0] for word in words}
    assert [spellings for spellings in required if not {*spellings} & given] == []


@pytest.mark.parametrize("name", EVERY)
def test_every_form_in_the_help_names_options_of_the_command(name: str) -> None:
    """A command that is typed in several forms lists them by hand, with its options."""
    command = EVERY[name]
    forms = " ".join(getattr(command, "usage", ()))
    known = {option for each in command.params for option in each.opts}

    assert {*re.findall(r"(?<![\w|-])--?[a-z][\w-]*", forms)} <= known


def test_the_help_lists_each_command_in_one_group() -> None:
    """Groups are by purpose, so that a reader finds a command that he cannot name."""
    grouped = [name for group in GROUPS.values() for name in group]
    lines = CliRunner().invoke(cli, ["--help"]).stdout.splitlines()

    assert sorted(grouped) == sorted(COMMANDS)
    assert {f"{group}:" for group in GROUPS} <= set(lines)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_of_commands_says_what_their_help_says(name: str) -> None:
    """The short help that is listed without importing a command is the command's."""
    command = EVERY[f"bellhop {name}"]

    assert command.name == name
    assert command.help


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        pytest.param(InvalidError("wrong", where="a.yaml"), 2, "error: a.yaml: wrong", id="input"),
        pytest.param(
            InvalidDocuments([InvalidError("one"), InvalidError("two")]),
            2,
            "error: one\nerror: two",
            id="every mistake on a line",
        ),
        pytest.param(MissingError("not there"), 1, "error: not there", id="missing"),
        pytest.param(DeniedError("no right"), 1, "error: no right", id="denied"),
        pytest.param(ConflictError("another"), 1, "error: another", id="conflict"),
        pytest.param(CloudDeniedError("no right"), 1, "error: no right", id="denied by a cloud"),
        pytest.param(UnreachableError("silent"), 75, "error: silent", id="unreachable"),
        pytest.param(ThrottledError("slower"), 75, "error: slower", id="throttled"),
        pytest.param(
            RuntimeError("secret detail"),
            70,
            "error: internal error; run it again with BELLHOP_DEBUG=1 to see where",
            id="a fault of ours",
        ),
        pytest.param(
            click.UsageError("What?"),
            2,
            "error: what? `bellhop fail --help` shows how it is used",
            id="usage",
        ),
        pytest.param(KeyboardInterrupt(), 130, "", id="Ctrl-C"),
        pytest.param(BrokenPipeError(), 141, "", id="the pipe's reader went away"),
    ],
)
def test_the_exit_code_says_how_it_went(
    monkeypatch: pytest.MonkeyPatch,
    bellhop: Bellhop,
    error: BaseException,
    code: int,
    said: str,
) -> None:
    """Permanent is 1, wrong input 2, temporary 75, a fault 70; errors go to standard error."""

    def fail() -> None:
        raise error

    monkeypatch.setattr(cli, "get_command", lambda *_: click.Command("fail", callback=fail))
    result = bellhop("fail")

    assert (code, said) == (result.exit_code, result.stderr.strip())
    assert result.stdout == ""


def test_shows_the_traceback_to_who_asks_for_it(
    monkeypatch: pytest.MonkeyPatch, bellhop: Bellhop
) -> None:
    """BELLHOP_DEBUG=1 shows where a fault is."""

    def fail() -> None:
        raise RuntimeError("the place")

    monkeypatch.setattr(cli, "get_command", lambda *_: click.Command("fail", callback=fail))

    assert 'raise RuntimeError("the place")' in bellhop("fail", BELLHOP_DEBUG="1").stderr
    assert "the place" not in bellhop("fail").stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_prints_a_completion_script(bellhop: Bellhop, shell: str) -> None:
    """The script calls the program by its own name."""
    result = bellhop("completion", shell)

    assert result.exit_code == 0
    assert "_BELLHOP_COMPLETE" in result.output


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        pytest.param("bellhop ser", "serve", id="commands"),
        pytest.param("bellhop get eventr", "eventreports", id="kinds"),
        pytest.param("bellhop show f", "failures", id="subcommands"),
        pytest.param("bellhop register cluster --kubec", "--kubeconfig", id="options"),
    ],
)
def test_completes(words: str, completed: str) -> None:
    """The completion of a shell knows commands, kinds and options."""
    done = subprocess.run(
        [PROGRAM],
        env={
            "_BELLHOP_COMPLETE": "bash_complete",
            "COMP_WORDS": words,
            "COMP_CWORD": str(len(words.split()) - 1),
            "PATH": os.environ["PATH"],
        },
        capture_output=True,
        text=True,
        check=True,
    )

    assert completed in [line.partition(",")[2] for line in done.stdout.splitlines()]


@pytest.mark.clocked
@pytest.mark.parametrize(
    "arguments",
    [("--help",), ("get", "--help"), ("register", "cluster", "--help"), ("show", "--help")],
    ids=" ".join,
)
def test_help_answers_at_once(arguments: tuple[str, ...]) -> None:
    """Help takes a fifth of a second of processor time; a busy machine may need some more."""
    took = min(_processor_seconds(arguments) for _ in range(3))

    assert took < HELP_SECONDS


def test_help_loads_neither_models_nor_clients() -> None:
    code = (
        "import sys; from bellhop.cli.main import cli\n"
        "for name in cli.list_commands(None): cli.get_command(None, name)\n"
        "print([name for name in ('pydantic', 'yaml', 'kubernetes', 'urllib3',"
        " 'cryptography', 'lupa') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"


def test_a_reader_that_has_seen_enough_is_no_error(state: Path, bellhop: Bellhop) -> None:
    """`bellhop … | head -1` says nothing on standard error."""
    data = "\n".join(f"  key-{number}: {'x' * 500}" for number in range(1000))
    manifest = f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: big\ndata:\n{data}\n"
    assert bellhop("apply", "-f", "-", stdin=manifest).exit_code == 0
    done = subprocess.run(
        ["bash", "-c", f"{PROGRAM} get cm -o yaml | head -1; echo ${{PIPESTATUS[0]}}"],
        env={"BELLHOP_STATE": str(state), "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout == "apiVersion: v1\n141\n"
    assert done.stderr == ""


def test_ctrl_c_ends_with_130(state: Path) -> None:
    """A command that waits for its input ends quietly, as shells expect."""
    process = subprocess.Popen(
        [PROGRAM, "apply", "-f", "-"],
        env={"BELLHOP_STATE": str(state), "PATH": os.environ["PATH"]},
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # noqa: PLW1509
    )
    assert process.stdin
    process.stdin.write(b"\n")
    process.stdin.flush()
    eventually("it reads its input", lambda: not _unread(process.stdin))
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=10)

    assert process.returncode == 130
    assert said.strip() == b""


def _unread(pipe: IO[bytes] | None) -> int:
    """Count the bytes of a pipe that nobody has read yet."""
    [count] = struct.unpack("i", fcntl.ioctl(pipe or -1, termios.FIONREAD, bytes(4)))
    return int(count)


def test_output_is_plain_where_no_terminal_reads_it(bellhop: Bellhop) -> None:
    """No escape sequence reaches a pipe, even where colour is spoken of."""
    result = bellhop("get", "clusters", TERM="xterm-256color", COLORTERM="truecolor")

    assert "\x1b" not in result.output


def _processor_seconds(arguments: tuple[str, ...]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([PROGRAM, *arguments], capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_a_full_disk_behind_the_output_is_one_sentence() -> None:
    package = Path(sys.modules["bellhop"].__file__ or "").parents[1]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "bellhop.cli.main", "--help"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            env={"PATH": os.environ["PATH"], "PYTHONPATH": str(package)},
        )

    assert "error: cannot write: the disk is full; free some space" in done.stderr
    assert done.returncode == 75
