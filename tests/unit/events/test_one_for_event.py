"""With oneForEvent off a profile is rendered from all that matches: once for a burst of changes."""

from __future__ import annotations

from datetime import timedelta

import pytest

from bellhop.core.gvk import GVK, ObjectKey
from bellhop.errors import TemporaryError
from bellhop.events.reports import Objects
from bellhop.ingest.records import TOMBSTONE
from bellhop.state.messages import Instantiate, Resync
from tests.fakes.fleet import EAST, SERVICE, Fleet
from tests.fakes.hooks import before_each, before_next, failing
from tests.fakes.kube import FakeKube
from tests.fakes.manifests import INSTANTIATE, config, holder, join, source, trigger

ALL = Instantiate("made", EAST)
V = "all: '{{ range .Resources }}{{ .metadata.name }}{{ .metadata.labels.v }} {{ end }}'"
DECLARED = join(
    source(more=", selector: {matchLabels: {ring: 'yes'}}"),
    trigger(one="false"),
    holder("made", config("all", V), annotations=INSTANTIATE),
)
MANY = 25


@pytest.fixture
def fleet(fleet: Fleet) -> Fleet:
    fleet.register("east", env="production")
    fleet.deploy(DECLARED)
    return fleet


@pytest.fixture
def east(fleet: Fleet) -> FakeKube:
    return fleet.access.clusters[EAST]


def write(fleet: Fleet, number: int, v: str = "a") -> None:
    metadata = {"name": f"s{number:03}", "namespace": "default", "labels": {"ring": "yes", "v": v}}
    fleet.write("east", {"apiVersion": "v1", "kind": "Service", "metadata": metadata})


def made(east: FakeKube) -> str:
    (found,) = east.objects(GVK("", "v1", "ConfigMap"))
    return str(found["data"]["all"])


def test_a_burst_is_rendered_once(fleet: Fleet, east: FakeKube) -> None:
    """A worker that finds a profile of the present matches renders nothing."""
    for number in range(MANY):
        write(fleet, number)
    fleet.pump()
    renders = before_each(fleet.instantiation, "_fill")
    for number in range(MANY):
        write(fleet, number, "b")
    fleet.drain("evaluate")

    fleet.drain("deploy", "apply")

    assert len(renders) == 1
    assert made(east) == "".join(f"s{number:03}b " for number in range(MANY))


def test_what_changes_while_it_is_rendered_is_rendered_together(
    fleet: Fleet, east: FakeKube
) -> None:
    """The rest of a burst that begins with one change takes one more rendering."""
    for number in range(MANY):
        write(fleet, number)
    fleet.pump()
    rest = [*range(1, MANY)]

    def meanwhile() -> None:
        while rest:
            write(fleet, rest.pop(), "b")
        fleet.drain("evaluate")

    renders = before_each(fleet.instantiation, "_fill", meanwhile)
    write(fleet, 0, "b")
    fleet.pump()

    assert len(renders) == 2
    assert made(east) == "".join(f"s{number:03}b " for number in range(MANY))


def test_another_process_renders_nothing_again(fleet: Fleet, east: FakeKube) -> None:
    """The inputs of a profile are stored with it."""
    write(fleet, 0)
    fleet.pump()
    fleet.reread()
    renders = before_each(fleet.instantiation, "_fill")

    fleet.publisher.publish([ALL])
    fleet.pump()
    assert len(renders) == 0

    fleet.deploy(DECLARED.replace("all: '", "all: 'now "))
    assert len(renders) == 1
    assert made(east) == "now s000a "
    fleet.apply(holder("other", config("x")))
    fleet.publisher.publish([ALL])
    fleet.pump()
    fleet.publisher.publish([ALL])
    fleet.pump()
    assert len(renders) == 2


def test_a_profile_is_published_after_a_death(fleet: Fleet, east: FakeKube) -> None:
    """A profile that is rendered from facts, and unpublished, asks its clusters again."""
    write(fleet, 0)
    fleet.pump()
    write(fleet, 0, "b")
    fleet.drain("evaluate")
    full = TemporaryError("the disk is full")
    with failing(fleet.queues["apply"], "publish", full), pytest.raises(TemporaryError):
        fleet.stages["deploy"].handle(ALL)
    fleet.pump()

    assert made(east) == "s000b "


def test_what_is_declared_while_an_object_is_forgotten_is_rendered(
    fleet: Fleet, east: FakeKube
) -> None:
    """Its message is retried: no event says that a backup restored the object as it was."""
    write(fleet, 0)
    fleet.pump()
    backup = dict(east._objects)
    fleet.drop("east", east.objects(SERVICE)[0])
    fleet.clock.advance(TOMBSTONE + timedelta(hours=1))
    fleet.reread()
    fleet.apply(DECLARED.replace("v }}", "v }}!"))
    fleet.drain("deploy", "apply")
    assert made(east) == "s000a "

    east._objects = backup
    fleet.stages["sweep"].handle(Resync(EAST))
    fleet.pump()
    fleet.wait(timedelta(minutes=1))

    assert made(east) == "s000a! "


