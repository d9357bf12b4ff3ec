"""Log lines: one JSON object each, in the names that log services read."""

from __future__ import annotations

import io
import json
import os
import threading
from datetime import UTC, datetime
from typing import Any

import pytest

from bellhop.errors import PermanentError
from bellhop.logs import Log


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def _fail() -> None:
    try:
        os.environ["INNER"]
    except KeyError as error:
        raise PermanentError("outer") from error


def test_writes_a_sentence_and_its_fields() -> None:
    """Severity, message and time have the names that Cloud Logging recognises."""
    stream = io.StringIO()
    Log(stream, stage="deploy").info("Applied a profile", profile="x", objects=2)
    (line,) = lines(stream)

    assert abs((datetime.now(UTC) - datetime.fromisoformat(line.pop("time"))).total_seconds()) < 60
    assert line == {
        "severity": "INFO",
        "message": "Applied a profile",
        "stage": "deploy",
        "profile": "x",
        "objects": 2,
    }


def test_says_how_bad_it_is() -> None:
    """Each method has its severity."""
    stream = io.StringIO()
    log = Log(stream)
    log.info("a")
    log.warning("b")
    log.error("c")

    assert [line["severity"] for line in lines(stream)] == ["INFO", "WARNING", "ERROR"]


def test_shows_where_an_error_nobody_foresaw_comes_from() -> None:
    """The traceback is one field, with the errors that led to it."""
    stream = io.StringIO()
    try:
        _fail()
    except PermanentError as error:
        Log(stream).error("Failed on a message", error)

    trace = lines(stream)[0]["stack_trace"]
    assert "KeyError: 'INNER'" in trace
    assert "PermanentError: outer" in trace
    assert __name__.rpartition(".")[2] in trace


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(datetime(2026, 1, 1, tzinfo=UTC), id="a time"),
        pytest.param(ValueError("x"), id="an error"),
        pytest.param({"deep": object()}, id="something deep inside"),
        pytest.param("two\nlines \u2028 \x00 \ud800", id="what would break a line"),
    ],
)
def test_takes_whatever_it_is_given(value: object) -> None:
    """A line is always one line of JSON: a log never fails its caller."""
    stream = io.StringIO()

    Log(stream).info("Said something", value=value)

    assert stream.getvalue().count("\n") == 1
    assert set(lines(stream)[0]) == {"severity", "message", "time", "value"}


def test_lines_of_many_threads_stay_whole() -> None:
    """No line is mixed with another."""
    stream = io.StringIO()
    log = Log(stream)

    def write() -> None:
        for number in range(50):
            log.info("Counted", number=number)

    threads = [threading.Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sum(line["number"] for line in lines(stream)) == 4 * sum(range(50))


def test_a_line_holds_no_character_that_steers_a_terminal() -> None:
    """Whatever a field holds, the line is printable ASCII, and reads back as it was."""
    stream = io.StringIO()
    hostile = "\x1b[2J\x9b\x7f\u202e\n"
    Log(stream).info("x", field=hostile)

    text = stream.getvalue().removesuffix("\n")
    assert text.isascii()
    assert text.isprintable()
    assert lines(stream)[0]["field"] == hostile
