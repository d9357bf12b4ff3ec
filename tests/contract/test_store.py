"""What every store keeps to: the sentences of bellhop.ports.store."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bellhop.errors import InvalidError, StaleError, TooLargeError
from bellhop.ports.store import ABSENT, ANY, Item, Store

SECOND = timedelta(seconds=1)

settings_for_stores = settings(
    max_examples=60,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
keys = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
json_values = st.dictionaries(
    st.text(max_size=8),
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
        max_leaves=8,
    ),
    max_size=4,
)


@pytest.fixture
def store(rig: Any) -> Store:
    found: Store = rig.store()
    return found


def sorts(items: Any) -> list[str]:
    return [item.sort for item in items]


def test_reads_nothing_where_nothing_was_written(store: Store) -> None:
    """A key without an item reads as None."""
    assert store.get("a", "b") is None


@settings_for_stores
@given(value=json_values)
def test_reads_back_any_json(store: Store, value: dict[str, Any]) -> None:
    """What was written is read back as the same JSON."""
    store.put(Item("json", "one", value))

    item = store.get("json", "one")
    assert item is not None
    assert item.value == value


def test_every_client_sees_the_last_finished_write(rig: Any, store: Store) -> None:
    """A second client of the same place reads what the first one wrote."""
    other = rig.store()
    store.put(Item("a", "b", {"n": 1}))

    assert other.get("a", "b") == store.get("a", "b")

    other.put(Item("a", "b", {"n": 2}))

    assert store.get("a", "b") == Item("a", "b", {"n": 2}, version=2)


def test_version_is_one_at_creation_and_grows_by_one(store: Store) -> None:
    """Each write of an item returns, and stores, a version one higher."""
    versions = [store.put(Item("a", "b", {"n": n})).version for n in range(3)]

    assert versions == [1, 2, 3]
    assert store.get("a", "b") == Item("a", "b", {"n": 2}, version=3)


def test_put_does_not_look_at_the_items_own_version(store: Store) -> None:
    """`item.version` plays no part in a write."""
    assert store.put(Item("a", "b", {}, version=41)).version == 1
    assert store.put(Item("a", "b", {}, version=7)).version == 2


def test_put_if_absent_writes_once(store: Store) -> None:
    """ABSENT creates an item and is stale where there is one."""
    assert store.put(Item("a", "b", {"n": 1}), expect=ABSENT).version == 1

    with pytest.raises(StaleError, match="'a' 'b'"):
        store.put(Item("a", "b", {"n": 2}), expect=ABSENT)

    assert store.get("a", "b") == Item("a", "b", {"n": 1}, version=1)


@pytest.mark.parametrize(
    "expect",
    [
        pytest.param(1, id="an older version"),
        pytest.param(3, id="a version that was never there"),
    ],
)
def test_put_on_another_version_is_stale(store: Store, expect: int) -> None:
    """A write that expects another version than the one there changes nothing."""
    store.put(Item("a", "b", {"n": 1}))
    store.put(Item("a", "b", {"n": 2}))

    with pytest.raises(StaleError):
        store.put(Item("a", "b", {"n": 9}), expect=expect)

    assert store.put(Item("a", "b", {"n": 3}), expect=2).version == 3


def test_put_on_a_version_where_nothing_is_is_stale(store: Store) -> None:
    """A version that is expected must be there."""
    with pytest.raises(StaleError):
        store.put(Item("a", "b", {}), expect=1)

    assert store.get("a", "b") is None


def test_delete_says_whether_it_was_there(store: Store) -> None:
    """Deleting is True once and False afterwards."""
    store.put(Item("a", "b", {}))

    assert store.delete("a", "b")
    assert not store.delete("a", "b")
    assert store.get("a", "b") is None


def test_delete_on_another_version_is_stale(store: Store) -> None:
    """A delete that expects another version leaves the item there."""
    store.put(Item("a", "b", {}))
    store.put(Item("a", "b", {}))

    with pytest.raises(StaleError):
        store.delete("a", "b", expect=1)

    assert store.get("a", "b") is not None
    assert store.delete("a", "b", expect=2)
    assert not store.delete("a", "b", expect=2)


def test_an_item_written_after_a_delete_is_new(store: Store) -> None:
    """Versions begin anew at 1 after a delete."""
    store.put(Item("a", "b", {}))
    store.put(Item("a", "b", {}))
    store.delete("a", "b")

    assert store.put(Item("a", "b", {}), expect=ABSENT).version == 1


def test_expired_items_are_gone_for_every_reader(rig: Any, store: Store) -> None:
    """From `expires_at` on neither get, query nor delete finds an item."""
    expires_at = rig.clock.now() + 10 * SECOND
    store.put(Item("a", "mortal", {}, expires_at=expires_at))
    store.put(Item("a", "immortal", {}))

    item = store.get("a", "mortal")
    assert item is not None
    assert item.expires_at == expires_at
    assert item.expires_at.tzinfo == UTC

    rig.pass_time(11 * SECOND)

    assert store.get("a", "mortal") is None
    assert sorts(store.query("a")) == ["immortal"]
    assert not store.delete("a", "mortal")


def test_an_expired_item_is_absent_for_writers_too(rig: Any, store: Store) -> None:
    """ABSENT writes over an expired item; its old version is stale."""
    store.put(Item("a", "b", {}, expires_at=rig.clock.now() + SECOND))
    rig.pass_time(2 * SECOND)

    with pytest.raises(StaleError):
        store.put(Item("a", "b", {}), expect=1)

    assert store.put(Item("a", "b", {"new": True}), expect=ABSENT).version == 1
    assert store.get("a", "b") == Item("a", "b", {"new": True}, version=1)


def test_a_write_over_an_expired_item_brings_it_back(rig: Any, store: Store) -> None:
    """ANY writes over an expired item, and without expiry it stays."""
    store.put(Item("a", "b", {}, expires_at=rig.clock.now() + SECOND))
    rig.pass_time(2 * SECOND)
    store.put(Item("a", "b", {"n": 2}), expect=ANY)
    rig.pass_time(100 * SECOND)

    item = store.get("a", "b")
    assert item is not None
    assert item.value == {"n": 2}


def test_takes_items_up_to_its_limit(rig: Any, store: Store) -> None:
    """What nearly fills the limit is written, what exceeds it is refused and changes nothing."""
    store.put(Item("a", "b", {"text": "x" * (rig.item_limit - 1000)}))

    with pytest.raises(TooLargeError, match=r"'a' 'b'.*exceed"):
        store.put(Item("a", "b", {"text": "y" * rig.item_limit}))

    item = store.get("a", "b")
    assert item is not None
    assert item.value["text"].startswith("x")


@pytest.mark.parametrize(
    "value",
    [
        pytest.param({"at": object()}, id="no JSON type"),
        pytest.param({"at": float("nan")}, id="not a number"),
        pytest.param({"at": float("inf")}, id="infinity"),
    ],
)
def test_refuses_what_is_not_json(store: Store, value: dict[str, Any]) -> None:
    """A value that is not JSON is invalid, and nothing is written."""
    with pytest.raises(InvalidError):
        store.put(Item("a", "b", value))

    assert store.get("a", "b") is None


def test_refuses_a_key_that_is_not_unicode(store: Store) -> None:
    """A lone surrogate cannot be stored and is said to be invalid."""
    with pytest.raises(InvalidError):
        store.get("a", "\ud800")


def test_refuses_an_expiry_without_a_time_zone(rig: Any, store: Store) -> None:
    """A naive time could mean anything."""
    with pytest.raises(InvalidError, match="time zone"):
        store.put(Item("a", "b", {}, expires_at=rig.clock.now().replace(tzinfo=None)))


@settings_for_stores
@given(
    names=st.lists(keys.filter(bool), unique=True, max_size=12),
    prefix=keys,
    after=keys,
    limit=st.none() | st.integers(0, 5),
)
def test_query_keeps_to_a_plain_model(
    rig: Any, names: list[str], prefix: str, after: str, limit: int | None
) -> None:
    """Prefix, after and limit mean the same as on a list sorted by its UTF-8 bytes."""
    store = rig.store()
    for item in list(store.query("model")):
        store.delete("model", item.sort)
    for name in names:
        store.put(Item("model", name, {"name": name}))

    expected = sorted(
        (name for name in names if name.startswith(prefix) and name.encode() > after.encode()),
        key=str.encode,
    )
    assert sorts(store.query("model", prefix=prefix, after=after, limit=limit)) == expected[:limit]
    store.close()


@pytest.mark.parametrize(
    ("prefix", "expected"),
    [
        pytest.param("", ["%", "A", "a", "a%", "a%b", "a\\", "a_", "ab", "ä", "😀"], id="all"),
        pytest.param("a%", ["a%", "a%b"], id="percent is no wildcard"),
        pytest.param("a_", ["a_"], id="underscore is no wildcard"),
        pytest.param("a\\", ["a\\"], id="backslash escapes nothing"),
        pytest.param("A", ["A"], id="case counts"),
        pytest.param("😀", ["😀"], id="outside the basic plane"),
        pytest.param("\U0010ffff", [], id="the last of all characters"),
        pytest.param("\ud7ff", [], id="the last before the surrogates"),
    ],
)
def test_query_by_prefix_takes_every_character_as_itself(
    store: Store, prefix: str, expected: list[str]
) -> None:
    """A prefix has no wildcards, and the order is that of bytes."""
    for name in ("ab", "a%", "a_", "A", "a\\", "ä", "a%b", "😀", "%", "a"):
        store.put(Item("p", name, {}))

    assert sorts(store.query("p", prefix=prefix)) == expected


def test_query_keeps_partitions_apart(store: Store) -> None:
    """Items of other partitions are not yielded, however their names are alike."""
    for partition in ("a", "ab", "a/", "A"):
        store.put(Item(partition, "one", {"of": partition}))

    assert [item.value for item in store.query("a")] == [{"of": "a"}]


def test_query_yields_more_than_a_page(store: Store) -> None:
    """All of many items come, each once and in order."""
    names = [f"{number:04}" for number in range(300)]
    for name in reversed(names):
        store.put(Item("p", name, {}))

    assert sorts(store.query("p")) == names
    assert sorts(store.query("p", after="0041", limit=200)) == names[42:242]


def test_query_lets_others_write_while_its_reader_works(rig: Any, store: Store) -> None:
    """A reader who stops half-way holds up no writer, and goes on unharmed."""
    for number in range(200):
        store.put(Item("p", f"{number:04}", {}))
    found = store.query("p")
    first = next(found)
    other = rig.store()
    other.put(Item("p", "0199", {"changed": True}))
    other.delete("p", "0198")
    rest = list(found)

    assert [first.sort, *sorts(rest)] == [f"{n:04}" for n in range(200) if n != 198]
    assert rest[-1].value == {"changed": True}


def in_threads(count: int, work: Callable[[int], None]) -> None:
    failures: list[BaseException] = []

    def guarded(number: int) -> None:
        try:
            work(number)
        except BaseException as error:  # noqa: BLE001 - raised again below, in the test's thread
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_one_of_many_writers_creates_an_item(store: Store) -> None:
    """Of threads that create the same item one succeeds and all others are told."""
    outcomes: list[str] = []

    def create(number: int) -> None:
        try:
            store.put(Item("race", "one", {"by": number}), expect=ABSENT)
            outcomes.append("created")
        except StaleError:
            outcomes.append("stale")

    in_threads(8, create)

    assert sorted(outcomes) == ["created"] + ["stale"] * 7


def test_optimistic_writes_lose_nothing_between_threads_and_processes(
    store: Store, other_process: Any
) -> None:
    """Two threads and two processes count together to the exact sum."""
    store.put(Item("counter", "one", {"count": 0}))
    processes = [other_process("count", 50) for _ in range(2)]

    def count(_: int) -> None:
        left = 50
        while left:
            item = store.get("counter", "one")
            assert item is not None
            raised = Item("counter", "one", {"count": item.value["count"] + 1})
            try:
                store.put(raised, expect=item.version)
            except StaleError:
                continue
            left -= 1

    in_threads(2, count)
    assert [process.wait(30) for process in processes] == [0, 0]

    item = store.get("counter", "one")
    assert item is not None
    assert (item.value, item.version) == ({"count": 200}, 201)


def test_a_killed_writer_loses_nothing_that_was_acknowledged(rig: Any, other_process: Any) -> None:
    """After kill -9 every acknowledged item is there, whole, and at most one more."""
    writer = other_process("write_items")
    for _ in range(200):
        writer.stdout.readline()
    writer.kill()
    acknowledged = 200 + len(writer.stdout.read().splitlines())

    items = list(rig.store().query("kill"))
    numbers = [item.value["number"] for item in items]
    assert numbers == list(range(len(numbers)))
    assert len(numbers) in (acknowledged, acknowledged + 1)
    assert {len(item.value["text"]) for item in items} == {5000}
