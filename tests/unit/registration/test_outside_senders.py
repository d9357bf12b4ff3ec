"""Adding, rotating and removing outside senders, also by two people at once."""

from __future__ import annotations

import io
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from bellhop.diagnosis.failures import list_failures
from bellhop.errors import BusyError, ConflictError, InvalidError, MissingError
from bellhop.ingest import signatures
from bellhop.ingest.handler import Ingest
from bellhop.ingest.http import Caller, Response
from bellhop.installation import Inbound, Installation
from bellhop.logs import Log
from bellhop.operations import backup
from bellhop.registration import senders
from bellhop.runtime.embedded.state import open_state
from bellhop.settings import Settings
from bellhop.state.cluster import Cluster
from tests.fakes.clock import FakeClock
from tests.fakes.interrupted import interrupted
from tests.fakes.kept import value_of

KEY = "prod/eu-1"
URL = "https://ingest.example"


@pytest.fixture
def here(tmp_path: Path, clock: FakeClock) -> Any:
    """An installation with two clusters, whose address is known."""
    opened = open_state(tmp_path / "state", Settings(), clock=clock)
    found = replace(opened.installation, inbound=Inbound(f"{URL}/", ""))
    for name in ("eu-1", "eu-2"):
        register(found, name)
    yield found
    opened.close()


def register(here: Installation, name: str) -> None:
    cluster = Cluster("prod", name, {}, "v1.30.0", "digest", here.records.clock.now())
    here.declare.register(cluster)
    here.records.gates.put(cluster.key, cluster.gate((), 0, ()))


def add(here: Installation, name: str = "ci", *, key: str = KEY, signs: bool = False) -> str:
    """Add a sender and return its secret."""
    drawn: list[str] = []
    senders.add(here, key, name, signs=signs, hand=drawn.append)
    return drawn[0]


def rotate(here: Installation, name: str = "ci", **more: Any) -> str:
    """Rotate a sender's secret and return the new one."""
    drawn: list[str] = []
    senders.rotate(here, KEY, name, hand=drawn.append, **more)
    return drawn[0]


def admits(here: Installation, token: str, name: str = "ci", key: str = KEY) -> bool:
    """Say whether ingest lets a token in at once, without asking for a signature."""
    ingest = Ingest(here.records, here.publisher, here.settings, Log(io.StringIO()))
    return not isinstance(ingest.admit(Caller(key, token, name)), Response)


def test_a_sender_that_was_added_is_let_in(here: Installation) -> None:
    """By its token, of which only a digest is stored, and for its cluster only."""
    token = add(here)

    assert admits(here, token)
    assert not admits(here, token, key="prod/eu-2")
    assert not admits(here, token, name="")
    [seen] = senders.list_senders(here)
    assert seen.address == f"{URL}/clusters/{KEY}/senders/ci"
    assert (seen.sender.proof, seen.sender.former, seen.refused) == ("", "", None)
    kept = value_of(here.records.senders.get(KEY, "ci"))
    assert token not in kept.proof


def test_a_key_is_kept_sealed(here: Installation, tmp_path: Path) -> None:
    """Signatures need the key itself; no file of the state shows it."""
    key = add(here, signs=True)
    found = [each for each in (tmp_path / "state").rglob("*") if each.is_file()]

    assert key.startswith(signatures.PREFIX)
    assert value_of(here.records.senders.get(KEY, "ci")).proof == key
    assert found
    assert not any(
        key.removeprefix(signatures.PREFIX).encode() in each.read_bytes() for each in found
    )
    assert "proof" not in repr(value_of(here.records.senders.get(KEY, "ci")))


@pytest.mark.parametrize(
    ("name", "key", "error", "said"),
    [
        pytest.param("CI", KEY, InvalidError, "is not a name", id="no name"),
        pytest.param("", KEY, InvalidError, "is not a name", id="an empty one"),
        pytest.param("a/b", KEY, InvalidError, "is not a name", id="a path"),
        pytest.param("x" * 64, KEY, InvalidError, "at most 63", id="an endless one"),
        pytest.param("ci", "prod/eu-3", MissingError, "not registered", id="no cluster"),
    ],
)
def test_refuses_what_cannot_be(
    here: Installation, name: str, key: str, error: type[Exception], said: str
) -> None:
    """In one sentence, before anything is drawn."""
    with pytest.raises(error, match=said):
        add(here, name, key=key)

    assert list(senders.list_senders(here)) == []


