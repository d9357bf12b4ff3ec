"""What the SQLite store does beyond the port: expired items leave the file."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from bellhop.adapters.local.store import SqliteStore
from bellhop.ports.store import Item
from tests.fakes.clock import FakeClock

SECOND = timedelta(seconds=1)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def store(tmp_path: Path, clock: FakeClock) -> SqliteStore:
    return SqliteStore(tmp_path / "store.db", clock=clock)


def in_file(store: SqliteStore) -> int:
    count: int = store._database.rows("SELECT count(*) FROM items")[0][0]
    return count


def test_sweeps_every_expired_item(store: SqliteStore, clock: FakeClock) -> None:
    """A sweep deletes all that has expired, and nothing else, and counts it."""
    for number in range(700):
        store.put(Item("a", f"{number}", {}, expires_at=clock.now() + number % 2 * SECOND * 10))
    store.put(Item("a", "immortal", {}))
    left = in_file(store)
    clock.advance(SECOND)

    assert store.sweep_expired() == left - 351
    assert in_file(store) == 351
    assert store.sweep_expired() == 0


def test_writes_delete_what_has_expired(store: SqliteStore, clock: FakeClock) -> None:
    """Without any sweep, writing goes on and the file does not grow with the dead."""
    for number in range(1000):
        store.put(Item("a", f"{number}", {}, expires_at=clock.now() + SECOND))
        clock.advance(SECOND / 10)

    assert in_file(store) < 10 + 64


def test_finds_items_by_their_index(store: SqliteStore) -> None:
    """Reading, paging and sweeping look things up; none of them scans the table."""
    from bellhop.adapters.local import store as module  # noqa: PLC0415 - its statements, privately

    parameters = dict.fromkeys(("partition", "sort", "now", "start", "end", "count", "expect"), 1)
    for statement in (module._GET, module._PAGE, module._PAGE_FROM, module._SWEEP, module._DELETE):
        plan = store._database.rows(f"EXPLAIN QUERY PLAN {statement}", parameters)

        assert [step[3] for step in plan if "SCAN" in step[3] or "TEMP" in step[3]] == []
