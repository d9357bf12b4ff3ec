"""Resyncs of large clusters: page by page, in turns, continued by any worker."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from bellhop.core.gvk import GVK, ObjectKey
from bellhop.errors import DeniedError, StaleError
from bellhop.ports.kube import Page
from bellhop.resync import kind_lister, observed_kinds
from bellhop.settings import Settings
from bellhop.state.messages import Resync
from tests.fakes.fleet import EAST, SERVICE, Fleet, OpenFleet, service
from tests.fakes.hooks import failing
from tests.fakes.kube import CONFIG, FakeKube
from tests.fakes.manifests import INSTANTIATE, config, holder, join, source, trigger

NAMES = "{{ range .Resources }}{{ .metadata.namespace }}/{{ .metadata.name }} {{ end }}"
DECLARED = join(
    source(),
    trigger(one="false"),
    holder("made", config("made", f"all: '{NAMES}'"), annotations=INSTANTIATE),
)


@pytest.fixture(autouse=True)
def _short_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (kind_lister, observed_kinds):
        monkeypatch.setattr(module, "PAGE", 2)


@pytest.fixture
def fleet(open_fleet: OpenFleet) -> Fleet:
    """A fleet whose turns end after each step, and which withdraws ended matches at once."""
    return open_fleet(Settings(turn=timedelta(0), hold_share=0))


@pytest.fixture
def east(fleet: Fleet) -> FakeKube:
    """A resynced cluster, with five objects in namespaces that sort unlike their keys."""
    kube = fleet.register("east", env="production")
    for namespace in ("a", "a-b"):
        metadata = {"name": namespace}
        kube.put({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    for namespace, name in (("a", "1"), ("a", "2"), ("a-b", "1"), ("a-b", "2"), ("default", "1")):
        kube.put(service(name, namespace))
    fleet.deploy(DECLARED)
    assert made(kube) == ["a-b/1", "a-b/2", "a/1", "a/2", "default/1"]
    return kube


def made(kube: FakeKube) -> list[str]:
    """Return the objects that templates were given."""
    return sorted(each for one in kube.objects(CONFIG) for each in one["data"]["all"].split())


def turns(fleet: Fleet, number: int) -> None:
    """Work on so many messages of the stage `resync`."""
    for _ in range(number):
        fleet.work("sweep", fleet.queues["sweep"].receive(1, wait=timedelta(0)))


def once(kube: FakeKube, verb: str, happens: Callable[[], Any], *, on: int = 1) -> None:
    """Let something happen before a verb is answered, the nth time that it is about Services."""
    real, asked = getattr(kube, verb), Counter[str]()

    def slow(gvk: GVK, *args: Any, **more: Any) -> Any:
        asked[verb] += gvk == SERVICE
        if gvk == SERVICE and asked[verb] == on:
            happens()
        return real(gvk, *args, **more)

    setattr(kube, verb, slow)


def test_finds_deleted_and_new_objects(fleet: Fleet, east: FakeKube) -> None:
    """Whatever page it was, or would be, on."""
    for place in (("a", "1"), ("a-b", "2"), ("default", "1")):
        east.drop(SERVICE, *place)
    east.put(service("0", "a-b"))
    east.put(service("9", "default"))

    fleet.resync()

    assert made(east) == ["a-b/0", "a-b/1", "a/2", "default/9"]
    health = fleet.records.health.get(EAST).value
    assert health.missed == 5
    assert fleet.records.walks.get(EAST) is None
    assert list(fleet.records.walks.suspects(EAST, SERVICE)) == []


def test_a_large_cluster_is_resynced_in_turns(fleet: Fleet, east: FakeKube) -> None:
    """Each message reads a page at most, and what is remembered does not grow with the cluster."""
    pages: list[int] = []
    sizes: set[int] = set()
    for number in range(40):
        east.put(service(f"s{number:03}"))

    def read() -> int:
        return len([each for each in east.calls if (each.verb, each.gvk) == ("list", SERVICE)])

    fleet.publisher.publish([Resync(EAST)])
    while deliveries := fleet.queues["sweep"].receive(1, wait=timedelta(0)):
        before = read()
        fleet.work("sweep", deliveries)
        pages.append(read() - before)
        walk = fleet.store._store.get(f"walk/{EAST}", "walk")
        sizes.add(len(str(walk.value)) if walk else 0)

    assert max(pages) == 1
    assert sum(pages) == 23
    assert max(sizes) < 1000


@pytest.mark.parametrize(
    "left",
    [
        pytest.param((0, 39), marks=pytest.mark.rest, id="between"),
        pytest.param((39, 40), marks=pytest.mark.rest, id="before"),
        pytest.param((), id="all"),
    ],
)
def test_very_many_deleted_objects_are_buried_in_turns(
    fleet: Fleet, east: FakeKube, left: tuple[int, ...]
) -> None:
    """A page may cover the places of more than anybody can look at in one turn."""
    for number in range(41):
        east.put(service(f"s{number:03}", "a"))
    fleet.resync()
    for number in set(range(41)) - set(left):
        east.drop(SERVICE, "a", f"s{number:03}")
    noted: list[int] = []
    suspect = fleet.records.walks.suspect

    def counting(cluster: str, keys: Any) -> None:
        noted.append(len(keys))
        suspect(cluster, keys)

    fleet.records.walks.suspect = counting  # type: ignore[method-assign]
    for _ in range(3):
        fleet.resync()

    assert max(noted) == 4
    assert len(made(east)) == 5 + len(left)
    assert list(fleet.records.walks.suspects(EAST, SERVICE)) == []


def test_a_list_that_expires_half_way_begins_again(fleet: Fleet, east: FakeKube) -> None:
    """Objects on its first pages count once, and none of them counts as deleted."""
    east.drop(SERVICE, "a", "1")
    once(east, "page", east.expire, on=2)

    fleet.resync()

    assert made(east) == ["a-b/1", "a-b/2", "a/2", "default/1"]
    assert fleet.records.health.get(EAST).value.missed == 1


def test_a_list_that_is_never_read_to_its_end_is_an_error(fleet: Fleet, east: FakeKube) -> None:
    """It withdraws nothing, and the schedule tries again."""
    real = east.page

    def hasty(gvk: GVK, **more: Any) -> Any:
        if more.get("after"):
            raise StaleError("the list is too old by now")
        return real(gvk, **more)

    east.page = hasty  # type: ignore[method-assign]
    for _ in range(20):
        fleet.resync()
        fleet.clock.advance(timedelta(minutes=2))

    assert fleet.records.health.get(EAST).value.state == "Down"
    assert len(made(east)) == 5


def test_a_list_in_another_order_is_read_as_a_whole(fleet: Fleet, east: FakeKube) -> None:
    """An aggregated API may have its own; then a page says nothing about what is on none."""
    real = FakeKube._list

    def backwards(self: FakeKube, *args: Any) -> Any:
        return real(self, *args)[::-1]

    east._list = backwards.__get__(east)  # type: ignore[method-assign]
    east.drop(SERVICE, "a-b", "1")

    fleet.resync()

    assert made(east) == ["a-b/2", "a/1", "a/2", "default/1"]


def test_events_that_come_between_two_pages_are_not_undone(fleet: Fleet, east: FakeKube) -> None:
    """Later pages show the state of the first one: what is kept may be newer."""
    [first, last] = [each for each in east.objects(SERVICE) if each["metadata"]["name"] == "1"][::2]
    assert last["metadata"]["namespace"] == "default"

    def events() -> None:
        fleet.drop("east", last)
        fleet.drop("east", first)
        fleet.write("east", service("7", "default"))

    once(east, "page", events, on=2)

    fleet.resync()
    assert made(east) == ["a-b/1", "a-b/2", "a/2", "default/7"]


def test_objects_of_a_restored_cluster_are_believed_on_every_page(
    fleet: Fleet, east: FakeKube
) -> None:
    """Versions went back, and an object that was deleted is there again with its old uid."""
    backup = {key: dict(each) for key, each in east._objects.items()}
    fleet.write("east", service("1", "a", spec={"ports": [{"port": 1}]}))
    fleet.drop(
        "east", next(e for e in east.objects(SERVICE) if e["metadata"]["namespace"] == "default")
    )
    fleet.pump()
    assert len(made(east)) == 4
    config = {key: each for key, each in east._objects.items() if key[1] == "ConfigMap"}
    east._objects = {**backup, **config}

    fleet.resync()

    assert len(made(east)) == 5
    kept = fleet.records.observations.get(EAST, ObjectKey(SERVICE, "a", "1"))
    assert kept
    assert kept.value.manifest
    assert kept.value.manifest["spec"]["ports"][0]["port"] == 80


def test_of_two_workers_on_one_resync_one_continues(fleet: Fleet, east: FakeKube) -> None:
    """A worker that is late with a page finds another write, and stops."""
    east.put(service("3", "a"))
    evaluated: list[Any] = []
    real = fleet.publisher.publish

    def noting(messages: Any) -> None:
        batch = list(messages)
        evaluated.extend(each for each in batch if each.do == "evaluate")
        real(batch)

    fleet.publisher.publish = noting  # type: ignore[method-assign]
    once(east, "page", fleet.resync, on=2)

    fleet.resync()

    assert "a/3" in made(east)
    assert fleet.records.walks.get(EAST) is None
    assert fleet.queues["sweep"].list() == []
    assert len(evaluated) <= 2
    assert fleet.records.health.get(EAST).value.missed == 1


def test_a_resync_requested_during_another_follows_it(fleet: Fleet, east: FakeKube) -> None:
    """It does not start again at once, and lists once more what it has passed."""
    fleet.publisher.publish([Resync(EAST)])
    turns(fleet, 4)
    walk = fleet.records.walks.get(EAST)
    assert walk
    assert walk.value.last
    east.put(service("0", "a-b"))

    fleet.publisher.publish([Resync(EAST)])
    turns(fleet, 1)
    still = fleet.records.walks.get(EAST)
    assert still
    assert still.value.id == walk.value.id
    fleet.pump()

    assert "a-b/0" in made(east)
    assert fleet.records.walks.get(EAST) is None


def test_a_resync_by_former_sources_begins_again(fleet: Fleet, east: FakeKube) -> None:
    """All objects are evaluated by the present sources; a message of the former one is ignored."""
    fleet.publisher.publish([Resync(EAST)])
    turns(fleet, 4)
    old = fleet.records.walks.get(EAST)
    assert old
    fleet.apply(DECLARED.replace("kind: Service}]", "kind: Service, namespace: a}]"))
    turns(fleet, 2)
    new = fleet.records.walks.get(EAST)
    assert new
    assert new.value.id != old.value.id
    fleet.stages["sweep"].handle(Resync(EAST, walk=old.value.id))
    assert fleet.records.walks.get(EAST) == new

    fleet.pump()
    assert made(east) == ["a/1", "a/2"]


def test_a_message_of_an_ended_resync_has_no_effect(fleet: Fleet, east: FakeKube) -> None:
    """Be it a week later, from the dead letters."""
    east.calls.clear()

    fleet.stages["sweep"].handle(Resync(EAST, walk="last week"))

    assert east.calls == []
    assert fleet.pump() == 0


def test_only_the_interrupted_page_is_published_again(fleet: Fleet, east: FakeKube) -> None:
    """After a death before publishing, that page is published again, and no other."""
    east.put(service("3", "a"))
    publish = fleet.queues["review"].publish
    with failing(fleet.queues["review"], "publish", SystemExit(9)), pytest.raises(SystemExit):
        fleet.resync()
    fleet.queues["sweep"].release()
    published: list[str] = []

    def noting(messages: Any) -> None:
        published.extend(each.body["object"].removeprefix("/v1/Service/") for each in messages)
        publish(messages)

    fleet.queues["review"].publish = noting  # type: ignore[method-assign]
    fleet.pump()

    assert "a/3" in published
    assert {*published} == {"a/3", "default/1"}
    assert "a/3" in made(east)


def test_a_held_deletion_is_confirmed_by_three_resyncs_and_not_by_three_tries(
    fleet: Fleet, east: FakeKube
) -> None:
    """A resync that confirms it again after a death counts once."""
    for number in range(20):
        east.put(service(f"s{number:02}"))
    fleet.resync()
    for number in range(20):
        east.drop(SERVICE, "default", f"s{number:02}")
    for _ in range(2):
        with failing(fleet.records.ledger, "note", SystemExit(9)), pytest.raises(SystemExit):
            fleet.resync()
        fleet.queues["sweep"].release()
        kept = fleet.records.walks.get(EAST)
        assert kept
        fleet.records.walks.put(EAST, replace(kept.value, again=""))
        fleet.pump()
        assert len(made(east)) == 25

    fleet.resync()
    assert len(made(east)) == 5


def test_a_denied_kind_is_not_evaluated_in_full_once_it_may_be_listed(
    fleet: Fleet, east: FakeKube
) -> None:
    """It is evaluated by the same source as before."""
    with failing(east, "page", DeniedError("no right to list services")):
        fleet.resync()
    assert fleet.records.health.get(EAST).value.state == "Down"
    published: list[Any] = []
    publish = fleet.queues["evaluate"].publish
    fleet.queues["evaluate"].publish = (  # type: ignore[method-assign]
        lambda messages: (published.extend(messages), publish(messages))[1]
    )

    fleet.resync()

    assert published == []
    assert fleet.records.health.get(EAST).value.state == "Healthy"


def test_a_denied_kind_leaves_the_other_kinds_of_its_source_evaluated(
    fleet: Fleet, east: FakeKube
) -> None:
    """A source that names it beside another kind is not evaluated in full by every resync."""
    whole = east.page

    def narrow(gvk: GVK, **more: Any) -> Any:
        if gvk.kind == "Secret":
            raise DeniedError("no right to list secrets")
        return whole(gvk, **more)

    east.page = narrow  # type: ignore[method-assign]
    more = "kind: Service}, {group: '', version: v1, kind: Secret}]"
    fleet.deploy(DECLARED.replace("kind: Service}]", more))
    fleet.resync()
    done = Counter[str]()
    for stage in fleet.stages.values():
        real = stage.handle

        def counting(message: Any, real: Any = real) -> None:
            done[message.do] += 1
            real(message)

        stage.handle = counting  # type: ignore[method-assign]

    fleet.resync()

    assert (done["sweep"] > 0, done["evaluate"], done["instantiate"]) == (True, 0, 0)
    east.page = whole  # type: ignore[method-assign]
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}
    east.put(secret)
    fleet.resync()
    assert "default/s" in made(east)


def test_a_worker_that_comes_back_late_does_not_say_how_the_cluster_was(
    fleet: Fleet, east: FakeKube
) -> None:
    """Neither that it was well nor that it was down."""
    from bellhop.errors import UnreachableError  # noqa: PLC0415 - one test's error

    real = east.page

    def stalled(*_: Any, **__: Any) -> Any:
        east.page = real  # type: ignore[method-assign]
        fleet.clock.advance(timedelta(minutes=3))
        fleet.resync()
        assert fleet.records.health.get(EAST).value.state == "Healthy"
        raise UnreachableError("what was asked long ago was never answered")

    east.page = stalled  # type: ignore[method-assign]
    fleet.publisher.publish([Resync(EAST)])
    for _ in range(4):
        turns(fleet, 1)

    assert fleet.records.health.get(EAST).value.state == "Healthy"


def test_a_list_without_end_is_an_error(
    fleet: Fleet, east: FakeKube, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pages that promise more and hold nothing lead nowhere."""
    monkeypatch.setattr(kind_lister, "_MOST_EMPTY", 3)
    east.page = lambda *_, **__: Page([], "more")  # type: ignore[assignment, method-assign]
    for _ in range(10):
        fleet.resync()
        fleet.clock.advance(timedelta(minutes=2))

    health = fleet.records.health.get(EAST).value
    assert (health.state, "it has no end" in health.message) == ("Down", True)
    assert len(made(east)) == 5


