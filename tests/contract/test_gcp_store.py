"""The store on Firestore where the contract cannot look: requests, lost answers, pages, expiry."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from google.auth.credentials import AnonymousCredentials
from google.cloud.firestore_v1 import Client

from bellhop.adapters.gcp.services import Services
from bellhop.adapters.gcp.store import DATABASE, ITEMS, FirestoreStore
from bellhop.adapters.local.clock import SystemClock
from bellhop.adapters.local.store import FileBlobs
from bellhop.errors import StaleError, TemporaryError, ThrottledError, UnreachableError
from bellhop.ports.clock import Clock
from bellhop.ports.store import ABSENT, ITEM_LIMIT, KEY_LIMIT, Item
from bellhop.state.records import Records
from bellhop.state.sealer import Sealer
from tests.fakes.clock import FakeClock
from tests.fakes.kept import value_of
from tests.functions.roles import noise
from tests.lab.google import FIRESTORE, Emulator
from tests.lab.google_front import Front

HOUR = timedelta(hours=1)
LONGEST_CALL = 30.0
"""Seconds that a call may take: ten, and what a busy machine adds."""


Made = Callable[..., FirestoreStore]


@pytest.fixture
def made(google_project: str) -> Iterator[Made]:
    """Make stores of one project, whose calls rest no time between two tries."""
    opened: list[Services] = []

    def make(
        address: str, clock: Clock | None = None, database: str = DATABASE, **more: Any
    ) -> FirestoreStore:
        emulators = {"FIRESTORE_EMULATOR_HOST": address}
        options = {"sleep": lambda _: None, **more}
        opened.append(Services(google_project, emulators=emulators, **options))
        return FirestoreStore(opened[-1], clock=clock or SystemClock(), database=database)

    yield make
    for each in opened:
        each.close()


@pytest.fixture
def store(made: Made, front: Front) -> FirestoreStore:
    return made(front.address)


@pytest.fixture(scope="module")
def mortal(only_lab: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    """A Firestore that a test may kill; it is there again when the test ends.

    Its emulator boots when the first test needs it, which takes seconds.
    """
    del only_lab
    with Emulator(FIRESTORE, tmp_path_factory.mktemp("mortal")) as emulator:
        yield emulator


def test_each_operation_is_one_request(front: Front, store: FirestoreStore) -> None:
    """Each is billed; also one that is refused."""
    first = store.put(Item("a", "b", {}), expect=ABSENT)
    second = store.put(Item("a", "b", {}), expect=first.token)
    third = store.put(Item("a", "b", {}))
    assert front.requests() == {"Commit": 3}

    for token in (first.token, second.token):
        with pytest.raises(StaleError):
            store.put(Item("a", "b", {}), expect=token)
        with pytest.raises(StaleError):
            store.delete("a", "b", expect=token)
    assert front.requests() == {"Commit": 4}

    store.get("a", "b")
    list(store.query("a"))
    next(store.query("a", limit=1, backwards=True))
    assert front.requests() == {"BatchGetDocuments": 1, "RunQuery": 2}

    assert store.delete("a", "b", expect=third.token)
    assert front.requests() == {"Commit": 1}


def test_what_firestore_has_no_condition_for_is_one_request_more(
    front: Front, store: FirestoreStore
) -> None:
    """Whether what is there has expired, and whether anything is there to delete."""
    store.put(Item("a", "b", {}))
    front.requests()

    with pytest.raises(StaleError):
        store.put(Item("a", "b", {}), expect=ABSENT)
    assert front.requests() == {"Commit": 1, "BatchGetDocuments": 1}
    assert store.delete("a", "b")
    assert front.requests() == {"Commit": 1, "BatchGetDocuments": 1}
    assert not store.delete("a", "b")
    assert front.requests() == {"BatchGetDocuments": 1}
    store.put(Item("a", "b", {}, expires_at=datetime.now(UTC) - HOUR))
    store.put(Item("a", "b", {}), expect=ABSENT)
    assert front.requests() == {"Commit": 3, "BatchGetDocuments": 1}


def test_a_token_that_cannot_hold_any_more_asks_nothing(
    front: Front, store: FirestoreStore
) -> None:
    """One of another store, and one whose item has expired."""
    expired = store.put(Item("a", "b", {}, expires_at=datetime.now(UTC) - HOUR)).token
    front.requests()

    for token in ("0f0e0d", "9" * 40, "12/x", expired):
        with pytest.raises(StaleError):
            store.put(Item("a", "b", {}), expect=token)
        with pytest.raises(StaleError):
            store.delete("a", "b", expect=token)
    assert front.requests() == {}


def test_reading_on_costs_one_request_a_page(front: Front, store: FirestoreStore) -> None:
    """Who begins after a key does not read it again, and a partition is read in few requests."""
    for number in range(200):
        store.put(Item("a", f"{number:03}", {}))
    front.requests()

    assert [item.sort for item in store.query("a", after="041", limit=1)] == ["042"]
    assert front.requests() == {"RunQuery": 1}
    assert len(list(store.query("a"))) == 200
    assert front.requests() == {"RunQuery": 3}


@pytest.mark.parametrize("code", ["UNAVAILABLE", "DEADLINE_EXCEEDED", "INTERNAL"])
@pytest.mark.parametrize("there", [False, True], ids=["absent", "token"])
def test_a_write_whose_answer_was_lost_is_its_own(
    front: Front, store: FirestoreStore, code: str, *, there: bool
) -> None:
    """It is repeated, refused, and recognised; what it returns is the token to expect."""
    expect = store.put(Item("a", "b", {"n": 0})).token if there else ABSENT
    front.fail("Commit", code, served=True)

    written = store.put(Item("a", "b", {"n": 1}), expect=expect)

    assert store.get("a", "b") == written
    store.put(Item("a", "b", {"n": 2}), expect=written.token)


def test_who_came_between_two_attempts_keeps_what_is_his(made: Made, front: Front) -> None:
    """The second attempt finds another's write, though the first one was done: it is stale."""
    other = made(front.address)
    seen: list[Item] = []

    def between(_: float) -> None:
        found = other.get("a", "b")
        assert found
        seen.append(other.put(Item("a", "b", {"by": "another"}), expect=found.token))

    front.fail("Commit", served=True)
    with pytest.raises(StaleError):
        made(front.address, sleep=between).put(Item("a", "b", {}), expect=ABSENT)

    assert other.get("a", "b") == seen[0]


