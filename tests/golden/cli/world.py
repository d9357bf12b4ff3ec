"""The installation that the golden files of the command line are written from.

Clusters are fakes, the clock moves only by scenes and a microsecond for each look, and each random
number is the next one of a count, so that ids sort by their age. Commands run in this process on
the embedded installation's own files; only clients of clusters, charts and downloads are replaced.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import re
import shlex
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from click.testing import CliRunner
from msgspec.structs import replace

import bellhop.cli
from bellhop.cli.main import cli
from bellhop.cli.providers import embedded
from bellhop.installation import ProcessStatus, Room
from bellhop.runtime.embedded.state import Embedded, only_one, open_state
from bellhop.settings import Settings
from tests.fakes.clock import FakeClock, TickingClock
from tests.fakes.fleet import Fleet

MANIFESTS = Path(__file__).with_name("manifests")

_ID = re.compile(r"(?<![0-9a-f])e\d{7}0*(?:-0000-4000-8000-0{12})?(?![0-9a-f])")
_TIMES = (
    (re.compile(r"(\d\d:\d\d:\d\d)\.\d+(?=Z|\+00:00)"), r"\1.000"),
    (re.compile(r"took \d+(\.\d)? ms"), "took 0.0 ms"),
    (re.compile(r"\d{1,3} ms after the event"), "000 ms after the event"),
    (re.compile(r'("(?:ms|tookMs)": )[\d.]+'), r"\g<1>0"),
    (re.compile(r'("since(?:Change|Ring)Ms": \d*?)\d{1,3}\.\d+'), r"\g<1>000.0"),
)
"""Spans that a machine's speed decides, or the number of looks at the clock."""

_LETTER = re.compile(r"(?<=evaluate/)\d+")
"""The number of a dead letter, which counts all messages before it."""

_SETTINGS = Settings(hold_from=8, hold_share=0.25)
"""Of eight objects two may end at once."""

_ROOM = Room(Path("/state"), 8 << 30, 10 << 30, names=True)


class World:
    """A fleet, and the command line on its state folder."""

    def __init__(self, folder: Path, clock: FakeClock) -> None:
        self.folder = folder
        self.clock = clock
        self.fleet = Fleet(folder / "state", _SETTINGS, clock=clock)
        self._calls_fakes = True
        self._ids: dict[str, str] = {}
        self._environment = {
            "BELLHOP_STATE": str(folder / "state"),
            "XDG_CONFIG_HOME": str(folder / "config"),
            "XDG_STATE_HOME": str(folder / "home"),
            "XDG_CACHE_HOME": str(folder / "cache"),
            "COLUMNS": "100",
            "LC_ALL": "C.UTF-8",
            "NO_COLOR": "1",
            "TZ": "UTC",
        }

    def run(self, command: str) -> tuple[str, str, int]:
        """Run a command; return what it printed, its errors, and its exit code."""
        # The doctor examines a real client: of a cluster without credentials, it says so.
        self._calls_fakes = not command.startswith("doctor")
        runner = CliRunner(env=self._environment)
        result = runner.invoke(cli, shlex.split(command), prog_name="bellhop")
        if result.exception and not isinstance(result.exception, SystemExit):
            raise result.exception
        return self.normal(result.stdout), self.normal(result.stderr), result.exit_code

    def normal(self, text: str) -> str:
        """Return text without what differs from run to run, in its former width."""
        plain = text.replace(str(self.folder), "<folder>")
        for pattern, instead in _TIMES:
            plain = pattern.sub(instead, plain)
        plain = _LETTER.sub(lambda hit: "0" * len(hit[0]), plain)
        return _ID.sub(self._numbered, plain)

    def work(self, after: timedelta = timedelta(0)) -> None:
        """Let time pass, and work until no message is due."""
        self.clock.advance(after)
        self.fleet.pump()

    def opened(self, *_: Any, **__: Any) -> Embedded:
        """Open the installation as a command does, with the fleet's fakes."""
        found = open_state(self.folder / "state", _SETTINGS, clock=self.clock)
        vitals = ProcessStatus(self.folder / "state", running=True, room=_ROOM)
        fakes = {"access": self.fleet.access} if self._calls_fakes else {}
        here = replace(found.installation, tools=self.fleet.tools, vitals=vitals, **fakes)
        return replace(found, installation=here)

    def _numbered(self, hit: re.Match[str]) -> str:
        drawn, width = hit[0], len(hit[0])
        known = self._ids.setdefault(drawn[:8], str(len(self._ids) + 1))
        return f"<{known.zfill(width - 2)}>"


