"""Payloads apart from their heads: what is large, what is replaced, what is lost, what is left."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from bellhop.adapters.local.store import FileBlobs
from bellhop.core.gvk import ObjectKey
from bellhop.errors import MissingError, StaleError, TemporaryError
from bellhop.ports.store import ABSENT, Item
from bellhop.state.blob_garbage import BlobGarbage
from bellhop.state.deployment import Held, Inventory, Owner
from bellhop.state.payloads import SHARDS, SHORT
from tests.fakes.fleet import CountingStore
from tests.fakes.kept import value_of
from tests.fakes.mortal import Fate, Killed, Mortal
from tests.unit.state.rig import (
    EAST,
    LARGE,
    ROLE,
    SERVICE,
    WEB,
    Rig,
    gone,
    observation,
    profile,
)

DAY = timedelta(days=1)

PROFILES = f"profile/t/{hashlib.sha256(EAST.encode()).hexdigest()[0]}"


def payloads(rig: Rig, partition: str) -> list[Item]:
    return [item for shard in SHARDS for item in rig.store.query(f"payload/{partition}/{shard}")]


def many_held() -> dict[ObjectKey, Held]:
    return {
        ObjectKey(SERVICE, "default", f"{LARGE[number : number + 60]}").identity: Held("", "x")
        for number in range(0, len(LARGE), 60)
    }


def lose(rig: Rig) -> None:
    """Lose every payload, inline or blob, as a store and a blob store that went apart have."""
    for partition in (
        f"observation/{EAST}",
        f"inventory/{EAST}",
        "manifest/ConfigMap",
        PROFILES,
    ):
        for item in payloads(rig, partition):
            rig.store.delete(item.partition, item.sort)
    for path in rig.folder.rglob("*"):
        if path.is_file():
            path.unlink()


# Large payloads ---------------------------------------------------------------------------------


def test_what_is_large_goes_to_the_blob_store_and_comes_back(rig: Rig) -> None:
    """Records of every sealed kind may be larger than an item."""
    records, held = rig.records, many_held()
    records.observations.put(observation(spec={"text": LARGE}))
    records.manifests.put("ConfigMap", "default", "a", {"data": {"text": LARGE}})
    records.profiles.put(profile(LARGE))
    records.inventories.put(Inventory(EAST, "p", held))
    assert rig.blobs() == 4

    seen = value_of(records.observations.get(EAST, WEB))
    assert seen
    assert seen.manifest
    assert seen.manifest["spec"] == {"text": LARGE}
    manifest = value_of(records.manifests.get("ConfigMap", "default", "a"))
    assert manifest == {"data": {"text": LARGE}}
    assert value_of(records.profiles.get("t", EAST, "p")) == profile(LARGE)
    assert value_of(records.inventories.get(EAST, "p")) == Inventory(EAST, "p", held)


def test_a_blob_outlives_its_record_by_a_day(rig: Rig) -> None:
    """A store that lost its last instants still finds what its records name."""
    records = rig.records
    records.manifests.put("ConfigMap", "default", "a", {"text": LARGE})
    (head,) = rig.store.query("manifest/ConfigMap")
    rig.clock.advance(3 * DAY)
    assert records.collect(rig.clock.now()) == 0
    records.manifests.put("ConfigMap", "default", "a", {"text": "small"})
    records.manifests.put("ConfigMap", "default", "b", {"text": LARGE})
    records.manifests.delete("ConfigMap", "default", "b")
    rig.clock.advance(DAY - timedelta(seconds=1))
    assert records.collect(rig.clock.now()) == 0
    rig.store.put(head)
    assert value_of(records.manifests.get("ConfigMap", "default", "a")) == {"text": LARGE}

    records.manifests.put("ConfigMap", "default", "a", {"text": "small"})
    rig.clock.advance(timedelta(seconds=1))
    assert (records.collect(rig.clock.now()), rig.blobs()) == (1, 1)
    rig.clock.advance(DAY)
    assert (records.collect(rig.clock.now()), rig.blobs()) == (1, 0)
    assert [item for shard in SHARDS for item in rig.store.query(f"trash/{shard}")] == []


def test_a_collector_keeps_what_a_record_names(rig: Rig) -> None:
    """However old it is, and however often it is looked for."""
    rig.records.profiles.put(profile(LARGE))
    for _ in range(3):
        rig.clock.advance(2 * DAY)
        assert rig.records.collect(rig.clock.now()) == 0

    assert value_of(rig.records.profiles.get("t", EAST, "p")) == profile(LARGE)


@pytest.mark.parametrize("head", [("manifest/ConfigMap", "default/b"), ("gone", "gone"), ("", "")])
def test_a_forged_note_deletes_no_blob(rig: Rig, head: tuple[str, str]) -> None:
    """A blob that another head than the note's may name stays, and the note is not read again."""
    rig.records.manifests.put("ConfigMap", "default", "a", {"text": LARGE})
    (item,) = rig.store.query("manifest/ConfigMap")
    BlobGarbage(rig.store, FileBlobs(rig.folder)).put(
        item.value["blob"], *head, rig.clock.now() - 2 * DAY
    )

    assert (rig.records.collect(rig.clock.now()), rig.blobs()) == (0, 1)
    assert value_of(rig.records.manifests.get("ConfigMap", "default", "a")) == {"text": LARGE}
    rig.clock.advance(2 * DAY)
    rig.records.collect(rig.clock.now())
    assert [each for shard in SHARDS for each in rig.store.query(f"trash/{shard}")] == []


