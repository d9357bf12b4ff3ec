"""Writers, deleters and readers of one sealed record at once."""

from __future__ import annotations

import hashlib
import random
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from bellhop.adapters.local.store import FileBlobs, SqliteStore
from bellhop.errors import StaleError
from bellhop.state.payloads import SHARDS, SHORT
from bellhop.state.records import Records
from bellhop.state.sealer import Sealer
from tests.fakes.clock import FakeClock
from tests.unit.state.rig import EAST, LARGE, Rig, profile

WORKERS = 4
TURNS = 60


class Worker(threading.Thread):
    """One that writes, rewrites, deletes and reads a profile, with a client of its own."""

    def __init__(self, folder: Path, number: int, short: int) -> None:
        super().__init__()
        self.store = SqliteStore(folder / "store.db", clock=FakeClock())
        blobs = FileBlobs(folder / "blobs")
        self.records = Records(self.store, blobs, Sealer(bytes(32)), FakeClock(), short=short)
        self.choices = random.Random(number)
        self.number = number
        self.failure: BaseException | None = None
        self.seen = 0

    def run(self) -> None:
        try:
            for turn in range(TURNS):
                self._act(turn)
        except BaseException as error:  # noqa: BLE001 - told by the test, in its own thread
            self.failure = error
        finally:
            self.store.close()

    def _act(self, turn: int) -> None:
        profiles = self.records.profiles
        with suppress(StaleError):
            kept = profiles.get("t", EAST, "p")
            text = f"{self.number} {turn}" + self.choices.choice(["", "", LARGE[:SHORT]])
            text += LARGE if turn % 20 == 0 else ""
            what = self.choices.choice(("put", "put", "put", "head", "delete"))
            if kept is None:
                profiles.put(profile(text), expect="")
                return
            # Whole, whoever wrote it.
            self.seen += 1
            assert (
                kept.value.contents == profile(kept.value.contents[0].manifests[0]["text"]).contents
            )
            if what == "put":
                profiles.put(profile(text), expect=kept.token)
            elif what == "head":
                profiles.put_head(profile(leaves=True, contents=()), expect=kept.token)
            else:
                profiles.delete("t", EAST, "p", expect=kept.token)


@pytest.mark.parametrize("short", [0, SHORT], ids=["apart", "with the head where short"])
@pytest.mark.parametrize("seed", range(3))
def test_a_record_is_whole_whoever_wins(rig: Rig, seed: int, short: int) -> None:
    """No reader misses a payload, and what the losers and the past had laid down is gone."""
    folder = rig.folder.parent
    workers = [Worker(folder, WORKERS * seed + number, short) for number in range(WORKERS)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()

    assert [worker.failure for worker in workers] == [None] * WORKERS
    assert sum(worker.seen for worker in workers) > WORKERS
    rig.records.profiles.put(profile("last"))
    partition = f"payload/profile/t/{hashlib.sha256(EAST.encode()).hexdigest()[0]}"
    left = [item for shard in SHARDS for item in rig.store.query(f"{partition}/{shard}")]
    assert len(left) == 1
