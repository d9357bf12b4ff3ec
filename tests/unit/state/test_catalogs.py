"""The catalog is read in as few reads as its revision allows, and is never older than that says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from bellhop.adapters.local.store import FileBlobs
from bellhop.api.kinds import of
from bellhop.catalog.cache import Catalogs
from bellhop.catalog.catalog import Catalog
from bellhop.catalog.records import SHARES, Revision
from bellhop.errors import LostWriteError, MissingError, StaleError, UnreachableError
from bellhop.ports.store import ANY, Item
from bellhop.state.cluster import Cluster
from bellhop.state.payloads import SHARDS
from bellhop.state.records import Records
from bellhop.state.sealer import Sealer
from tests.fakes.fleet import CountingStore
from tests.unit.state.rig import LARGE, Rig, cluster

LIB = "lib.projectsveltos.io/v1beta1"


def source(name: str, kind: str = "Service", note: str = "") -> dict[str, Any]:
    selectors = [{"group": "", "version": "v1", "kind": kind}]
    metadata = {"name": name, "annotations": {"note": note}}
    spec = {"resourceSelectors": selectors}
    return {"apiVersion": LIB, "kind": "EventSource", "metadata": metadata, "spec": spec}


class Watched(CountingStore):
    """A store that counts, and before some write lets something happen first."""

    def __init__(self, store: Any) -> None:
        super().__init__(store)
        self.before: dict[tuple[str, str], Callable[[], None]] = {}
        self.asked: Counter[str] = Counter()

    def get(self, partition: str, sort: str) -> Item | None:
        self.asked[partition] += 1
        return super().get(partition, sort)

    def put(self, item: Item, *, expect: str | None = ANY) -> Item:
        act = self.before.pop((item.partition, item.sort), None)
        if act:
            act()
        return super().put(item, expect=expect)


class CountedBlobs(FileBlobs):
    """A blob store that adds to what a store counts."""

    def __init__(self, folder: Path, counts: Counter[str]) -> None:
        super().__init__(folder)
        self._counts = counts

    def get(self, name: str) -> bytes:
        self._counts["blob"] += 1
        return super().get(name)


@pytest.fixture
def store(rig: Rig) -> Watched:
    return Watched(rig.store)


@pytest.fixture
def records(rig: Rig, store: Watched) -> Records:
    blobs = CountedBlobs(rig.folder, store.counts)
    return Records(store, blobs, Sealer(bytes(32)), rig.clock, short=0)


def declare(records: Records, name: str, *more: str, tell: bool = True) -> None:
    records.manifests.put("EventSource", "", name, source(name, *more))
    if tell:
        records.catalog.change("declared")


COLD = {"get": 1, "query": 1, "blob": 1}
"""What a process that has just begun reads."""


def names(records: Records) -> list[str]:
    """Return the sources as a process sees them that has just begun."""
    return sorted(Catalogs(records).current().sources)


def reads(store: Watched, act: Callable[[], Any]) -> dict[str, int]:
    store.counts.clear()
    act()
    return {kind: count for kind, count in store.counts.items() if kind != "item"}


@pytest.mark.parametrize("count", [1, 40])
def test_a_cold_start_reads_as_often_however_much_is_declared(
    records: Records, store: Watched, count: int
) -> None:
    """The revision, the blob that it names, and one query for the clusters."""
    for number in range(count):
        declare(records, f"s{number}", "Service", LARGE[: len(LARGE) // 20])
    names(records)

    assert reads(store, lambda: names(records)) == COLD
    assert len(names(records)) == count


def test_a_label_reads_the_clusters_and_no_rule(records: Records, store: Watched) -> None:
    """The rules at hand are the same objects; the clusters are one query."""
    declare(records, "s")
    records.clusters.put(cluster())
    catalogs = Catalogs(records)
    first = catalogs.current()
    records.clusters.put(cluster("west"))
    records.catalog.change("clusters")

    assert reads(store, catalogs.current) == {"get": 2, "query": 1}
    later = catalogs.current()
    assert sorted(later.clusters) == ["fleet/east", "fleet/west"]
    assert later.clusters["fleet/east"] is first.clusters["fleet/east"]
    assert later.sources["s"] is first.sources["s"]
    assert later.revision > first.revision


def test_a_declaration_reads_no_cluster_and_parses_what_changed(
    records: Records, store: Watched
) -> None:
    """Clusters and unchanged rules are those at hand; what went is gone."""
    for name in ("a", "b", "c"):
        declare(records, name)
    catalogs = Catalogs(records)
    first = catalogs.current()
    declare(records, "b", "Pod")
    records.manifests.delete("EventSource", "", "c")
    records.catalog.change("declared")
    names(records)

    assert reads(store, catalogs.current) == {"get": 2, "blob": 1}
    later = catalogs.current()
    assert sorted(later.sources) == ["a", "b"]
    assert later.sources["a"] is first.sources["a"]
    assert [each.kind for each in later.sources["b"].kinds] == ["Pod"]


def test_a_label_keeps_the_holders(records: Records) -> None:
    """A ConfigMap is read again when something is declared, not when a cluster changes.

    By whoever has read the catalog since.
    """
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
    records.manifests.put("ConfigMap", "default", "a", manifest)
    records.catalog.change("declared")
    catalogs = Catalogs(records)
    held = catalogs.holder("ConfigMap", "default", "a")
    records.catalog.change("clusters")
    catalogs.current()

    assert catalogs.holder("ConfigMap", "default", "a") is held
    records.catalog.change("declared")
    catalogs.current()
    assert catalogs.holder("ConfigMap", "default", "a") is not held


def blobs(rig: Rig) -> list[Path]:
    return [path for path in rig.folder.rglob("*") if path.is_file()]


def test_a_lost_snapshot_is_written_anew(rig: Rig, records: Records, store: Watched) -> None:
    """It holds nothing that the manifests do not."""
    declare(records, "s")
    names(records)
    for path in blobs(rig):
        path.unlink()

    assert names(records) == ["s"]
    assert reads(store, lambda: names(records)) == COLD


def test_a_snapshot_goes_a_day_after_its_mark(rig: Rig, records: Records, store: Watched) -> None:
    """The one that is named stays, however old it is; labels keep it; nothing piles up."""
    for name in ("a", "b", "c"):
        declare(records, name)
        names(records)
    rig.clock.advance(timedelta(days=2))
    assert records.collect(rig.clock.now()) == 2
    records.catalog.change("clusters")
    rig.clock.advance(timedelta(days=2))
    assert records.collect(rig.clock.now()) == 0
    assert reads(store, lambda: names(records)) == COLD

    declare(records, "d")
    rig.clock.advance(timedelta(days=2))
    assert records.collect(rig.clock.now()) == 1
    assert blobs(rig) == []
    assert names(records) == ["a", "b", "c", "d"]


def test_a_lost_manifest_does_not_hurt_until_something_else_is_declared(
    records: Records, store: Watched
) -> None:
    """The snapshot still tells it; without one nothing is decided, and nothing is written down."""
    declare(records, "s")
    names(records)
    for shard in SHARDS:
        for item in list(store.query(f"payload/manifest/EventSource/{shard}")):
            store.delete(item.partition, item.sort)

    assert names(records) == ["s"]
    declare(records, "other")
    for _ in range(2):
        with pytest.raises(MissingError, match="EventSource /s"):
            names(records)
    assert sorted(Catalogs(records).known().sources) == ["other"]
    declare(records, "s")
    assert names(records) == ["other", "s"]


def test_what_was_just_written_is_not_opened(records: Records, store: Watched) -> None:
    """What another has written over it since is, and is read as theirs."""
    new = [of(source(f"s{number}")) for number in range(20)]
    put = records.manifests.put
    written = {put("EventSource", "", each.name, each.written): each for each in new}
    declare(records, "s7", "Pod")
    store.asked.clear()

    found = Catalogs(records).known(written)

    assert found.sources["s7"].written == source("s7", "Pod")
    assert found.sources["s8"] is new[8]
    opened = (place for place in store.asked if place.startswith("payload/manifest/"))
    assert sum(store.asked[place] for place in opened) == 1


def test_a_killed_declaration_is_seen_once_its_mark_is_drawn(records: Records) -> None:
    """Between manifest and mark the snapshot before it counts; then it does not any more."""
    declare(records, "a")
    assert names(records) == ["a"]
    declare(records, "b", tell=False)
    assert names(records) == ["a"]

    records.catalog.change("declared", "clusters")

    assert names(records) == ["a", "b"]


def test_a_slow_reader_replaces_no_later_snapshot(records: Records, store: Watched) -> None:
    """Whoever read the rules before a declaration, and writes after it, loses."""
    declare(records, "a")

    def overtake() -> None:
        declare(records, "b")
        assert names(records) == ["a", "b"]

    store.before["catalog", "revision"] = overtake
    Catalogs(records).current()

    assert reads(store, lambda: names(records)) == COLD
    assert names(records) == ["a", "b"]


def test_a_reader_that_is_out_of_date_writes_no_snapshot(records: Records) -> None:
    """What was read for an earlier mark is not kept under it, nor under the present one."""
    declare(records, "a")
    mark = records.catalog.read().declared
    old = {"EventSource": list(records.manifests.of("EventSource"))}
    declare(records, "b")
    records.snapshot.put(mark, old)

    assert names(records) == ["a", "b"]


def test_a_store_restored_from_a_backup_believes_no_later_snapshot(
    records: Records, store: Watched
) -> None:
    """Marks are drawn: the number that comes again names another catalog."""
    declare(records, "a")
    names(records)
    kept = store.get("catalog", "revision")
    assert kept
    declare(records, "b")
    names(records)
    store.put(Item("catalog", "revision", kept.value))
    records.manifests.delete("EventSource", "", "b")
    declare(records, "c")

    assert names(records) == ["a", "c"]


def test_a_snapshot_of_a_version_that_knew_less_is_not_used(records: Records) -> None:
    """A kind that it does not tell of is not taken for one of which there is nothing."""
    declare(records, "a")
    mark = records.catalog.read().declared
    records.snapshot.put(mark, {"EventSource": [source("a")]})

    now = records.catalog.read()
    assert records.snapshot.get(now, ["EventSource"]) == {"EventSource": [source("a")]}
    assert records.snapshot.get(now, ["EventSource", "OfALaterVersion"]) is None


def test_a_snapshot_that_cannot_be_written_keeps_nobody_from_reading(
    records: Records, store: Watched
) -> None:
    """It saves work and bears nothing."""
    declare(records, "a")

    def refuse() -> None:
        raise UnreachableError("The store does not answer.")

    store.before["catalog", "revision"] = refuse

    assert names(records) == ["a"]


# The revision -------------------------------------------------------------------------------


def test_whoever_is_overtaken_by_the_other_half_draws_its_own_mark(
    records: Records, store: Watched
) -> None:
    """A label that wins the write does not tell for the declaration beside it."""
    declare(records, "a")
    before = records.catalog.read()
    store.before["catalog", "revision"] = lambda: (records.catalog.change("clusters"), None)[1]

    after = records.catalog.change("declared")

    assert after.declared != before.declared
    assert after.clusters != before.clusters
    assert after.number == before.number + 2


def test_whoever_is_overtaken_by_another_label_is_told_for(
    records: Records, store: Watched
) -> None:
    """One mark that was drawn after both clusters were written tells of both."""
    records.catalog.change("clusters")
    before = records.catalog.read()
    store.before["catalog", "revision"] = lambda: (records.catalog.change("clusters"), None)[1]

    after = records.catalog.change("clusters")

    assert after == records.catalog.read()
    assert after.number == before.number + 1


def test_whoever_is_overtaken_by_another_declaration_names_what_it_wrote(
    records: Records, store: Watched
) -> None:
    """The mark of the quicker one does not name it; who reads by names would miss it."""
    declare(records, "a")
    catalogs = Catalogs(records)
    catalogs.current()
    for name in ("b", "c"):
        declare(records, name, tell=False)
    store.before["catalog", "revision"] = lambda: (tell(records, "b"), None)[1]

    tell(records, "c")

    assert sorted(catalogs.current().sources) == ["a", "b", "c"]


# Its shares -------------------------------------------------------------------------------------

READERS = 64
"""So many that one share of four, if it were behind, would be asked by some of them."""


def readers(records: Records) -> list[Catalogs]:
    found = [Catalogs(records) for _ in range(READERS)]
    for each in found:
        each.current()
    return found


def test_who_asks_whether_a_catalog_stands_reads_one_of_its_shares(
    records: Records, store: Watched
) -> None:
    """The revision itself is read when it changed: no item is asked for by every event."""
    declare(records, "a")
    catalogs = Catalogs(records)
    catalogs.current()
    store.asked.clear()
    for _ in range(400):
        catalogs.current()

    assert store.asked.total() == 400
    assert set(store.asked) == set(SHARES)
    assert max(store.asked.values()) < 200


def test_a_change_is_made_when_every_share_tells_of_it(records: Records) -> None:
    """Whoever reads after it sees it, whichever share he asks."""
    declare(records, "a")
    asked = readers(records)
    declare(records, "b")

    assert [sorted(each.current().sources) for each in asked] == [["a", "b"]] * READERS


@pytest.mark.parametrize("share", SHARES)
def test_whoever_is_slow_takes_nothing_back(records: Records, store: Watched, share: str) -> None:
    """A later change is made in the midst of one that then goes on to tell of its own."""
    declare(records, "a")
    asked = readers(records)

    def overtake() -> None:
        declare(records, "c")
        assert all("c" in each.current().sources for each in asked)

    store.before[share, "number"] = overtake
    declare(records, "b")

    assert [sorted(each.current().sources) for each in asked] == [["a", "b", "c"]] * READERS
    numbers = {each: store.get(each, "number") for each in SHARES}
    assert {each: item and item.value["number"] for each, item in numbers.items()} == dict.fromkeys(
        SHARES, records.catalog.read().number
    )


def test_who_is_told_for_by_another_waits_for_the_shares(records: Records, store: Watched) -> None:
    """Another label's mark tells of both, and its writer may have died before the shares knew."""
    records.catalog.change("clusters")
    asked = readers(records)
    records.clusters.put(cluster())

    def lose_race() -> None:
        records.catalog.put(
            replace(records.catalog.read(), number=2, clusters="x"),
            expect=records.catalog.kept().token,
        )

    store.before["catalog", "revision"] = lose_race
    records.catalog.change("clusters")

    assert all(each.current().clusters for each in asked)


