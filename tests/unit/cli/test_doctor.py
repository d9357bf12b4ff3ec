"""`bellhop doctor` beside clusters that are dead, slow or not there: bounded, and told."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bellhop.embedded.state import Embedded, open_state
from bellhop.fleet.installation import Installation
from bellhop.settings import Settings
from tests.fakes.silent import Silent, enrol
from tests.unit.cli import fleet
from tests.unit.cli.conftest import Bellhop

DEAD, SLOW = "prod/dead-", "prod/slow-"


@pytest.fixture
def opened(state: Path) -> Iterator[Embedded]:
    """The installation, opened to register clusters that do not answer."""
    one = open_state(state, Settings())
    yield one
    one.close()


@pytest.fixture
def slow() -> Iterator[Silent]:
    """An API server that shakes hands and never answers."""
    one = Silent(tls=True)
    yield one
    one.close()


@pytest.fixture
def dead() -> Iterator[Silent]:
    """An API server whose port nobody else can get once it refuses."""
    one = Silent(tls=True)
    yield one
    one.close()


def rows(text: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(text)
    return found


@pytest.mark.usefixtures("served")
def test_examines_many_at_once_however_slow(
    bellhop: Bellhop, opened: Embedded, slow: Silent, dead: Silent
) -> None:
    """Forty that never answer and forty that are refused take seconds, and each is told."""
    for number in range(40):
        enrol(opened, f"{SLOW}{number:02}", slow, {})
        enrol(opened, f"{DEAD}{number:02}", dead, {})
    dead.refuse()
    begun = time.monotonic()
    result = bellhop("doctor", "-o", "json")
    took = time.monotonic() - begun
    wrong = [row for row in rows(result.stdout) if row["verdict"] == "wrong" and row["cluster"]]

    assert result.exit_code == 1
    assert [(row["cluster"], row["piece"]) for row in wrong] == [
        (f"{kind}{number:02}", "API server") for kind in (DEAD, SLOW) for number in range(40)
    ]
    assert all("see whether" in row["cure"] for row in wrong)
    assert took < 30


@pytest.mark.usefixtures("served")
def test_failures_name_the_silent_without_waiting_long(
    bellhop: Bellhop, opened: Embedded, slow: Silent
) -> None:
    """Those that do not answer now are down, though no sweep has said so."""
    for number in range(20):
        enrol(opened, f"{SLOW}{number:02}", slow, {})
    begun = time.monotonic()
    told = rows(bellhop("show", "failures", "-o", "json").stdout)
    took = time.monotonic() - begun

    assert [row["which"] for row in told] == [f"{SLOW}{number:02}" for number in range(20)]
    assert all(row["sentence"].startswith("it is down: ") for row in told)
    assert took < 10


def test_says_what_is_wrong_at_home(bellhop: Bellhop, here: Installation) -> None:
    """Without a cluster, and without a process that serves."""
    assert here.vitals is None
    result = bellhop("doctor")

    assert result.exit_code == 1
    assert "`bellhop serve` does not run" in result.stdout
    assert "-> start it" in result.stdout
    assert "No cluster is registered." in result.stderr


@pytest.mark.usefixtures("served")
def test_tells_a_cluster_without_credentials(bellhop: Bellhop, here: Installation) -> None:
    """Its kubeconfig is lost: the cure is to register it again."""
    fleet.populate(here)
    result = bellhop("doctor", "default/workload")

    assert result.exit_code == 1
    assert "cluster 'default/workload' has no stored credentials" in result.stdout
    assert "-> register the cluster again" in result.stdout


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("default/worklaod", "did you mean 'default/workload'?"),
        ("default/zzz", "`bellhop get clusters` lists those that are registered"),
    ],
)
def test_a_cluster_that_is_not_there_is_told(
    bellhop: Bellhop, here: Installation, name: str, hint: str
) -> None:
    """With what may have been meant."""
    fleet.populate(here)
    result = bellhop("doctor", name)
    said = f"error: there is no cluster '{name}'; {hint}\n"

    assert (result.exit_code, result.stderr) == (1, said)
