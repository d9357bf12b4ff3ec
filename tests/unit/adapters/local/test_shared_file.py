"""Several objects of one process, and other processes, at one file."""

from __future__ import annotations

import subprocess
import sys
from datetime import timedelta
from pathlib import Path

from bellhop.adapters.local.clock import SystemClock
from bellhop.adapters.local.queue import SqliteQueue
from bellhop.ports.queue import Done

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

    It once found our locks gone (we had closed another descriptor of the file), took itself for
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