# What a declaration names -----------------------------------------------------------------------


def tell(records: Records, *names: str) -> Revision:
    keys = [("EventSource", "", name) for name in names]
    return records.catalog.change("declared", keys=keys)


@pytest.mark.parametrize("count", [1, 40])
def test_one_more_is_read_alone_however_much_is_declared(
    records: Records, store: Watched, count: int
) -> None:
    """Who has the rules at hand reads a share, the revision, and the manifest that it names."""
    for number in range(count):
        declare(records, f"s{number}")
    catalogs = Catalogs(records)
    first = catalogs.current()
    declare(records, "more", tell=False)
    tell(records, "more")

    assert reads(store, catalogs.current) == {"get": 4}
    later = catalogs.current()
    assert set(later.sources) == {*first.sources, "more"}
    assert all(later.sources[name] is each for name, each in first.sources.items())


def test_a_cold_start_reads_what_the_blob_does_not_tell(records: Records, store: Watched) -> None:
    """A few manifests are read beside the blob; it is written anew when there are more."""
    declare(records, "a")
    names(records)
    written = []
    for name in ("b", "c", "d", "e", "f", "g", "h", "i", "j", "k"):
        declare(records, name, tell=False)
        tell(records, name)
        counts = reads(store, lambda: names(records))
        written.append(counts.get("put", 0) > 0)

    assert written == [False] * 8 + [True, False]
    assert names(records) == list("abcdefghijk")


