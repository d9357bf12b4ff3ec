"""Two versions of Bellhop on one installation: what the newer wrote is left to it, never lost."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from bellhop import messages
from bellhop.errors import InvalidError, TemporaryError
from bellhop.frozen import frozen
from bellhop.messages import INBOXES, Resolve, Sweep
from bellhop.model.check import Check, times
from bellhop.model.gvk import GVK, Identity
from bellhop.model.record import Choice, Held, Inventory, Sync
from bellhop.model.rollout import AT_ONCE, Rollout
from bellhop.ports.store import ABSENT, Item
from bellhop.records.versions import SCHEMAS, Versioned
from tests.fakes.fleet import Fleet, service
from tests.fakes.kept import value_of
from tests.fakes.kube import FakeKube
from tests.fakes.manifests import FOR_EACH, INSTANTIATE, config, holder, join, source, trigger
from tests.unit.records.rig import Rig, profile

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


def test_a_match_has_a_number_while_it_is_held(rig: Rig) -> None:
    """Who does not know that it is would withdraw it; all others are read by both."""
    new, before = Versioned(rig.store), Versioned(rig.store, {})
    for sort, held in (("x", True), ("y", False)):
        new.put(Item("match/fleet/east", sort, {"matching": True, "held": held}))

    assert before.get("match/fleet/east", "y") == new.get("match/fleet/east", "y")
    with pytest.raises(TemporaryError, match="a newer Bellhop wrote it"):
        before.get("match/fleet/east", "x")


def test_a_cluster_has_a_number_while_it_may_be_paused(rig: Rig) -> None:
    """Who does not know pauses would change what is in it; all others are read by both."""
    new, before = Versioned(rig.store), Versioned(rig.store, {**SCHEMAS, "cluster": 3})
    window = {"from": "0 20 * * 5", "to": "0 5 * * 1"}
    for sort, spec in (("x", {"paused": True}), ("y", {"activeWindow": window}), ("z", {})):
        new.put(Item("cluster", sort, {"spec": {"data": {"a": "b"}, **spec}}))

    assert before.get("cluster", "z") == new.get("cluster", "z")
    for sort in "xy":
        with pytest.raises(TemporaryError, match="a newer Bellhop wrote it"):
            before.get("cluster", sort)


def test_only_the_records_that_changed_have_a_number(new: Versioned, old: Versioned) -> None:
    """The rest is read by both: a new version keeps an old one from as little as it must."""
    new.put(Item("matches", "x", {"a": 1}))

    assert old.get("matches", "x") == new.get("matches", "x")


@frozen
class LaterResolve(Resolve):
    """To resolve, as a later version means it."""

    schema: ClassVar[int] = 4

    @property
    def form(self) -> int:
        return self.schema


def test_a_message_of_a_newer_version_comes_again() -> None:
    """Be it of a kind that is known or not; what is no message of any version is none."""
    body = dict(LaterResolve("p").message().body)

    assert body == {"do": "resolve", "schema": 4, "profile": "p"}
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
    assert [list(letters.list()) for letters in fleet.queues.values()] == [[]] * len(INBOXES)


def test_an_old_version_leaves_a_timer_of_the_new_one(fleet: Fleet) -> None:
    """It is there for whoever can read it, and holds up no other."""
    now = fleet.clock.now()
    fleet.records.timers.set("new", now, LaterResolve("p").message().body)
    fleet.records.timers.set("old", now, Sweep("fleet/east").message().body)
    fleet.schedule.tick()

    assert fleet.records.timers.get("new") is not None
    assert fleet.records.timers.get("old") is None


def test_a_profile_has_a_number_only_while_it_is_tried_dry(rig: Rig) -> None:
    """The version before would apply it; every other profile it goes on with."""
    before = {name: number for name, number in SCHEMAS.items() if name != "profile"}
    now, then = rig.anew(rig.store), Versioned(rig.store, before)  # type: ignore[arg-type]
    modes: tuple[Sync, ...] = ("Continuous", "DryRun", "Continuous")
    for sync in modes:
        now.profiles.put(replace(profile(), sync=sync))
        (found,) = (each for each in rig.store.all() if each.partition.startswith("profile/"))
        with pytest.raises(TemporaryError) if sync == "DryRun" else nullcontext():
            then.get(found.partition, found.sort)


@pytest.mark.parametrize(
    "asked",
    [
        Rollout(continues=True),
        Rollout(most_failures=3),
        Rollout(after=("base",)),
        Rollout(awaited=True),
        Rollout(share="20%"),
    ],
)
def test_a_profile_that_says_what_stops_it_has_a_number(rig: Rig, asked: Rollout) -> None:
    """The version before would lose that when it writes the profile; it goes on without it."""
    before = {name: number for name, number in SCHEMAS.items() if name != "profile"}
    now, then = rig.anew(rig.store), Versioned(rig.store, before)  # type: ignore[arg-type]
    for rollout in (AT_ONCE, asked, AT_ONCE):
        now.profiles.put(replace(profile(), rollout=rollout))
        (found,) = (each for each in rig.store.all() if each.partition.startswith("profile/"))
        with nullcontext() if rollout == AT_ONCE else pytest.raises(TemporaryError):
            then.get(found.partition, found.sort)


def test_a_profile_that_is_checked_has_a_number(rig: Rig) -> None:
    """The version before would apply and remove it unchecked; it goes on without checks."""
    before = {**SCHEMAS, "profile": 4}
    now, then = rig.anew(rig.store), Versioned(rig.store, before)  # type: ignore[arg-type]
    asked = Check("preDeleteChecks", "unused", GVK("", "v1", "Pod"), script="function x() end")
    for checks in ((), (asked,), ()):
        now.profiles.put(replace(profile(), checked=times(checks), checks=checks))
        (found,) = (each for each in rig.store.all() if each.partition.startswith("profile/"))
        with pytest.raises(TemporaryError) if checks else nullcontext():
            then.get(found.partition, found.sort)
        # As it was written, by whoever knows it: head and payload.
        read = value_of(rig.anew(rig.store).profiles.get("t", "fleet/east", "p"))
        assert read
        assert read.checks == checks


@pytest.mark.parametrize(
    ("field", "use"), [("pinned", True), ("scripted", True), ("hosting", "alone")]
)
def test_a_profile_has_a_number_while_the_version_before_would_go_wrong(
    rig: Rig, field: str, use: Any
) -> None:
    """It would undo a rollback, take a script for a template, and what is Local for Remote."""
    before = {name: number for name, number in SCHEMAS.items() if name != "profile"}
    now, then = rig.anew(rig.store), Versioned(rig.store, before)  # type: ignore[arg-type]
    unused = getattr(profile(), field)
    for used in (unused, use, unused):
        now.profiles.put(replace(profile(), number=2, latest=3, **{field: used}))
        (found,) = (each for each in rig.store.all() if each.partition.startswith("profile/"))
        with pytest.raises(TemporaryError) if used else nullcontext():
            then.get(found.partition, found.sort)


def test_what_has_a_namespace_is_left_to_who_knows_it(rig: Rig) -> None:
    """The version before would delete a Set's choice, and mark a Profile's objects otherwise."""
    then = Versioned(rig.store, {"catalog": 2, "cluster": 2})  # type: ignore[arg-type]
    for place in ("x", "a/x"):
        rig.records.profiles.put(replace(profile(), trigger="", cluster="", name=place))
        rig.records.choices.put(place, Choice(("a/one",)), expect=ABSENT)
    found = {(each.partition.partition("/")[0], each.sort) for each in rig.store.all()}
    numbered = {("profile", "/a/x"), ("choice", "a/x")}
    assert numbered < found

    for each in rig.store.all():
        kind = each.partition.partition("/")[0]
        with pytest.raises(TemporaryError) if (kind, each.sort) in numbered else nullcontext():
            then.get(each.partition, each.sort)
    assert rig.records.choices.all().keys() == {"x", "a/x"}
    kept = value_of(rig.records.profiles.get("", "", "a/x"))
    assert kept
    assert kept.name == "a/x"


def test_a_role_request_is_left_to_who_knows_it(rig: Rig) -> None:
    """The version before would bring its roles, and bind them to nobody."""
    then = Versioned(rig.store, {**SCHEMAS, "profile": 5})  # type: ignore[arg-type]
    for name in ("x", "RoleRequest:x"):
        rig.records.profiles.put(replace(profile(), trigger="", cluster="", name=name))
    for each in (each for each in rig.store.all() if each.partition.startswith("profile/")):
        with pytest.raises(TemporaryError) if ":" in each.sort else nullcontext():
            then.get(each.partition, each.sort)


@pytest.mark.parametrize(("name", "number"), [("x", 1), ("a/x", 2), ("RoleRequest:x", 3)])
def test_a_profile_of_a_newer_kind_is_resolved_by_who_knows_it(name: str, number: int) -> None:
    """The version before, which reads messages of an earlier form, would withdraw it."""
    body = Resolve(name).message().body

    assert body.get("schema", 1) == number
    assert messages.read(body) == Resolve(name)


def test_an_inventory_has_a_number_only_while_it_holds_what_was_adopted(rig: Rig) -> None:
    """The version before would remove that, which is to stay."""
    before = {name: number for name, number in SCHEMAS.items() if name != "inventory"}
    now, then = rig.anew(rig.store), Versioned(rig.store, before)  # type: ignore[arg-type]
    for adopted in ("", "field manager 'helm'", ""):
        held = Held("d", "r", uid="u", adopted=adopted)
        now.inventories.put(Inventory("a/b", "p", {Identity("", "ConfigMap", "x", "y"): held}))
        with pytest.raises(TemporaryError) if adopted else nullcontext():
            then.get("inventory/a/b", "p")
        kept = now.inventories.get("a/b", "p")
        assert kept
        assert [each.adopted for each in kept.value.held.values()] == [adopted]