def test_a_change_of_ten_thousand_objects_is_pending(rig: Rig) -> None:
    """What a user applies at once is not bounded by an item."""
    keys = [["ConfigMap", "default", f"configmap-with-a-long-name-{n}"] for n in range(10_000)]
    rig.records.pending.put("a", {"keys": keys})

    ((_, change, _),) = rig.records.pending.all()
    assert change == {"keys": keys}


# Replaced payloads -------------------------------------------------------------------------------


def test_heads_are_listed_without_reading_a_payload(rig: Rig) -> None:
    """Observations and profiles are listed though every payload is lost."""
    rig.records.observations.put(observation())
    rig.records.profiles.put(profile())
    lose(rig)

    assert [each[:4] for each in rig.records.observations.heads(EAST)] == [(WEB, "u1", 5, False)]
    assert list(rig.records.profiles.heads("t")) == [profile(contents=())]


def test_a_record_has_one_payload(rig: Rig) -> None:
    """Those that are superseded go with the write that supersedes them."""
    for version in range(5, 9):
        rig.records.observations.put(observation(version=version))
        assert len(payloads(rig, f"observation/{EAST}")) == 1

    rig.records.observations.delete(EAST, WEB)
    assert payloads(rig, f"observation/{EAST}") == []


def test_a_short_payload_lies_in_its_head(tmp_path: Path) -> None:
    """And stays there when only the head is written; what grows goes apart, and comes back."""
    rig = Rig(tmp_path, short=SHORT)
    records = rig.records
    token = records.profiles.put(profile())
    token = records.profiles.put_head(profile(leaves=True, contents=()), expect=token)
    assert value_of(records.profiles.get("t", EAST, "p")) == profile(leaves=True)
    assert payloads(rig, PROFILES) == []

    for text in (LARGE[:SHORT], "x", LARGE, "y"):
        token = records.profiles.put(profile(text), expect=token)
        assert value_of(records.profiles.get("t", EAST, "p")) == profile(text)
        assert len(payloads(rig, PROFILES)) == (text == LARGE[:SHORT])
    assert records.profiles.delete("t", EAST, "p", expect=token)
    rig.store.close()


def test_a_short_record_is_one_write_after_one_read(tmp_path: Path) -> None:
    """Who says what is to be replaced has read it: it is not read again."""
    rig = Rig(tmp_path, short=SHORT)
    store = CountingStore(rig.store)
    records = rig.reopen(store)  # type: ignore[arg-type]
    token = records.profiles.put(profile(), expect=ABSENT)
    token = records.profiles.put_head(profile(leaves=True, contents=()), expect=token)
    records.profiles.put(profile("new"), expect=token)
    assert store.counts == {"put": 3}

    others = rig.reopen(store)  # type: ignore[arg-type]
    kept = others.profiles.get("t", EAST, "p")
    assert kept
    others.profiles.put(profile("newer"), expect=kept.token)
    assert store.counts == {"put": 4, "get": 1}
    with pytest.raises(StaleError):
        records.profiles.put(profile("late"), expect=token)
    rig.store.close()