def test_who_was_away_for_more_than_is_remembered_reads_all(records: Records) -> None:
    """The revision stays small: every event reads it."""
    declare(records, "a")
    catalogs = Catalogs(records)
    catalogs.current()
    for number in range(30):
        declare(records, f"s{number}", tell=False)
        tell(records, f"s{number}")
    declare(records, "last", tell=False)
    revision = tell(records, *(f"never-{number}" for number in range(100)), "last")

    assert len(revision.changes) == 1
    assert len(catalogs.current().sources) == 32


def test_a_catalog_that_was_kept_says_what_one_says_that_is_read_anew(records: Records) -> None:
    """Whatever is declared and deleted, labelled and lose_race, and however much was asked.

    It takes seconds: after each of 150 changes the whole catalog is read and compared.
    """
    draw = Random(1)
    kept = [Catalogs(records) for _ in range(3)]
    for number in range(4):
        records.clusters.put(labelled(number, str(number % 2)))
    for _ in range(150):
        act(records, draw)
        anew = answers(Catalogs(records).current())
        for catalogs in kept:
            if draw.random() < 0.5:
                assert answers(catalogs.current()) == anew


def labelled(number: int, dep: str) -> Cluster:
    return replace(cluster(f"c{number}"), labels={"dep": dep})


def act(records: Records, draw: Random) -> None:
    """Change something, as a declaration or a label does."""
    number = draw.randrange(4)
    if draw.random() < 0.2:
        records.clusters.put(labelled(number, draw.choice("01")))
        records.catalog.change("clusters")
        return
    keys = []
    for _ in range(draw.choice([1, 1, 1, 2, 20])):
        kind = draw.choice(["EventSource", "EventTrigger", "EventBasedAddOn"])
        name = str(draw.randrange(4))
        keys.append((kind, "", name))
        manifest = source(name, draw.choice(["Pod", "Service"]))
        if kind != "EventSource":
            manifest = trigger(kind, name, draw)
        if draw.random() < 0.3:
            records.manifests.delete(kind, "", name)
        else:
            twin = {"EventTrigger": "EventBasedAddOn", "EventBasedAddOn": "EventTrigger"}.get(kind)
            if twin:
                records.manifests.delete(twin, "", name)
                keys.append((twin, "", name))
            records.manifests.put(kind, "", name, manifest)
    records.catalog.change("declared", keys=keys)


