"""Log lines: one JSON object each, in the names that log services read."""

from __future__ import annotations

import io
import json
import logging
import os
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from bellhop.errors import PermanentError
from bellhop.logs import Log, configure


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


CYCLE: list[Any] = []
CYCLE.append(CYCLE)


class Unprintable:
    def __str__(self) -> str:
        raise ValueError

    __repr__ = __str__


def _fail() -> None:
    try:
        os.environ["INNER"]
    except KeyError as error:
        raise PermanentError("outer") from error


def test_writes_a_sentence_and_its_fields() -> None:
    """Severity, message and time have the names that Cloud Logging recognises."""
    stream = io.StringIO()
    Log(stream).info("Applied 100% of a profile", profile="x", name="y", objects=2)
    (line,) = lines(stream)

    assert abs((datetime.now(UTC) - datetime.fromisoformat(line.pop("time"))).total_seconds()) < 60
    assert line == {
        "severity": "INFO",
        "message": "Applied 100% of a profile",
        "profile": "x",
        "name": "y",
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
        pytest.param(b"\xff", id="bytes"),
        pytest.param(CYCLE, id="a cycle"),
        pytest.param(Unprintable(), id="an unprintable object"),
        pytest.param({("a", 1): 2}, id="a key that is not a string"),
        pytest.param(float("nan"), id="not a number"),
        pytest.param("two\nlines \u2028 \x00 \ud800", id="what would break a line"),
    ],
)
def test_takes_whatever_it_is_given(value: object) -> None:
    """A line is always one line of JSON: a log never fails its caller."""
    stream = io.StringIO()

    Log(stream).info("Said something", value=value, objects=2)

    assert stream.getvalue().count("\n") == 1
    line = json.loads(stream.getvalue(), parse_constant=pytest.fail)
    assert set(line) == {"severity", "message", "time", "value", "objects"}
    assert line["objects"] == 2


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


def test_logs_with_streams_share_nothing() -> None:
    """Each line is in the stream of its log alone, whatever the process has configured."""
    configured, one, other = io.StringIO(), io.StringIO(), io.StringIO()
    configure(configured)
    Log(one).info("one")
    Log(other).info("other")
    Log().info("configured")

    for stream in (one, other, configured):
        [line] = lines(stream)
    assert [lines(each)[0]["message"] for each in (one, other)] == ["one", "other"]
    assert line["message"] == "configured"


def test_a_record_of_a_library_is_a_line_with_its_logger() -> None:
    """It has level and form, and its error is one field."""
    stream = io.StringIO()
    configure(stream)
    try:
        _fail()
    except PermanentError:
        logging.getLogger("asyncio").exception("Task %s failed", 7)
    [line] = lines(stream)

    assert (line["severity"], line["message"]) == ("ERROR", "Task 7 failed")
    assert line["logger"] == "asyncio"
    assert "PermanentError: outer" in line["stack_trace"]


@pytest.mark.parametrize(
    ("message", "arguments", "shown"),
    [
        pytest.param("%d objects", ("many",), "many", id="an argument of another type"),
        pytest.param("%s and %s", ("one",), "one", id="too few arguments"),
        pytest.param("%s", (Unprintable(),), "Unprintable", id="an unprintable argument"),
        pytest.param(Unprintable(), (), "Unprintable", id="an unprintable message"),
    ],
)
def test_a_record_that_cannot_be_read_is_a_line(
    message: Any, arguments: tuple[Any, ...], shown: str
) -> None:
    """The line shows the text and the arguments, and the library's call does not fail."""
    stream = io.StringIO()
    configure(stream)
    logging.getLogger("urllib3").warning(message, *arguments)
    [line] = lines(stream)

    assert line["severity"] == "WARNING"
    assert shown in line["message"]


@pytest.mark.parametrize(
    "name", ["boto3", "botocore.auth", "google.auth", "nats.aio", "urllib3.connectionpool", "any"]
)
def test_libraries_write_nothing_below_a_warning(name: str) -> None:
    """Below it botocore and urllib3 write credentials; an earlier level of the root is replaced."""
    logging.getLogger().setLevel(logging.DEBUG)
    stream = io.StringIO()
    configure(stream)
    library = logging.getLogger(name)
    library.debug("hunter2")
    library.info("hunter2")
    library.warning("Something is odd")

    assert [line["message"] for line in lines(stream)] == ["Something is odd"]


@pytest.mark.parametrize("name", ["boto3", "botocore", "google", "urllib3"])
def test_a_lower_root_level_does_not_lower_libraries(name: str) -> None:
    """A lower level of the root logger, set afterwards, writes no credentials either."""
    stream = io.StringIO()
    configure(stream)
    logging.getLogger().setLevel(logging.DEBUG)
    logging.getLogger(name).debug("hunter2")

    assert lines(stream) == []


def test_records_of_google_libraries_are_written() -> None:
    """Google's libraries stop their logger's propagation when they are loaded."""
    logging.getLogger("google").propagate = False
    stream = io.StringIO()
    configure(stream)
    logging.getLogger("google.api_core.retry").warning("Retrying")

    assert [line["logger"] for line in lines(stream)] == ["google.api_core.retry"]


def test_each_line_is_written_once() -> None:
    """Earlier handlers of the root logger, as Lambda's runtime sets one, are removed."""
    before, stream = io.StringIO(), io.StringIO()
    logging.getLogger().addHandler(logging.StreamHandler(before))
    configure(stream)
    configure(stream)
    Log().warning("once")
    logging.getLogger("urllib3").warning("once")

    assert before.getvalue() == ""
    assert [line["message"] for line in lines(stream)] == ["once", "once"]


def test_a_full_disk_fails_no_caller(capsys: pytest.CaptureFixture[str]) -> None:
    """The process goes on without its lines, and writes nothing elsewhere."""
    full = Path("/dev/full").open("w")  # noqa: SIM115 - closing it fails as well
    configure(full)
    Log().info("lost")
    logging.getLogger("urllib3").warning("lost")

    assert capsys.readouterr() == ("", "")
    with pytest.raises(OSError, match="No space"):
        full.close()
