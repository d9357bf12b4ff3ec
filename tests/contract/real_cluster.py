"""An installation whose only cluster, `fleet/east`, is a real API server."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

from bellhop.adapters.kube.client import KubeClient
from bellhop.core.gvk import GVK
from bellhop.settings import Settings
from bellhop.state.deployment import DeploymentStatus
from tests.fakes.fleet import Fleet

EAST = "fleet/east"
CONFIG = GVK("", "v1", "ConfigMap")


@contextmanager
def open_fleet(folder: Path, kube: KubeClient, settings: Settings | None = None) -> Iterator[Fleet]:
    """Open an installation that knows the cluster."""
    one = Fleet(folder, settings or Settings())
    one.access.clusters[EAST] = kube  # type: ignore[assignment]
    one.register("east", env="production")
    yield one
    one.close()


def read_status(fleet: Fleet, name: str = "own") -> DeploymentStatus:
    """Read how far a profile is in the cluster."""
    found = fleet.records.outcomes.get(EAST, name)
    assert found
    return found.value


def read_outcome(fleet: Fleet, name: str = "p") -> tuple[str, str]:
    """Read a profile's phase and message in the cluster; both are empty without a status."""
    found = fleet.records.outcomes.get(EAST, name)
    return (found.value.phase, found.value.message) if found else ("", "")


def read_message(fleet: Fleet, name: str = "own") -> str:
    """Read the message of a profile's status, or its phase; empty without a status."""
    phase, message = read_outcome(fleet, name)
    return message or phase


def retry(fleet: Fleet) -> None:
    """Let an hour pass, in which each pause after a failure ends."""
    fleet.clock.advance(timedelta(hours=1))
    fleet.pump()


def map_actions(changes: Iterable[Any]) -> dict[str, str]:
    """Return the action of each previewed change, by the object's name."""
    return {each.change.key.name: each.change.action for each in changes}
