"""What every store keeps to: the sentences of bellhop.ports.store, in real time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bellhop.errors import InvalidError, StaleError, TooLargeError
from bellhop.ports.store import ABSENT, ANY, ITEM_LIMIT, KEY_LIMIT, Item, Store
from tests.waiting import PATIENCE, eventually

PORT = "store"
HOUR = timedelta(hours=1)

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
    """What was written is read back as the same JSON.

    It takes long: Hypothesis draws sixty documents, and each is written and read.
    """
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

    found = store.get("a", "b")
    assert found == other.get("a", "b")
    assert found
    assert found.value == {"n": 2}


def test_each_write_has_a_token_of_its_own(store: Store) -> None:
    """A write returns, and stores, a token that no write before it had."""
    tokens = [store.put(Item("a", "b", {"n": n})).token for n in range(20)]

    assert len({*tokens, ""}) == 21
    assert store.get("a", "b") == Item("a", "b", {"n": 19}, tokens[-1])


def test_items_are_read_and_queried_with_the_same_token(store: Store) -> None:
    """However an item was found, its token is the one to expect."""
    written = store.put(Item("a", "b", {}))

    assert store.get("a", "b") == written
    assert list(store.query("a")) == [written]


def test_put_does_not_look_at_the_items_own_token(store: Store) -> None:
    """`item.token` plays no part in a write."""
    first = store.put(Item("a", "b", {}, token="mine"))
    second = store.put(first)

    assert len({"mine", first.token, second.token}) == 3


def test_put_if_absent_writes_once(store: Store) -> None:
    """ABSENT creates an item and is stale where there is one."""
    first = store.put(Item("a", "b", {"n": 1}), expect=ABSENT)

    with pytest.raises(StaleError, match="'a' 'b'"):
        store.put(Item("a", "b", {"n": 2}), expect=ABSENT)

    assert store.get("a", "b") == first


@pytest.mark.parametrize("own", [True, False], ids=["an older token", "a token of no write"])
def test_put_on_another_token_is_stale(store: Store, *, own: bool) -> None:
    """A write that expects another token than the one there changes nothing."""
    older = store.put(Item("a", "b", {"n": 1})).token if own else "0123456789abcdef"
    newer = store.put(Item("a", "b", {"n": 2})).token

    with pytest.raises(StaleError):
        store.put(Item("a", "b", {"n": 9}), expect=older)

    assert store.put(Item("a", "b", {"n": 3}), expect=newer).token not in {older, newer}


def test_put_on_a_token_where_nothing_is_is_stale(store: Store) -> None:
    """A token that is expected must be there."""
    token = store.put(Item("a", "b", {})).token
    store.delete("a", "b")

    with pytest.raises(StaleError):
        store.put(Item("a", "b", {}), expect=token)

    assert store.get("a", "b") is None


def test_delete_says_whether_it_was_there(store: Store) -> None:
    """Deleting is True once and False afterwards."""
    store.put(Item("a", "b", {}))

    assert store.delete("a", "b")
    assert not store.delete("a", "b")
    assert store.get("a", "b") is None


def test_delete_on_another_token_is_stale(store: Store) -> None:
    """A delete that expects another token leaves the item there; a deleted one is stale too."""
    older = store.put(Item("a", "b", {})).token
    newer = store.put(Item("a", "b", {})).token

    with pytest.raises(StaleError):
        store.delete("a", "b", expect=older)

    assert store.get("a", "b") is not None
    assert store.delete("a", "b", expect=newer)
    with pytest.raises(StaleError):
        store.delete("a", "b", expect=newer)


def test_delete_of_nothing_deletes_nothing(store: Store) -> None:
    """ABSENT is stale where something is, and no harm where nothing is."""
    assert not store.delete("a", "b", expect=ABSENT)
    store.put(Item("a", "b", {}))

    with pytest.raises(StaleError):
        store.delete("a", "b", expect=ABSENT)

    assert store.get("a", "b") is not None


def test_the_token_of_an_earlier_life_never_comes_back(rig: Any, store: Store) -> None:
    """A reader of an item that was deleted and re-created since neither writes nor deletes it."""
    slow = store.put(Item("a", "b", {"same": True})).token
    seen = {slow}
    for _ in range(10):
        rig.store().delete("a", "b")
        seen.add(rig.store().put(Item("a", "b", {"same": True}), expect=ABSENT).token)

    assert len(seen) == 11
    with pytest.raises(StaleError):
        store.put(Item("a", "b", {"by": "the slow one"}), expect=slow)
    with pytest.raises(StaleError):
        store.delete("a", "b", expect=slow)
    found = store.get("a", "b")
    assert found
    assert found.value == {"same": True}


def soon() -> datetime:
    """Return a moment that no test reaches, in whole seconds, as the coarsest store keeps them."""
    return datetime.now(UTC).replace(microsecond=0) + HOUR


def test_expiry_is_read_back(store: Store) -> None:
    """Until `expires_at` an item is there, and says when it goes, in UTC."""
    at = soon()
    store.put(Item("a", "mortal", {}, expires_at=at.astimezone(timezone(-HOUR))))

    item = store.get("a", "mortal")
    assert item is not None
    assert item.expires_at == at
    assert item.expires_at.tzinfo == UTC


def test_expired_items_are_missing_for_every_reader(store: Store) -> None:
    """From `expires_at` on neither get, query nor delete finds an item."""
    store.put(Item("a", "mortal", {}, expires_at=soon() - 2 * HOUR))
    store.put(Item("a", "immortal", {}))

    assert store.get("a", "mortal") is None
    assert sorts(store.query("a")) == ["immortal"]
    assert not store.delete("a", "mortal")


def test_an_item_goes_when_its_time_has_come(store: Store) -> None:
    """Nobody has to do anything for it."""
    store.put(Item("a", "b", {}, expires_at=datetime.now(UTC) + timedelta(seconds=1)))
    eventually('store.get("a", "b") is None', lambda: store.get("a", "b") is None, patience=60)

    assert store.get("a", "b") is None


def test_an_expired_item_is_absent_for_writers_too(store: Store) -> None:
    """ABSENT writes over an expired item; its old token is stale."""
    old = store.put(Item("a", "b", {}, expires_at=soon() - 2 * HOUR))

    with pytest.raises(StaleError):
        store.put(Item("a", "b", {}), expect=old.token)
    with pytest.raises(StaleError):
        store.delete("a", "b", expect=old.token)

    new = store.put(Item("a", "b", {"new": True}), expect=ABSENT)
    assert store.get("a", "b") == new


def test_a_write_over_an_expired_item_restores_it(store: Store) -> None:
    """ANY writes over an expired item, and without expiry it stays."""
    store.put(Item("a", "b", {}, expires_at=soon() - 2 * HOUR))
    store.put(Item("a", "b", {"n": 2}), expect=ANY)

    item = store.get("a", "b")
    assert item is not None
    assert (item.value, item.expires_at) == ({"n": 2}, None)


def test_takes_items_up_to_its_limit(store: Store) -> None:
    """What fills the limit is written, what exceeds it is refused and changes nothing."""
    around = len('ab{"text":""}')
    store.put(Item("a", "b", {"text": "x" * (ITEM_LIMIT - around)}))

    with pytest.raises(TooLargeError, match=r"'a' 'b'.*exceed"):
        store.put(Item("a", "b", {"text": "y" * (ITEM_LIMIT - around + 1)}))

    item = store.get("a", "b")
    assert item is not None
    assert item.value["text"].startswith("x")


def test_the_limit_counts_bytes_and_keys(store: Store) -> None:
    """A text that takes several bytes a character counts as such, and so do long keys."""
    for item in (
        Item("a", "b", {"text": "ü" * (ITEM_LIMIT // 2)}),
        Item("p" * KEY_LIMIT, "s" * KEY_LIMIT, {"text": "x" * (ITEM_LIMIT - 2 * KEY_LIMIT)}),
    ):
        with pytest.raises(TooLargeError):
            store.put(item)


def test_takes_keys_up_to_their_limit(store: Store) -> None:
    """Partitions and sort keys alike, by bytes."""
    longest = "ü" * (KEY_LIMIT // 2)
    item = store.put(Item(longest, longest, {"n": 1}))

    assert store.get(longest, longest) == item
    assert list(store.query(longest, prefix=longest)) == [item]
    for key in ((longest + "x", "b"), ("a", longest + "x")):
        with pytest.raises(TooLargeError, match="key"):
            store.put(Item(*key, {}))


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


@pytest.mark.parametrize("key", [("", "b"), ("a", "")], ids=["partition", "sort key"])
def test_refuses_an_empty_key(store: Store, key: tuple[str, str]) -> None:
    """Not every cloud has empty keys, so none has."""
    with pytest.raises(InvalidError, match="empty"):
        store.put(Item(*key, {}))
    with pytest.raises(InvalidError, match="empty"):
        store.get(*key)


def test_refuses_an_expiry_without_a_time_zone(store: Store) -> None:
    """A naive time could mean anything."""
    with pytest.raises(InvalidError, match="time zone"):
        store.put(Item("a", "b", {}, expires_at=soon().replace(tzinfo=None)))


@settings_for_stores
@given(
    names=st.lists(keys.filter(bool), unique=True, max_size=12),
    prefix=keys,
    after=keys,
    limit=st.none() | st.integers(0, 5),
    backwards=st.booleans(),
)
def test_query_keeps_to_a_plain_model(
    rig: Any,
    names: list[str],
    prefix: str,
    after: str,
    limit: int | None,
    backwards: bool,  # noqa: FBT001
) -> None:
    """Prefix, after, limit and backwards mean the same as on a list sorted by its UTF-8 bytes."""
    store = rig.store()
    for item in list(store.query("model")):
        store.delete("model", item.sort)
    for name in names:
        store.put(Item("model", name, {"name": name}))

    expected = sorted(
        (name for name in names if name.startswith(prefix) and name.encode() > after.encode()),
        key=str.encode,
        reverse=backwards,
    )
    found = store.query("model", prefix=prefix, after=after, limit=limit, backwards=backwards)
    assert sorts(found) == expected[:limit]
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
    assert sorts(store.query("p", backwards=True)) == names[::-1]
    assert sorts(store.query("p", after="0041", limit=200, backwards=True)) == names[:99:-1]


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


@pytest.mark.parametrize("backwards", [False, True])
def test_query_yields_nothing_twice_while_others_write(store: Store, *, backwards: bool) -> None:
    """Items that come, go and change behind and before a reader are yielded once at most."""
    for number in range(150):
        store.put(Item("p", f"{number:04}", {}))
    seen = []
    for item in store.query("p", backwards=backwards):
        seen.append(item.sort)
        store.delete("p", item.sort)
        store.put(Item("p", item.sort, {"again": True}))
        if len(seen) < 100:
            store.put(Item("p", f"{item.sort}+", {}))

    assert len(seen) == len(set(seen))
    assert {f"{number:04}" for number in range(150)} <= set(seen)


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
    """Of threads that create the same item one succeeds and all others get an error."""
    outcomes: list[str] = []

    def create(number: int) -> None:
        try:
            store.put(Item("race", "one", {"by": number}), expect=ABSENT)
            outcomes.append("created")
        except StaleError:
            outcomes.append("stale")

    in_threads(8, create)

    assert sorted(outcomes) == ["created"] + ["stale"] * 7


def test_one_of_many_processes_creates_an_item(store: Store, other_process: Any) -> None:
    """Of four processes that start at once one succeeds and all others get an error."""
    processes = [other_process("create", number) for number in range(4)]
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    outcomes = [process.stdout.readline().strip() for process in processes]

    assert sorted(outcomes) == ["created", "stale", "stale", "stale"]
    item = store.get("race", "one")
    assert item is not None
    assert item.value == {"by": str(outcomes.index("created"))}


def test_conditional_writes_lose_nothing_between_processes(
    store: Store, other_process: Any
) -> None:
    """Four processes count together to the exact sum."""
    store.put(Item("counter", "one", {"count": 0}))
    processes = [other_process("count", 50) for _ in range(4)]

    assert [process.wait(90 * PATIENCE) for process in processes] == [0, 0, 0, 0]
    item = store.get("counter", "one")
    assert item is not None
    assert item.value == {"count": 200}


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


def test_yields_all_items_of_all_partitions(rig: Any, store: Store) -> None:
    """Once each, as they are; what has expired is not among them."""
    written = [
        store.put(Item(f"p{number % 7}", f"s{number}", {"n": number})) for number in range(150)
    ]
    store.put(Item("p0", "gone", {}, expires_at=rig.now() - rig.span(1)))

    assert sorted(store.all(), key=lambda each: each.value["n"]) == written