def test_no_two_attempts_of_a_write_share_a_token(made: Made, front: Front) -> None:
    """Who came between two attempts, and left, finds nothing of his predecessor's."""
    other = made(front.address)
    seen: list[Item] = []

    def between(_: float) -> None:
        found = other.get("a", "b")
        assert found
        other.delete("a", "b", expect=found.token)
        seen.append(found)

    front.fail("Commit", served=True)
    last = made(front.address, sleep=between).put(Item("a", "b", {}), expect=ABSENT)

    assert last == other.get("a", "b")
    with pytest.raises(StaleError):
        other.put(Item("a", "b", {"by": "who read the first attempt"}), expect=seen[0].token)


def test_an_equal_write_has_another_token(store: FirestoreStore) -> None:
    """Firestore keeps the time of a write that changes nothing: each of ours changes something."""
    tokens = {store.put(Item("a", "b", {"same": True})).token for _ in range(5)}

    assert len(tokens) == 5


def test_a_deletion_whose_answer_was_lost_is_stale(front: Front, store: FirestoreStore) -> None:
    """The item existed and its deleter is unknown: the reader reads it again."""
    token = store.put(Item("a", "b", {})).token
    front.fail("Commit", served=True)

    with pytest.raises(StaleError):
        store.delete("a", "b", expect=token)

    assert store.get("a", "b") is None


