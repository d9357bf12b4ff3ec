"""Senders that prove themselves by their cluster's service account, in ingest and resyncs."""

from __future__ import annotations

from datetime import timedelta

import pytest
from msgspec.structs import replace

from bellhop.errors import DeniedError, UnreachableError
from bellhop.ingest.account_tokens import read_keys
from bellhop.ingest.handler import Ingest
from bellhop.ingest.http import Caller
from bellhop.ingest.service_accounts import learn
from bellhop.logs import Log
from bellhop.state.ingest_policy import IngestPolicy, Issuer
from bellhop.state.messages import RefreshTokenKeys
from tests.fakes.fleet import EAST, Fleet
from tests.fakes.kept import value_of
from tests.fakes.kube import FakeKube
from tests.fakes.tokens import AUDIENCE, ISSUER, Signer

OLD, NEW = Signer("old"), Signer("new", "P-256")
MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)


@pytest.fixture
def kube(fleet: Fleet) -> FakeKube:
    """A cluster whose API server signs with the old key, which is known."""
    kube = fleet.register("east", env="production")
    kube.keys = [OLD.published()]
    kept = fleet.records.clusters.get(EAST)
    assert kept
    wiring = {"url": "https://10.0.0.5", "ca": "ca", "path": "/p", "audience": AUDIENCE}
    fleet.declare.register(replace(kept.value, forwarder=wiring))
    fleet.pump()
    return kube


def lets_in(fleet: Fleet, token: str, cluster: str = EAST) -> bool:
    return isinstance(fleet.ingest.admit(Caller(cluster, token)), IngestPolicy)


def why(fleet: Fleet, token: str) -> str:
    reply = fleet.ingest.admit(Caller(EAST, token))
    assert not isinstance(reply, IngestPolicy)
    assert reply.status == 401
    return str(reply.body["error"]["message"])


def asked(fleet: Fleet) -> int:
    """Count how often the keys are asked for, and forget it."""
    taken = list(fleet.queues["sweep"].receive(10, wait=timedelta(0)))
    for each in taken:
        fleet.queues["sweep"].settle(each, None)
    return sum(each.message.body["do"] == RefreshTokenKeys.do for each in taken)


@pytest.mark.usefixtures("kube")
def test_a_resync_reads_the_keys_of_a_cluster_with_events(fleet: Fleet) -> None:
    """From then on its forwarder's account sends for it, beside the token that it was given."""
    token = OLD.token(fleet.clock.now())

    assert lets_in(fleet, token)
    assert lets_in(fleet, "east")
    assert why(fleet, OLD.token(fleet.clock.now(), aud="https://other")) == (
        "the token is not the one of cluster 'fleet/east': it is for somebody else;"
        " register the cluster, or give the sender its present token"
    )
    assert fleet.records.refusals.get(EAST) is None
    assert not lets_in(fleet, "wrong")
    assert fleet.records.refusals.get(EAST) is not None


@pytest.mark.usefixtures("kube")
def test_an_account_sends_only_for_its_own_cluster(fleet: Fleet) -> None:
    """Another cluster has other keys, or none; an unknown cluster has no sender."""
    other = fleet.register("west")
    other.keys = [NEW.published()]
    kept = fleet.records.clusters.get("fleet/west")
    assert kept
    fleet.records.clusters.put(replace(kept.value, forwarder={"audience": AUDIENCE}))
    token = OLD.token(fleet.clock.now())
    assert not lets_in(fleet, token, "fleet/west")
    learn(fleet.records, other, replace(kept.value, forwarder={"audience": AUDIENCE}))

    assert lets_in(fleet, NEW.token(fleet.clock.now()), "fleet/west")
    assert not lets_in(fleet, token, "fleet/west")
    assert not lets_in(fleet, NEW.token(fleet.clock.now()))
    assert not lets_in(fleet, token, "fleet/nowhere")


def test_new_keys_are_read_when_one_is_not_known(fleet: Fleet, kube: FakeKube) -> None:
    """Once a minute at most, for any number of processes and senders."""
    kube.keys = [OLD.published(), NEW.published()]
    token = NEW.token(fleet.clock.now())
    another = Ingest(fleet.records, fleet.publisher, fleet.settings, Log(fleet.output))
    assert not lets_in(fleet, token)
    assert not isinstance(another.admit(Caller(EAST, token)), IngestPolicy)
    assert not lets_in(fleet, Signer("stranger", "P-256").token(fleet.clock.now()))
    fleet.pump()

    assert lets_in(fleet, token)
    assert lets_in(fleet, OLD.token(fleet.clock.now()))
    other_token = Signer("other", "P-256").token(fleet.clock.now())
    assert [why(fleet, other_token), asked(fleet)] == [why(fleet, other_token), 0]
    fleet.clock.advance(MINUTE)
    assert not lets_in(fleet, other_token)
    assert not lets_in(fleet, other_token)
    assert asked(fleet) == 1


