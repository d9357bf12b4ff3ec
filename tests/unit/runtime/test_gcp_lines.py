"""Lines as Cloud Logging reads them: what it takes out of each, and what stays for queries."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from bellhop.logs import Log
from bellhop.runtime.cloud.event_log import LoggedEventLog, read_line
from bellhop.runtime.gcp.resources import LABELS, CloudFormatter
from bellhop.state.event_log import Bounds, Entry
from tests.unit.cli import fleet

GOOGLES = {
    "severity": str,
    "message": str,
    "time": str,
    "logging.googleapis.com/labels": dict,
    "logging.googleapis.com/trace": str,
    "logging.googleapis.com/insertId": str,
}
APPLIED = fleet.entry(
    "applied", trace="3f9a1c20", context={"source": "web", "triggers": ["a", "b"], "profile": "p"}
)


def cloud_log(stream: io.StringIO) -> Log:
    """What functions of a project write with."""
    return Log(stream, CloudFormatter("a-project"))


def write(*entries: Entry) -> list[dict[str, Any]]:
    """The lines that functions on Google Cloud write for entries of the event log."""
    stream = io.StringIO()
    log = LoggedEventLog(None, Bounds(), cloud_log(stream))  # type: ignore[arg-type]
    log.gather()
    for entry in entries:
        log.note(entry)
    return [json.loads(each) for each in stream.getvalue().splitlines()]


def test_a_decision_is_found_by_its_labels() -> None:
    """As a user filters: by cluster, EventSource, EventTrigger and profile."""
    [line] = write(APPLIED)

    assert line["logging.googleapis.com/labels"] == {
        "cluster": APPLIED.cluster,
        "eventsource": "web",
        "eventtrigger": "a, b",
        "profile": "p",
    }
    for name, kind in GOOGLES.items():
        assert isinstance(line[name], kind), name


def test_lines_of_one_event_have_one_trace() -> None:
    """Its number has as many digits as Cloud Trace requires, and ends in ours, which finds it."""
    sent, applied, other = write(
        fleet.entry("rang", trace="3f9a1c20"), APPLIED, fleet.entry("held")
    )

    number = "3f9a1c20".rjust(32, "0")
    assert sent["logging.googleapis.com/trace"] == f"projects/a-project/traces/{number}"
    assert applied["logging.googleapis.com/trace"] == sent["logging.googleapis.com/trace"]
    assert other.get("logging.googleapis.com/trace") != sent["logging.googleapis.com/trace"]


def test_one_line_that_comes_twice_is_one() -> None:
    """Noted twice it has one id, and any other line another one."""
    first, again, other = write(APPLIED, APPLIED, fleet.entry("failed"))

    name = "logging.googleapis.com/insertId"
    assert first[name] == again[name]
    assert other[name] != first[name]


def test_the_payload_is_the_same_in_every_cloud() -> None:
    """What is Google's only is beside it, and so a line is read back as on AWS."""
    [line] = write(APPLIED)
    payload = {name: value for name, value in line.items() if "/" not in name}
    entry = read_line(payload, APPLIED.at, "deploy")

    assert entry
    assert (entry.what, entry.cluster, entry.trace) == ("applied", APPLIED.cluster, APPLIED.trace)
    assert entry.context == {"source": "web", "trigger": "a, b", "profile": "p"}


@pytest.mark.parametrize("field", sorted(LABELS))
def test_a_label_is_text_and_no_longer_than_google_takes(field: str) -> None:
    """Whatever the field holds; one that says nothing makes none."""
    stream = io.StringIO()
    log = cloud_log(stream)
    log.info("Long", **{field: "x" * 5000})
    log.info("Number", **{field: 7})
    log.info("Empty", **{field: ""})
    long, number, empty = (
        json.loads(each).get("logging.googleapis.com/labels")
        for each in stream.getvalue().splitlines()
    )

    assert len(long[LABELS[field]]) == 1024
    assert number == {LABELS[field]: "7"}
    assert empty is None


def test_an_error_is_one_line_with_its_traceback() -> None:
    """Error Reporting looks for `stack_trace`."""
    stream = io.StringIO()
    cloud_log(stream).error("Failed on a message", ValueError("no"), stage="apply")
    [line] = stream.getvalue().splitlines()

    assert json.loads(line)["severity"] == "ERROR"
    assert "ValueError: no" in json.loads(line)["stack_trace"]
