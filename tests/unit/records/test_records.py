"""Typed records: what is written is read, and gates are opened for clusters alone."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from bellhop.errors import StaleError
from bellhop.model.gvk import GVK
from bellhop.model.record import (
    Entry,
    Health,
    Held,
    Inventory,
    Match,
    Outcome,
    Owner,
)
from bellhop.ports.store import ABSENT
from bellhop.records.records import LEDGER
from tests.fakes.clock import START
from tests.unit.records.rig import (
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
    rig.records.put_cluster(cluster("west"))
    rig.records.put_cluster(cluster())

    assert rig.records.cluster(EAST) == cluster()
    assert list(rig.records.clusters()) == [cluster(), cluster("west")]
    assert rig.records.cluster("fleet/north") is None


@pytest.mark.parametrize(
    "health",
    [
        pytest.param(Health(), id="of a cluster nobody has met"),
        pytest.param(Health("Down", "no answer", START, 10, 2, "abc", "uid"), id="of one that is"),
    ],
)
def test_keeps_health(rig: Rig, health: Health) -> None:
    """Every field comes back; a cluster never met is Unknown."""
    assert rig.records.health(EAST) == Health()
    rig.records.put_health(EAST, health)

    assert rig.records.health(EAST) == health


def test_keeps_strikes_for_each_kind(rig: Rig) -> None:
    """None is the same as no record."""
    rig.records.put_strikes(EAST, SERVICE, 2)

    assert rig.records.strikes(EAST, SERVICE) == 2
    assert rig.records.strikes(EAST, ROLE.gvk) == 0
    rig.records.put_strikes(EAST, SERVICE, 0)
    assert list(rig.store.query(f"strikes/{EAST}")) == []


def test_keeps_manifests_as_they_were_written(rig: Rig) -> None:
    """The order of keys too: users see what they wrote."""
    manifest = {"kind": "ConfigMap", "data": {"b": "1", "a": "2"}, "apiVersion": "v1"}
    rig.records.put_manifest("ConfigMap", "default", "a", manifest)

    found = rig.records.manifest("ConfigMap", "default", "a")
    assert json.dumps(found) == json.dumps(manifest)
    assert list(rig.records.manifests("ConfigMap")) == [manifest]
    assert rig.records.delete_manifest("ConfigMap", "default", "a")
    assert not rig.records.delete_manifest("ConfigMap", "default", "a")
    assert rig.records.manifest("ConfigMap", "default", "a") is None


def test_counts_revisions(rig: Rig) -> None:
    """The number grows with each change, from zero."""
    assert rig.records.revision() == 0
    assert [rig.records.raise_revision() for _ in range(3)] == [1, 2, 3]
    assert rig.records.revision() == 3


def test_keeps_pending_changes(rig: Rig) -> None:
    """Each with the time at which it was noted."""
    rig.records.put_pending("a", {"keys": [["Cluster", "fleet", "east"]]})

    assert list(rig.records.pending()) == [("a", {"keys": [["Cluster", "fleet", "east"]]}, START)]
    rig.records.drop_pending("a")
    assert list(rig.records.pending()) == []


def test_keeps_observations(rig: Rig) -> None:
    """Numbers, truth values and any text come back as they were."""
    assert rig.records.put_observation(observation())

    assert rig.records.observation(EAST, WEB) == observation()
    assert list(rig.records.observations(EAST, SERVICE)) == [observation()]
    assert list(rig.records.observations(EAST, GVK("", "v1", "Serv"))) == []
    assert list(rig.records.observed(EAST)) == [(WEB, "u1", 5, False)]
    assert list(rig.records.observed(EAST, ROLE.gvk)) == []
    rig.records.delete_observation(EAST, WEB)
    assert rig.records.observation(EAST, WEB) is None


def test_keeps_matches(rig: Rig) -> None:
    """A source's matches are not those of another whose name begins like its own."""
    matches = [
        Match(EAST, source, key, matching=True, digest="d", since=START, message="m", error="e")
        for source in ("web", "web-2")
        for key in (WEB, ROLE)
    ]
    for match in matches:
        rig.records.put_match(match)

    assert rig.records.match(EAST, "web", ROLE) == matches[1]
    assert {each.key for each in rig.records.matches(EAST, "web")} == {WEB, ROLE}
    assert len(list(rig.records.matches(EAST))) == 4
    rig.records.delete_match(EAST, "web", WEB)
    assert rig.records.match(EAST, "web", WEB) is None


