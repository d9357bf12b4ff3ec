"""Typed records: they are read as they were written, and gates are opened only for clusters."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from msgspec.structs import replace

from bellhop.core.gvk import GVK
from bellhop.errors import StaleError
from bellhop.ports.store import ABSENT, Item
from bellhop.state.cluster import Health
from bellhop.state.deployment import DeploymentStatus, Held, Inventory, Owner
from bellhop.state.match import Match, Selected, Selection
from bellhop.state.payloads import SHARDS
from bellhop.state.profile import AddonPolicy, Rollout
from bellhop.state.table import Stored, encode
from tests.fakes.clock import START
from tests.fakes.kept import value_of
from tests.unit.state.rig import (
    EAST,
    ROLE,
    SERVICE,
    WEB,
    Rig,
    cluster,
    gate,
    observation,
    profile,
)

# Round trips ------------------------------------------------------------------------------------


def test_keeps_clusters(rig: Rig) -> None:
    """By name, in order, and as they were written last."""
    rig.records.clusters.put(cluster("west"))
    rig.records.clusters.put(cluster())

    found = rig.records.clusters.get(EAST)
    assert found
    assert found.value == cluster()
    assert list(rig.records.clusters.all()) == [cluster(), cluster("west")]
    assert rig.records.clusters.get("fleet/north") is None


@pytest.mark.parametrize(
    "health",
    [
        pytest.param(Health(), id="of a cluster nobody has met"),
        pytest.param(
            Health("Down", "no answer", START, 10, 2, {"s": "abc"}, "uid"), id="of one that is"
        ),
    ],
)
def test_keeps_health(rig: Rig, health: Health) -> None:
    """Every field comes back; a cluster never met is Unknown."""
    assert rig.records.health.get(EAST).value == Health()
    rig.records.health.put(EAST, health)

    assert rig.records.health.get(EAST).value == health


def test_keeps_strikes_for_each_kind(rig: Rig) -> None:
    """None is the same as no record."""
    assert [rig.records.strikes.add(EAST, SERVICE, each) for each in ("a", "a", "b")] == [1, 1, 2]

    assert rig.records.strikes.get(EAST, SERVICE).value == 2
    assert rig.records.strikes.get(EAST, ROLE.gvk).value == 0
    rig.records.strikes.clear(EAST, SERVICE)
    assert list(rig.store.query(f"strikes/{EAST}")) == []


def test_keeps_manifests_as_they_were_written(rig: Rig) -> None:
    """The order of keys too: users see what they wrote."""
    manifest = {"kind": "ConfigMap", "data": {"b": "1", "a": "2"}, "apiVersion": "v1"}
    rig.records.manifests.put("ConfigMap", "default", "a", manifest)

    found = rig.records.manifests.get("ConfigMap", "default", "a")
    assert found
    assert json.dumps(found.value) == json.dumps(manifest)
    assert list(rig.records.manifests.of("ConfigMap")) == [manifest]
    assert rig.records.manifests.delete("ConfigMap", "default", "a")
    assert not rig.records.manifests.delete("ConfigMap", "default", "a")
    assert rig.records.manifests.get("ConfigMap", "default", "a") is None


def test_stores_a_policy_flat_in_its_profile() -> None:
    """Workers of other versions read and write its fields beside the profile's own."""
    stored = encode(profile())

    assert {*AddonPolicy.__struct_fields__} <= stored.keys()
    assert {*stored["rollout"]} == {*Rollout.__struct_fields__}


def test_counts_revisions(rig: Rig) -> None:
    """The number grows with each change, from zero."""
    assert rig.records.catalog.read().number == 0
    assert [rig.records.catalog.change("clusters").number for _ in range(3)] == [1, 2, 3]
    assert rig.records.catalog.read().number == 3


def test_keeps_pending_changes(rig: Rig) -> None:
    """Each with the time at which it was noted."""
    rig.records.pending.put("a", {"keys": [["Cluster", "fleet", "east"]]})

    assert list(rig.records.pending.all()) == [
        ("a", {"keys": [["Cluster", "fleet", "east"]]}, START)
    ]
    rig.records.pending.delete("a")
    assert list(rig.records.pending.all()) == []


