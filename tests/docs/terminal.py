"""Somebody who types what a page says into a shell, and reads what comes."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from tests.waiting import eventually

_MARK = "--typed--"
_BLOCK = re.compile(r"```(\w*)[^\n]*\n(.*?)```|^    (\S[^\n]*)$", re.DOTALL | re.MULTILINE)
_LOOKS = ("kubectl get", "bellhop show", "bellhop get", "bellhop describe", "bellhop status")


@dataclass(frozen=True)
class Typed:
    """One line that a page says to type, and what it says to come of it: a part of each line."""

    command: str
    shown: tuple[str, ...] = ()


def typed(page: Path) -> list[Typed]:
    """Return what a page says to type, in its order: bash blocks and indented lines."""
    lines: list[Typed] = []
    for kind, block, indented in _BLOCK.findall(page.read_text()):
        if kind == "text":
            lines[-1] = Typed(lines[-1].command, tuple(block.splitlines()))
        elif kind == "bash" or indented:
            lines += [Typed(line) for line in (indented or block).splitlines() if line.strip()]
    return lines


class Terminal:
    """One shell, which keeps what was exported in it."""

    def __init__(self, environment: Mapping[str, str], folder: Path) -> None:
        self._shell = subprocess.Popen(
            ["/bin/bash", "--noprofile", "--norc"],
            env=dict(environment),
            cwd=folder,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._shell.communicate("exit\n", timeout=10)

    def follow(self, line: Typed, *, patience: float = 30.0) -> None:
        """Type a line and see that it succeeds, and shows what the page says.

        A command that only looks may be repeated: a reader is slower than a test.
        """
        late = ""

        def shows() -> bool:
            nonlocal late
            status, said = self.type(line.command)
            missing = list(_missing(line.shown, said))
            late = f"$ {line.command}\n{said}\nstatus {status}; not there: {missing}"
            return status == 0 and not missing

        if line.command.startswith(_LOOKS):
            eventually(lambda: late, shows, patience=patience, pause=0.2)
        else:
            assert shows(), late

    def type(self, line: str) -> tuple[int, str]:
        """Type a line; return its exit status and what it printed."""
        assert self._shell.stdin
        assert self._shell.stdout
        self._shell.stdin.write(f"{line}\necho {_MARK} $?\n")
        self._shell.stdin.flush()
        said: list[str] = []
        for printed in self._shell.stdout:
            before, mark, status = printed.partition(_MARK)
            said.append(before)
            if mark:
                return int(status), "".join(said)
        raise AssertionError(f"the shell ended at: {line}")


def _missing(shown: tuple[str, ...], said: str) -> Iterator[str]:
    """Yield the lines that no line of the output has; `…` stands for anything."""
    printed = [" ".join(line.split()) for line in said.splitlines()]
    for line in shown:
        parts = [re.escape(" ".join(part.split())) for part in line.split("…")]
        if not any(re.search(".*".join(parts), each) for each in printed):
            yield line