def test_keeps_profiles(rig: Rig) -> None:
    """Whole, or without their contents for who only asks where they go."""
    version = rig.records.put_profile(profile(), expect=ABSENT)

    assert rig.records.profile("t", EAST, "p") == (profile(), version)
    assert list(rig.records.profiles("t")) == [profile()]
    assert list(rig.records.profiles("t", "fleet/west")) == []
    assert list(rig.records.profile_heads("t", EAST)) == [profile(contents=())]
    with pytest.raises(StaleError):
        rig.records.put_profile(profile(), expect="another")
    rig.records.delete_profile(profile(), expect=version)
    assert rig.records.profile("t", EAST, "p") is None


def test_keeps_inventories(rig: Rig) -> None:
    """Begun objects too; an empty inventory is no record."""
    held = {WEB: Held("d", "ConfigMap default/a", START), ROLE: Held("", "Secret default/b")}
    inventory = Inventory(EAST, "p", held)
    assert rig.records.versioned_inventory(EAST, "p") == (Inventory(EAST, "p", {}), ABSENT)
    version = rig.records.put_inventory(inventory, expect=ABSENT)

    assert rig.records.versioned_inventory(EAST, "p") == (inventory, version)
    assert list(rig.records.inventories(EAST)) == [inventory]
    for stale in (inventory, Inventory(EAST, "p", {})):
        with pytest.raises(StaleError):
            rig.records.put_inventory(stale, expect="another")
    assert rig.records.put_inventory(Inventory(EAST, "p", {}), expect=version) == ABSENT
    assert list(rig.store.query(f"inventory/{EAST}")) == []


def test_keeps_owners(rig: Rig) -> None:
    """On the condition that nobody was quicker."""
    owner = Owner("p", "t", EAST, 100, (("t", EAST, "q"),))
    rig.records.put_owner(EAST, ROLE, owner, expect=ABSENT)

    found = rig.records.owner(EAST, ROLE)
    assert found
    assert found[0] == owner
    with pytest.raises(StaleError):
        rig.records.put_owner(EAST, ROLE, owner, expect=ABSENT)
    with pytest.raises(StaleError):
        rig.records.delete_owner(EAST, ROLE, expect="another")
    rig.records.delete_owner(EAST, ROLE, expect=found[1])
    assert rig.records.owner(EAST, ROLE) is None


def test_keeps_outcomes(rig: Rig) -> None:
    """One for each profile in a cluster."""
    outcome = Outcome(EAST, "p", "t", EAST, "Failed", START, "Denied", "may not", 3)
    rig.records.put_outcome(outcome)

    assert rig.records.outcome(EAST, "p") == outcome
    assert list(rig.records.outcomes(EAST)) == [outcome]
    rig.records.delete_outcome(EAST, "p")
    assert rig.records.outcome(EAST, "p") is None


def test_keeps_the_ledger_by_day_for_a_while(rig: Rig) -> None:
    """Equal times and equal lines make no line disappear but a true repeat."""
    first = Entry(START, "t1", "rang", EAST, str(WEB), "x", 1.5, {"since_ring_ms": 3})
    second = Entry(START, "t2", "rang", EAST, str(WEB))
    later = Entry(START + timedelta(seconds=1), "t1", "matched", EAST, str(WEB))
    for entry in (later, first, second, first):
        rig.records.note(entry)

    found = list(rig.records.ledger("2026-01-01"))
    assert [entry for _, entry in found][-1] == later
    assert {entry.trace for _, entry in found[:-1]} == {"t1", "t2"}
    assert len(found) == 3
    assert [entry for _, entry in rig.records.ledger("2026-01-01", after=found[1][0])] == [later]
    assert list(rig.records.ledger("2026-01-02")) == []
    rig.clock.advance(LEDGER + timedelta(seconds=2))
    assert list(rig.records.ledger("2026-01-01")) == []


# Gates ------------------------------------------------------------------------------------------


def test_keeps_the_gate_of_the_latest_catalog(rig: Rig) -> None:
    """A gate of an older catalog does not overwrite a newer one."""
    rig.records.put_cluster(cluster())
    rig.records.put_gate(EAST, gate("new", 5))
    rig.records.put_gate(EAST, gate("old", 4))

    assert rig.records.gate(EAST) == gate("new", 5)


def test_opens_no_gate_for_a_cluster_that_is_forgotten(rig: Rig) -> None:
    """A sweep that ends after the deregistration lets nobody in."""
    rig.records.put_gate(EAST, gate())

    assert rig.records.gate(EAST) is None
