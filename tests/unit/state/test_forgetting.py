"""A cluster that is forgotten leaves nothing."""

from __future__ import annotations

from datetime import timedelta

from bellhop.ports.store import ABSENT
from bellhop.state.cluster import Health, Heartbeat
from bellhop.state.deployment import DeploymentStatus, Held, Inventory, Owner, Watch
from bellhop.state.ingest_policy import Issuer, Refusals, Sender
from bellhop.state.match import Match, Observation, Selected, Selection
from bellhop.state.payloads import SHARDS
from bellhop.state.resync_progress import ResyncProgress
from tests.fakes.clock import START
from tests.unit.state.rig import (
    EAST,
    LARGE,
    SERVICE,
    WEB,
    Rig,
    cluster,
    gate,
    observation,
)

# Forgetting -------------------------------------------------------------------------------------


def fill(rig: Rig, key: str) -> None:
    """Write one record of every kind that is about a cluster."""
    rig.records.clusters.put(cluster(key.partition("/")[2]))
    rig.records.gates.put(key, gate())
    rig.records.health.put(key, Health("Healthy"))
    rig.records.refusals.put(key, Refusals(1, START, START))
    rig.records.looks.ask(key, rig.clock.now())
    rig.records.callers.put(key, "token")
    rig.records.senders.put(Sender(key, "ci", START, proof="digest"))
    rig.records.receipts.claim(key, "ci", "digest", rig.clock.now() + timedelta(hours=1))
    rig.records.refusals.put(f"{key}/senders/ci", Refusals(1, START, START))
    rig.records.inquiries.ask(key, rig.clock.now())
    rig.records.issuers.put(key, Issuer("i", "a", ({"kid": "k"},), START))
    rig.records.hearings.put(key, Heartbeat(START))
    rig.records.strikes.add(key, SERVICE, "walk")
    rig.records.walks.put(key, ResyncProgress("walk", "", ""))
    rig.records.walks.suspect(key, [WEB])
    seen = observation(spec={"text": LARGE})
    rig.records.observations.put(Observation(key, WEB, "u", 1, seen.manifest, START))
    rig.records.matches.put(Match(key, "s", WEB, matching=True, digest="d", since=START))
    chosen = Selected(WEB, "d", START, {"spec": {"text": LARGE[:8000]}})
    rig.records.selections.put(Selection(key, "s", START, (chosen,), made=True))
    rig.records.trails.name(rig.records.trails.get(key, WEB), ["s"])
    rig.records.inventories.put(Inventory(key, "p", {WEB.identity: Held("d", "x")}))
    rig.records.owners.put(key, WEB.identity, Owner("p", "t", key, 100), expect=ABSENT)
    rig.records.watches.put(Watch(key, "p", "t", key, (SERVICE,)))
    rig.records.outcomes.put(DeploymentStatus(key, "p", "t", key, "Provisioned", START))


def left(rig: Rig, key: str) -> set[str]:
    kinds = ("observation", "match", "selection", "trail", "sender", "receipt")
    kinds += ("inventory", "owner", "outcome", "strikes", "suspect", "walk", "watch")
    found = {kind for kind in kinds if list(rig.store.query(f"{kind}/{key}"))}
    for kind in kinds:
        if any(list(rig.store.query(f"payload/{kind}/{key}/{shard}")) for shard in SHARDS):
            found.add(f"payload of {kind}")
    if rig.store.get("refusals", f"{key}/senders/ci"):
        found.add("refusals of a sender")
    named = (
        "cluster",
        "gate",
        "health",
        "heard",
        "refusals",
        "look",
        "issuer",
        "inquiry",
        "caller",
    )
    return found | {kind for kind in named if rig.store.get(kind, key)}


def test_a_cluster_that_is_forgotten_leaves_nothing(rig: Rig) -> None:
    """Not even a blob; other clusters keep all, also one whose name begins like its own."""
    for key in (EAST, "fleet/east-2"):
        fill(rig, key)
    everything = left(rig, EAST)
    assert (len(everything), rig.blobs()) == (26, 2)

    rig.records.forget_cluster(EAST)
    assert left(rig, EAST).isdisjoint({"cluster", "gate", "issuer", "caller", "sender"})
    rig.records.forget_traces(EAST)

    assert left(rig, EAST) == set()
    assert left(rig, "fleet/east-2") == everything
    rig.clock.advance(timedelta(days=1))
    rig.records.collect(rig.clock.now())
    assert rig.blobs() == 1


def test_a_cluster_that_is_another_one_keeps_all_but_what_is_owned_in_it(rig: Rig) -> None:
    """What was seen in it is corrected by a look; what is to be applied again is known."""
    fill(rig, EAST)

    rig.records.forget_holdings(EAST)

    assert left(rig, EAST) >= {"cluster", "gate", "health", "observation", "match", "outcome"}
    assert left(rig, EAST).isdisjoint({"inventory", "owner", "watch"})