def trigger(kind: str, name: str, draw: Random) -> dict[str, Any]:
    template = "{{ .Cluster.metadata.labels.dep }}"
    spec = {
        "sourceClusterSelector": {"matchLabels": {"dep": draw.choice("01")}},
        "eventSourceName": draw.choice(["0", "1", "2", template, "{{ .Nothing.there }}"]),
    }
    return {"apiVersion": LIB, "kind": kind, "metadata": {"name": name}, "spec": spec}


def answers(catalog: Catalog) -> dict[str, Any]:
    """Return all that a catalog says."""
    return {
        key: (
            catalog.sources_in(key),
            catalog.kinds_in(key),
            dict(catalog.judgement(key)),
            sorted(catalog.problems_in(key)),
            [catalog.triggers_on(key, name) for name in catalog.sources_in(key)],
            {name: catalog.source_of(each, key) for name, each in catalog.triggers.items()},
        )
        for key in catalog.clusters
    } | {"named": dict(sorted(catalog.named.items())), "sources": dict(catalog.sources)}


def test_gives_up_a_revision_that_others_change_for_ever(records: Records, store: Watched) -> None:
    """The note of the change remains, and whoever finds it tells of it."""

    def always(item: Item, **_more: Any) -> Item:
        raise LostWriteError(f"Something else is at {item.sort}.")

    store.put = always  # type: ignore[method-assign]

    with pytest.raises(StaleError, match="others change it all the time"):
        records.catalog.change("declared")
