"""A cluster that is forgotten leaves nothing."""

from __future__ import annotations

from bellhop.model.record import (
    Health,
    Held,
    Inventory,
    Match,
    Observation,
    Outcome,
    Owner,
)
from bellhop.ports.store import ABSENT
from tests.fakes.clock import START
from tests.unit.records.rig import (
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
    rig.records.put_cluster(cluster(key.partition("/")[2]))
    rig.records.put_gate(key, gate())
    rig.records.put_health(key, Health("Healthy"))
    rig.records.put_strikes(key, SERVICE, 1)
    seen = observation(spec={"text": LARGE})
    rig.records.put_observation(Observation(key, WEB, "u", 1, seen.manifest, START))
    rig.records.put_match(Match(key, "s", WEB, matching=True, digest="d", since=START))
    rig.records.put_inventory(Inventory(key, "p", {WEB.identity: Held("d", "x")}))
    rig.records.put_owner(key, WEB.identity, Owner("p", "t", key, 100), expect=ABSENT)
    rig.records.put_outcome(Outcome(key, "p", "t", key, "Provisioned", START))


def left(rig: Rig, key: str) -> set[str]:
    kinds = ("observation", "match", "inventory", "owner", "outcome", "strikes")
    found = {kind for kind in kinds if list(rig.store.query(f"{kind}/{key}"))}
    return found | {kind for kind in ("cluster", "gate", "health") if rig.store.get(kind, key)}


def test_a_cluster_that_is_forgotten_leaves_nothing(rig: Rig) -> None:
    """Not even a blob; other clusters keep all, also one whose name begins like its own."""
    for key in (EAST, "fleet/east-2"):
        fill(rig, key)
    everything = left(rig, EAST)
    assert (len(everything), rig.blobs()) == (9, 2)

    rig.records.forget_cluster(EAST)
    assert left(rig, EAST).isdisjoint({"cluster", "gate"})
    rig.records.forget_traces(EAST)

    assert left(rig, EAST) == set()
    assert left(rig, "fleet/east-2") == everything
    assert rig.blobs() == 1


def test_a_cluster_that_is_another_one_keeps_all_but_what_is_owned_in_it(rig: Rig) -> None:
    """What was seen in it is corrected by a look; what is to be applied again is known."""
    fill(rig, EAST)

    rig.records.forget_holdings(EAST)

    assert left(rig, EAST) >= {"cluster", "gate", "health", "observation", "match", "outcome"}
    assert left(rig, EAST).isdisjoint({"inventory", "owner"})
