"""Turns that end, while another worker is at the same cluster: never more change than may."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from bellhop.errors import StaleError, TemporaryError, UnreachableError
from bellhop.operations.pause import pause_cluster
from bellhop.state.messages import Apply
from tests.fakes import rig
from tests.fakes.fleet import Fleet
from tests.fakes.interrupted import interrupted
from tests.fakes.kube import FakeKube
from tests.fakes.share import SHARE
from tests.unit.deploy.gates.test_rollout import NAMES, OWN, clusters, has, resolve

pytestmark = pytest.mark.rest

EAST, WEST = (f"fleet/{name}" for name in NAMES[:2])
_LONGEST = 30.0


class Slow:
    """A worker at a cluster, who stops amid his first write there until he may go on."""

    def __init__(self, fleet: Fleet, kube: FakeKube) -> None:
        self._process = rig.process(fleet)
        self._kube = kube
        self._stopped, self._on = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self.writes = False

    def begin(self) -> None:
        """Begin, and return once he writes, or has ended without."""
        apply = self._kube.apply

        def applying(manifest: dict[str, Any], **how: Any) -> Any:
            self._kube.apply = apply  # type: ignore[method-assign]
            self.writes = True
            self._stopped.set()
            self._on.wait(_LONGEST)
            return apply(manifest, **how)

        self._kube.apply = applying  # type: ignore[method-assign]
        self._thread.start()
        assert self._stopped.wait(_LONGEST)
        self._kube.apply = apply  # type: ignore[method-assign]

    def end(self) -> None:
        """Let him go on, and return once he has ended."""
        self._on.set()
        if self._thread.ident:
            self._thread.join(_LONGEST)
            assert not self._thread.is_alive()

    def _work(self) -> None:
        handle(self._process, EAST)
        self._stopped.set()


@contextmanager
def prepared(folder: Path) -> Iterator[tuple[Fleet, Slow]]:
    """Have one of two clusters change from 1 to 2 at a time, the first one's turn being now."""
    fleet = Fleet(folder)
    kubes = clusters(fleet, 2)
    resolve(fleet, "1")
    fleet.pump()
    resolve(fleet, "2")
    slow = Slow(fleet, kubes[0])
    try:
        yield fleet, slow
    finally:
        slow.end()
        fleet.close()


def handle(fleet: Fleet, cluster: str) -> None:
    """Work on one cluster; who cannot now is asked again later."""
    message = Apply("", "", "own", cluster)
    try:
        fleet.stages["deploy"].handle(message)
    except TemporaryError:
        fleet.publisher.publish([message])


def interruptions(
    folder: Path, first: Callable[[Fleet], None], then: Callable[[Fleet], None]
) -> Iterator[tuple[Fleet, Slow]]:
    """Yield what is so once a worker at the first cluster was lose_race, at each of his calls."""
    met, number = True, 0
    while met:
        with prepared(folder / str(number)) as (fleet, slow):
            first(fleet)

            def lose_race(fleet: Fleet = fleet, slow: Slow = slow) -> None:
                then(fleet)
                slow.begin()

            with interrupted(fleet.records, number, lose_race) as found:
                handle(fleet, EAST)
            met, number = found.met, number + SHARE
            if met:
                yield fleet, slow


def settle(fleet: Fleet) -> None:
    for _ in range(4):
        fleet.pump()
        fleet.clock.advance(rig.VISIBILITY)


def test_a_worker_that_starts_makes_older_reads_of_the_rollout_stale(tmp_path: Path) -> None:
    """Otherwise one that read the rollout before could end a turn while objects are written."""
    with prepared(tmp_path) as (fleet, slow):
        east = fleet.access.clusters[EAST]
        east.fail_with(UnreachableError("cannot reach the cluster"), "apply")
        handle(fleet, EAST)
        east.fail_with(None)
        before = fleet.records.rotas.get(OWN)
        assert before
        assert before.value.at_work == (EAST,)

        slow.begin()

        assert slow.writes
        with pytest.raises(StaleError):
            fleet.records.rotas.put(OWN, before.value, expect=before.token)


def test_who_steps_aside_takes_no_turn_from_who_is_at_work(tmp_path: Path) -> None:
    """A cluster resumed meanwhile, and at work, keeps its turn; the other one changes after it.

    It takes seconds: it plays once for a share of the calls of the store.
    """
    writing = 0

    def stopped(fleet: Fleet) -> None:
        pause_cluster(fleet.installation(), EAST, paused=True)

    def resumed(fleet: Fleet) -> None:
        pause_cluster(fleet.installation(), EAST, paused=False)

    for fleet, slow in interruptions(tmp_path, stopped, resumed):
        handle(fleet, WEST)
        if slow.writes:
            writing += 1
            assert has(fleet, "2") == []
        slow.end()
        settle(fleet)
        assert has(fleet, "2") == NAMES[:2]
        assert list(fleet.store.query("queued///own")) == []
    assert writing > 12 // SHARE


def test_who_is_done_takes_no_turn_from_who_is_at_the_next_revision(tmp_path: Path) -> None:
    """While one cluster is written the other one waits, at each interruption.

    It takes seconds: it plays once for a share of the calls of the store.
    """
    writing = 0

    def written(fleet: Fleet) -> None:
        resolve(fleet, "3")

    for fleet, slow in interruptions(tmp_path, lambda _: None, written):
        handle(fleet, WEST)
        if slow.writes:
            writing += 1
            assert (has(fleet, "2"), has(fleet, "3")) in (([], []), ([NAMES[0]], []))
        slow.end()
        settle(fleet)
        assert has(fleet, "3") == NAMES[:2]
        assert fleet.records.rotas.get(OWN) is None
    assert writing > 12 // SHARE
