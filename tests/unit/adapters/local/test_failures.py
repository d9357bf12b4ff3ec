"""No exception of sqlite3's or of the operating system's leaves the adapters unmapped."""

from __future__ import annotations

import errno
import sqlite3
from pathlib import Path

import pytest

from bellhop.adapters.local.files import CLASSES, NUMBERS, RESULTS, translate
from bellhop.errors import BellhopError, TemporaryError

PATH = Path("/state/store.db")

SQLITE_CLASSES = [
    each
    for each in vars(sqlite3).values()
    if isinstance(each, type) and issubclass(each, Exception)
]
PRIMARY_CODES = {
    name: code
    for name, code in vars(sqlite3).items()
    if name.startswith("SQLITE_") and isinstance(code, int)
}


def of_code(kind: type[sqlite3.Error], code: int) -> sqlite3.Error:
    error = kind("words of sqlite3 with 'secret'")
    error.sqlite_errorcode = code
    error.sqlite_errorname = "SQLITE_X"
    return error


def test_sqlite3_has_the_classes_that_are_enumerated() -> None:
    """The enumeration finds what the database API prescribes."""
    assert {sqlite3.Warning, sqlite3.Error, sqlite3.OperationalError} <= set(SQLITE_CLASSES)
    assert len(SQLITE_CLASSES) >= 10


@pytest.mark.parametrize("kind", SQLITE_CLASSES, ids=lambda kind: kind.__name__)
def test_maps_every_class_of_sqlite3(kind: type[Exception]) -> None:
    """Each exception class has a row of its own, and a sentence that names the file."""
    assert kind in CLASSES

    error = translate(kind("words"), PATH)
    assert isinstance(error, BellhopError)
    assert "'/state/store.db'" in str(error)


@pytest.mark.parametrize("code", range(1, 256))
def test_maps_every_result_of_sqlite(code: int) -> None:
    """Any primary code, known or new, becomes one of Bellhop's errors without SQLite's words."""
    error = translate(of_code(sqlite3.OperationalError, code), PATH)

    assert isinstance(error, BellhopError)
    assert "secret" not in str(error)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        pytest.param(sqlite3.SQLITE_BUSY_SNAPSHOT, "Temporary", id="busy, extended"),
        pytest.param(sqlite3.SQLITE_IOERR_FSYNC, "Temporary", id="input or output, extended"),
        pytest.param(sqlite3.SQLITE_FULL, "Temporary", id="full"),
        pytest.param(sqlite3.SQLITE_CORRUPT_INDEX, "Invalid", id="corrupt, extended"),
        pytest.param(sqlite3.SQLITE_NOTADB, "Invalid", id="no database"),
        pytest.param(sqlite3.SQLITE_READONLY_DIRECTORY, "Denied", id="read-only, extended"),
        pytest.param(sqlite3.SQLITE_TOOBIG, "TooLarge", id="too big"),
    ],
)
def test_the_result_code_decides(code: int, expected: str) -> None:
    """Extended codes count as their primary one, whatever the exception's class."""
    assert translate(of_code(sqlite3.DatabaseError, code), PATH).code == expected


def test_every_number_of_the_operating_system_is_mapped() -> None:
    """A known number has its own words; any other may pass."""
    for number in errno.errorcode:
        error = translate(OSError(number, "words"), PATH)

        assert isinstance(error, NUMBERS.get(number, (TemporaryError,))[0])


def test_an_error_without_a_number_may_pass() -> None:
    """An OSError that is text only is temporary."""
    assert isinstance(translate(OSError("words"), PATH), TemporaryError)


def test_the_table_has_no_code_that_sqlite3_does_not_know() -> None:
    """Each row of the table is one of SQLite's results."""
    assert set(RESULTS) <= set(PRIMARY_CODES.values())
