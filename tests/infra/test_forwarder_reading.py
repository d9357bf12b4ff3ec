"""What readers do with objects that cannot be read."""

from __future__ import annotations

import io
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from bellhop.core.gvk import GVK, ObjectKey
from bellhop.errors import BellhopError, DeniedError, InvalidError
from bellhop.forwarder.counts import Counts
from bellhop.forwarder.journal import Journal
from bellhop.forwarder.outbox import Outbox
from bellhop.forwarder.reader import REFUSED_AT_MOST, Readers
from bellhop.forwarder.workqueue import DelayingQueue
from bellhop.ingest.admission import Hint
from bellhop.logs import Log
from tests.fakes.kube import FakeKube
from tests.waiting import eventually

KEY = ObjectKey(GVK("", "v1", "ConfigMap"), "default", "a")
MANIFEST = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "a", "namespace": "default"},
}


class OddKube(FakeKube):
    """An API server whose answers, at times, nobody foresaw."""

    def __init__(self) -> None:
        super().__init__()
        self.odd: set[str] = set()

    def get(self, gvk: GVK, namespace: str, name: str) -> dict[str, Any] | None:
        if name in self.odd:
            raise RuntimeError(name)
        return super().get(gvk, namespace, name)


class Room:
    """Readers between a desk and an outbox."""

    def __init__(self, folder: Path, patience: float = REFUSED_AT_MOST) -> None:
        self.log = io.StringIO()
        log = Log(self.log)
        self.kube = OddKube()
        self.spool = Journal(folder)
        self.desk = DelayingQueue(self.spool, log)
        self.outbox = Outbox()
        self.readers = Readers(self.kube, self.desk, self.outbox, Counts(), log, patience)
        self.readers.start()

    def ring(self, name: str = "a", *, ago: timedelta = timedelta(0)) -> None:
        rang = (datetime.now(UTC) - ago).isoformat()
        self.desk.ring(Hint(KEY._replace(name=name), "", 0), rang)

    def close(self) -> None:
        self.desk.close()
        self.outbox.close()
        self.spool.close()


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    room = Room(tmp_path)
    yield room
    room.close()


@pytest.mark.parametrize(
    ("error", "patience"),
    [
        pytest.param(InvalidError("it is no name"), REFUSED_AT_MOST, id="refused for what it is"),
        pytest.param(DeniedError("no right"), 0.0, id="denied for too long"),
    ],
)
def test_gives_up_what_will_never_be_read(
    tmp_path: Path, error: BellhopError, patience: float
) -> None:
    """It is said, nothing is owed any more, and sweeps look at it."""
    room = Room(tmp_path, patience)
    room.kube.fail_with(error, "get")
    room.ring()
    eventually("nothing is owed", lambda: room.spool.owed() == [] and room.desk.owed()[0] == 0)
    room.close()

    assert "Dropped an object; resyncs find it" in room.log.getvalue()
    assert str(KEY) in room.log.getvalue()


def test_goes_on_where_a_right_is_missing_for_a_while(room: Room) -> None:
    """It is owed until it can be read, and said once."""
    room.kube.put(MANIFEST)
    room.kube.fail_with(DeniedError("no right"), "get")
    # A clock that was set meanwhile says nothing of how long it has been.
    room.ring(ago=timedelta(days=60))
    eventually(
        "the failure is logged",
        lambda: "Cannot read back changed objects, and keep trying" in room.log.getvalue(),
    )
    assert len(room.spool.owed()) == 1
    room.kube.fail_with(None, "get")

    [item] = room.outbox.take(30) or []
    assert item.key == KEY


def test_drops_what_nobody_asks_for_any_more(room: Room) -> None:
    """Without a word, and it is no trouble; what rings after that is owed as ever."""
    room.kube.fail_with(DeniedError("no right"), "get")
    room.ring()
    eventually("a read is refused", room.readers.refused)
    assert room.readers.refused() == {"v1/ConfigMap": "no right"}

    room.readers.release(["v1/ConfigMap"], room.desk.serial)
    eventually("nothing is owed", lambda: room.spool.owed() == [])

    assert room.readers.refused() == {}
    assert "Dropped an object" not in room.log.getvalue()
    room.ring()
    eventually("a read is refused", room.readers.refused)
    assert len(room.spool.owed()) == 1


def test_an_object_that_nobody_foresaw_ends_no_reader(room: Room) -> None:
    """More of them than there are readers, and the next object is read all the same."""
    room.kube.put(MANIFEST)
    room.kube.odd = {f"odd-{number}" for number in range(8)}
    for name in room.kube.odd:
        room.ring(name)
    eventually(
        "each failure is logged",
        lambda: room.log.getvalue().count("Failed to look at an object") == len(room.kube.odd),
    )
    room.ring()

    [item] = room.outbox.take(30) or []
    assert item.key == KEY
    assert room.readers.alive()


def test_says_what_bellhop_wrote_itself_unless_it_is_gone(room: Room) -> None:
    """Who deleted an object is not told, so its end counts whoever wrote it before."""
    there = room.kube.put(MANIFEST)
    uid, version = there["metadata"]["uid"], int(there["metadata"]["resourceVersion"])
    now = datetime.now(UTC).isoformat()
    for name, before in (("a", version - 1), ("b", 7)):
        room.desk.ring(Hint(KEY._replace(name=name), uid, before, own=True), now)

    found = dict[str, bool]()

    def both() -> bool:
        found.update((each.key.name, each.own) for each in room.outbox.take(0.01))
        return len(found) == len("ab")

    eventually("both were read", both)
    assert found == {"a": True, "b": False}