@pytest.mark.parametrize(
    ("text", "short", "days"),
    [
        pytest.param("x", SHORT, 7, id="in its head"),
        pytest.param("x", 0, 1, id="apart"),
        pytest.param(LARGE, SHORT, 1, id="in a blob"),
    ],
)
def test_a_tombstone_keeps_what_was_there_for_a_while(
    tmp_path: Path, text: str, short: int, days: int
) -> None:
    """Who has not judged yet that it is gone can read it; then nothing of it is left."""
    rig = Rig(tmp_path, short=short)
    there = observation(text=text)
    rig.records.observations.put(there)
    for _ in range(2):
        rig.records.observations.put(gone(version=6))
        assert value_of(rig.records.observations.get(EAST, WEB)).gone
        assert rig.records.observations.last(EAST, WEB) == there.manifest

    rig.clock.advance(DAY * days + timedelta(minutes=1))
    rig.records.collect(rig.clock.now())
    assert rig.records.observations.last(EAST, WEB) is None
    assert (payloads(rig, f"observation/{EAST}"), rig.blobs()) == ([], 0)
    rig.store.close()


def test_what_comes_after_a_tombstone_leaves_nothing_of_before(rig: Rig) -> None:
    """An object that is made again, or forgotten, takes along what was kept of the one before."""
    records, place = rig.records, f"observation/{EAST}"
    records.observations.put(observation())
    records.observations.put(observation(version=6))
    records.observations.put(gone(version=7))
    assert len(payloads(rig, place)) == 1

    records.observations.put(observation("u2", version=8))
    assert records.observations.last(EAST, WEB) is None
    assert len(payloads(rig, place)) == 1
    records.observations.put(gone("u2", version=9))
    records.observations.delete(EAST, WEB)
    assert payloads(rig, place) == []


def test_a_head_is_rewritten_with_its_payload_as_it_is(rig: Rig) -> None:
    """A change of a profile's destinations needs no read of its contents."""
    token = rig.records.profiles.put(profile())
    (before,) = payloads(rig, PROFILES)
    rig.records.profiles.put_head(profile(leaves=True, contents=()), expect=token)

    assert payloads(rig, PROFILES) == [before]
    assert value_of(rig.records.profiles.get("t", EAST, "p")) == profile(leaves=True)
    with pytest.raises(StaleError):
        rig.records.profiles.put_head(profile(), expect=token)


def test_a_write_that_is_lost_leaves_no_payload(rig: Rig) -> None:
    """The winner's stays, the loser's goes."""
    token = rig.records.profiles.put(profile("winner"), expect=ABSENT)
    put = rig.store.put

    def lose_race(item: Item, *, expect: str | None = None) -> Item:
        if item.partition == PROFILES:
            rig.store.put = put  # type: ignore[method-assign]
            rig.records.profiles.put(profile("quicker"), expect=token)
        return put(item, expect=expect)

    rig.store.put = lose_race  # type: ignore[method-assign]
    with pytest.raises(StaleError):
        rig.records.profiles.put(profile("loser"), expect=token)

    assert len(payloads(rig, PROFILES)) == 1
    assert value_of(rig.records.profiles.get("t", EAST, "p")) == profile("quicker")


def test_a_write_whose_answer_was_lost_counts(rig: Rig) -> None:
    """A client that repeated a write that had been done gets an error that it is stale, wrongly."""
    put = rig.store.put

    def repeating(item: Item, *, expect: str | None = None) -> Item:
        put(item, expect=expect)
        return put(item, expect=expect)

    rig.records.profiles.put(profile())
    rig.store.put = repeating  # type: ignore[method-assign]
    token = rig.records.profiles.put(profile("new"))
    rig.store.put = put  # type: ignore[method-assign]

    assert value_of(rig.records.profiles.get("t", EAST, "p")) == profile("new")
    rig.records.profiles.delete("t", EAST, "p", expect=token)


@pytest.mark.parametrize("first", [True, False], ids=["at the first write", "at a later one"])
def test_a_death_leaves_nothing_for_ever(rig: Rig, *, first: bool) -> None:
    """Whatever step a writer dies at, the record is whole, and writes to come clear up."""
    for step in range(1, 40):
        rig.records.profiles.delete("t", EAST, "p")
        if not first:
            rig.records.profiles.put(profile("before"))
        fate = Fate()
        dying: Any = Mortal("store", rig.store, fate)
        records = rig.reopen(dying)
        fate.doom(step)
        try:
            records.profiles.put(profile("dying"))
        except Killed:
            kept = value_of(rig.records.profiles.get("t", EAST, "p"))
            assert kept in (profile("dying"), None if first else profile("before"))
        else:
            break
        rig.clock.advance(2 * DAY)
        rig.records.profiles.put(profile("after"))
        rig.clock.advance(2 * DAY)
        rig.records.profiles.put(profile("after that"))
        assert value_of(rig.records.profiles.get("t", EAST, "p")) == profile("after that")
        assert len(payloads(rig, PROFILES)) == 1
    else:
        pytest.fail("the writer never gets to the end")


