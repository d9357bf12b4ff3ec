"""`bellhop logs`: what functions have logged, as `show events` shows the ledger."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import bellhop
from bellhop.adapters.aws.logs import CloudWatchLogs
from bellhop.adapters.aws.services import Services
from bellhop.core.gvk import ObjectKey
from bellhop.core.log_tail import LATE
from bellhop.logs import Log
from bellhop.runtime.aws.journal import entry_of
from bellhop.runtime.aws.metrics import Metrics
from bellhop.runtime.cloud.event_log import SENTENCES, LoggedEventLog
from bellhop.state.event_log import Bounds
from bellhop.state.record import Entry
from infra.lab.moto import Moto
from tests.cli.conftest import House, embedded
from tests.unit.cli import fleet

NOW = datetime.now(UTC)
ALL_SERVICES = str(ObjectKey(fleet.SERVICE.gvk, "", "*"))

STORY = [
    fleet.entry("rang", ago=50),
    fleet.entry(
        "matched",
        ago=49,
        took_ms=0.3,
        context={"source": "web", "triggers": ["policy"], "since_ring_ms": 21.0},
    ),
    fleet.entry("rendered", ago=48, detail="NetworkPolicy a", context={"profile": "p"}),
    fleet.entry("applied", ago=47, cluster="prod/other", context={"profile": "p"}),
    fleet.entry("rang", ago=40, trace="77aa", object=str(fleet.SERVICE).replace("my-", "b-")),
    fleet.entry("failed", ago=39, trace="77aa", detail="it is refused", context={"source": "x"}),
    fleet.entry("missed", ago=30, trace="", object="", detail="3 of 9", context={"objects": 3}),
    fleet.entry(
        "held",
        ago=20,
        trace="",
        object=str(ObjectKey(fleet.SERVICE.gvk, "", "*")),
        detail="too many",
    ),
]


_ALL_TRIES = 5


def told(entries: list[Entry]) -> list[str]:
    """The lines that functions write for entries of the ledger."""
    stream = io.StringIO()
    ledger = LoggedEventLog(Nothing(), Bounds(), Log(stream))  # type: ignore[arg-type]
    ledger.gather()
    for entry in entries:
        ledger.note(entry)
    return stream.getvalue().splitlines()


class Nothing:
    """A store that nobody asks."""


class Groups:
    """The log groups of an installation, into which functions write."""

    def __init__(self, services: Services, groups: dict[str, str]) -> None:
        self.groups = groups
        self._logs = services.client("logs")
        for group in groups.values():
            self._logs.create_log_group(logGroupName=group)
            self._logs.create_log_stream(logGroupName=group, logStreamName="one")

    def write(self, stage: str, *lines: str | dict[str, Any], at: datetime) -> None:
        """Have a function write lines at a time."""
        events = [
            {
                "timestamp": int(at.timestamp() * 1000),
                "message": each if isinstance(each, str) else json.dumps(each),
            }
            for each in lines
        ]
        self._logs.put_log_events(
            logGroupName=self.groups[stage], logStreamName="one", logEvents=events
        )


@pytest.fixture
def groups(prod: House) -> Groups:
    """The log groups of the installation on AWS."""
    return Groups(prod.services, prod.context.place["log_groups"])


def test_shows_what_show_events_shows(prod: House, groups: Groups) -> None:
    """The same decisions, told by functions and kept in the ledger, are the same blocks.

    It takes seconds: ten commands run, of which five read all log groups of moto.
    """
    prod.here.declare.register(fleet.cluster())
    for entry, line in zip(STORY, told(STORY), strict=True):
        prod.here.records.ledger.note(entry)
        groups.write("deploy", line, at=entry.at)
    for options in (
        [],
        ["-o", "wide"],
        ["--cluster", "default/workload"],
        ["--trace", "77aa"],
        ["--cluster", "workload", "-o", "wide"],
    ):
        events, logs = prod("show", "events", *options), prod("logs", *options)

        assert logs.stdout == events.stdout, options
        assert logs.stderr == ""
        assert logs.stdout
        assert logs.exit_code == 0


def test_a_line_is_read_back_as_it_was_noted() -> None:
    """Only the triggers of a match are told as one word."""
    for entry, line in zip(STORY, told(STORY), strict=True):
        context = dict(entry.context)
        if triggers := context.pop("triggers", None):
            context["trigger"] = ", ".join(triggers)

        assert entry_of(line, NOW, "deploy") == replace(entry, context=context)


def test_shows_one_source_with_what_came_of_it(prod: House, groups: Groups) -> None:
    """The match names its source, and the rest of its event belongs to it; others do not."""
    for entry, line in zip(STORY, told(STORY), strict=True):
        groups.write("evaluate", line, at=entry.at)
    blocks = prod("logs", "--source", "web").stdout
    lines = prod("logs", "--source", "web", "-o", "json").stdout.splitlines()

    assert "matched   web" in blocks
    assert "77aa" not in blocks
    assert [json.loads(each)["what"] for each in lines] == ["matched", "rendered", "applied"]
    assert prod("logs", "--source", "nothing").stdout == ""


@pytest.mark.parametrize(
    ("line", "said"),
    [
        pytest.param(
            {
                "severity": "WARNING",
                "message": "Refused it",
                "cluster": "a/b",
                "status": 401,
            },
            "warning    in a/b: Refused it, status: 401",
            id="warning",
        ),
        pytest.param(
            {"severity": "ERROR", "message": "Failed", "stage": "x", "stack_trace": "Traceback"},
            "error      : Failed, stage: x",
            id="error",
        ),
        pytest.param(
            "2026-11-22T03:00:00Z 8f50 Task timed out after 60.00 seconds\n",
            "error      : 2026-11-22T03:00:00Z 8f50 Task timed out after 60.00 seconds",
            id="timed out",
        ),
        pytest.param(
            {"time": "x", "type": "platform.report", "record": {"status": "timeout"}},
            "error      : it ended by timeout",
            id="timed out, as JSON",
        ),
        pytest.param(
            {"errorMessage": "it broke", "errorType": "ValueError", "stackTrace": []},
            "error      : it broke",
            id="raised",
        ),
        pytest.param({"severity": "INFO", "message": "Counted what was done"}, "", id="info"),
        pytest.param("START RequestId: 8f50 Version: 3\n", "", id="start"),
        pytest.param("REPORT RequestId: 8f50 Duration: 3 ms\n", "", id="report"),
        pytest.param(
            {"type": "platform.runtimeDone", "record": {"status": "success"}}, "", id="went well"
        ),
        pytest.param("\x1b[2J evil \x00", "error      : \\x1b[2J evil \\x00", id="steers"),
        pytest.param('{"what": ["x"], "time": 7, "ms": "much"}', "['x']", id="strange"),
    ],
)
def test_shows_what_no_event_caused(
    prod: House, groups: Groups, line: str | dict[str, Any], said: str
) -> None:
    """Warnings, errors, and what Lambda says of a function that it ended; nothing else."""
    groups.write("sweep", line, at=NOW - timedelta(minutes=1))
    shown = prod("logs")

    assert shown.exit_code == 0
    assert (
        said.split() == shown.stdout.split()[2:]
        if said.startswith(("warning", "error"))
        else (said in shown.stdout)
    )
    assert bool(shown.stdout) == bool(said)


def test_reads_page_by_page_and_group_by_group(prod: House, groups: Groups) -> None:
    """More than one answer holds; all groups by time, or one; only since when it is asked for.

    It takes seconds: it writes and reads more than 10,000 lines, as one page holds so many.
    """
    entry, at = STORY[0], NOW - timedelta(minutes=1)
    line = told([entry])[0]
    for first in range(0, 10_500, 5_250):
        several = [
            line.replace("default/my-service", f"default/s{first + n}") for n in range(5_250)
        ]
        groups.write("evaluate", *several, at=at)
    groups.write("deploy", *told([replace(entry, what="applied", trace="b")]), at=NOW)
    groups.write("deploy", line, at=NOW - timedelta(hours=2))

    assert len(prod("logs", "-o", "json", "--limit", "0").stdout.splitlines()) == 10_501
    assert len(prod("logs", "-o", "json").stdout.splitlines()) == 200
    assert len(prod("logs", "--stage", "deploy", "-o", "json").stdout.splitlines()) == 1
    since = prod("logs", "--stage", "deploy", "-o", "json", "--since", "3h").stdout
    assert len(since.splitlines()) == 2


class Feed:
    """What happens between two looks of somebody who follows; the end of the play ends it."""

    def __init__(self, *acts: Callable[[], None]) -> None:
        self._acts = iter(acts)
        self.waits: list[str] = []

    def __call__(self, _seconds: float) -> None:
        act = next(self._acts, None)
        if act is None:
            raise KeyboardInterrupt
        act()

    def run(self, services: Services, groups: Groups, since: datetime) -> list[str]:
        """Follow until the play ends; return what was told."""
        logs = CloudWatchLogs(services, groups.groups, sleep=self)
        found: list[str] = []
        lines = logs.follow(since, wait=self.waits.append)
        with suppress(KeyboardInterrupt):
            found.extend(line.text for line in lines)
        return found


def test_follows_without_losses_or_repeats(groups: Groups, hurried: Services, moto: Moto) -> None:
    """Late lines, two at one time, a group that is behind, and a look that is throttled."""
    at = NOW - timedelta(minutes=10)
    groups.write("deploy", "a", at=at)
    feed = Feed(
        lambda: groups.write("deploy", "b", at=at + timedelta(seconds=30)),
        lambda: groups.write("deploy", "b", at=at + timedelta(seconds=30)),
        lambda: groups.write("deploy", "late", at=at + timedelta(seconds=5)),
        lambda: groups.write("evaluate", "behind", at=at + timedelta(seconds=1)),
        lambda: moto.fail(
            "logs:FilterLogEvents", code="ThrottlingException", status=400, times=_ALL_TRIES
        ),
        lambda: groups.write("deploy", "c", at=at + timedelta(minutes=5)),
        lambda: None,
    )
    found = feed.run(hurried, groups, at)

    assert found == ["a", "b", "b", "late", "behind", "c"]
    assert len(feed.waits) >= 1
    assert feed.waits[0].startswith("cannot read the log group '")


def test_what_is_followed_is_not_remembered_for_ever(groups: Groups, hurried: Services) -> None:
    """A line that comes more than LATE after a newer one is not told; the memory ends there."""
    at = NOW - timedelta(hours=1)
    groups.write("deploy", "a", at=at)
    feed = Feed(
        lambda: groups.write("deploy", "b", at=at + LATE * 2),
        lambda: groups.write("deploy", "too late", at=at + timedelta(seconds=1)),
        lambda: None,
    )

    assert feed.run(hurried, groups, at - timedelta(seconds=1)) == ["a", "b"]


@pytest.mark.usefixtures("groups")
def test_says_that_it_cannot_follow(prod: House, moto: Moto) -> None:
    """A right that is missing does not pass by asking again."""
    moto.fail("logs:FilterLogEvents", code="AccessDeniedException", status=400)
    result = prod("logs", "--follow")

    assert result.exit_code == 1
    assert "AWS denies it; give the role or the user this right" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ("logs", 1, "cannot read the logs of ingest: there is no log group '/aws/lambda/"),
        ("logs --stage cook", 2, "cannot read the logs of 'cook': the functions are ingest,"),
        ("logs --since yesterday", 2, "cannot read 'yesterday' as a duration"),
        ("logs --cluster nobody", 1, "'nobody'"),
    ],
)
def test_refuses(prod: House, arguments: str, code: int, said: str) -> None:
    """What is not there is no empty answer."""
    result = prod(*arguments.split())

    assert (result.exit_code, result.stdout) == (code, "")
    assert said in result.stderr


def test_the_embedded_mode_has_no_log_to_read(tmp_path: Any) -> None:
    """It says where its log is, and what to use."""
    house = embedded(tmp_path)
    result = house("logs")
    house.opened.close()

    assert result.exit_code == 2
    assert "`bellhop show events` shows the decisions" in result.stderr


def test_counts_an_invocation_in_one_line() -> None:
    """By metric, with what a sweep found as objects; what is nothing is not told."""
    stream, seconds = io.StringIO(), iter([0.0, 10.0, 10.25])
    metrics = Metrics("prod", Log(stream), seconds=lambda: next(seconds))
    metrics.begin()
    for entry in STORY:
        metrics.count(entry)
    metrics.tell()
    metrics.tell()
    [line] = [json.loads(each) for each in stream.getvalue().splitlines()]
    [about] = line["_aws"]["CloudWatchMetrics"]
    expected = {"Events": 2, "Matched": 1, "Applied": 1, "Failed": 1, "Misses": 3, "Held": 1}

    assert {name: line[name] for name in expected} == expected
    assert (line["installation"], line["Milliseconds"], "Waits" in line) == ("prod", 250.0, False)
    assert (about["Namespace"], about["Dimensions"]) == ("Bellhop", [["installation"]])
    assert {each["Name"] for each in about["Metrics"]} == {*expected, "Milliseconds"}


def test_every_decision_has_its_sentence() -> None:
    """What the stages note is told in words."""
    slices = (
        "clusters",
        "declarations",
        "deploy",
        "events",
        "extras",
        "ingest",
        "profiles",
        "resync",
    )
    folders = [Path(bellhop.__file__).parent / each for each in slices]
    text = "".join(path.read_text() for each in folders for path in each.rglob("*.py"))
    for what in SENTENCES:
        assert f'"{what}"' in text, what