def test_asks_for_an_address_first(here: Installation) -> None:
    """A sender without an address is useless."""
    with pytest.raises(MissingError, match="start `bellhop serve` first"):
        add(replace(here, inbound=Inbound("", "")))


def test_a_second_one_of_a_name_is_refused(here: Installation) -> None:
    """The first one's secret goes on to count; another cluster may have the name."""
    token = add(here)
    with pytest.raises(ConflictError, match=f"`bellhop sender rotate {KEY} ci`"):
        add(here, signs=True)
    add(here, key="prod/eu-2")

    assert admits(here, token)
    assert [each.sender.cluster for each in senders.list_senders(here)] == [KEY, "prod/eu-2"]
    assert [each.sender.cluster for each in senders.list_senders(here, "prod/eu-2")] == [
        "prod/eu-2"
    ]


def test_of_two_who_add_one_name_at_once_one_does(here: Installation) -> None:
    """The other gets an error, and its secret is not accepted."""
    drawn: list[str] = []

    def hand(secret: str) -> None:
        drawn.append(secret)
        drawn.append(add(here))

    with pytest.raises(ConflictError, match="there is one already"):
        senders.add(here, KEY, "ci", signs=False, hand=hand)

    assert [admits(here, each) for each in drawn] == [False, True]


def test_a_cluster_that_leaves_meanwhile_gets_no_sender(here: Installation) -> None:
    """Nothing is left for the next cluster of that name."""

    def leave(_: str) -> None:
        here.declare.deregister(KEY)

    with pytest.raises(MissingError, match="not registered"):
        senders.add(here, KEY, "ci", signs=False, hand=leave)

    register(here, "eu-1")
    assert here.records.senders.get(KEY, "ci") is None


# Rotating ---------------------------------------------------------------------------------------


def test_old_and_new_count_together_for_a_day(here: Installation, clock: FakeClock) -> None:
    """Nothing is refused while a person gives the sender its new secret."""
    old = add(here)
    clock.advance(timedelta(hours=1))
    new = rotate(here)
    [seen] = senders.list_senders(here)

    assert (seen.sender.made_at, seen.sender.changed_at) == (
        clock.now() - timedelta(hours=1),
        clock.now(),
    )
    clock.advance(timedelta(days=1, seconds=-1))
    assert (admits(here, old), admits(here, new)) == (True, True)
    clock.advance(timedelta(seconds=1))
    assert (admits(here, old), admits(here, new)) == (False, True)


def test_a_sender_that_signs_gets_another_key(here: Installation) -> None:
    """It stays one that signs, and both keys are accepted."""
    old = add(here, signs=True)
    new = rotate(here)
    kept = value_of(here.records.senders.get(KEY, "ci"))

    assert kept.signs
    assert kept.proofs(here.records.clock.now()) == (new, old)


def test_a_third_secret_waits_for_the_first_to_end(here: Installation, clock: FakeClock) -> None:
    """One of the two is in use, and it is unknown which; an option ends both."""
    first = add(here)
    second = rotate(here)
    with pytest.raises(BusyError, match="--at-once to end both"):
        rotate(here)
    assert (admits(here, first), admits(here, second)) == (True, True)

    third = rotate(here, overlap=timedelta(0))
    assert [admits(here, each) for each in (first, second, third)] == [False, False, True]
    fourth = rotate(here)
    clock.advance(senders.OVERLAP)
    fifth = rotate(here)
    assert [admits(here, each) for each in (third, fourth, fifth)] == [False, True, True]


def test_of_two_who_rotate_at_once_one_does(here: Installation) -> None:
    """Only the old secret and the valid new one are accepted, in either order."""
    old = add(here)
    drawn: list[str] = []

    def hand(secret: str) -> None:
        drawn.append(secret)
        drawn.append(rotate(here))

    with pytest.raises(BusyError, match="somebody else"):
        senders.rotate(here, KEY, "ci", hand=hand)

    assert [admits(here, each) for each in (old, *drawn)] == [True, False, True]


def test_two_rotations_that_meet_anywhere_leave_one_new_secret(here: Installation) -> None:
    """Before each call of the store the other one is done; one is refused, and none is lost."""
    number, met = 0, True
    while met:
        name, drawn = f"ci-{number}", []
        old = add(here, name)

        def once() -> None:
            with suppress(BusyError):
                drawn.append(rotate(here, name))  # noqa: B023 - of this turn

        with interrupted(here.records, number, once) as store:
            once()
        met = store.met
        number += 1
        assert len(drawn) == 1, f"before call {number - 1}"
        assert all(admits(here, each, name) for each in (old, *drawn))

    assert number >= 3


