"""The file under store and queue: what it refuses, and what it survives."""

from __future__ import annotations

import os
import signal
import sqlite3
import stat
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bellhop.adapters.local.database import Database, Schema
from bellhop.adapters.local.store import SqliteStore
from bellhop.errors import (
    BellhopError,
    DeniedError,
    InvalidError,
    PermanentError,
    TemporaryError,
)
from bellhop.ports.store import Item

FIRST = ("CREATE TABLE notes (text TEXT NOT NULL)",)
SECOND = ("ALTER TABLE notes ADD COLUMN number INTEGER NOT NULL DEFAULT 7",)


def schema(*migrations: tuple[str, ...], noun: str = "notebook", application: int = 77) -> Schema:
    return Schema(noun, application, migrations)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "folder" / "notes.db"


@pytest.fixture
def database(path: Path) -> Iterator[Database]:
    database = Database(path, schema(FIRST))
    yield database
    database.close()


def test_makes_its_folder_and_files_only_for_this_user(database: Database, path: Path) -> None:
    """Nobody else may read what the file or its side files hold."""
    database.rows("INSERT INTO notes VALUES ('x') RETURNING 1")

    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    assert modes == {"notes.db": 0o600, "notes.db-wal": 0o600, "notes.db-shm": 0o600}
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_snapshot_shows_one_moment_while_others_write(database: Database, path: Path) -> None:
    """The block sees no later write, writes nothing itself, and leaves nothing locked."""
    database.rows("INSERT INTO notes VALUES ('before') RETURNING 1")
    other = Database(path, schema(FIRST))
    with database.snapshot():
        other.rows("INSERT INTO notes VALUES ('meanwhile') RETURNING 1")
        seen = database.rows("SELECT text FROM notes")
        with pytest.raises(BellhopError):
            database.rows("INSERT INTO notes VALUES ('mine') RETURNING 1")
    other.close()

    assert seen == [("before",)]
    assert database.rows("SELECT text FROM notes") == [("before",), ("meanwhile",)]
    database.rows("INSERT INTO notes VALUES ('after') RETURNING 1")


def test_commits_without_waiting_for_the_disk(database: Database) -> None:
    """The journal is written ahead, and no commit is an fsync."""
    assert database.rows("PRAGMA journal_mode") == [("wal",)]
    assert database.rows("PRAGMA synchronous") == [(1,)]


def test_migrates_an_older_file(database: Database, path: Path) -> None:
    """A file of an older version is migrated to the newest with what it holds."""
    database.rows("INSERT INTO notes VALUES ('old') RETURNING 1")
    database.close()
    newer = Database(path, schema(FIRST, SECOND))

    assert newer.rows("SELECT * FROM notes") == [("old", 7)]
    assert newer.rows("PRAGMA user_version") == [(2,)]
    newer.close()


def test_a_failed_migration_changes_nothing(database: Database, path: Path) -> None:
    """A migration is whole or not at all."""
    with pytest.raises(BellhopError):
        Database(path, schema(FIRST, (*SECOND, "INSERT INTO nowhere VALUES (1)")))

    assert database.rows("PRAGMA user_version") == [(1,)]
    assert database.rows("SELECT * FROM notes") == []


def test_refuses_a_newer_file(path: Path) -> None:
    """What a newer version wrote is not touched, and the sentence says what to do."""
    Database(path, schema(FIRST, SECOND)).close()

    with pytest.raises(InvalidError, match=r"version 2, this one knows 1\); upgrade Bellhop"):
        Database(path, schema(FIRST))


def test_refuses_a_file_of_another_kind(path: Path) -> None:
    """A queue's file is not taken for a store's."""
    Database(path, schema(FIRST)).close()

    with pytest.raises(InvalidError, match="as a cookbook: it belongs to something else"):
        Database(path, schema(FIRST, noun="cookbook", application=78))


def test_refuses_the_database_of_another_program(path: Path) -> None:
    """A database with tables of its own is left as it is."""
    path.parent.mkdir()
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE theirs (a)")
    other.close()
    before = path.read_bytes()

    with pytest.raises(InvalidError, match="belongs to something else"):
        Database(path, schema(FIRST))

    assert path.read_bytes() == before


def test_refuses_what_is_no_database(path: Path) -> None:
    """A file of anything else is said to be damaged, and kept."""
    path.parent.mkdir()
    path.write_bytes(b"hello " * 1000)

    with pytest.raises(InvalidError, match="damaged or no database"):
        Database(path, schema(FIRST))

    assert path.read_bytes() == b"hello " * 1000


def test_says_that_a_file_is_damaged(tmp_path: Path) -> None:
    """Pages that were overwritten are an InvalidError that names the file, not sqlite3's."""
    path = tmp_path / "store.db"
    store = SqliteStore(path)
    for number in range(500):
        store.put(Item("a", f"{number:04}", {"text": "x" * 500}))
    store.close()
    content = bytearray(path.read_bytes())
    content[8192:] = os.urandom(len(content) - 8192)
    path.write_bytes(content)

    with pytest.raises(InvalidError, match=r"store\.db.*damaged") as caught:
        list(SqliteStore(path).query("a"))

    assert isinstance(caught.value.__cause__, sqlite3.DatabaseError)


def test_says_that_the_disk_is_full(database: Database) -> None:
    """A write to a full disk is a temporary error, and what was there stays."""
    database.rows("INSERT INTO notes VALUES ('kept') RETURNING 1")
    database.rows("PRAGMA max_page_count = 1")

    with pytest.raises(TemporaryError, match="disk is full"):
        database.rows("INSERT INTO notes VALUES (?) RETURNING 1", ("x" * 100_000,))

    assert database.rows("SELECT text FROM notes") == [("kept",)]


