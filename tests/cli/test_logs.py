"""`bellhop logs` in both clouds: the log of functions, as `show events` shows the event log."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import bellhop
from bellhop.adapters.aws.logs import CloudWatchLogs
from bellhop.adapters.aws.services import Services
from bellhop.adapters.gcp.logs import CloudLogs
from bellhop.adapters.gcp.services import Services as GoogleServices
from bellhop.core.gvk import ObjectKey
from bellhop.core.log_tail import LATE
from bellhop.logs import Log
from bellhop.runtime.aws.journal import entry_of
from bellhop.runtime.aws.metrics import Metrics
from bellhop.runtime.cloud.event_log import SENTENCES, LoggedEventLog
from bellhop.runtime.gcp.resources import CloudFormatter
from bellhop.state.event_log import Bounds, Entry
from tests.cli.conftest import Google, House, embedded, on_gcp
from tests.functions.gcp_lab import Project
from tests.lab.google_logging import Logging
from tests.lab.moto import Moto
from tests.unit.cli import fleet

NOW = datetime.now(UTC)
_ALL_TRIES = 5

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


def format_entries(entries: Sequence[Entry], *formatter: CloudFormatter) -> list[str]:
    """Return the lines that functions write for entries of the event log."""
    stream = io.StringIO()
    event_log = LoggedEventLog(Nothing(), Bounds(), Log(stream, *formatter))  # type: ignore[arg-type]
    event_log.gather()
    for entry in entries:
        event_log.note(entry)
    return stream.getvalue().splitlines()


class Nothing:
    """A store that nobody asks."""


class Feed:
    """Events between two reads of a follower; the end of the script ends it."""

    def __init__(self, *acts: Callable[[], object]) -> None:
        self._acts = iter(acts)
        self.waits: list[str] = []

    def __call__(self, _seconds: float) -> None:
        act = next(self._acts, None)
        if act is None:
            raise KeyboardInterrupt
        act()


class OnAws:
    """Functions of an installation on AWS, which write into its log groups."""

    several_pages = 10_500

    def __init__(self, house: House, moto: Moto, hurried: Services) -> None:
        self.house = house
        self._moto = moto
        self._hurried = hurried
        self._groups: dict[str, str] = house.context.place["log_groups"]
        self._logs = house.services.client("logs")
        for group in self._groups.values():
            self._logs.create_log_group(logGroupName=group)
            self._logs.create_log_stream(logGroupName=group, logStreamName="one")

    def format(self, *entries: Entry) -> list[str]:
        return format_entries(entries)

    def write(self, stage: str, *lines: str, at: datetime, severity: str = "") -> None:
        """Have a function write lines at a time; Lambda knows no severity."""
        del severity
        milliseconds = int(at.timestamp() * 1000)
        events = [{"timestamp": milliseconds, "message": each} for each in lines]
        for first in range(0, len(events), 5_000):
            self._logs.put_log_events(
                logGroupName=self._groups[stage],
                logStreamName="one",
                logEvents=events[first : first + 5_000],
            )

    def refuse(self, why: str) -> None:
        """Have the next request be refused; all tries of it if requests are too many."""
        code, times = {
            "absent": ("ResourceNotFoundException", 1),
            "denied": ("AccessDeniedException", 1),
            "too many": ("ThrottlingException", _ALL_TRIES),
        }[why]
        self._moto.fail("logs:FilterLogEvents", code=code, status=400, times=times)

    def follow(self, since: datetime, feed: Feed) -> Iterator[str]:
        logs = CloudWatchLogs(self._hurried, self._groups, sleep=feed)
        return (line.text for line in logs.follow(since, wait=feed.waits.append))

    def close(self) -> None:
        """Leave what the fixtures close."""


class OnGoogle:
    """Functions of an installation on Google Cloud, beside one of another installation."""

    several_pages = 2_100

    def __init__(self, folder: Path, project: Project, logging: Logging) -> None:
        emulators = {"LOGGING_EMULATOR_HOST": logging.address}
        self.house = on_gcp(folder, project, environment=emulators)
        self._logging = logging
        self._place: str = self.house.context.place["logs"]
        self._services: dict[str, str] = self.house.context.place["services"]
        self._hurried = GoogleServices(project.name, emulators=emulators, sleep=lambda _: None)
        logging.places.add(self._place)
        logging.write("another-evaluate", "it is not ours", at=NOW, severity="ERROR")

    def format(self, *entries: Entry) -> list[str]:
        return format_entries(entries, CloudFormatter("lab-7"))

    def write(self, stage: str, *lines: str, at: datetime, severity: str = "DEFAULT") -> None:
        """Have a function write lines at a time."""
        for each in lines:
            self._logging.write(self._services[stage], each, at=at, severity=severity)

    def refuse(self, why: str) -> None:
        """Have the next request be refused; all tries of it if requests are too many."""
        status, times = {"absent": (404, 1), "denied": (403, 1), "too many": (429, _ALL_TRIES)}[why]
        self._logging.refuse(status, times)

    def follow(self, since: datetime, feed: Feed) -> Iterator[str]:
        logs = CloudLogs(self._hurried, self._place, self._services, sleep=feed)
        lines = logs.follow(since, wait=feed.waits.append)
        return (json.loads(line.text)["textPayload"] for line in lines)

    def close(self) -> None:
        self._hurried.close()
        self.house.opened.close()


Functions = OnAws | OnGoogle


@pytest.fixture(params=["aws", "gcp"])
def functions(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Functions]:
    """The functions of an installation in each cloud."""
    if request.param == "aws":
        yield OnAws(*map(request.getfixturevalue, ("prod", "moto", "hurried")))
        return
    google: Google = request.getfixturevalue("google")
    project = google.project()
    with Logging() as logging:
        made = OnGoogle(tmp_path, project, logging)
        yield made
        made.close()
    project.close()


def test_shows_what_show_events_shows(functions: Functions) -> None:
    """It takes seconds: ten commands run, of which five read all logs of an emulator."""
    house = functions.house
    house.here.declare.register(fleet.cluster())
    for entry in STORY:
        house.here.records.ledger.note(entry)
        functions.write("deploy", *functions.format(entry), at=entry.at)
    for options in (
        [],
        ["-o", "wide"],
        ["--cluster", "default/workload"],
        ["--trace", "77aa"],
        ["--cluster", "workload", "-o", "wide"],
    ):
        events, logs = house("show", "events", *options), house("logs", *options)

        assert logs.stdout == events.stdout, options
        assert logs.stderr == ""
        assert logs.stdout
        assert logs.exit_code == 0


def test_a_line_is_read_back_as_it_was_noted() -> None:
    for entry, line in zip(STORY, format_entries(STORY), strict=True):
        context = dict(entry.context)
        if triggers := context.pop("triggers", None):
            context["trigger"] = ", ".join(triggers)

        assert entry_of(line, NOW, "deploy") == replace(entry, context=context)


def test_shows_one_source_with_what_came_of_it(functions: Functions) -> None:
    """The match names its source, and the rest of its event belongs to it; others do not."""
    for entry in STORY:
        functions.write("evaluate", *functions.format(entry), at=entry.at)
    house = functions.house
    blocks = house("logs", "--source", "web").stdout
    lines = house("logs", "--source", "web", "-o", "json").stdout.splitlines()

    assert "matched   web" in blocks
    assert "77aa" not in blocks
    assert [json.loads(each)["what"] for each in lines] == ["matched", "rendered", "applied"]
    assert house("logs", "--source", "nothing").stdout == ""


TROUBLES = {
    "aws": {
        "warning": (
            '{"severity": "WARNING", "message": "Refused it", "cluster": "a/b", "status": 401}',
            "warning    in a/b: Refused it, status: 401",
        ),
        "error": (
            '{"severity": "ERROR", "message": "Failed", "stage": "x", "stack_trace": "Traceback"}',
            "error      : Failed, stage: x",
        ),
        "timed out": (
            "2026-11-22T03:00:00Z 8f50 Task timed out after 60.00 seconds\n",
            "error      : 2026-11-22T03:00:00Z 8f50 Task timed out after 60.00 seconds",
        ),
        "timed out, as JSON": (
            '{"time": "x", "type": "platform.report", "record": {"status": "timeout"}}',
            "error      : it ended by timeout",
        ),
        "raised": (
            '{"errorMessage": "it broke", "errorType": "ValueError", "stackTrace": []}',
            "error      : it broke",
        ),
        "info": ('{"severity": "INFO", "message": "Counted what was done"}', ""),
        "start": ("START RequestId: 8f50 Version: 3\n", ""),
        "report": ("REPORT RequestId: 8f50 Duration: 3 ms\n", ""),
        "went well": ('{"type": "platform.runtimeDone", "record": {"status": "success"}}', ""),
        "steers": ("\x1b[2J evil \x00", "error      : \\x1b[2J evil \\x00"),
        "strange": ('{"what": ["x"], "time": 7, "ms": "much"}', "['x']"),
    },
    "gcp": {
        "DEFAULT warning": (
            '{"severity": "WARNING", "message": "Refused a request", "status": 401}',
            "warning : Refused a request, status: 401",
        ),
        "ERROR out of memory": (
            "Memory limit of 512 MiB exceeded with 530 MiB used.",
            "error : Memory limit of 512 MiB exceeded with 530 MiB used.",
        ),
        "WARNING exited": ("Container called exit(1).", "warning : Container called exit(1)."),
        "DEFAULT start": ("[2026-11-22 08:00:00 +0000] [1] [INFO] Starting gunicorn", ""),
        "DEFAULT info": (
            '{"severity": "INFO", "message": "Published what is due", "messages": 2}',
            "",
        ),
        "INFO strange": ("[1, 2]x", ""),
    },
}
"""Lines by cloud; on Google Cloud the first word is the severity that Cloud Run gives the line."""


@pytest.mark.parametrize(
    ("functions", "name"),
    [(cloud, name) for cloud, lines in TROUBLES.items() for name in lines],
    indirect=["functions"],
)
def test_shows_what_no_event_caused(
    functions: Functions, name: str, request: pytest.FixtureRequest
) -> None:
    """Warnings, errors, and functions that their cloud has ended; nothing else."""
    line, said = TROUBLES[request.node.callspec.params["functions"]][name]
    at = NOW - timedelta(minutes=1)
    functions.write("sweep", line, at=at, severity=name.partition(" ")[0])
    shown = functions.house("logs")

    assert shown.exit_code == 0
    assert (
        said.split() == shown.stdout.split()[2:]
        if said.startswith(("warning", "error"))
        else (said in shown.stdout)
    )
    assert bool(shown.stdout) == bool(said)


def test_reads_page_by_page_and_by_stage(functions: Functions) -> None:
    """More than one answer holds; all functions by time, or one; only since when it is asked for.

    It takes seconds: it writes and reads more than 10,000 lines, as one page of AWS holds so many.
    """
    at, before = NOW - timedelta(minutes=1), NOW - timedelta(hours=2)
    [line] = functions.format(replace(STORY[0], at=at))
    several = [
        line.replace("my-service", f"s{number}") for number in range(functions.several_pages)
    ]
    functions.write("evaluate", *several, at=at)
    last = replace(STORY[0], what="applied", trace="b", at=NOW)
    functions.write("deploy", *functions.format(last), at=NOW)
    functions.write("deploy", *functions.format(replace(STORY[0], at=before)), at=before)

    def count(*options: str) -> int:
        return len(functions.house("logs", "-o", "json", *options).stdout.splitlines())

    assert count("--limit", "0") == functions.several_pages + 1
    assert count() == 200
    assert count("--stage", "deploy") == 1
    assert count("--stage", "deploy", "--since", "3h") == 2


def test_follows_without_losses_or_repeats(functions: Functions) -> None:
    """Late lines, two at one time, a function that is behind, and a read that is throttled.

    A line that comes later than any may is not remembered for ever.
    """
    begun = NOW - timedelta(minutes=10)

    def write(text: str, seconds: float, stage: str = "deploy") -> Callable[[], None]:
        at = begun + timedelta(seconds=seconds)
        return lambda: functions.write(stage, text, at=at, severity="ERROR")

    write("a", 0)()
    feed = Feed(
        write("b", 30),
        write("b", 30),
        write("late", 5),
        write("behind", 1, "evaluate"),
        lambda: functions.refuse("too many"),
        write("c", 30 + 2 * LATE.total_seconds()),
        write("too late", 1),
        lambda: None,
    )
    found: list[str] = []
    with suppress(KeyboardInterrupt):
        found.extend(functions.follow(begun, feed))

    assert found == ["a", "b", "b", "late", "behind", "c"]
    assert feed.waits[0].startswith("cannot read the log")
    assert any(each in feed.waits[0] for each in ("AWS asks to slow", "Google asks to slow"))


@pytest.mark.parametrize(
    ("functions", "arguments", "refusal", "code", "said"),
    [
        ("aws", "logs", "absent", 1, "the logs of ingest: there is no log group '/aws/lambda/"),
        ("aws", "logs --stage cook", "", 2, "cannot read the logs of 'cook': the functions are in"),
        ("aws", "logs --since yesterday", "", 2, "cannot read 'yesterday' as a duration"),
        ("aws", "logs --cluster nobody", "", 1, "'nobody'"),
        (
            "aws",
            "logs --follow",
            "denied",
            1,
            "AWS denies it; give the role or the user this right",
        ),
        ("gcp", "logs", "absent", 1, "cannot read the logs: there is no 'projects/"),
        (
            "gcp",
            "logs --follow",
            "denied",
            1,
            "Google denies it; give the service account or the u",
        ),
    ],
    indirect=["functions"],
)
def test_refuses(functions: Functions, arguments: str, refusal: str, code: int, said: str) -> None:
    """A right that is missing does not pass by asking again."""
    if refusal:
        functions.refuse(refusal)
    result = functions.house(*arguments.split())

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
    stream, seconds = io.StringIO(), iter([0.0, 10.0, 10.25])
    metrics = Metrics("prod", Log(stream), seconds=lambda: next(seconds))
    metrics.begin()
    for entry in STORY:
        metrics.count(entry)
    metrics.publish()
    metrics.publish()
    [line] = [json.loads(each) for each in stream.getvalue().splitlines()]
    [about] = line["_aws"]["CloudWatchMetrics"]
    expected = {"Events": 2, "Matched": 1, "Applied": 1, "Failed": 1, "Misses": 3, "Held": 1}

    assert {name: line[name] for name in expected} == expected
    assert (line["installation"], line["Milliseconds"], "Waits" in line) == ("prod", 250.0, False)
    assert (about["Namespace"], about["Dimensions"]) == ("Bellhop", [["installation"]])
    assert {each["Name"] for each in about["Metrics"]} == {*expected, "Milliseconds"}


def test_every_decision_has_its_sentence() -> None:
    slices = (
        "clusters",
        "declarations",
        "deploy",
        "events",
        "extras",
        "ingest",
        "operations",
        "profiles",
        "promotions",
        "resync",
    )
    folders = [Path(bellhop.__file__).parent / each for each in slices]
    text = "".join(path.read_text() for each in folders for path in each.rglob("*.py"))
    for what in SENTENCES:
        assert f'"{what}"' in text, what
