"""Timers that are due: found in order, and without reading those that are not."""

from __future__ import annotations

from datetime import timedelta

from bellhop.state.timers import SHARDS, Timers
from tests.fakes.clock import START
from tests.fakes.fleet import CountingStore
from tests.unit.state.rig import Rig

MINUTE = timedelta(minutes=1)


def test_what_is_not_due_is_hardly_read(rig: Rig) -> None:
    """A fleet's next resyncs are all among the entries, and a cloud takes money for each."""
    timers = Timers(rig.store, rig.clock)
    for number in range(800):
        timers.set(f"sweep/{number}", START + number * MINUTE, {"number": number})
    store = CountingStore(rig.store)

    assert list(Timers(store, rig.clock).due(START - MINUTE, limit=500)) == []
    assert store.counts["item"] == store.counts["query"] == len(SHARDS)


def test_all_that_is_due_is_found_in_order(rig: Rig) -> None:
    """Of each shard, up to a limit."""
    timers = Timers(rig.store, rig.clock)
    for number in range(800):
        timers.set(f"sweep/{number}", START + number * MINUTE, {"number": number})

    found = list(timers.due(START + 399 * MINUTE, limit=500))
    assert sorted(each.timer.value.name for each in found if each.timer) == sorted(
        f"sweep/{number}" for number in range(400)
    )
    by_shard: dict[str, list[str]] = {}
    for each in found:
        by_shard.setdefault(each.item.partition, []).append(each.item.value["at"])
    assert len(by_shard) == len(SHARDS)
    assert all(times == sorted(times) for times in by_shard.values())
    assert len(list(timers.due(START + 800 * MINUTE, limit=7))) == 7 * len(SHARDS)
