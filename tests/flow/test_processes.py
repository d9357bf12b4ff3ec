"""`serve --processes`: several processes share the work of one state, and any of them may die."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from tests.benchmarks.idle import family
from tests.benchmarks.isolation import CONFIG, PLACE, RULES
from tests.benchmarks.throughput import ringing
from tests.flow.conftest import Flow, until
from tests.flow.test_examples import TWIN, WEB, balanced, ports

MANY = 60


@pytest.fixture
def pair(flow: Flow) -> Flow:
    """Serve with two processes; both are at work."""
    assert flow.stand.stop("serve") == 0
    flow.stand.serve(2)
    until("the other process is there", lambda: len(mates(flow)) == 1)
    return flow


def mates(flow: Flow) -> list[int]:
    """Return the ids of the processes that the leading one has started."""
    return family(flow.stand.processes["serve"].pid)[1:]


def alive(pid: int) -> bool:
    """Say whether a process is there; one that nobody has asked for its end is not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def made(flow: Flow) -> set[str]:
    """Name the add-ons in the destination."""
    return {name for name in flow.destination.names(CONFIG, PLACE) if name.startswith("for-")}


def ring(flow: Flow, number: int) -> str:
    """Have something happen in the source; return the name of what comes of it."""
    flow.source.create(ringing(f"ring-{number}"))
    return f"for-ring-{number}"


def test_carries_a_service_as_one_process_does(pair: Flow) -> None:
    """It appears elsewhere, follows its port, and goes with its source; nothing is kept."""
    pair.apply("service-discovery")
    pair.source.create(balanced("web", 60000))
    pair.source.give_address(WEB, "34.172.32.172")
    until("the twin is there", lambda: ports(pair, TWIN) == [60000])

    pair.source.patch(WEB, {"spec": {"ports": [{"port": 60001}]}})
    until("the port follows", lambda: ports(pair, TWIN) == [60001])

    pair.source.delete(WEB)
    until("the twin is gone", lambda: not pair.destination.get(TWIN))
    until(
        "nothing is kept",
        lambda: not list(pair.stand.records().inventories.of("fleet/destination")),
    )


def test_a_process_that_is_killed_loses_nothing_and_is_replaced(pair: Flow) -> None:
    """What it had in hand is done by others at once, and another one takes its place."""
    _rules(pair)
    [doomed] = mates(pair)

    expected = {ring(pair, number) for number in range(MANY // 2)}
    os.kill(doomed, signal.SIGKILL)
    expected |= {ring(pair, number) for number in range(MANY // 2, MANY)}

    until("all came", lambda: made(pair) == expected)
    until("another one is there", lambda: len(mates(pair)) == 1 and mates(pair) != [doomed])
    assert "A process died, and another one takes its place" in _log(pair)
    assert "FAILURE" not in pair.failures()


def test_a_leader_that_is_killed_leaves_nobody_behind(pair: Flow) -> None:
    """Those beside it end with it, and a new `serve` begins at once and does what is left."""
    _rules(pair)
    [left] = mates(pair)

    expected = {ring(pair, number) for number in range(MANY // 2)}
    pair.stand.kill("serve")
    begun = time.monotonic()
    until("nobody is left", lambda: not alive(left), patience=2)
    pair.stand.serve(2)
    assert time.monotonic() - begun < 10
    expected |= {ring(pair, number) for number in range(MANY // 2, MANY)}

    until("all came", lambda: made(pair) == expected)
    until("the other process is there", lambda: len(mates(pair)) == 1)


def test_all_end_within_seconds_when_told_to(pair: Flow) -> None:
    """SIGTERM to the leading process ends all; in the midst of work, of which nothing is lost."""
    _rules(pair)
    [other] = mates(pair)
    expected = {ring(pair, number) for number in range(MANY)}

    begun = time.monotonic()
    assert pair.stand.stop("serve") == 0

    assert time.monotonic() - begun < 8
    assert not alive(other)
    assert not any((pair.stand.state / "processes").iterdir())
    assert "takes its place" not in _log(pair)
    pair.stand.serve()
    until("all came", lambda: made(pair) == expected)


def _rules(flow: Flow) -> None:
    flow.destination.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": PLACE}})
    flow.stand.do("apply", "-f", "-", stdin=RULES)
    flow.stand.settle("fleet/source")


def _log(flow: Flow) -> str:
    return (flow.stand.folder / "serve.log").read_text()
