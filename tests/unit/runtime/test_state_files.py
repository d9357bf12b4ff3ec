"""A `serve` whose state folder is deleted or replaced under it says so, and ends."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bellhop.errors import MissingError
from bellhop.runtime.embedded.lifecycle import StateFiles, wait_for

NAMES = ("lock", "store.db", "queue.db")


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """Return a state folder, as far as anything looks at it here."""
    return made(tmp_path / "state")


def made(folder: Path) -> Path:
    folder.mkdir()
    for name in NAMES:
        (folder / name).write_text("")
    return folder


def test_a_state_that_is_as_it_was_opened_is_served_from(state: Path) -> None:
    """What is written to its files changes nothing."""
    files = StateFiles(state)
    (state / "store.db").write_text("a record")

    files.refuse_replaced()


def deleted(state: Path) -> None:
    shutil.rmtree(state)


def replaced(state: Path) -> None:
    state.rename(state.with_name("old"))
    made(state)


def no_folder(state: Path) -> None:
    shutil.rmtree(state)
    state.write_text("")


def without_queue(state: Path) -> None:
    (state / "queue.db").unlink()


@pytest.mark.parametrize("end", [deleted, replaced, no_folder, without_queue])
def test_a_state_that_was_deleted_is_refused(state: Path, end: Callable[[Path], None]) -> None:
    """Whichever of its files is missing, or is another file by now, is named with the folder."""
    files = StateFiles(state)
    end(state)

    with pytest.raises(MissingError, match=f"cannot go on serving from '{state}': its '.*lost"):
        files.refuse_replaced()


def test_serve_ends_with_an_error_once_its_state_is_deleted(tmp_path: Path) -> None:
    """One that begins under the same path goes on by itself: they have no file in common."""
    state = tmp_path / "state"
    with serving(state) as first:
        shutil.rmtree(state)
        with serving(state) as second:
            _, errors = first.communicate(timeout=60)
            assert first.returncode not in (0, None)
            assert f"cannot go on serving from '{state}'" in errors
            assert "Traceback" not in errors

            second.terminate()
            assert second.communicate(timeout=60)[1].count("\n") == 1
            assert second.returncode == 0


@contextmanager
def serving(state: Path) -> Iterator[subprocess.Popen[str]]:
    """Run `serve` until it is up, and end it in the end."""
    command = [sys.executable, "-m", "bellhop.cli.main", "serve", "--listen", "127.0.0.1:0"]
    with subprocess.Popen(
        [*command, "--state", str(state)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout
            assert any("Bellhop serves" in line for line in process.stdout)
            yield process
        finally:
            process.kill()


def test_a_state_that_is_deleted_is_noticed_within_a_tick() -> None:
    """The check is called whenever `serve` looks whether it is to stop."""
    called: list[int] = []

    def check() -> None:
        called.append(1)
        raise MissingError("gone")

    with pytest.raises(MissingError):
        wait_for(threading.Event(), check)
    assert called == [1]
