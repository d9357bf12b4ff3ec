"""What the SQLite store does beyond the port: expired items leave the file."""

from __future__ import annotations

import sqlite3
from datetime import timedelta
from pathlib import Path

import pytest

from bellhop.adapters.local.store import SqliteStore
from bellhop.errors import StaleError
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


def test_deletes_every_expired_item(store: SqliteStore, clock: FakeClock) -> None:
    """A resync deletes all that has expired, and nothing else, and counts it."""
    for number in range(700):
        store.put(Item("a", f"{number}", {}, expires_at=clock.now() + number % 2 * SECOND * 10))
    store.put(Item("a", "immortal", {}))
    left = in_file(store)
    clock.advance(SECOND)

    assert store.delete_expired() == left - 351
    assert in_file(store) == 351
    assert store.delete_expired() == 0


def test_writes_delete_what_has_expired(store: SqliteStore, clock: FakeClock) -> None:
    """Without any clean-up, writing goes on and the file does not grow with expired items."""
    for number in range(1000):
        store.put(Item("a", f"{number}", {}, expires_at=clock.now() + SECOND))
        clock.advance(SECOND / 10)

    assert in_file(store) < 10 + 64


def test_finds_items_by_their_index(store: SqliteStore) -> None:
    """Reading, paging and cleaning up look things up; none of them scans the table."""
    from bellhop.adapters.local import store as module  # noqa: PLC0415 - its statements, privately

    parameters = dict.fromkeys(("partition", "sort", "now", "start", "end", "count", "expect"), 1)
    for statement in (
        module._GET,
        module._PAGE,
        module._PAGE_FROM,
        module._DELETE_EXPIRED,
        module._DELETE,
    ):
        plan = store._database.rows(f"EXPLAIN QUERY PLAN {statement}", parameters)

        assert [step[3] for step in plan if "SCAN" in step[3] or "TEMP" in step[3]] == []


VERSION_1 = """
CREATE TABLE items (
    partition TEXT NOT NULL,
    sort TEXT NOT NULL,
    value TEXT NOT NULL,
    version INTEGER NOT NULL,
    expires_at INTEGER,
    PRIMARY KEY (partition, sort)
) STRICT;
CREATE INDEX items_that_expire ON items (expires_at) WHERE expires_at IS NOT NULL;
INSERT INTO items VALUES ('a', 'b', '{"n":1}', 7, NULL), ('a', 'c', '{}', 1, 32503680000000000),
    ('catalog', 'revision', '{}', 41, NULL);
PRAGMA application_id = 0x42454C53;
PRAGMA user_version = 1;
"""


def test_opens_a_file_that_counted_versions(tmp_path: Path) -> None:
    """Its items are there, each with a token of its own; the catalog's revision goes on."""
    connection = sqlite3.connect(tmp_path / "store.db")
    connection.executescript(VERSION_1)
    connection.close()
    store = SqliteStore(tmp_path / "store.db")

    items = [*store.query("a"), *store.query("catalog")]
    assert [item.value for item in items] == [{"n": 1}, {}, {"number": 41}]
    assert len({item.token for item in items} - {"", "7", "1"}) == 3
    assert [item.expires_at is None for item in items] == [True, False, True]
    store.put(Item("a", "b", {"n": 2}), expect=items[0].token)
    with pytest.raises(StaleError):
        store.delete("a", "b", expect=items[0].token)
    store.close()