def test_says_that_another_process_holds_the_file(database: Database, path: Path) -> None:
    """A lock that is not released in time is temporary; once it is, work goes on."""
    database.rows("PRAGMA busy_timeout = 50")
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")

    with (
        pytest.raises(TemporaryError, match="held it for too long"),
        database.transaction() as execute,
    ):
        execute("INSERT INTO notes VALUES ('x')")

    other.execute("ROLLBACK")
    other.close()
    with database.transaction() as execute:
        execute("INSERT INTO notes VALUES ('x')")
    assert database.rows("SELECT text FROM notes") == [("x",)]


def test_waits_for_another_process(database: Database, path: Path) -> None:
    """A writer waits for the other one and then succeeds."""
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    threading.Timer(0.2, other.execute, ["COMMIT"]).start()
    with database.transaction() as execute:
        execute("INSERT INTO notes VALUES ('x')")

    assert database.rows("SELECT text FROM notes") == [("x",)]
    other.close()


def test_a_transaction_is_whole_or_not_at_all(database: Database) -> None:
    """An error within a transaction, wherever it is raised, takes back all of it."""

    def write(then: Callable[[Callable[..., object]], object]) -> None:
        with database.transaction() as execute:
            execute("INSERT INTO notes VALUES ('x')")
            then(execute)

    with pytest.raises(TemporaryError):
        write(lambda execute: execute("INSERT INTO nowhere VALUES ('x')"))
    with pytest.raises(ZeroDivisionError):
        write(lambda _: 1 // 0)

    assert database.rows("SELECT * FROM notes") == []
    with database.transaction() as execute:
        execute("INSERT INTO notes VALUES ('y')")
    assert database.rows("SELECT text FROM notes") == [("y",)]


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    """A file in the way of the folder is invalid, named with the path."""
    (tmp_path / "file").write_text("")

    with pytest.raises(InvalidError, match=r"notes\.db.*file where a folder should be"):
        Database(tmp_path / "file" / "notes.db", schema(FIRST))


def test_a_folder_in_the_files_place_is_said(path: Path) -> None:
    """A folder cannot be opened as a database."""
    path.mkdir(parents=True)

    with pytest.raises(InvalidError, match="folder where a file should be"):
        Database(path, schema(FIRST))


@pytest.mark.skipif(os.geteuid() != 0, reason="needs another user to become")
def test_a_file_that_may_not_be_opened_is_denied(path: Path) -> None:
    """Another user's file is denied with a word about rights."""
    Database(path, schema(FIRST)).close()
    child = os.fork()
    if child == 0:
        os.setuid(65534)
        try:
            Database(path, schema(FIRST))
        except DeniedError:
            os._exit(42)
        finally:
            os._exit(1)

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 42


def test_many_open_a_new_file_at_once(path: Path) -> None:
    """Threads that create the same file together all get a usable one."""
    failures: list[BaseException] = []

    def use() -> None:
        try:
            database = Database(path, schema(FIRST, SECOND))
            database.rows("INSERT INTO notes (text) VALUES ('x') RETURNING 1")
            database.close()
        except BaseException as error:  # noqa: BLE001 - shown by the test's thread
            failures.append(error)

    threads = [threading.Thread(target=use) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert failures == []
    database = Database(path, schema(FIRST, SECOND))
    assert database.rows("SELECT count(*) FROM notes") == [(8,)]
    database.close()


def test_is_closed_once_and_for_all(database: Database) -> None:
    """A closed file may be closed again; any other use is an error that says so."""
    database.close()
    database.close()

    with pytest.raises(PermanentError, match="it was closed"):
        database.rows("SELECT 1")


def test_a_forked_child_opens_the_file_again(database: Database) -> None:
    """A child writes through a connection of its own, and its parent's goes on."""
    database.rows("INSERT INTO notes VALUES ('before') RETURNING 1")
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        try:
            database.close()
            with database.transaction() as execute:
                execute("INSERT INTO notes VALUES ('child')")
            os._exit(0)
        finally:
            os._exit(1)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    database.rows("INSERT INTO notes VALUES ('after') RETURNING 1")

    assert code == 0
    assert database.rows("SELECT text FROM notes") == [("before",), ("child",), ("after",)]


def test_notices_that_another_connection_wrote(database: Database, path: Path) -> None:
    """The number of changes differs after another's write and not after its own."""
    before = database.change()
    database.rows("INSERT INTO notes VALUES ('x') RETURNING 1")
    assert database.change() == before
    other = Database(path, schema(FIRST))
    other.rows("INSERT INTO notes VALUES ('y') RETURNING 1")
    other.close()

    assert database.change() != before


@pytest.mark.clocked
def test_a_writer_in_this_process_is_waited_for_without_sleeping(
    database: Database, path: Path
) -> None:
    """Two objects of one process take turns: a thousand writes of each take no second."""
    other = Database(path, schema(FIRST))

    def write(database: Database) -> None:
        for _ in range(1000):
            with database.transaction() as execute:
                execute("INSERT INTO notes VALUES ('x')")

    began = time.monotonic()
    threads = [threading.Thread(target=write, args=(each,)) for each in (database, other)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took = time.monotonic() - began

    assert database.rows("SELECT count(*) FROM notes") == [(2000,)]
    assert took < 5
    other.close()
