"""A state folder that is looked at: read as it is, whatever it is like, and left as it was."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from bellhop.adapters.local.queue import SqliteQueue
from bellhop.errors import DeniedError, InvalidError, MissingError
from bellhop.ports.queue import Again, Backlog, Message
from bellhop.runtime.embedded.state import Embedded, look_into, only_one, open_state, vitals
from bellhop.settings import Settings
from bellhop.state.cluster import Cluster
from bellhop.state.messages import Resync
from tests.fakes.clock import START, FakeClock

EAST = Cluster("prod", "east", {}, "v1.20.2", "d", START)

HELD = """
import os, sys
from pathlib import Path
from bellhop.runtime.embedded.state import only_one, open_state
from bellhop.settings import Settings
state = Path(sys.argv[1])
with only_one(state):
    opened = open_state(state, Settings())
    print(flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """A state with one cluster, closed as it should be."""
    opened = open_state(tmp_path / "state", Settings())
    opened.installation.declare.register(EAST)
    opened.close()
    return tmp_path / "state"


@contextmanager
def looking(state: Path) -> Iterator[Embedded]:
    embedded = look_into(state, Settings())
    try:
        yield embedded
    finally:
        embedded.close()


def files(folder: Path) -> dict[str, tuple[int, int]]:
    """Describe all that is in a folder, but for the shared memory of who has it open."""
    return {
        str(path.relative_to(folder)): (path.stat().st_size, path.stat().st_mtime_ns)
        for path in sorted(folder.rglob("*"))
        if not path.name.endswith("-shm")
    }


def names(embedded: Embedded) -> list[str]:
    return [each.key for each in embedded.installation.records.clusters.all()]


def test_looking_changes_nothing(state: Path) -> None:
    """No file is made, grown or touched, and no key; the catalog is read though it is not laid."""
    before = files(state)
    with looking(state) as embedded:
        assert names(embedded) == ["prod/east"]
        assert list(embedded.installation.catalogs.known().clusters) == ["prod/east"]

    assert files(state) == before


def test_who_looks_cannot_write(state: Path) -> None:
    """By no way that leads through the installation."""
    with looking(state) as embedded:
        here = embedded.installation
        with pytest.raises(DeniedError):
            here.records.clusters.put(EAST)
        with pytest.raises(DeniedError):
            here.publisher.publish([Resync("prod/east")])


def test_what_is_not_there_is_not_made(tmp_path: Path) -> None:
    """A mistyped folder is reported, and not created."""
    with pytest.raises(MissingError, match=r"there is no state in .*bellhop serve.*--state"):
        look_into(tmp_path / "mistyped", Settings())

    assert list(tmp_path.iterdir()) == []


def test_sees_what_another_process_has_just_written(state: Path) -> None:
    """What only the write-ahead log has is read, too."""
    opened = open_state(state, Settings())
    opened.installation.declare.register(Cluster("prod", "west", {}, "v1", "d", START))
    with looking(state) as embedded:
        found = names(embedded)
    opened.close()

    assert found == ["prod/east", "prod/west"]


@pytest.mark.parametrize("name", ["store.db", "queue.db"])
@pytest.mark.parametrize(
    ("version", "said"),
    [
        pytest.param(99, "a newer Bellhop wrote it .*upgrade Bellhop", id="newer"),
        pytest.param(0, "an earlier Bellhop wrote it .*restart `bellhop serve`", id="earlier"),
    ],
)
def test_another_versions_state_is_reported_and_left(
    state: Path, name: str, version: int, said: str
) -> None:
    """A command that only reads does not migrate it, and knows whether it is served."""
    with sqlite3.connect(state / name) as database:
        database.execute(f"PRAGMA user_version = {version}")
    database.close()
    before = files(state)
    with pytest.raises(InvalidError, match=said):
        look_into(state, Settings())

    assert not vitals(state).running
    assert files(state) == before


def test_a_missing_key_is_reported(state: Path) -> None:
    """And no other one is made."""
    (state / "key").unlink()
    with pytest.raises(InvalidError, match="its key 'key' is missing"):
        look_into(state, Settings())

    assert not (state / "key").exists()


def test_who_serves_is_known_until_it_is_killed(state: Path) -> None:
    """The lock cannot lie: it ends with the process, however that ends."""
    process = subprocess.Popen(
        [sys.executable, "-c", HELD, str(state)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert process.stdin
    assert process.stdout
    process.stdout.readline()
    before = vitals(state).running
    process.send_signal(signal.SIGKILL)
    process.communicate()
    with looking(state) as embedded:
        after = embedded.installation.vitals

    assert before
    assert after is not None
    assert not after.running


def test_a_look_keeps_nobody_from_serving(state: Path) -> None:
    """Though the lock is touched by who looks whether somebody has it."""
    ends = time.monotonic() + 1.0

    def look() -> None:
        while time.monotonic() < ends:
            vitals(state)

    watcher = threading.Thread(target=look)
    watcher.start()
    while time.monotonic() < ends:
        with only_one(state):
            assert vitals(state).running
    watcher.join()


def test_a_state_on_a_full_disk_is_read(state: Path, tmp_path: Path) -> None:
    """Left by a process that was killed, its log not yet in its files; and the disk is said."""
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(disk)]
    if os.geteuid() != 0 or subprocess.run(command, check=False, capture_output=True).returncode:
        pytest.skip("only root can make a disk")
    try:
        opened = open_state(state, Settings())
        opened.installation.declare.register(Cluster("prod", "west", {}, "v1", "d", START))
        shutil.copytree(state, disk / "state")
        opened.close()
        with suppress_full(), (disk / "ballast").open("wb") as file:
            while True:
                file.write(bytes(4096))
                file.flush()
        for left in disk.rglob("*-shm"):
            # Shared memory of a process that is dead: the next one makes it again.
            left.write_bytes(bytes(left.stat().st_size))
        before = files(disk / "state")
        with looking(disk / "state") as embedded:
            found, alive = names(embedded), embedded.installation.vitals
        after = files(disk / "state")
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)

    assert found == ["prod/east", "prod/west"]
    assert alive is not None
    assert alive.room.full
    assert after == before


@contextmanager
def suppress_full() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        assert error.errno == 28  # noqa: PT017 - ENOSPC, and nothing else


def test_a_queue_says_what_is_to_be_done(tmp_path: Path) -> None:
    """Count what is due and since when, what is in flight, and what failed and comes later."""
    clock = FakeClock()
    queue = SqliteQueue(tmp_path / "queue.db", "apply", clock=clock)
    other = SqliteQueue(tmp_path / "queue.db", "sweep", clock=clock)
    assert queue.backlog() == Backlog(0, 0, None)
    queue.publish([Message({"n": n}, f"group-{n}") for n in range(4)])
    other.publish([Message({}, "group")])
    [one] = queue.receive(1, wait=timedelta(0))
    [two] = queue.receive(1, wait=timedelta(0))
    queue.settle(two, Again(timedelta(hours=1), "later"))
    clock.advance(timedelta(minutes=1))

    assert one.attempt == 1
    assert queue.backlog() == Backlog(2, 1, START, delayed=1, reason="later")
    queue.close()
    other.close()
