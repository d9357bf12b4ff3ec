"""Lost payloads: each affects only its own record, and is written again."""

from __future__ import annotations

import random
import string
from collections.abc import Callable
from typing import Any

import pytest

from bellhop.core.gvk import ObjectKey
from bellhop.errors import MissingError
from bellhop.state.messages import Apply, Instantiate, Resolve, Resync
from bellhop.state.payloads import SHARDS
from tests.fakes.fleet import EAST, SERVICE, Fleet, OpenFleet
from tests.fakes.kube import CONFIG, FakeKube
from tests.fakes.manifests import (
    FOR_EACH,
    INSTANTIATE,
    config,
    holder,
    join,
    profile,
    source,
    trigger,
)

TRIGGER = join(
    source(name="services"),
    trigger(origin="services"),
    holder("made", config(FOR_EACH), annotations=INSTANTIATE),
)


def large(seed: int) -> str:
    """Return a ConfigMap that deploys one larger than a record may be."""
    text = "".join(random.Random(seed).choices(string.ascii_letters, k=400_000))
    return holder("own", config("made", f"seed: '{seed}', text: {text}"))


@pytest.fixture
def fleet(open_fleet: OpenFleet) -> Fleet:
    """Open an installation whose payloads all lie apart, where they can be lost."""
    return open_fleet(short=0)


@pytest.fixture
def lose(fleet: Fleet) -> Callable[..., int]:
    """Lose all blobs, and the payloads of the partitions that are named."""

    def lose(*partitions: str) -> int:
        lost = 0
        for path in (fleet.folder / "blobs").rglob("*"):
            if path.is_file():
                path.unlink()
                lost += 1
        for partition in partitions:
            for shard in SHARDS:
                for item in fleet.store.query(f"payload/{partition}/{shard}"):
                    lost += fleet.store.delete(item.partition, item.sort)
        fleet.reread()
        return lost

    return lose


def seeds(kube: FakeKube) -> list[Any]:
    return [each["data"]["seed"] for each in kube.objects(CONFIG)]


@pytest.fixture
def lost(fleet: Fleet, east: FakeKube, lose: Callable[..., int]) -> FakeKube:
    """Apply a large profile, and lose all that was to be remembered of it."""
    fleet.deploy(profile(), large(1))
    assert seeds(east) == ["1"]
    # Contents, their ConfigMap, what they hold, and the catalog's snapshot.
    assert lose(f"inventory/{EAST}") == 4
    return east


@pytest.mark.parametrize("seed", [pytest.param(1, id="same"), pytest.param(2, id="another")])
def test_what_is_lost_is_declared_again(fleet: Fleet, lost: FakeKube, seed: int) -> None:
    """Applying the ConfigMap writes it, its profile and the inventory again."""
    fleet.deploy(large(seed))

    assert seeds(lost) == [str(seed)]
    assert [each.phase for each in fleet.records.outcomes.of(EAST)] == ["Provisioned"]
    assert all(not queue.list() for queue in fleet.queues.values())


def test_what_is_lost_is_taken_for_no_change(fleet: Fleet, lost: FakeKube) -> None:
    """Until then what is applied stays, and the profile says what is missing."""
    fleet.publisher.publish([Resolve("own")])
    fleet.pump()

    assert seeds(lost) == ["1"]
    (found,) = fleet.records.profiles.of("")
    assert "is lost" in found.error


def test_what_is_lost_can_be_deleted(fleet: Fleet, lost: FakeKube) -> None:
    """The ConfigMap, and the profile: what it had applied is found by its owners and removed."""
    fleet.declare.delete([("ConfigMap", "default", "own"), ("ClusterProfile", "", "own")])
    fleet.pump()

    assert seeds(lost) == []
    assert list(fleet.records.profiles.heads("")) == []
    assert list(fleet.records.inventories.of(EAST)) == []
    assert list(fleet.records.owners.of(EAST)) == []


def test_a_lost_source_withdraws_nothing(
    fleet: Fleet, east: FakeKube, lose: Callable[..., int]
) -> None:
    """A lost source does not count as deleted; applied again it is in force again."""
    east.put(
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a", "namespace": "default"}}
    )
    fleet.deploy(TRIGGER)
    there = east.names()
    assert there == ["for-a"]
    lose("manifest/EventSource", "catalog")

    with pytest.raises(MissingError, match="'manifest/EventSource /services'"):
        fleet.stages["sweep"].handle(Resync(EAST, full=True))
    fleet.deploy(TRIGGER)

    assert east.names() == there
    assert len(list(fleet.records.matches.of(EAST, "services"))) == 1


def test_a_resync_finds_an_object_whose_payload_was_lost(
    fleet: Fleet, east: FakeKube, lose: Callable[..., int]
) -> None:
    """It counts as missed, is written again, and nothing is withdrawn meanwhile."""
    metadata = {"name": "a", "namespace": "default"}
    stored = east.put({"apiVersion": "v1", "kind": "Service", "metadata": metadata})
    fleet.deploy(TRIGGER)
    lose(f"observation/{EAST}")
    key = ObjectKey(SERVICE, "default", "a")
    fleet.publisher.publish([Instantiate("made", EAST, str(key))])
    fleet.pump()
    assert east.names() == ["for-a"]

    before = fleet.records.health.get(EAST).value.missed
    fleet.resync()

    kept = fleet.records.observations.get(EAST, key)
    assert kept
    assert kept.value.uid == stored["metadata"]["uid"]
    assert fleet.records.health.get(EAST).value.missed == before + 1
    assert east.names() == ["for-a"]


def test_what_would_be_done_is_found_out_again(
    fleet: Fleet, east: FakeKube, lose: Callable[..., int]
) -> None:
    """A preview that is lost says nothing until its cluster is looked at once more."""
    fleet.deploy(join(profile(more="syncMode: DryRun"), holder("own", config("made"))))
    before = fleet.records.previews.get(EAST, "own")
    assert before
    assert before.value.changes
    assert lose(f"preview/{EAST}")
    lost = fleet.records.previews.get(EAST, "own")
    assert lost
    assert lost.value.changes == ()

    fleet.publisher.publish([Apply("", "", "own", EAST)])
    fleet.pump()

    found = fleet.records.previews.get(EAST, "own")
    assert found
    assert found.value.changes == before.value.changes
    assert east.objects(CONFIG) == []