def test_keeps_observations(rig: Rig) -> None:
    """Numbers, truth values and any text come back as they were."""
    assert rig.records.observations.put(observation())

    assert value_of(rig.records.observations.get(EAST, WEB)) == observation()
    assert list(rig.records.observations.of(EAST, SERVICE)) == [observation()]
    assert list(rig.records.observations.of(EAST, GVK("", "v1", "Serv"))) == []
    assert [each[:4] for each in rig.records.observations.heads(EAST)] == [(WEB, "u1", 5, False)]
    assert list(rig.records.observations.heads(EAST, ROLE.gvk)) == []
    rig.records.observations.delete(EAST, WEB)
    assert rig.records.observations.get(EAST, WEB) is None


def test_keeps_matches(rig: Rig) -> None:
    """A source's matches are not those of another whose name begins like its own."""
    matches = [
        Match(EAST, source, key, matching=True, digest="d", since=START, message="m", error="e")
        for source in ("web", "web-2")
        for key in (WEB, ROLE)
    ]
    for match in matches:
        rig.records.matches.put(match)

    assert value_of(rig.records.matches.get(EAST, "web", ROLE)) == matches[1]
    assert {each.key for each in rig.records.matches.of(EAST, "web")} == {WEB, ROLE}
    assert len(list(rig.records.matches.of(EAST))) == 4
    rig.records.matches.delete(EAST, "web", WEB)
    assert rig.records.matches.get(EAST, "web", WEB) is None


def test_keeps_selections(rig: Rig) -> None:
    """What is selected lies sealed apart from its head, and is read once for each token."""
    chosen = tuple(Selected(key, "d", START, {"a": {"b": [1]}}) for key in (WEB, ROLE))
    selection = Selection(EAST, "web", START, chosen, made=True, made_of="m", message="two")
    token = rig.records.selections.put(selection, expect=ABSENT)

    assert rig.records.selections.get(EAST, "web") == Stored(selection, token)
    assert value_of(rig.records.selections.get(EAST, "web")) is value_of(
        rig.records.selections.get(EAST, "web")
    )
    assert list(rig.records.selections.heads(EAST)) == [replace(selection, selected=())]
    told = replace(selection, told=True)
    rig.records.selections.put_head(told, expect=token)
    assert value_of(rig.records.selections.get(EAST, "web")) == told
    with pytest.raises(StaleError):
        rig.records.selections.put(selection, expect=token)
    rig.records.selections.delete(EAST, "web")
    assert rig.records.selections.get(EAST, "web") is None


def test_opens_a_profile_once_for_as_long_as_it_stays(rig: Rig) -> None:
    """Another cluster's turn needs no payload; a payload that is written again is read again."""
    rig.records.profiles.put(profile())
    read = rig.records.profiles.get("t", EAST, "p")
    for shard in SHARDS:
        for place in (f"payload/profile/t/{each}/{shard}" for each in SHARDS):
            for item in rig.store.query(place):
                rig.store.delete(place, item.sort)

    assert rig.records.profiles.get("t", EAST, "p") == read
    head = rig.records.profiles.head("t", EAST, "p")
    assert head
    assert head.value == profile(contents=())
    rig.records.profiles.put(profile("new"))
    found = rig.records.profiles.get("t", EAST, "p")
    assert found
    assert found.value == profile("new")


def test_keeps_profiles(rig: Rig) -> None:
    """Whole, or without their contents for who only asks where they go."""
    version = rig.records.profiles.put(profile(), expect=ABSENT)

    assert rig.records.profiles.get("t", EAST, "p") == Stored(profile(), version)
    assert list(rig.records.profiles.of("t")) == [profile()]
    assert list(rig.records.profiles.of("t", "fleet/west")) == []
    assert list(rig.records.profiles.heads("t", EAST)) == [profile(contents=())]
    with pytest.raises(StaleError):
        rig.records.profiles.put(profile(), expect="another")
    rig.records.profiles.delete("t", EAST, "p", expect=version)
    assert rig.records.profiles.get("t", EAST, "p") is None


def test_keeps_inventories(rig: Rig) -> None:
    """Begun objects too; an empty inventory is no record."""
    held = {
        WEB.identity: Held("d", "ConfigMap default/a", START),
        ROLE.identity: Held("", "Secret default/b"),
    }
    inventory = Inventory(EAST, "p", held)
    assert rig.records.inventories.get(EAST, "p") is None
    version = rig.records.inventories.put(inventory, expect=ABSENT)

    assert rig.records.inventories.get(EAST, "p") == Stored(inventory, version)
    assert list(rig.records.inventories.of(EAST)) == [inventory]
    for stale in (inventory, Inventory(EAST, "p", {})):
        with pytest.raises(StaleError):
            rig.records.inventories.put(stale, expect="another")
    assert rig.records.inventories.put(Inventory(EAST, "p", {}), expect=version) == ABSENT
    assert list(rig.store.query(f"inventory/{EAST}")) == []


