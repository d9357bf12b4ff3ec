"""Badges of processes: alive for as long as somebody has their lock, whoever asks."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from bellhop.embedded.living import Living
from bellhop.errors import BusyError

SLEEP = [sys.executable, "-c", "import time; time.sleep(600)"]


def test_a_badge_lives_until_its_process_ends(tmp_path: Path) -> None:
    """For others of the same folder too; nothing is left of it."""
    with Living(tmp_path).issued() as (badge, _):
        assert Living(tmp_path).lives(badge)
        assert Living(tmp_path).lives(badge), "who asks has taken it for dead, or killed it"
    assert not Living(tmp_path).lives(badge)
    assert not list((tmp_path / "processes").iterdir())


def test_a_badge_that_was_handed_on_dies_with_who_has_it(tmp_path: Path) -> None:
    """By kill -9, though who drew it lives on."""
    living = Living(tmp_path)
    with living.issued() as (badge, lock):
        with lock:
            process = subprocess.Popen(SLEEP, pass_fds=[lock.fileno()])
        assert living.lives(badge)
        process.kill()
        process.wait()
        assert not living.lives(badge)


def test_no_badge_is_drawn_twice(tmp_path: Path) -> None:
    """Those of one folder are alive side by side."""
    living = Living(tmp_path)
    with living.issued() as (one, _), living.issued() as (other, _):
        assert one != other
        assert living.lives(one)
        assert living.lives(other)
    assert not living.lives("of an earlier version")


def test_waits_for_who_was_left(tmp_path: Path) -> None:
    """Until it ends; dead badges are forgotten."""
    living = Living(tmp_path)
    (tmp_path / "processes" / "dead").touch()
    with living.issued() as (_, lock):
        threading.Timer(0.3, lock.close).start()
        living.outlive(patience=30)
        assert lock.closed
        assert not list((tmp_path / "processes").iterdir())


def test_says_who_does_not_end(tmp_path: Path) -> None:
    """Nobody begins beside a process of an earlier life."""
    living = Living(tmp_path)
    with (
        living.issued() as (badge, _),
        pytest.raises(BusyError, match=f"earlier `bellhop serve` is still at work.*'{badge}'"),
    ):
        living.outlive(patience=0.1)