def test_a_revoked_key_ends(fleet: Fleet, kube: FakeKube) -> None:
    """With the first resync after a day; a verified token counts a minute at most."""
    kube.keys = [NEW.published()]
    fleet.clock.advance(DAY)
    token = OLD.token(fleet.clock.now())
    assert lets_in(fleet, token)
    fleet.pump()

    assert lets_in(fleet, token)
    fleet.clock.advance(MINUTE)
    assert not lets_in(fleet, token)
    assert lets_in(fleet, NEW.token(fleet.clock.now()))


def test_keys_that_cannot_be_read_end(fleet: Fleet, kube: FakeKube) -> None:
    """After a week in which the cluster denied it, or did not answer; resyncs continue."""
    kube.fail_with(DeniedError("no"), "issuer")
    fleet.wait(7 * DAY)
    assert fleet.records.health.get(EAST).value.state == "Healthy"
    assert lets_in(fleet, OLD.token(fleet.clock.now()))
    kube.fail_with(UnreachableError("away"), "issuer")
    fleet.wait(timedelta(seconds=1))

    assert "nobody has read its keys for a week" in why(fleet, OLD.token(fleet.clock.now()))
    assert lets_in(fleet, "east")
    kube.fail_with(None, "issuer")
    fleet.wait(fleet.settings.sweep_interval * 2)
    assert lets_in(fleet, OLD.token(fleet.clock.now()))


def test_a_token_expires_while_it_is_cached(fleet: Fleet, kube: FakeKube) -> None:
    """A valid token is not verified again for a minute, and no longer: the clock decides."""
    del kube
    token = OLD.token(fleet.clock.now(), exp=int(fleet.clock.now().timestamp()) + 30)
    assert lets_in(fleet, token)
    before = fleet.store.counts["get"]
    assert lets_in(fleet, token)
    assert fleet.store.counts["get"] == before + 1
    fleet.clock.advance(timedelta(seconds=90))

    assert "it has expired" in why(fleet, token)


def test_a_deregistered_cluster_authenticates_no_sender(fleet: Fleet, kube: FakeKube) -> None:
    """Not even one that was authenticated just now; and a slow resync leaves no keys."""
    token = OLD.token(fleet.clock.now())
    kept = fleet.records.clusters.get(EAST)
    assert kept
    assert lets_in(fleet, token)
    fleet.declare.deregister(EAST)

    assert not lets_in(fleet, token)
    assert fleet.records.issuers.get(EAST) is None
    learn(fleet.records, kube, kept.value)
    assert fleet.records.issuers.get(EAST) is None
    fleet.publisher.publish([RefreshTokenKeys(EAST)])
    fleet.pump()
    assert fleet.records.issuers.get(EAST) is None


def test_keys_that_are_read_late_are_dropped(fleet: Fleet, kube: FakeKube) -> None:
    """A registration written meanwhile decides the audience and the keys."""
    kept = fleet.records.clusters.get(EAST)
    assert kept
    newer = Issuer(
        ISSUER,
        "https://elsewhere",
        read_keys({"keys": [NEW.published()]}),
        kept.value.registered_at,
    )

    class Slow(FakeKube):
        def issuer(self) -> tuple[str, dict[str, object]]:
            fleet.records.issuers.put(EAST, newer)
            return kube.issuer()

    learn(fleet.records, Slow(), kept.value, known=timedelta(0))

    assert value_of(fleet.records.issuers.get(EAST)) == newer


def test_an_account_does_not_count_without_the_keys_of_its_cluster(fleet: Fleet) -> None:
    """As in a cluster that an earlier version registered: the token that it was given does."""
    kube = fleet.register("east")
    kube.keys = [OLD.published()]
    fleet.pump()

    assert fleet.records.issuers.get(EAST) is None
    assert "its accounts do not count" in why(fleet, OLD.token(fleet.clock.now()))
    assert lets_in(fleet, "east")