@contextmanager
def opened_world(folder: Path) -> Iterator[World]:
    """Open a new world in an empty folder, whose commands see the same time everywhere."""
    clock = TickingClock()
    state = folder / "state"
    state.mkdir(mode=0o700)
    (state / "key").write_bytes(bytes(32))
    with pytest.MonkeyPatch.context() as patch:
        _stop_time(patch, clock)
        _count_ids(patch)
        patch.chdir(MANIFESTS)
        world = World(folder, clock)
        for name in ("open", "open_read_only"):
            patch.setattr(embedded.PROVIDER, name, world.opened)
        with only_one(state):
            yield world
        world.fleet.close()


def _stop_time(patch: pytest.MonkeyPatch, clock: FakeClock) -> None:
    """Replace the clock of each module that a command may load."""
    for each in pkgutil.walk_packages(bellhop.cli.__path__, "bellhop.cli."):
        if each.name.rpartition(".")[2] not in {"aws", "gcp", "login"}:
            importlib.import_module(each.name)
    stopped = _stopped(clock)
    for name, module in list(sys.modules.items()):
        # Where `datetime` is only a field's type, decoding needs the real one.
        if name.startswith("bellhop.") and _asks_time(module):
            patch.setattr(module, "datetime", stopped)


def _asks_time(module: ModuleType) -> bool:
    known = vars(module).get("datetime") is datetime and module.__file__
    return bool(known) and "datetime.now(" in Path(str(known)).read_text(encoding="utf-8")


def _stopped(clock: FakeClock) -> type:
    class AnyMoment(type):
        def __instancecheck__(cls, value: object) -> bool:
            return isinstance(value, datetime)

    class Stopped(datetime, metaclass=AnyMoment):
        """Makes usual moments, and says that it is always the same time."""

        def __new__(cls, *arguments: Any, **named: Any) -> Any:
            return datetime(*arguments, **named)  # noqa: DTZ001 - as the caller says

        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Any:
            return clock.now().astimezone(tz or UTC)

    return Stopped


def _count_ids(patch: pytest.MonkeyPatch) -> None:
    numbers = count(1)

    def drawn(size: int) -> bytes:
        text = f"e{next(numbers):07}"
        return bytes.fromhex(text.ljust(2 * max(size, 4), "0"))[:size]

    def identified() -> uuid.UUID:
        return uuid.UUID(f"e{next(numbers):07}-0000-4000-8000-000000000000")

    patch.setattr(os, "urandom", drawn)
    patch.setattr(uuid, "uuid4", identified)


Action = Callable[[World], None]
Scene = tuple["str | Action", ...]


def play(world: World, scenes: Mapping[str, Scene]) -> dict[str, str]:
    """Play scenes one after the other; return what each printed, by its name, and all errors."""
    files, errors = {}, []
    for name, steps in scenes.items():
        printed = []
        for step in steps:
            if callable(step):
                step(world)
                continue
            output, error, code = world.run(step)
            output = _sorted(output) if "events" in step.split()[:2] else output
            printed.append(_block(step, output, error, code))
            errors += [line for line in error.splitlines() if line.startswith("error:")]
        files[f"{name}.txt"] = "\n".join(printed)
    files["errors.txt"] = "".join(f"{line}\n" for line in sorted(set(errors)))
    return files


def _sorted(text: str) -> str:
    """Sort blocks and the lines in each: what happened within a second has no order for users."""
    blocks = re.split(r"(?m)^(?! )", text)
    return "".join("".join(_body_sorted(each)) for each in sorted(filter(None, blocks)))


def _body_sorted(block: str) -> list[str]:
    head, *body = block.splitlines(keepends=True)
    return [head, *sorted(body)]


def _block(command: str, output: str, error: str, code: int) -> str:
    marked = "".join(f"! {line}\n" for line in error.splitlines())
    ended = f"[exit {code}]\n" if code else ""
    return f"$ bellhop {command}\n{output}{marked}{ended}"
