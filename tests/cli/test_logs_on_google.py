"""`bellhop logs` on Google Cloud: what functions have written, and what Cloud Run says of them."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from bellhop.adapters.gcp.logs import CloudLogs
from bellhop.adapters.gcp.services import Services
from bellhop.core.log_tail import LATE
from bellhop.logs import Log
from bellhop.runtime.cloud.event_log import LoggedEventLog
from bellhop.runtime.gcp.lines import CloudFormatter
from bellhop.state.event_log import Bounds
from bellhop.state.record import Entry
from infra.lab.google_logging import Logging
from tests.cli.conftest import Google, House, on_gcp
from tests.cli.test_logs import STORY, Nothing
from tests.unit.cli import fleet

NOW = datetime.now(UTC)
_ALL_TRIES = 5


def told(entries: list[Entry]) -> list[str]:
    """The lines that functions write for entries of the ledger."""
    stream = io.StringIO()
    log = Log(stream, CloudFormatter("lab-7"))
    ledger = LoggedEventLog(Nothing(), Bounds(), log)  # type: ignore[arg-type]
    ledger.gather()
    for entry in entries:
        ledger.note(entry)
    return stream.getvalue().splitlines()


@pytest.fixture
def logging() -> Iterator[Logging]:
    """Cloud Logging."""
    with Logging() as served:
        yield served


@pytest.fixture
def house(google: Google, logging: Logging, tmp_path: Path) -> Iterator[House]:
    """An installation whose functions log."""
    project = google.project()
    made = on_gcp(tmp_path, project, environment={"LOGGING_EMULATOR_HOST": logging.address})
    logging.places.add(made.context.place["logs"])
    yield made
    made.opened.close()
    project.close()


def test_shows_what_show_events_shows(house: House, logging: Logging) -> None:
    """The same decisions, told by functions and kept in the ledger, are the same blocks."""
    house.here.declare.register(fleet.cluster())
    for line in told(STORY):
        logging.write("lab-evaluate", line, at=NOW)
    logging.write("another-evaluate", told(STORY)[0], at=NOW)
    for entry in STORY:
        house.here.records.ledger.note(entry)
    for options in ([], ["--cluster", "default/workload"], ["--trace", "77aa"]):
        shown, kept = house("logs", *options), house("show", "events", *options)

        assert (shown.exit_code, shown.stderr) == (0, "")
        assert shown.stdout == kept.stdout
        assert shown.stdout
    found = house("logs", "--source", "web", "-o", "json").stdout.splitlines()
    assert [json.loads(each)["what"] for each in found] == ["matched", "rendered", "applied"]


@pytest.mark.parametrize(
    ("line", "severity", "said"),
    [
        (
            '{"severity": "WARNING", "message": "Refused a request", "status": 401}',
            "DEFAULT",
            "warning : Refused a request, status: 401",
        ),
        (
            "Memory limit of 512 MiB exceeded with 530 MiB used.",
            "ERROR",
            "error : Memory limit of 512 MiB exceeded with 530 MiB used.",
        ),
        ("Container called exit(1).", "WARNING", "warning : Container called exit(1)."),
        ("[2026-11-22 08:00:00 +0000] [1] [INFO] Starting gunicorn", "DEFAULT", ""),
        ('{"severity": "INFO", "message": "Published what is due", "messages": 2}', "DEFAULT", ""),
        ("[1, 2]x", "INFO", ""),
    ],
)
def test_shows_troubles(
    house: House, logging: Logging, line: str, severity: str, said: str
) -> None:
    """Warnings, errors, and functions that were ended; nothing else."""
    logging.write("lab-ingest", line, at=NOW - timedelta(minutes=1), severity=severity)
    shown = house("logs")

    assert shown.exit_code == 0
    assert shown.stdout.split()[2:] == said.split()


def test_reads_page_by_page_and_by_stage(house: House, logging: Logging) -> None:
    """More than one answer holds; all functions by time, or one; only since when it is asked."""
    at = NOW - timedelta(minutes=1)
    line = told([replace(STORY[0], at=at)])[0]
    for number in range(2_100):
        logging.write("lab-evaluate", line.replace("my-service", f"s{number}"), at=at)
    logging.write("lab-deploy", told([replace(STORY[0], what="applied", at=NOW)])[0], at=NOW)
    old = NOW - timedelta(hours=2)
    logging.write("lab-deploy", told([replace(STORY[0], at=old)])[0], at=old)

    assert len(house("logs", "-o", "json", "--limit", "0").stdout.splitlines()) == 2_101
    deploy = house("logs", "--stage", "deploy", "-o", "json")
    assert len(deploy.stdout.splitlines()) == 1
    since = house("logs", "--stage", "deploy", "-o", "json", "--since", "3h")
    assert len(since.stdout.splitlines()) == 2


class Feed:
    """What happens between two looks of somebody who follows; the end of the play ends it."""

    def __init__(self, *acts: Callable[[], object]) -> None:
        self._acts = iter(acts)
        self.waits: list[str] = []

    def __call__(self, _seconds: float) -> None:
        act = next(self._acts, None)
        if act is None:
            raise KeyboardInterrupt
        act()


def test_follows_without_losses_or_repeats(logging: Logging) -> None:
    """Late lines, two at one time, and looks that are throttled; what is too late is not told."""
    at = NOW - timedelta(minutes=10)
    logging.places.add("projects/lab-7")

    def write(text: str, seconds: float) -> Callable[[], object]:
        when = at + timedelta(seconds=seconds)
        return lambda: logging.write("lab-deploy", text, at=when, severity="ERROR")

    write("a", 0)()
    feed = Feed(
        write("b", 30),
        write("b", 30),
        write("late", 5),
        lambda: logging.refuse(429, _ALL_TRIES),
        write("c", 30 + 2 * LATE.total_seconds()),
        write("too late", 1),
        lambda: None,
    )
    services = Services(
        "lab-7", emulators={"LOGGING_EMULATOR_HOST": logging.address}, sleep=lambda _: None
    )
    logs = CloudLogs(services, "projects/lab-7", {"deploy": "lab-deploy"}, sleep=feed)
    found: list[str] = []
    with suppress(KeyboardInterrupt):
        found.extend(
            json.loads(line.text)["textPayload"] for line in logs.follow(at, wait=feed.waits.append)
        )
    services.close()

    assert found == ["a", "b", "b", "late", "c"]
    assert feed.waits
    assert feed.waits[0].startswith("cannot read the logs of 'projects/lab-7': Google asks to slow")


@pytest.mark.parametrize(
    ("arguments", "refused", "code", "said"),
    [
        ("logs --stage cook", 0, 2, "cannot read the logs of 'cook': the functions are ingest,"),
        ("logs", 404, 1, "cannot read the logs: there is no 'projects/"),
        ("logs --follow", 403, 1, "Google denies it; give the service account or the user"),
    ],
)
def test_refuses(
    house: House, logging: Logging, arguments: str, refused: int, code: int, said: str
) -> None:
    """What is not there is no empty answer, and a right that is missing does not come by asking."""
    if refused:
        logging.refuse(refused)
    result = house(*arguments.split())

    assert (result.exit_code, result.stdout) == (code, "")
    assert said in result.stderr
