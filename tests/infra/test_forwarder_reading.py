"""What readers do with objects that cannot be read."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from bellhop.core.gvk import GVK, ObjectKey
from bellhop.errors import BellhopError, DeniedError, InvalidError
from bellhop.forwarder.counts import Counts
from bellhop.forwarder.outbox import Outbox
from bellhop.forwarder.pending import Journal
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


class Reading:
    """Readers between a queue and an outbox."""

    def __init__(self, folder: Path, patience: float = REFUSED_AT_MOST) -> None:
        self.log = io.StringIO()
        log = Log(self.log)
        self.kube = OddKube()
        self.spool = Journal(folder)
        self.queue = DelayingQueue(self.spool, log)
        self.outbox = Outbox()
        self.readers = Readers(self.kube, self.queue, self.outbox, Counts(), log, patience)
        self.readers.start()

    def report(self, name: str = "a", *, ago: timedelta = timedelta(0)) -> None:
        reported_at = (datetime.now(UTC) - ago).isoformat()
        self.queue.add(Hint(KEY._replace(name=name), "", 0), reported_at)

    def close(self) -> None:
        self.queue.close()
        self.outbox.close()
        self.spool.close()


@pytest.fixture
def reading(tmp_path: Path) -> Iterator[Reading]:
    reading = Reading(tmp_path)
    yield reading
    reading.close()


@pytest.mark.parametrize(
    ("error", "patience"),
    [
        pytest.param(InvalidError("it is no name"), REFUSED_AT_MOST, id="refused for what it is"),
        pytest.param(DeniedError("no right"), 0.0, id="denied for too long"),
    ],
)
def test_drops_an_object_that_can_never_be_read(
    tmp_path: Path, error: BellhopError, patience: float
) -> None:
    """It is said, nothing is owed any more, and resyncs look at it."""
    reading = Reading(tmp_path, patience)
    reading.kube.fail_with(error, "get")
    reading.report()
    eventually(
        "nothing is owed", lambda: reading.spool.owed() == [] and reading.queue.owed()[0] == 0
    )
    reading.close()

    assert "Dropped an object; resyncs find it" in reading.log.getvalue()
    assert str(KEY) in reading.log.getvalue()


def test_goes_on_where_a_right_is_missing_for_a_while(reading: Reading) -> None:
    """It is owed until it can be read, and said once."""
    reading.kube.put(MANIFEST)
    reading.kube.fail_with(DeniedError("no right"), "get")
    # A clock that was set meanwhile says nothing of how long it has been.
    reading.report(ago=timedelta(days=60))
    eventually(
        "the failure is logged",
        lambda: "Cannot read back changed objects, and keep trying" in reading.log.getvalue(),
    )
    assert len(reading.spool.owed()) == 1
    reading.kube.fail_with(None, "get")

    [item] = reading.outbox.take(30) or []
    assert item.key == KEY


def test_drops_what_nobody_asks_for_any_more(reading: Reading) -> None:
    """Without a word, and it is no trouble; later calls for it are pending as ever."""
    reading.kube.fail_with(DeniedError("no right"), "get")
    reading.report()
    eventually("a read is refused", reading.readers.refused)
    assert reading.readers.refused() == {"v1/ConfigMap": "no right"}

    reading.readers.release(["v1/ConfigMap"], reading.queue.serial)
    eventually("nothing is owed", lambda: reading.spool.owed() == [])

    assert reading.readers.refused() == {}
    assert "Dropped an object" not in reading.log.getvalue()
    reading.report()
    eventually("a read is refused", reading.readers.refused)
    assert len(reading.spool.owed()) == 1


def test_an_object_that_nobody_foresaw_ends_no_reader(reading: Reading) -> None:
    """More of them than there are readers, and the next object is read all the same."""
    reading.kube.put(MANIFEST)
    reading.kube.odd = {f"odd-{number}" for number in range(8)}
    for name in reading.kube.odd:
        reading.report(name)
    eventually(
        "each failure is logged",
        lambda: (
            reading.log.getvalue().count("Failed to look at an object") == len(reading.kube.odd)
        ),
    )
    reading.report()

    [item] = reading.outbox.take(30) or []
    assert item.key == KEY
    assert reading.readers.alive()


def test_marks_own_writes_unless_the_object_is_deleted(reading: Reading) -> None:
    """The name of a deleting user is unknown, so its end counts whoever wrote it before."""
    there = reading.kube.put(MANIFEST)
    uid, version = there["metadata"]["uid"], int(there["metadata"]["resourceVersion"])
    now = datetime.now(UTC).isoformat()
    for name, before in (("a", version - 1), ("b", 7)):
        reading.queue.add(Hint(KEY._replace(name=name), uid, before, own=True), now)

    found = dict[str, bool]()

    def both() -> bool:
        found.update((each.key.name, each.own) for each in reading.outbox.take(0.01))
        return len(found) == len("ab")

    eventually("both were read", both)
    assert found == {"a": True, "b": False}


@pytest.mark.parametrize("own", [False, True])
def test_sends_a_name_without_a_read(reading: Reading, *, own: bool) -> None:
    """Of the configuration only names leave the cluster, though nobody may read its Secrets."""
    reading.kube.put(MANIFEST)
    reading.kube.calls.clear()
    reading.queue.add(Hint(KEY, "u", 5, own=own, named=True), datetime.now(UTC).isoformat())

    [item] = reading.outbox.take()

    name = {"key": str(KEY), "uid": "u", "before": 5}
    assert (json.loads(item.body), item.own) == ({"hint": name}, own)
    assert reading.kube.calls == []
