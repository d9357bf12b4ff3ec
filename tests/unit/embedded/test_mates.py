"""Processes beside the one that leads: they work, end with it, and are replaced when they die."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from bellhop.embedded.living import Living
from bellhop.embedded.mates import Mates
from bellhop.embedded.state import Embedded, open_state
from bellhop.logs import Log
from bellhop.messages import Resolve, Sweep
from bellhop.settings import Settings
from tests.fakes.silent import Silent, enrol

PATIENCE = 30.0


@pytest.fixture
def embedded(tmp_path: Path) -> Iterator[Embedded]:
    """Open a state that nobody serves."""
    opened = open_state(tmp_path / "state", Settings())
    yield opened
    opened.close()


@contextmanager
def beside(embedded: Embedded, count: int, output: io.StringIO) -> Iterator[Living]:
    """Have so many processes work, and end them."""

    def release(badge: str) -> None:
        for queue in embedded.queues.values():
            queue.release(badge)

    living = Living(embedded.state)
    mates = Mates(embedded.state, count, living, release, Log(output))
    mates.start()
    try:
        yield living
    finally:
        mates.end()
        mates.join()


def until(done: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def said(output: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in output.getvalue().splitlines()]


def waiting(embedded: Embedded) -> int:
    """Count the messages that nobody has finished."""
    rows = embedded.queues["deploy"]._database.rows("SELECT count(*) FROM messages")
    return int(rows[0][0])


def test_they_do_what_there_is_to_do(embedded: Embedded) -> None:
    """Who leads need not: messages are worked on, and each process has its badge."""
    output = io.StringIO()
    embedded.installation.publisher.publish([Resolve("a"), Resolve("b")])

    with beside(embedded, 2, output):
        until(lambda: waiting(embedded) == 0)
        until(lambda: len(list((embedded.state / "processes").iterdir())) == 2)

    assert not list((embedded.state / "processes").iterdir())
    assert said(output) == []


def test_what_a_dead_one_had_in_hand_is_done_at_once(embedded: Embedded) -> None:
    """Nobody waits for its time to run out: two minutes are longer than this waits."""
    silent = Silent(tls=False)
    enrol(embedded, "fleet/silent", silent, {})
    output = io.StringIO()
    held = "SELECT holder FROM groups WHERE queue = 'sweep' AND held > 0"

    def holder() -> str:
        rows = embedded.queues["sweep"]._database.rows(held)
        return str(rows[0][0]) if rows else ""

    try:
        with beside(embedded, 1, output) as living:
            embedded.installation.publisher.publish([Sweep("fleet/silent")])
            until(holder)
            first = holder()
            assert living.lives(first)

            os.kill(_pid(first), signal.SIGKILL)

            until(lambda: holder() not in ("", first))
            silent.close()
    finally:
        silent.close()
    assert [(each["message"], each["status"]) for each in said(output)] == [
        ("A process died, and another one takes its place", -signal.SIGKILL)
    ]


def test_one_that_cannot_live_is_started_less_and_less_often(embedded: Embedded) -> None:
    """It costs a moment now and then, and ends at once when all do."""
    (embedded.state / "key").write_bytes(b"short")
    output = io.StringIO()

    with beside(embedded, 1, output):
        until(lambda: len(said(output)) == 3)
        begun = time.monotonic()

    assert time.monotonic() - begun < 1.5, "it waited for the pause"
    assert [each["again_in"] for each in said(output)] == [0.5, 1.0, 2.0]


def test_one_that_is_left_alone_ends(embedded: Embedded) -> None:
    """Its leader was killed: nothing tells it but the end of a pipe."""
    with Living(embedded.state).issued() as (badge, _):
        process = subprocess.Popen(
            [sys.executable, "-m", "bellhop.embedded.mate", str(embedded.state), badge],
            stdin=subprocess.PIPE,
        )
        assert process.stdin
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(2)
        process.stdin.close()
        assert process.wait(PATIENCE) == 1


def _pid(badge: str) -> int:
    """Find a process by its badge, which is the last of its arguments."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            arguments = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if badge.encode() in arguments:
            return int(path.parent.name)
    raise AssertionError(badge)