def test_keeps_owners(rig: Rig) -> None:
    """On the condition that nobody was quicker."""
    owner = Owner("p", "t", EAST, 100, (("t", EAST, "q"),))
    rig.records.owners.put(EAST, ROLE.identity, owner, expect=ABSENT)

    found = rig.records.owners.get(EAST, ROLE.identity)
    assert found
    assert found.value == owner
    with pytest.raises(StaleError):
        rig.records.owners.put(EAST, ROLE.identity, owner, expect=ABSENT)
    with pytest.raises(StaleError):
        rig.records.owners.delete(EAST, ROLE.identity, expect="another")
    rig.records.owners.delete(EAST, ROLE.identity, expect=found.token)
    assert rig.records.owners.get(EAST, ROLE.identity) is None


def test_keeps_outcomes(rig: Rig) -> None:
    """One for each profile in a cluster."""
    outcome = DeploymentStatus(EAST, "p", "t", EAST, "Failed", START, "Denied", "may not", 3)
    rig.records.outcomes.put(outcome)

    assert value_of(rig.records.outcomes.get(EAST, "p")) == outcome
    assert list(rig.records.outcomes.of(EAST)) == [outcome]
    rig.records.outcomes.delete(EAST, "p")
    assert rig.records.outcomes.get(EAST, "p") is None


# Gates ------------------------------------------------------------------------------------------


def test_keeps_the_gate_of_the_latest_catalog(rig: Rig) -> None:
    """A gate of an older catalog does not overwrite a newer one."""
    rig.records.clusters.put(cluster())
    rig.records.gates.put(EAST, gate("new", 5))
    rig.records.gates.put(EAST, gate("old", 4))

    assert value_of(rig.records.gates.get(EAST)) == gate("new", 5)


def test_a_gate_that_is_there_already_is_not_written(rig: Rig) -> None:
    """Every resync of every cluster writes one, and nearly always the same."""
    rig.records.clusters.put(cluster())
    rig.records.gates.put(EAST, gate("same", 5))
    before = rig.records.gates.get(EAST)
    rig.records.gates.put(EAST, gate("same", 5))

    assert rig.records.gates.get(EAST) == before


def test_opens_no_gate_for_a_cluster_that_is_forgotten(rig: Rig) -> None:
    """A resync that ends after the deregistration lets nobody in."""
    rig.records.gates.put(EAST, gate())

    assert rig.records.gates.get(EAST) is None


# Later lives --------------------------------------------------------------------------------------


def test_a_cluster_may_ask_for_a_look_once_a_minute(rig: Rig) -> None:
    """Of two who ask at once one may; a note from a clock that was ahead holds nobody up."""
    looks, now = rig.records.looks, rig.clock.now()
    get, minute = rig.store.get, timedelta(minutes=1)

    def lose_race(partition: str, sort: str) -> Item | None:
        found = get(partition, sort)
        rig.store.get = get  # type: ignore[method-assign]
        assert looks.ask(EAST, now) == timedelta(0)
        return found

    rig.store.get = lose_race  # type: ignore[method-assign]
    assert looks.ask(EAST, now) == minute
    assert looks.ask("fleet/west", now) == timedelta(0)
    assert looks.ask(EAST, now + minute / 4) == minute * 3 / 4
    rig.clock.advance(minute)
    assert looks.ask(EAST, rig.clock.now()) == timedelta(0)

    looks.delete(EAST)
    assert looks.ask(EAST, rig.clock.now() + 60 * minute) == timedelta(0)
    assert looks.ask(EAST, rig.clock.now()) == timedelta(0)


def test_a_slow_writer_does_not_overwrite_a_later_life_of_an_inventory(rig: Rig) -> None:
    """What a third worker applied after a second had removed all is not forgotten."""
    inventories = rig.records.inventories
    slow = inventories.put(Inventory(EAST, "p", {WEB.identity: Held("", "r")}))
    inventories.put(Inventory(EAST, "p", {}), expect=slow)
    inventories.put(Inventory(EAST, "p", {ROLE.identity: Held("x", "r")}))

    with pytest.raises(StaleError):
        inventories.put(Inventory(EAST, "p", {WEB.identity: Held("y", "r")}), expect=slow)
    with pytest.raises(StaleError):
        inventories.put(Inventory(EAST, "p", {}), expect=slow)
    kept = inventories.get(EAST, "p")
    assert kept
    assert set(kept.value.held) == {ROLE.identity}
