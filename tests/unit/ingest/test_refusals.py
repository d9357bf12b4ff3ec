"""Senders that are refused, and clocks that differ: noticed, named, and no more than that."""

from __future__ import annotations

from datetime import timedelta

import pytest

from bellhop.diagnosis.names import object_name
from bellhop.errors import TemporaryError
from bellhop.state.ingest_policy import Refusals
from tests.fakes.fleet import EAST, Fleet, service
from tests.fakes.hooks import failing
from tests.fakes.kept import value_of

MINUTE = timedelta(minutes=1)


def refused(fleet: Fleet) -> Refusals:
    found = value_of(fleet.records.refusals.get(EAST))
    assert found is not None
    return found


def test_refused_requests_are_counted_once_a_minute(fleet: Fleet) -> None:
    """However many come, one write a minute; the next one reports all of them."""
    fleet.register("east")
    since = fleet.clock.now()
    fleet.store.counts.clear()
    for _ in range(500):
        assert fleet.send("east", token="restored").status == 401
    assert fleet.store.counts["put"] == 1
    assert refused(fleet) == Refusals(1, since, since)
    fleet.clock.advance(MINUTE)
    fleet.send("east", token="restored")

    assert refused(fleet) == Refusals(501, since, since + MINUTE)
    assert fleet.store.counts["put"] == 2


def test_unknown_clusters_make_no_records(fleet: Fleet) -> None:
    """For a cluster that does not exist, or with no token at all, nothing is written or kept."""
    fleet.register("east")
    fleet.store.counts.clear()
    for number in range(100):
        fleet.send(f"stranger-{number}", token="x")

    assert fleet.store.counts["put"] == 0
    assert fleet.ingest._refused._counts == {}
    assert fleet.ingest._refused._written == {}


def test_a_sender_that_is_refused_no_more_is_forgotten(fleet: Fleet) -> None:
    """Ten minutes after the last request; and with the cluster."""
    fleet.register("east")
    fleet.send("east", token="restored")
    fleet.clock.advance(10 * MINUTE)
    assert fleet.records.refusals.get(EAST) is None

    fleet.send("east", token="restored")
    fleet.declare.deregister(EAST)
    assert fleet.records.refusals.get(EAST) is None


def test_a_clock_that_was_set_back_silences_nothing(fleet: Fleet) -> None:
    """A refusal that was recorded in the future prevents no later record."""
    fleet.register("east")
    fleet.ingest._refused._written[EAST] = fleet.clock.now() + timedelta(days=1)
    fleet.send("east", token="restored")

    assert refused(fleet).count == 1


def test_a_store_that_fails_refuses_all_the_same(fleet: Fleet) -> None:
    """The mark is a courtesy: the answer does not depend on it."""
    fleet.register("east")
    with failing(fleet.records.refusals, "put", TemporaryError("the disk is full")):
        assert fleet.send("east", token="restored").status == 401


# Clocks -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("minutes", "said"),
    [
        pytest.param(15, "its clock is 15 minutes ahead of ours", id="ahead"),
        pytest.param(-15, "its clock is 15 minutes behind ours", id="behind"),
        pytest.param(1, "", id="nearly the same"),
    ],
)
def test_a_wrong_clock_is_named_and_resyncs_continue(fleet: Fleet, minutes: int, said: str) -> None:
    """A quarter of an hour on either side; objects that the resync finds are evaluated as ever."""
    kube = fleet.register("east", env="production")
    kube.skew = timedelta(minutes=minutes)
    kube.put(service("web"))
    fleet.apply_example("network-policy")
    fleet.pump()
    health = fleet.records.health.get(EAST).value
    (match,) = fleet.records.matches.of(EAST)

    assert health.state == "Healthy"
    assert health.message.startswith(said)
    assert bool(health.message) == bool(said)
    assert object_name(match.key) == "Service default/web"
    assert health.judgement
