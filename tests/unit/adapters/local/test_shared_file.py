"""Several objects of one process, and other processes, at one file."""

from __future__ import annotations

import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from bellhop.adapters.local.clock import SystemClock
from bellhop.adapters.local.database import Database
from bellhop.adapters.local.queue import SqliteQueue
from bellhop.adapters.local.queue_rows import SCHEMA
from bellhop.errors import PermanentError
from bellhop.ports.queue import Done, Message

_PUBLISH = """
import sys
from bellhop.adapters.local.clock import SystemClock
from bellhop.adapters.local.queue import SqliteQueue
from bellhop.ports.queue import Done, Message
queue = SqliteQueue(sys.argv[1], "second", clock=SystemClock())
queue.publish([Message({"number": int(sys.argv[2])}, "g")])
queue.close()
"""


def test_a_process_that_leaves_takes_nothing_along(tmp_path: Path) -> None:
    """Another process that publishes and closes leaves its messages to us, each time.

    It once found our locks missing (we had closed another descriptor of the file), took itself for
    the last one, and removed the write-ahead log from under our connections.
    """
    path = tmp_path / "queue.db"
    queues = [SqliteQueue(path, name, clock=SystemClock()) for name in ("first", "second", "third")]
    for number in range(3):
        subprocess.run([sys.executable, "-c", _PUBLISH, str(path), str(number)], check=True)

        found = queues[1].receive(1, wait=timedelta(seconds=5))

        assert [dict(each.message.body) for each in found] == [{"number": number}]
        queues[1].settle(found[0], Done())
    for queue in queues:
        queue.close()


def test_queues_that_share_a_connection_leave_it_to_its_owner(tmp_path: Path) -> None:
    """One that closes takes nothing from the others; the file's own end is theirs."""
    file = Database(tmp_path / "queue.db", SCHEMA)
    first, second = (SqliteQueue(file, name, clock=SystemClock()) for name in ("first", "second"))
    first.publish([Message({"number": 1}, "g")])
    first.close()
    second.publish([Message({"number": 2}, "g")])
    [found] = second.receive(1, wait=timedelta(0))
    file.close()

    assert dict(found.message.body) == {"number": 2}
    with pytest.raises(PermanentError, match="it was closed"):
        second.receive(1, wait=timedelta(0))
