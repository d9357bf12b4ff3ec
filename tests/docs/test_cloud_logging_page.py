"""Each filter on the page about Cloud Logging takes lines that functions write, and no others."""

from __future__ import annotations

import io
import json
import re
import shlex
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bellhop.logs import Log
from bellhop.runtime.cloud.event_log import LoggedEventLog
from bellhop.runtime.gcp.resources import LABELS, CloudFormatter
from bellhop.state.event_log import Bounds
from tests.lab.google_logging import Logging
from tests.unit.cli import fleet

PAGE = (Path(__file__).parents[2] / "docs/how-to/view-events-in-cloud-logging.md").read_text()
FILTERS = re.findall(r"```filter\n(.*?)```", PAGE, re.DOTALL)
SHELL = [shlex.split(line) for line in PAGE.splitlines() if line.startswith("gcloud logging ")]
NOW = datetime.now(UTC)


class Nothing:
    """A store that nobody asks."""


@pytest.fixture(scope="module")
def logging() -> Iterator[Logging]:
    """What functions have logged of a day, as their own classes write it."""
    stream = io.StringIO()
    function_log = Log(stream, CloudFormatter("lab-7"))
    event_log = LoggedEventLog(Nothing(), Bounds(), function_log)  # type: ignore[arg-type]
    event_log.gather()
    about = {"source": "web", "profile": "p", "since_ring_ms": 2500.0}
    for what in ("rang", "matched", "rendered", "applied", "failed"):
        event_log.note(fleet.entry(what, ago=9, cluster="prod/eu-1", context=about))
        event_log.note(fleet.entry(what, ago=9, cluster="lab/one", context={"since_ring_ms": 21.0}))
    event_log.note(fleet.entry("missed", ago=9, trace="", object="", context={"objects": 3}))
    function_log.warning("Refused a request", cluster="prod/eu-1", status=401, address="192.0.2.1")
    function_log.warning(
        "Moved a message to the dead letters", inbox="deploy", reason="it is refused"
    )
    function_log.error("Failed on a message", ValueError("no"), stage="evaluate")
    with Logging() as served:
        for line in stream.getvalue().splitlines():
            served.write("prod-deploy", line, at=NOW)
        served.write("prod-deploy", "Memory limit exceeded", at=NOW, severity="ERROR")
        yield served


@pytest.mark.parametrize(("number", "count"), list(enumerate([5, 5, 10, 2, 1, 1, 1, 1, 2])))
def test_filters_take_what_they_are_for(logging: Logging, number: int, count: int) -> None:
    """Each finds its lines among those of a day."""
    assert len(logging.chosen(FILTERS[number])) == count


def test_every_filter_is_tried() -> None:
    """A change that adds one says how many lines it takes."""
    assert len(FILTERS) == 9
    assert {f"labels.{label}" for label in LABELS.values()} <= set(re.findall(r"labels\.\w+", PAGE))


def test_what_is_typed_into_a_shell_finds_something(logging: Logging) -> None:
    """`gcloud logging read`, and the filter of the metric that the alert counts."""
    read, metric = SHELL
    log_filter = metric[metric.index("--log-filter") + 1]

    assert len(logging.chosen(read[3])) == 5
    assert len(logging.chosen(log_filter)) == 1
    [policy] = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    [condition] = json.loads(policy)["conditions"]
    assert f"/user/{metric[4]}" in condition["conditionThreshold"]["filter"]
