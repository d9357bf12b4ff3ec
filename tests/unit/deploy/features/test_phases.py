"""A profile of many objects: many at once within a phase, and one phase after the other."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import timedelta
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from bellhop.core.gvk import GVK, Identity, rank
from bellhop.errors import InvalidError, UnreachableError
from bellhop.state.deployment import Held
from bellhop.state.messages import Apply, Resolve
from bellhop.state.worker_pool import WorkerPool
from tests.fakes.fleet import EAST, Fleet
from tests.fakes.kube import CONFIG, FakeKube
from tests.fakes.manifests import config, holder, profile

COUNT = 30


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    """Open an installation whose executions are helped."""
    one = Fleet(tmp_path, hands=WorkerPool(5))
    yield one
    one.close()


class Spans:
    """Writes and removals by kind: the number of calls before and after each."""

    def __init__(self, kube: FakeKube) -> None:
        self.spans: list[tuple[int, int, str, str]] = []
        self.most = 0
        self._lock = threading.Lock()
        self._at = 0
        self._here = 0
        self._apply, self._remove = kube.apply, kube.remove
        kube.apply = self.apply  # type: ignore[method-assign]
        kube.remove = self.remove  # type: ignore[method-assign]

    def apply(self, manifest: dict[str, Any], **how: Any) -> Any:
        begun = self._begin()
        try:
            return self._apply(manifest, **how)
        finally:
            self._end(begun, manifest["kind"], manifest["metadata"]["name"])

    def remove(self, gvk: GVK, namespace: str, name: str, *, uid: str = "") -> Any:
        begun = self._begin()
        try:
            return self._remove(gvk, namespace, name, uid=uid)
        finally:
            self._end(begun, gvk.kind, name)

    def overlapping(self) -> set[frozenset[str]]:
        """Return the pairs of kinds whose calls were under way at once."""
        return {
            frozenset((one[2], other[2]))
            for one in self.spans
            for other in self.spans
            if one[2] != other[2] and one[0] < other[1] and other[0] < one[1]
        }

    def _begin(self) -> int:
        with self._lock:
            self._at += 1
            self._here += 1
            self.most = max(self.most, self._here)
            begun = self._at
        threading.Event().wait(0.002)
        return begun

    def _end(self, begun: int, kind: str, name: str) -> None:
        with self._lock:
            self._at += 1
            self._here -= 1
            self.spans.append((begun, self._at, kind, name))


def of_all_phases(count: int) -> str:
    """Return a holder of several kinds, so many of each, one kind after the other."""
    deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a%}\n"
    secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: a%}\n"
    space = "apiVersion: v1\nkind: Namespace\nmetadata: {name: a%}\n"
    texts = [
        text.replace("%", str(number))
        for text in (deployment, config("a%", namespace="a%"), secret, space)
        for number in range(count)
    ]
    return holder("own", *texts)


def held(fleet: Fleet) -> dict[Identity, Held]:
    found = fleet.records.inventories.get(EAST, "own")
    return dict(found.value.held) if found else {}


def test_phases_follow_each_other(fleet: Fleet, east: FakeKube) -> None:
    """Namespaces come first, then kinds in their order; back by kind; several of each at once."""
    fleet.apply(profile(), of_all_phases(10))
    applied = Spans(east)
    fleet.pump()
    fleet.declare.delete([("ClusterProfile", "", "own")])
    removed = Spans(east)
    fleet.pump()

    up, down = ([kind for _, _, kind, _ in sorted(each.spans)] for each in (applied, removed))
    order = ["Namespace", "Deployment", "ConfigMap", "Secret"]
    assert [kind for kind, _ in groupby(up[:40])] == order
    assert down == sorted(down, key=lambda kind: rank(Identity("", kind, "", "")), reverse=True)
    assert applied.overlapping() == removed.overlapping() == set()
    assert 2 < applied.most <= 6
    assert 2 < removed.most <= 6
    assert list(fleet.store.query(f"owner/{EAST}")) == []
    assert east.objects(CONFIG) == []


def test_all_that_was_applied_is_held(fleet: Fleet, east: FakeKube) -> None:
    """The inventory has digest and uid of each object, on each thread."""
    fleet.deploy(profile(), holder("own", *(config(f"a{each}") for each in range(COUNT))))

    uids = {each["metadata"]["uid"] for each in east.objects(CONFIG)}
    assert len(uids) == COUNT
    assert {each.uid for each in held(fleet).values()} == uids
    assert all(each.digest for each in held(fleet).values())


def test_what_is_refused_holds_up_nobody(fleet: Fleet, east: FakeKube) -> None:
    """With continueOnError all but the refused objects are applied; the status names each."""
    apply = east.apply

    def refusing(manifest: dict[str, Any], **how: Any) -> Any:
        name = manifest["metadata"]["name"]
        if int(name[1:]) % 3 == 2:
            raise InvalidError(f"cannot apply '{name}'")
        return apply(manifest, **how)

    east.apply = refusing  # type: ignore[method-assign]
    contents = holder("own", *(config(f"a{each}") for each in range(COUNT)))
    fleet.deploy(profile(more="continueOnError: true"), contents)

    good = {f"a{each}" for each in range(COUNT) if each % 3 != 2}
    assert {each["metadata"]["name"] for each in east.objects(CONFIG)} == good
    assert {key.name for key in held(fleet)} == good
    [outcome] = fleet.records.outcomes.of(EAST)
    bad = [f"cannot apply 'a{each}'" for each in range(COUNT) if each % 3 == 2]
    assert outcome.message == "; ".join(bad)


def test_nothing_is_begun_behind_what_is_refused(fleet: Fleet, east: FakeKube) -> None:
    """Without continueOnError the objects of the same phase that come later are not applied."""
    apply = east.apply

    def refusing(manifest: dict[str, Any], **how: Any) -> Any:
        if manifest["metadata"]["name"] == "a0":
            raise InvalidError("cannot apply 'a0'")
        return apply(manifest, **how)

    east.apply = refusing  # type: ignore[method-assign]
    fleet.deploy(profile(), holder("own", *(config(f"a{each}") for each in range(COUNT))))

    assert east.objects(CONFIG) == []
    [outcome] = fleet.records.outcomes.of(EAST)
    assert outcome.message == "cannot apply 'a0'"


def test_a_cluster_that_falls_silent_keeps_what_was_done(fleet: Fleet, east: FakeKube) -> None:
    """Applied objects are certain, all others unsure; few more calls are made; a retry ends it."""
    apply, asked, silent = east.apply, [], True

    def falling_silent(manifest: dict[str, Any], **how: Any) -> Any:
        asked.append(manifest["metadata"]["name"])
        if silent and len(asked) > 10:
            raise UnreachableError("cannot apply: no answer")
        return apply(manifest, **how)

    east.apply = falling_silent  # type: ignore[method-assign]
    fleet.deploy(profile(), holder("own", *(config(f"a{each}") for each in range(COUNT))))

    done = {each["metadata"]["name"] for each in east.objects(CONFIG)}
    assert len(done) == 10
    assert len(asked) <= 16
    assert {key.name for key, each in held(fleet).items() if each.digest} == done
    assert len(held(fleet)) == COUNT

    silent = False
    fleet.wait(timedelta(minutes=1))
    assert len(east.objects(CONFIG)) == COUNT
    assert all(each.digest for each in held(fleet).values())


@pytest.mark.parametrize("count", [10, 40])
def test_an_object_costs_a_few_operations(fleet: Fleet, east: FakeKube, count: int) -> None:
    """To apply: claim it, look again. To remove: who waits for it, whose it is, give it up."""
    fleet.apply(profile(), holder("own", *(config(f"a{each}") for each in range(count))))
    fleet.stages["deploy"].handle(Resolve("own"))
    fleet.store.counts.clear()
    fleet.stages["deploy"].handle(Apply("", "", "own", EAST))
    applied = fleet.store.counts.copy()
    fleet.declare.delete([("ClusterProfile", "", "own")])
    fleet.stages["deploy"].handle(Resolve("own"))
    fleet.store.counts.clear()
    fleet.stages["deploy"].handle(Apply("", "", "own", EAST))
    removed = fleet.store.counts.copy()

    assert east.objects(CONFIG) == []
    assert applied.total() <= 2 * count + 30
    assert removed.total() <= 3 * count + 30
