"""What is sealed stays where it is, and opens only with its key."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from bellhop.errors import InvalidError
from bellhop.ports.store import Item
from bellhop.state.payloads import SHARDS
from bellhop.state.sealer import Sealer
from tests.unit.state.rig import EAST, Rig, observation, profile


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


KEY, INGEST_KEY = bytes(32), bytes([1] * 32)
INGEST, OTHERS = Sealer(INGEST_KEY), Sealer(KEY, INGEST_KEY)


@pytest.mark.parametrize("name", ["gate fleet/east", "sender/fleet/east ci"])
def test_ingest_opens_what_it_reads(name: str) -> None:
    """All others seal these for it, and open what it has sealed."""
    assert INGEST.open(OTHERS.seal({"a": 1}, name), name) == {"a": 1}
    assert OTHERS.open(INGEST.seal({"a": 2}, name), name) == {"a": 2}


@pytest.mark.parametrize("name", ["manifest/Secret a/b", "profile/t/0 web", "catalog/12ab"])
def test_ingest_opens_nothing_else_and_forges_nothing(name: str) -> None:
    """An attacker with all that ingest has reads no other record, and writes none that counts."""
    for reader, sealed in ((INGEST, OTHERS.seal({}, name)), (OTHERS, INGEST.seal({}, name))):
        with pytest.raises(InvalidError, match="it was sealed with another key"):
            reader.open(sealed, name)


def test_an_observation_of_ingest_opens_for_all_others() -> None:
    """Ingest writes them, and resyncs do, whose observations ingest cannot open."""
    name = "observation/fleet/east v1/Secret/a/b"

    assert OTHERS.open(INGEST.seal({"a": 1}, name), name) == {"a": 1}
    with pytest.raises(InvalidError, match="another key"):
        INGEST.open(OTHERS.seal({"a": 1}, name), name)
