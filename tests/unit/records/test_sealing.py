"""What is sealed stays where it is, and opens with its key alone."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from bellhop.errors import InvalidError
from bellhop.ports.store import Item
from bellhop.records import Sealer
from bellhop.records.payloads import SHARDS
from tests.unit.records.rig import EAST, Rig, observation, profile


def test_the_store_tells_nothing_of_what_is_sealed(rig: Rig) -> None:
    """Neither objects nor contents nor what users declared can be read from a copy."""
    rig.records.observations.put(observation(spec={"secret": "hush-hush"}))
    rig.records.manifests.put("Secret", "default", "a", {"data": {"secret": "hush-hush"}})
    rig.records.profiles.put(profile("hush-hush"))
    for partition in (
        f"observation/{EAST}",
        "manifest/Secret",
        f"profile/t/{hashlib.sha256(EAST.encode()).hexdigest()[0]}",
    ):
        places = (partition, *(f"payload/{partition}/{shard}" for shard in SHARDS))
        items = [item for place in places for item in rig.store.query(place)]

        assert len(items) == 2
        assert "hush" not in json.dumps([dict(item.value) for item in items])


def test_a_sealed_value_opens_only_where_it_was_sealed(rig: Rig) -> None:
    """A payload that another record is pointed to is refused with that record's name."""
    for name in ("a", "b"):
        rig.records.manifests.put("Secret", "default", name, {"kind": "Secret", "name": name})
    first, second = rig.store.query("manifest/Secret")
    shard = f"payload/manifest/Secret/{first.value['payload'][0]}"
    payload = rig.store.get(shard, first.value["payload"])
    assert payload
    name = second.value["payload"]
    rig.store.put(Item(f"payload/manifest/Secret/{name[0]}", name, payload.value))

    with pytest.raises(InvalidError, match=r"'manifest/Secret default/b': it was sealed"):
        rig.records.manifests.get("Secret", "default", "b")


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
