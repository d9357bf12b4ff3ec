"""Observations that compete: the newest wins, in whatever order they come."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from bellhop.ingest.records import TOMBSTONE
from bellhop.state.match import Observation
from tests.fakes.kept import value_of
from tests.unit.state.rig import (
    EAST,
    WEB,
    Rig,
    gone,
    observation,
)

# Observations that compete ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second", "news"),
    [
        pytest.param(observation(), observation(version=6), True, id="a newer one"),
        pytest.param(observation(), observation(), True, id="a repeat"),
        pytest.param(observation(), observation(version=4), False, id="an older one"),
        pytest.param(observation(version=10), observation(version=9), False, id="by number"),
        pytest.param(observation(), gone(), True, id="its end"),
        pytest.param(observation(), gone(version=0), True, id="its end, version unknown"),
        pytest.param(observation("u2", 9), gone("u1", 5), False, id="the end of one before it"),
        pytest.param(gone(), observation(version=7), False, id="an object after its end"),
        pytest.param(gone(), gone(), True, id="an end again"),
        pytest.param(gone(), observation("u2", 9), True, id="the next of its name"),
        pytest.param(gone("u2", 9), observation("u1", 5), False, id="one long before the end"),
        pytest.param(gone("u2", 9), gone("u1", 5), False, id="an end long before the end"),
    ],
)
def test_the_newest_observation_wins(
    rig: Rig,
    first: Observation,
    second: Observation,
    news: bool,  # noqa: FBT001 - pytest passes it by name
) -> None:
    """Whatever the order in which they come."""
    rig.records.observations.put(first)

    assert rig.records.observations.put(second) is news
    kept = value_of(rig.records.observations.get(EAST, WEB))
    assert kept
    wins = second if news else first
    assert (kept.uid, kept.gone) == (wins.uid, wins.gone)


def test_of_two_who_write_at_once_the_newer_one_stays(rig: Rig) -> None:
    """Who looked before the other wrote is refused, and looks again."""
    rig.records.observations.put(observation(version=1))
    store = rig.records.observations._payloads.store
    get = store.get

    def slow(*place: str) -> Any:
        store.get = get  # type: ignore[method-assign]
        found = get(*place)
        assert rig.records.observations.put(observation(version=3))
        return found

    store.get = slow  # type: ignore[method-assign]

    assert not rig.records.observations.put(observation(version=2))
    kept = value_of(rig.records.observations.get(EAST, WEB))
    assert kept
    assert kept.resource_version == 3


def test_a_tombstone_hides_what_was_older_than_its_object(rig: Rig) -> None:
    """Also if whoever saw the end could not tell the version."""
    rig.records.observations.put(observation("u2", 9))
    rig.records.observations.put(gone("u2", 0))

    assert not rig.records.observations.put(observation("u1", 5))


def test_a_tombstone_is_kept_for_a_week(rig: Rig) -> None:
    """Longer than any message of ours; then the key is forgotten."""
    rig.records.observations.put(gone())
    rig.clock.advance(TOMBSTONE - timedelta(seconds=1))
    assert not rig.records.observations.put(observation())
    rig.clock.advance(timedelta(seconds=1))

    assert rig.records.observations.get(EAST, WEB) is None
    assert rig.records.observations.put(observation())


@pytest.mark.parametrize(
    "first", [pytest.param(observation(), id="seen"), pytest.param(gone(), id="gone")]
)
def test_what_a_cluster_answers_now_is_newer_than_what_was_kept(
    rig: Rig, first: Observation
) -> None:
    """After a restored backup versions and even uids come back; what was asked later is right."""
    rig.records.observations.put(first)
    asked = rig.records.observations.token(EAST, WEB)
    restored = observation(version=2)

    assert not rig.records.observations.put(restored)
    assert rig.records.observations.put(restored, asked=asked)
    assert value_of(rig.records.observations.get(EAST, WEB)) == restored


@pytest.mark.parametrize("before", [True, False], ids=["something was kept", "nothing was kept"])
def test_what_came_while_a_cluster_was_asked_is_judged_by_its_version(
    rig: Rig,
    before: bool,  # noqa: FBT001 - drawn by name
) -> None:
    """The answer may be older than what another process has written since it was asked for."""
    if before:
        rig.records.observations.put(observation(version=3))
    asked = rig.records.observations.token(EAST, WEB)
    rig.records.observations.put(observation(version=5))

    assert not rig.records.observations.put(observation(version=4), asked=asked)
    assert rig.records.observations.put(observation(version=6), asked=asked)


def test_heads_are_told_with_their_tokens_and_from_where_they_are_wanted(rig: Rig) -> None:
    """Who asks a cluster says which head it saw before; who goes page by page says from where."""
    rig.records.observations.put(observation())
    [head] = rig.records.observations.heads(EAST, WEB.gvk)

    assert head.token == rig.records.observations.token(EAST, WEB)
    assert head == rig.records.observations.head(EAST, WEB)
    assert list(rig.records.observations.heads(EAST, WEB.gvk, after=str(WEB))) == []