def test_a_record_that_is_replaced_while_it_is_read_is_read_again(rig: Rig) -> None:
    """Its old payload is deleted: the reader takes the new one."""
    rig.records.observations.put(observation(spec={"text": "old"}))
    get = rig.store.query

    def query(*args: Any, **more: Any) -> Iterator[Item]:
        items = list(get(*args, **more))
        rig.store.query = get  # type: ignore[method-assign]
        rig.records.observations.put(observation(version=6, spec={"text": "new"}))
        return iter(items)

    rig.store.query = query  # type: ignore[method-assign]

    (found,) = rig.records.observations.of(EAST, SERVICE)
    assert found.manifest
    assert found.manifest["spec"] == {"text": "new"}


# Lost payloads ----------------------------------------------------------------------------------


def test_a_manifest_that_is_lost_is_declared_again_or_deleted(rig: Rig) -> None:
    """It is named, it harms no other, and it can be overwritten and deleted."""
    manifests = rig.records.manifests
    manifests.put("ConfigMap", "default", "a", {"a": 1})
    lose(rig)
    manifests.put("ConfigMap", "default", "b", {"b": 1})

    with pytest.raises(MissingError, match="'manifest/ConfigMap default/a': its payload is lost"):
        manifests.get("ConfigMap", "default", "a")
    assert manifests.has("ConfigMap", "default", "a")
    assert list(manifests.listed("ConfigMap")) == [("default/a", None), ("default/b", {"b": 1})]
    manifests.put("ConfigMap", "default", "a", {"a": 1})
    assert value_of(manifests.get("ConfigMap", "default", "a")) == {"a": 1}
    lose(rig)
    assert manifests.delete("ConfigMap", "default", "a")


@pytest.mark.parametrize("text", [pytest.param("x", id="small"), pytest.param(LARGE, id="large")])
def test_an_observation_that_is_lost_is_written_by_whoever_sees_it_next(
    rig: Rig, text: str
) -> None:
    """It is not taken for gone; its head tells a sweep that it is not what is there."""
    rig.records.observations.put(observation(spec={"text": text}))
    lose(rig)

    for _ in range(2):
        with pytest.raises(TemporaryError, match="the next resync"):
            rig.records.observations.get(EAST, WEB)
    with pytest.raises(TemporaryError):
        list(rig.records.observations.of(EAST, SERVICE))
    assert [each[:4] for each in rig.records.observations.heads(EAST)] == [(WEB, "", 0, False)]
    assert rig.records.observations.put(observation(version=5))
    assert value_of(rig.records.observations.get(EAST, WEB)) == observation(version=5)


def test_contents_that_are_lost_can_be_replaced_and_deleted(rig: Rig) -> None:
    """Where the profile goes is known all the same, and commands show it."""
    profiles = rig.records.profiles
    token = profiles.put(profile(error=""))
    lose(rig)

    with pytest.raises(MissingError):
        profiles.get("t", EAST, "p")
    head = profiles.head("t", EAST, "p")
    assert head
    assert (head.value, head.token) == (profile(error="", contents=()), token)
    (told,) = profiles.of("t")
    assert "is lost" in told.error
    profiles.put(profile(), expect=token)
    assert value_of(profiles.get("t", EAST, "p")) == profile()


def test_an_inventory_that_is_lost_is_made_up_from_the_owners(rig: Rig) -> None:
    """Each object is one that may have been applied, so that it is applied again or removed."""
    rig.records.owners.put(EAST, WEB.identity, Owner("p", "t", EAST, 100))
    rig.records.owners.put(EAST, ROLE.identity, Owner("other", "t", EAST, 100))
    token = rig.records.inventories.put(Inventory(EAST, "p", {WEB.identity: Held("d", "x")}))
    lose(rig)

    kept = rig.records.inventories.get(EAST, "p")
    assert kept
    assert (kept.value, kept.token) == (Inventory(EAST, "p", {WEB.identity: Held("", "")}), token)
    assert list(rig.records.inventories.of(EAST)) == [kept.value]
    rig.records.inventories.put(Inventory(EAST, "p", {}), expect=token)
    assert rig.records.inventories.get(EAST, "p") is None