def test_one_of_many_deletes_an_item(store: FirestoreStore) -> None:
    """Of threads that delete any existing item, one learns that it existed."""
    store.put(Item("a", "b", {}))
    outcomes: list[bool] = []
    threads = [
        threading.Thread(target=lambda: outcomes.append(store.delete("a", "b"))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(outcomes) == [False] * 7 + [True]


def test_a_storm_on_one_item_ends(store: FirestoreStore) -> None:
    """Writers who all count in one item all come to their end, and lose nothing."""
    store.put(Item("a", "b", {"count": 0}))

    def count() -> None:
        left = 10
        while left:
            item = store.get("a", "b")
            assert item
            try:
                store.put(Item("a", "b", {"count": item.value["count"] + 1}), expect=item.token)
            except StaleError:
                continue
            left -= 1

    threads = [threading.Thread(target=count) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    found = store.get("a", "b")
    assert found
    assert found.value == {"count": 60}


@pytest.mark.parametrize("code", ["ABORTED", "RESOURCE_EXHAUSTED", "UNAVAILABLE", "UNKNOWN"])
def test_waits_out_what_may_pass(front: Front, store: FirestoreStore, code: str) -> None:
    """A few refusals cost time and nothing else: Firestore aborts writes that collide."""
    front.fail("Commit", code, times=3)
    front.fail("BatchGetDocuments", code, times=2)
    front.fail("RunQuery", code, times=4)

    written = store.put(Item("a", "b", {}))
    assert store.get("a", "b") == written
    assert list(store.query("a")) == [written]
    assert front.requests() == {"Commit": 4, "BatchGetDocuments": 3, "RunQuery": 5}


def test_a_lasting_throttle_is_raised(front: Front, store: FirestoreStore) -> None:
    """After a few tries the message goes back to its queue, for a while."""
    front.fail("Commit", "RESOURCE_EXHAUSTED", times=99)

    with pytest.raises(ThrottledError, match="'a' 'b'") as caught:
        store.put(Item("a", "b", {"secret": "value"}))

    assert caught.value.delay == timedelta(seconds=2)
    assert "secret" not in str(caught.value)
    assert front.requests() == {"Commit": 5}


@pytest.mark.parametrize("operation", ["Commit", "BatchGetDocuments", "RunQuery"])
def test_a_database_that_is_not_there_loses_no_message(
    front: Front, store: FirestoreStore, operation: str
) -> None:
    """It is no item that is missing, and no write that came too late: Terraform puts it right."""
    token = store.put(Item("a", "b", {})).token
    # A commit that finds nothing is followed by a look whether there is a database at all.
    front.fail(operation, "NOT_FOUND", times=9)
    front.fail("BatchGetDocuments", "NOT_FOUND", times=9)
    acts: dict[str, tuple[Callable[[], Any], ...]] = {
        "Commit": (
            lambda: store.put(Item("a", "b", {})),
            lambda: store.put(Item("a", "b", {}), expect=token),
            lambda: store.delete("a", "b", expect=token),
        ),
        "BatchGetDocuments": (lambda: store.get("a", "b"), lambda: store.delete("a", "b")),
        "RunQuery": (lambda: list(store.query("a")), lambda: list(store.all())),
    }

    for act in acts[operation]:
        with pytest.raises(TemporaryError, match="Terraform"):
            act()


def test_no_answer_is_not_an_empty_one(front: Front, store: FirestoreStore) -> None:
    """A stream that ends well and says nothing does not say that nothing is there."""
    store.put(Item("a", "b", {}))
    front.fail("BatchGetDocuments", "OK")

    with pytest.raises(UnreachableError, match="answers nothing"):
        store.get("a", "b")


def test_reads_past_what_has_expired(store: FirestoreStore) -> None:
    """Items that Firestore has not deleted yet count for its limits and not for ours."""
    for number in range(100):
        expired = datetime.now(UTC) - HOUR if number not in {0, 99} else None
        store.put(Item("a", f"{number:03}", {}, expires_at=expired))

    assert [item.sort for item in store.query("a", limit=2)] == ["000", "099"]
    assert [item.sort for item in store.query("a", limit=2, backwards=True)] == ["099", "000"]


@pytest.mark.parametrize("backwards", [False, True])
def test_a_page_of_large_items_ends_early(
    front: Front, store: FirestoreStore, *, backwards: bool
) -> None:
    """A function holds a few megabytes of a partition at a time, whatever its number of items."""
    for number in range(14):
        store.put(Item("a", f"{number:02}", {"text": "x" * (ITEM_LIMIT - 100)}))
    front.requests()

    found = [item.sort for item in store.query("a", backwards=backwards)]
    assert found == sorted(found, reverse=backwards)
    assert len(found) == 14
    assert front.requests() == {"RunQuery": 2}


@pytest.mark.parametrize(
    "sort", [".", "..", "/", "__x__", "__id7__", "a/b", "\n", "\0", "ä😀", "x" * KEY_LIMIT]
)
def test_takes_keys_that_firestore_does_not(store: FirestoreStore, sort: str) -> None:
    """What is reserved or too long as a document's id is a key like any other."""
    written = store.put(Item(sort, sort, {}))

    assert store.get(sort, sort) == written
    assert list(store.query(sort, prefix=sort)) == [written]
    assert list(store.all()) == [written]


def test_an_item_lives_to_the_microsecond(made: Made, front: Front) -> None:
    """Whatever Firestore deletes when, everybody here goes by the clock."""
    clock = FakeClock()
    store = made(front.address, clock)
    at = clock.now() + timedelta(seconds=10, microseconds=1)
    token = store.put(Item("a", "b", {}, expires_at=at)).token
    clock.advance(timedelta(seconds=10))

    found = store.get("a", "b")
    assert found
    assert (found.expires_at, found.token) == (at, token)
    clock.advance(timedelta(microseconds=1))
    assert store.get("a", "b") is None
    with pytest.raises(StaleError):
        store.put(Item("a", "b", {}), expect=token)
    store.put(Item("a", "b", {}), expect=ABSENT)


@pytest.mark.parametrize("year", [1, 9999])
def test_any_expiry_can_be_written(store: FirestoreStore, year: int) -> None:
    """To the ends of what a time can be, and to the microsecond."""
    at = datetime(year, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
    written = store.put(Item("a", "b", {}, expires_at=at))

    assert store.get("a", "b") == (written if year == 9999 else None)


def test_a_server_that_dies_and_comes_back_is_found_again(made: Made, mortal: Emulator) -> None:
    """Meanwhile each call ends in time; afterwards no process has to be restarted."""
    store = made(mortal.address, sleep=time.sleep)
    store.put(Item("a", "b", {}))
    mortal.stop()
    began = time.monotonic()
    for act in (lambda: store.get("a", "b"), lambda: list(store.query("a"))):
        with pytest.raises(UnreachableError, match="Google does not answer"):
            act()
    assert time.monotonic() - began < 2 * LONGEST_CALL
    mortal.start()

    assert store.get("a", "b") is None
    written = store.put(Item("a", "b", {}), expect=ABSENT)
    assert store.get("a", "b") == written


def test_a_server_that_hangs_holds_nobody_up(made: Made, mortal: Emulator) -> None:
    """A call ends after ten seconds, whatever the library would do; then all is as before."""
    store = made(mortal.address)
    written = store.put(Item("a", "b", {}))
    mortal.freeze()
    began = time.monotonic()
    with pytest.raises(UnreachableError, match="Google does not answer"):
        store.put(Item("a", "c", {}))
    assert time.monotonic() - began < LONGEST_CALL
    mortal.thaw()

    assert store.get("a", "b") == written


def test_nothing_is_made_before_the_first_call() -> None:
    """A process that is forked, or restored from a snapshot, makes its own connections."""
    services = Services("a-project")
    FirestoreStore(services, clock=FakeClock())

    assert services._clients == {}


def test_records_that_were_copied_into_another_database_are_read_and_replaced(
    made: Made, front: Front, google_project: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a restore makes one: each document has another time there, which is its token."""
    blobs, sealer = FileBlobs(tmp_path), Sealer(bytes(32))

    def records(database: str) -> Records:
        store = made(front.address, database=database)
        return Records(store, blobs, sealer, SystemClock())

    former = records(DATABASE)
    texts = {str(size): {"text": noise(size)} for size in (10, 20_000, 600_000)}
    for name, text in texts.items():
        former.manifests.put("ConfigMap", "default", name, text)
    monkeypatch.setenv("FIRESTORE_EMULATOR_HOST", front.address)
    old, new = (
        Client(google_project, AnonymousCredentials(), database=each) for each in (DATABASE, "new")
    )
    for each in old.collection(ITEMS).stream():
        new.collection(ITEMS).document(each.id).set(each.to_dict())
    for each in (old, new):
        each.close()

    restored = records("new")
    for name, text in texts.items():
        kept = restored.manifests.get("ConfigMap", "default", name)
        assert value_of(kept) == text
        restored.manifests.put("ConfigMap", "default", name, {"text": "newer"})
        assert value_of(restored.manifests.get("ConfigMap", "default", name)) == {"text": "newer"}
    assert value_of(former.manifests.get("ConfigMap", "default", "10")) == texts["10"]
