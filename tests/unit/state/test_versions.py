"""Two versions of Bellhop on one installation: what the newer wrote is left to it, never lost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest

from bellhop.errors import InvalidError, TemporaryError
from bellhop.ports.store import ABSENT, Item
from bellhop.state import messages
from bellhop.state.messages import Resolve, Resync
from bellhop.state.versions import SCHEMAS, Versioned
from tests.fakes.fleet import Fleet, service
from tests.fakes.kube import FakeKube
from tests.fakes.manifests import FOR_EACH, INSTANTIATE, config, holder, join, source, trigger
from tests.unit.state.rig import Rig

RULES = join(source(), trigger(), holder("made", config(FOR_EACH), annotations=INSTANTIATE))
LATER = {**SCHEMAS, "observation": 2}


@pytest.fixture
def old(rig: Rig) -> Versioned:
    return Versioned(rig.store)


@pytest.fixture
def new(rig: Rig) -> Versioned:
    return Versioned(rig.store, LATER)


def test_what_a_newer_version_wrote_is_not_read(old: Versioned, new: Versioned) -> None:
    """Alone or in a list: what cannot be read is not taken for what it was once."""
    new.put(Item("observation/fleet/east", "x", {"matching": True}))

    for look in (
        lambda: old.get("observation/fleet/east", "x"),
        lambda: list(old.query("observation/fleet/east")),
    ):
        with pytest.raises(TemporaryError, match=r"a newer Bellhop wrote it; update this one"):
            look()


def test_a_newer_version_reads_both(old: Versioned, new: Versioned) -> None:
    """What it writes says its number, and nobody above the store sees that."""
    written = new.put(Item("observation/fleet/east", "x", {"a": 1}), expect=ABSENT)
    old.put(Item("observation/fleet/east", "y", {"a": 2}))

    assert new.get("observation/fleet/east", "x") == written
    assert [item.value for item in new.query("observation/fleet/east")] == [{"a": 1}, {"a": 2}]


def test_only_the_records_that_changed_have_a_number(new: Versioned, old: Versioned) -> None:
    """The rest is read by both: a new version keeps an old one from as little as it must."""
    new.put(Item("matches", "x", {"a": 1}))

    assert old.get("matches", "x") == new.get("matches", "x")


class LaterResolve(Resolve, frozen=True):
    """To resolve, as a later version means it."""

    schema: ClassVar[int] = 2


def test_a_message_of_a_newer_version_comes_again() -> None:
    """Be it of a kind that is known or not; what is no message of any version is none."""
    body = dict(LaterResolve("p").message().body)

    assert body == {"do": "resolve", "schema": 2, "profile": "p"}
    for each in (body, {"do": "dance", "schema": 2}):
        with pytest.raises(TemporaryError, match="a newer Bellhop asks for it"):
            messages.read(each)
    for each in ({"do": "dance"}, {"do": "dance", "schema": "2"}):
        with pytest.raises(InvalidError):
            messages.read(each)


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    one = Fleet(tmp_path)
    yield one
    one.close()


@pytest.fixture
def later(fleet: Fleet, tmp_path: Path) -> Iterator[Fleet]:
    """The same installation, by a version that writes observations in another form."""
    one = Fleet(tmp_path, clock=fleet.clock, schemas=LATER)
    one.access = fleet.access
    one.reread()
    yield one
    one.close()


def made(kube: FakeKube) -> list[str]:
    names = [each["metadata"]["name"] for each in kube.objects()]
    return [name for name in names if name.startswith("for-")]


def test_an_old_version_leaves_messages_to_the_new_one(fleet: Fleet, later: Fleet) -> None:
    """One that cannot read a record tries again; when the new version has it, all is done."""
    kube = fleet.register("east", env="production")
    fleet.apply(RULES)
    fleet.pump()
    later.write("east", service("web"))
    fleet.pump()

    assert made(kube) == []
    fleet.clock.advance(fleet.settings.retry_longest)
    later.pump()

    assert made(kube) == ["for-web"]
    assert [list(letters.list()) for letters in fleet.queues.values()] == [[]] * len(fleet.queues)


def test_an_old_version_leaves_a_timer_of_the_new_one(fleet: Fleet) -> None:
    """It is there for whoever can read it, and holds up no other."""
    now = fleet.clock.now()
    fleet.records.timers.set("new", now, LaterResolve("p").message().body)
    fleet.records.timers.set("old", now, Resync("fleet/east").message().body)
    fleet.schedule.tick()

    assert fleet.records.timers.get("new") is not None
    assert fleet.records.timers.get("old") is None