def _endless(names: Iterator[str]) -> Callable[..., Page]:
    """Return pages of a list without an end, with another name for each object."""

    def page(_gvk: GVK, *, limit: int, after: str = "", **_: Any) -> Page:
        items = []
        for _number in range(limit):
            made = service(next(names))
            made["metadata"] |= {"uid": f"u-{made['metadata']['name']}", "resourceVersion": "5"}
            items.append(made)
        return Page(items, after + "1", (), 10_000)

    return page


def test_a_list_without_end_is_stored_once_up_to_a_limit(
    open_fleet: OpenFleet,
) -> None:
    """Whatever names later lists have, nothing counts as deleted, and all is read once it ends.

    A list that ended in the meantime is read to its end before any of it is stored.
    """
    fleet = open_fleet(Settings(hold_share=0, sweep_bytes=45_000))
    kube = fleet.register("east", env="production")
    fleet.apply_example("network-policy")
    kube.put(service("real"))
    fleet.resync()
    names = (f"s-{number:09}" for number in itertools.count())
    there, kube.page = kube.page, _endless(names)  # type: ignore[method-assign]
    counts = []
    for _ in range(6):
        fleet.resync()
        counts.append(len(list(fleet.records.observations.heads(EAST, SERVICE))))

    health = fleet.records.health.get(EAST).value
    assert counts == [9] * 6
    assert "the list is larger than 0.0429 MiB, and nothing is taken for deleted" in health.message
    assert health.unseen == (SERVICE,)
    assert fleet.records.observations.head(EAST, ObjectKey(SERVICE, "default", "real"))

    kube.page = there  # type: ignore[method-assign]
    kube.put(service("new"))
    for _ in range(4):
        fleet.resync()

    heads = fleet.records.observations.heads(EAST, SERVICE)
    assert sorted(each.key.name for each in heads if not each.gone) == ["new", "real"]
    assert fleet.records.health.get(EAST).value.state == "Healthy"
