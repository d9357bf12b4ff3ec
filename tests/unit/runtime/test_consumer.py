"""The consumer: bounded workers for each inbox, and messages that other processes publish."""

from __future__ import annotations

import io
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bellhop.adapters.local.clock import SystemClock
from bellhop.adapters.local.database import Database
from bellhop.adapters.local.queue import SqliteQueue
from bellhop.adapters.local.queue_rows import SCHEMA
from bellhop.logs import Log
from bellhop.runtime.embedded.consumer import Consumer, Source
from bellhop.settings import Settings
from bellhop.state.consumer import Inbox
from bellhop.state.messages import Resolve

PATIENCE = 30.0


class Stage:
    """A stage that waits within a message until it may go on."""

    def __init__(self, *, waits: bool = False) -> None:
        self._may_go_on = threading.Event()
        if not waits:
            self.go_on()
        self.changed = threading.Condition()
        self.begun: Counter[str] = Counter()
        self.ended = 0

    def go_on(self) -> None:
        self._may_go_on.set()

    def handle(self, message: Resolve) -> None:
        with self.changed:
            self.begun[message.profile] += 1
            self.changed.notify_all()
        assert self._may_go_on.wait(PATIENCE)
        with self.changed:
            self.ended += 1
            self.changed.notify_all()

    def until(self, holds: Any) -> None:
        with self.changed:
            assert self.changed.wait_for(holds, PATIENCE)


@contextmanager
def consuming(folder: Path, **inboxes: tuple[Stage, int]) -> Iterator[dict[str, SqliteQueue]]:
    """Consume inboxes, each with a stage and a number of workers."""
    log = Log(io.StringIO())
    database = Database(folder / "queue.db", SCHEMA)
    queues = {name: SqliteQueue(database, name, clock=SystemClock(), groups=1) for name in inboxes}
    sources = {
        name: Source(queues[name], Inbox(name, stage, Settings(), log), workers)
        for name, (stage, workers) in inboxes.items()
    }
    consumer = Consumer(database, sources, log)
    consumer.start()
    try:
        yield queues
    finally:
        stopping = threading.Thread(target=consumer.stop)
        stopping.start()
        assert consumer._stopping.wait(PATIENCE)
        for stage, _ in inboxes.values():
            stage.go_on()
        stopping.join()
        database.close()


def publish(queue: SqliteQueue, *names: str) -> None:
    queue.publish([Resolve(name).message() for name in names])


def test_an_inbox_that_hangs_keeps_no_worker_from_another(tmp_path: Path) -> None:
    """It has as many workers as it may, and what it cannot begin waits for one of them."""
    hangs, works = Stage(waits=True), Stage()
    names = [f"hangs-{number}" for number in range(5)]
    with consuming(tmp_path, hangs=(hangs, 2), works=(works, 1)) as queues:
        publish(queues["hangs"], *names)
        hangs.until(lambda: len(hangs.begun) == 2)
        for number in range(3):
            publish(queues["works"], f"works-{number}")
            works.until(lambda number=number: works.ended == number + 1)
        assert len(hangs.begun) == 2

        hangs.go_on()
        hangs.until(lambda: hangs.ended == len(names))
    assert hangs.begun == Counter(names)


def test_messages_of_another_process_are_consumed(tmp_path: Path) -> None:
    """Another connection to the file is as another process: nothing but the file says so."""
    stage = Stage()
    with consuming(tmp_path, inbox=(stage, 1)):
        other = SqliteQueue(tmp_path / "queue.db", "inbox", clock=SystemClock())
        publish(other, "theirs")
        stage.until(lambda: stage.ended)
        other.close()


def test_a_message_that_comes_later_is_consumed_then(tmp_path: Path) -> None:
    """What is due in a while wakes the consumer, though nobody publishes."""
    failing = threading.Event()

    class Once(Stage):
        def handle(self, message: Resolve) -> None:
            if not failing.is_set():
                failing.set()
                raise RuntimeError
            super().handle(message)

    stage = Once()
    with consuming(tmp_path, inbox=(stage, 1)) as queues:
        publish(queues["inbox"], "again")
        stage.until(lambda: stage.ended)


def test_a_stopping_consumer_leaves_what_was_not_begun(tmp_path: Path) -> None:
    """What is in flight is finished and settled; the rest waits for the next start."""
    stage = Stage(waits=True)
    with consuming(tmp_path, inbox=(stage, 1)) as queues:
        publish(queues["inbox"], "first", "second")
        stage.until(lambda: len(stage.begun) == 1)
    left = SqliteQueue(tmp_path / "queue.db", "inbox", clock=SystemClock())

    assert stage.ended == 1
    assert (left.backlog().waiting, left.backlog().held) == (1, 0)
    left.close()
