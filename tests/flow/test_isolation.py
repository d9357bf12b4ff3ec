"""Bad neighbours: clusters that hang, and senders that flood, beside a healthy pair.

Each keeps both cores busy for seconds, and measures time beside that.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from bellhop.runtime.embedded.state import Embedded, open_state
from bellhop.settings import Settings
from tests.benchmarks.isolation import (
    CLUSTERS,
    CONFIG,
    RULES,
    flood,
    hang,
    happen,
    loop,
    profiles,
    sender,
)
from tests.flow.conftest import Flow, await_calls
from tests.waiting import eventually

pytestmark = [pytest.mark.rest, pytest.mark.clocked]

GENEROUS_MS = 5_000
"""What an event may take: tens of ms on a quiet machine, and a time-out of each neighbour never."""


@pytest.fixture
def neighbours(flow: Flow) -> Iterator[tuple[Embedded, ExitStack]]:
    """Apply the manifests of the healthy pair, and open the state for the others."""
    flow.stand.do("apply", "-f", "-", stdin=RULES)
    flow.stand.settle("fleet/source")
    await_calls(flow.source_cluster)
    with ExitStack() as stack:
        opened = open_state(flow.stand.state, Settings())
        stack.callback(opened.close)
        yield opened, stack


def test_clusters_that_hang_keep_no_other_waiting(
    flow: Flow, neighbours: tuple[Embedded, ExitStack]
) -> None:
    """While they are found to hang, and after, events, resyncs and hints of others are served."""
    opened, stack = neighbours
    for each in hang(opened):
        stack.callback(each.close)
    flow.stand.do("apply", "-f", "-", stdin=profiles(20 * CLUSTERS))

    assert max(happen(flow.source, flow.destination, 10)) < GENEROUS_MS
    eventually("all that hang are known", lambda: _away(flow) == CLUSTERS, patience=60)
    assert max(happen(flow.source, flow.destination, 5)) < GENEROUS_MS
    flow.stand.settle("fleet/source")
    assert "20 of its profiles wait for it" in flow.failures()


def test_a_flood_from_one_sender_delays_no_other(
    flow: Flow, neighbours: tuple[Embedded, ExitStack]
) -> None:
    """While five hundred invented objects of one cluster are worked on, another's are served."""
    opened, stack = neighbours
    stack.callback(sender(opened).close)
    flood(flow.stand, 500)

    assert max(happen(flow.source, flow.destination, 5)) < GENEROUS_MS
    eventually("all of it is done", lambda: len(_made(flow)) >= 500, patience=120)


def test_a_script_that_loops_delays_no_other_source(
    flow: Flow, neighbours: tuple[Embedded, ExitStack]
) -> None:
    """On a hundred objects of the same cluster it is run apart, and users learn it."""
    del neighbours
    loop(flow.stand, flow.source, 100)

    assert max(happen(flow.source, flow.destination, 5)) < GENEROUS_MS
    eventually(
        "it is reported", lambda: "its script took more than" in flow.failures(), patience=60
    )


def _away(flow: Flow) -> int:
    return sum(1 for _ in flow.stand.records().circuits.all())


def _made(flow: Flow) -> list[str]:
    return flow.destination.names(CONFIG, "made")