def test_a_cluster_that_leaves_at_any_moment_leaves_no_sender(here: Installation) -> None:
    """Before each call of the store the cluster is deregistered; the next of its name has none."""
    number, met = 0, True
    while met:

        def leave() -> None:
            here.declare.deregister(KEY)

        with interrupted(here.records, number, leave) as store, suppress(MissingError):
            add(here, f"ci-{number}")
        met = store.met
        if met:
            assert list(here.records.store.query(f"sender/{KEY}")) == [], f"before call {number}"
            register(here, "eu-1")
            number += 1

    assert number >= 4


def test_a_sender_that_is_removed_meanwhile_is_not_revived(here: Installation) -> None:
    """The rotation fails; the name is free."""
    add(here)
    with pytest.raises(BusyError, match="somebody else"):
        senders.rotate(here, KEY, "ci", hand=lambda _: senders.remove(here, KEY, "ci"))

    assert list(senders.list_senders(here)) == []


# Leaving ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("ask", [rotate, lambda here: senders.remove(here, KEY, "ci")])
def test_says_that_there_is_none(here: Installation, ask: Callable[[Installation], Any]) -> None:
    with pytest.raises(
        MissingError, match=f"sender 'ci' of cluster '{KEY}'.*`bellhop sender list`"
    ):
        ask(here)


def test_a_removed_sender_is_let_in_no_more(here: Installation) -> None:
    """From its next request on; another one of its name does not have its secret."""
    token = add(here)
    senders.remove(here, KEY, "ci")

    assert not admits(here, token)
    add(here)
    assert not admits(here, token)


def test_a_cluster_takes_its_senders_along(here: Installation) -> None:
    """The secret of a deregistered cluster's sender is not accepted for the next of its name."""
    token = add(here)
    add(here, key="prod/eu-2")
    here.declare.deregister(KEY)
    register(here, "eu-1")

    assert not admits(here, token)
    assert [each.sender.cluster for each in senders.list_senders(here)] == ["prod/eu-2"]


def test_registering_again_leaves_senders_unchanged(here: Installation) -> None:
    """Whatever is changed of a cluster and of its own sender's token."""
    token = add(here)
    register(here, "eu-1")
    here.declare.label(KEY, {"env": "prod"})

    assert admits(here, token)


def test_an_archive_has_the_senders(here: Installation, tmp_path: Path) -> None:
    """Their secrets count in the new installation as they did, sealed with its key."""
    token, key = add(here), add(here, "store", signs=True)
    file = io.StringIO()
    backup.backup(here, file, "correct horse battery", pause=lambda _: None)
    assert token not in file.getvalue()
    file.seek(0)
    opened = open_state(tmp_path / "new", Settings(), clock=here.records.clock)
    there = replace(opened.installation, inbound=Inbound(URL, ""))

    backup.restore(there, file, "correct horse battery", without_leave=True)

    assert admits(there, token)
    assert value_of(there.records.senders.get(KEY, "store")).proof == key
    opened.close()


# What is seen -----------------------------------------------------------------------------------


def test_a_sender_that_is_refused_is_named(here: Installation) -> None:
    """With how often, until it has another secret; its cluster is not said to be refused."""
    add(here)
    ingest = Ingest(here.records, here.publisher, here.settings, Log(io.StringIO()))
    for _ in range(3):
        assert isinstance(ingest.admit(Caller(KEY, "old", "ci")), Response)
        here.records.clock.advance(timedelta(minutes=1))  # type: ignore[attr-defined]

    [seen] = senders.list_senders(here)
    assert seen.refused is not None
    assert seen.refused.count == 3
    messages = {each.about: each.message for each in list_failures(here) if each.type == "sender"}
    assert list(messages) == [f"ci of {KEY}"]
    assert f"`bellhop sender rotate {KEY} ci`" in messages[f"ci of {KEY}"]
    rotate(here)
    assert not [each for each in list_failures(here) if each.type == "sender"]


def test_a_cluster_s_own_refusals_are_no_sender_s(here: Installation) -> None:
    """Whatever the cluster is called."""
    cluster = Cluster("senders", "senders", {}, "v1", "digest", here.records.clock.now())
    here.declare.register(cluster)
    here.records.gates.put(cluster.key, cluster.gate((), 0, ()))
    ingest = Ingest(here.records, here.publisher, here.settings, Log(io.StringIO()))
    ingest.admit(Caller("senders/senders", "wrong"))

    assert [name for name, _ in here.records.refusals.all()] == ["senders/senders"]
    assert list(senders.list_refused(here)) == []
