"""What is sealed stays where it is; what is large goes to the blob store, and with its record."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from bellhop.errors import InvalidError, StaleError
from bellhop.model.gvk import ObjectKey
from bellhop.model.record import (
    Held,
    Inventory,
)
from bellhop.ports.store import ABSENT, Item
from bellhop.records import Sealer
from tests.unit.records.rig import (
    EAST,
    LARGE,
    SERVICE,
    WEB,
    Rig,
    observation,
    profile,
)

# Sealing and claim checks -----------------------------------------------------------------------


def test_the_store_tells_nothing_of_what_is_sealed(rig: Rig) -> None:
    """Neither objects nor contents nor what users declared can be read from a copy."""
    rig.records.put_observation(observation(spec={"secret": "hush-hush"}))
    rig.records.put_manifest("Secret", "default", "a", {"data": {"secret": "hush-hush"}})
    rig.records.put_profile(profile("hush-hush"))
    for partition in (f"observation/{EAST}", "manifest/Secret", "profile/t"):
        (item,) = rig.store.query(partition)

        assert "hush" not in json.dumps(dict(item.value))


def test_a_sealed_value_opens_only_where_it_was_sealed(rig: Rig) -> None:
    """A value moved to another record is refused with its name."""
    rig.records.put_manifest("Secret", "default", "a", {"kind": "Secret"})
    (item,) = rig.store.query("manifest/Secret")
    rig.store.put(Item("manifest/Secret", "default/b", item.value))

    with pytest.raises(InvalidError, match=r"'manifest/Secret default/b': it was sealed"):
        rig.records.manifest("Secret", "default", "b")


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda sealed: sealed[:-1] + bytes([sealed[-1] ^ 1]), id="a bit"),
        pytest.param(lambda sealed: sealed[:20], id="its end"),
        pytest.param(lambda _: b"", id="everything"),
    ],
)
def test_a_sealed_value_that_was_changed_is_refused(damage: Any) -> None:
    """Nothing that is not as it was sealed is given out."""
    sealer = Sealer(bytes(32))

    with pytest.raises(InvalidError, match="cannot open the stored record 'a b'"):
        sealer.open(damage(sealer.seal({"a": 1}, "a b")), "a b")


def test_another_key_opens_nothing() -> None:
    """The sentence says what to give back."""
    sealed = Sealer(bytes(32)).seal({"a": 1}, "a b")

    with pytest.raises(InvalidError, match="give back the key this state was made with"):
        Sealer(bytes([1] * 32)).open(sealed, "a b")


def test_what_is_large_goes_to_the_blob_store_and_comes_back(rig: Rig) -> None:
    """Records of every sealed kind may be larger than an item; a blob goes with its record."""
    held = {
        ObjectKey(SERVICE, "default", f"{LARGE[number : number + 60]}"): Held("", "x")
        for number in range(0, len(LARGE), 60)
    }
    rig.records.put_observation(observation(spec={"text": LARGE}))
    rig.records.put_manifest("ConfigMap", "default", "a", {"data": {"text": LARGE}})
    rig.records.put_profile(profile(LARGE))
    rig.records.put_inventory(Inventory(EAST, "p", held))
    assert rig.blobs() == 4

    kept = rig.records.observation(EAST, WEB)
    assert kept
    assert kept.manifest
    assert kept.manifest["spec"] == {"text": LARGE}
    assert rig.records.manifest("ConfigMap", "default", "a") == {"data": {"text": LARGE}}
    found = rig.records.profile("t", EAST, "p")
    assert found
    assert found[0] == profile(LARGE)
    assert rig.records.inventory(EAST, "p").held == held

    rig.records.delete_observation(EAST, WEB)
    rig.records.delete_manifest("ConfigMap", "default", "a")
    rig.records.delete_profile(profile())
    rig.records.put_inventory(Inventory(EAST, "p", {}))
    assert rig.blobs() == 0


@pytest.mark.parametrize(
    ("after", "left"),
    [
        pytest.param(LARGE[::-1], 1, id="by another large one"),
        pytest.param("small", 0, id="by a small one"),
    ],
)
def test_a_blob_that_is_replaced_is_deleted(rig: Rig, after: str, left: int) -> None:
    """However much smaller the record has become."""
    rig.records.put_observation(observation(spec={"text": LARGE}))
    rig.records.put_profile(profile(LARGE))

    rig.records.put_observation(observation(spec={"text": after}))
    rig.records.put_profile(profile(after))

    assert rig.blobs() == 2 * left
    kept = rig.records.observation(EAST, WEB)
    assert kept
    assert kept.manifest
    assert kept.manifest["spec"] == {"text": after}


def test_a_write_that_is_lost_leaves_no_blob(rig: Rig) -> None:
    """The winner's blob stays, the loser's goes."""
    rig.records.put_profile(profile(LARGE), expect=ABSENT)

    with pytest.raises(StaleError):
        rig.records.put_profile(profile(LARGE[::-1]), expect=ABSENT)

    assert rig.blobs() == 1
    found = rig.records.profile("t", EAST, "p")
    assert found
    assert found[0] == profile(LARGE)


def test_a_record_that_is_replaced_while_it_is_read_may_be_read_again(rig: Rig) -> None:
    """Its old blob is gone: that passes, and is no reason to give a message up."""
    rig.records.put_observation(observation(spec={"text": LARGE}))
    reading = rig.records.observations(EAST, SERVICE)
    get = rig.store.query

    def query(*args: Any, **more: Any) -> Iterator[Item]:
        items = list(get(*args, **more))
        rig.records.put_observation(observation(version=6, spec={"text": LARGE[::-1]}))
        return iter(items)

    rig.store.query = query  # type: ignore[method-assign]

    with pytest.raises(StaleError, match="its payload is gone"):
        next(reading)
