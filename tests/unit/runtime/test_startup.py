"""A start makes ready what the first event would wait for, and waits for none of it."""

from __future__ import annotations

import io
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from bellhop.core.gvk import Resource
from bellhop.errors import UnreachableError
from bellhop.installation import Installation
from bellhop.logs import Log
from bellhop.runtime.embedded.lifecycle import MOST, WarmUp
from bellhop.runtime.embedded.state import open_state
from bellhop.settings import Settings
from bellhop.state.cluster import Cluster
from tests.fakes.clock import FakeClock
from tests.fakes.kube import FakeKube
from tests.waiting import eventually


class Called:
    """An access that records the clusters it was asked for, and their calls."""

    def __init__(self, away: str = "") -> None:
        self.away = away
        self.asked: list[tuple[str, str]] = []
        self.kinds: list[tuple[str, str]] = []

    def open(self, cluster: str, *, version: str = "", account: str = "") -> FakeKube:
        assert not account
        self.asked.append((cluster, version))
        if cluster == self.away:
            raise UnreachableError(f"cannot reach cluster '{cluster}'")
        kinds = self.kinds

        class Kube(FakeKube):
            def served(self, group: str, kind: str) -> Resource | None:
                kinds.append((group, kind))
                return super().served(group, kind)

        return Kube(cluster)


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Installation]:
    opened = open_state(tmp_path / "state", Settings(), clock=FakeClock())
    yield opened.installation
    opened.close()


def register(here: Installation, count: int) -> None:
    """Add clusters `fleet/c000` and so on."""
    for number in range(count):
        now = here.records.clock.now()
        cluster = Cluster("fleet", f"c{number:03}", {}, "v1.34", f"{number:064}", now)
        here.records.clusters.put(replace(cluster, credentials=f"v{number}"))


def warmed(here: Installation, access: Called, expected: int) -> str:
    """Warm up until so many clusters were asked, and a little longer; return the log."""
    log = io.StringIO()
    WarmUp(replace(here, access=access), Log(log)).start()
    eventually("each cluster is called", lambda: len(access.asked) >= expected)
    time.sleep(0.05)
    return log.getvalue()


def test_meets_every_cluster_with_its_credentials(here: Installation) -> None:
    """A client that is not the one that counts would be made again by the first event."""
    register(here, 3)
    access = Called()

    said = warmed(here, access, 3)

    assert sorted(access.asked) == [
        ("fleet/c000", "v0"),
        ("fleet/c001", "v1"),
        ("fleet/c002", "v2"),
    ]
    assert access.kinds == [("", "ConfigMap")] * 3
    assert said == ""


def test_an_unreachable_cluster_delays_no_other_and_is_not_reported(here: Installation) -> None:
    """The work that needs it will meet the same error, and report it where it matters."""
    register(here, 6)
    access = Called(away="fleet/c000")

    said = warmed(here, access, 6)

    assert (len(access.asked), len(access.kinds), said) == (6, 5, "")


def test_calls_only_so_many_of_a_large_fleet(here: Installation) -> None:
    """Resyncs meet them all soon, and a start must not call thousands of clusters."""
    register(here, MOST + 5)
    access = Called()

    warmed(here, access, MOST)

    assert len(access.asked) == MOST