def test_what_takes_long_to_render_rests(fleet: Fleet, east: FakeKube) -> None:
    """A burst that goes on is rendered a few times, the last of them after its end."""
    write(fleet, 0)
    fleet.pump()

    def slowly() -> None:
        fleet.clock.advance(timedelta(seconds=1))

    renders = before_each(fleet.instantiation, "_fill", slowly)
    for turn in range(40):
        write(fleet, 0, str(turn))
        fleet.pump()
        fleet.clock.advance(timedelta(seconds=0.1))
    fleet.wait(timedelta(seconds=3))

    assert len(renders) == 3
    assert made(east) == "s00039 "
    assert not fleet.queues["deploy"].list()


def test_what_changes_while_it_is_rendered_rests_too(fleet: Fleet, east: FakeKube) -> None:
    """Changes during a rendering are rendered after the rest, however many there are."""
    write(fleet, 0)
    fleet.pump()
    turns = iter(range(5))

    def slowly() -> None:
        fleet.clock.advance(timedelta(seconds=1))
        if (turn := next(turns, None)) is not None:
            write(fleet, turn + 1)
            fleet.drain("evaluate")

    renders = before_each(fleet.instantiation, "_fill", slowly)
    write(fleet, 0, "b")
    fleet.pump()
    assert len(renders) == 1
    fleet.wait(timedelta(seconds=3))
    assert len(renders) == 2

    for _ in range(5):
        fleet.wait(timedelta(seconds=3))
    assert len(renders) == 6
    assert made(east) == "s000b " + "".join(f"s{number:03}a " for number in range(1, 6))
    assert not fleet.queues["deploy"].list()


def test_a_worker_that_was_frozen_delays_no_other_for_long(fleet: Fleet, east: FakeKube) -> None:
    """Its contents are older than the matches: the next rendering waits only a short rest."""
    write(fleet, 0)
    fleet.pump()

    def frozen() -> None:
        write(fleet, 0, "c")
        fleet.drain("evaluate")
        fleet.clock.advance(timedelta(minutes=10))

    before_next(fleet.instantiation, "_fill", frozen)
    write(fleet, 0, "b")
    fleet.pump()
    fleet.wait(timedelta(seconds=15))

    assert made(east) == "s000c "


# Cached objects ------------------------------------------------------------------------------


def reads(fleet: Fleet, objects: Objects, number: int, mark: str) -> int:
    fleet.store.counts.clear()
    key = ObjectKey(SERVICE, "default", f"s{number:03}")
    found = objects.get(EAST, "watched", key, mark)
    assert found
    assert found["metadata"]["name"] == key.name
    found.clear()
    return fleet.store.counts["get"]


def marks(fleet: Fleet) -> list[str]:
    return [mark for _, mark in fleet.records.matches.marks(EAST, "watched")]


def test_an_object_is_read_once_as_long_as_it_is_the_same(fleet: Fleet) -> None:
    """Callers may change their copy; a newer object that is not evaluated yet is not cached."""
    write(fleet, 0)
    fleet.pump()
    (old,) = marks(fleet)
    objects = Objects(fleet.records)

    assert [reads(fleet, objects, 0, old) for _ in range(2)] == [1, 0]
    write(fleet, 0, "b")
    assert reads(fleet, objects, 0, old) == 0
    fleet.pump()
    (new,) = marks(fleet)
    assert [reads(fleet, objects, 0, new) for _ in range(2)] == [1, 0]
    assert [reads(fleet, objects, 0, old) for _ in range(2)] == [1, 1]


def test_keeps_no_more_than_so_many_bytes(fleet: Fleet) -> None:
    """Those that were asked for last."""
    for number in range(3):
        write(fleet, number)
    fleet.pump()
    one, two, three = marks(fleet)
    seen = fleet.records.observations.get(EAST, ObjectKey(SERVICE, "default", "s000"))
    assert seen
    size = len(str(seen.value.manifest))
    objects = Objects(fleet.records, most_bytes=size * 5 // 2)

    for number, mark in enumerate([one, two]):
        assert reads(fleet, objects, number, mark) == 1
    assert reads(fleet, objects, 0, one) == 0
    assert reads(fleet, objects, 2, three) == 1
    assert [reads(fleet, objects, 0, one), reads(fleet, objects, 1, two)] == [0, 1]
