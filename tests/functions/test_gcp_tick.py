"""The schedule function: what is due, what rested, and what keeps Terraform from destroying."""

from __future__ import annotations

import pytest

from bellhop import __version__
from bellhop.adapters.gcp.blobs import CloudBlobs
from bellhop.errors import MissingError
from bellhop.runtime.gcp.tick import REGISTERED, Tick
from tests.functions.gcp_lab import Project
from tests.lab.google_storage import Storage


@pytest.fixture
def tick(project: Project) -> Tick:
    return Tick(opening=project.open)


def bucket(project: Project) -> CloudBlobs:
    return CloudBlobs(project.services, project.environment["BELLHOP_GUARD"])


def guarded(project: Project) -> bool:
    try:
        return bool(bucket(project).get(REGISTERED))
    except MissingError:
        return False


def test_a_tick_publishes_what_is_due(project: Project, tick: Tick) -> None:
    """The first one asks for the housekeeping, and records that it was."""
    assert tick() == ({"published": 1}, 200)
    assert tick() == ({"published": 0}, 200)

    heartbeat = project.open().records.pulses.get()
    assert heartbeat
    assert heartbeat.version == __version__


def test_terraform_cannot_destroy_what_clusters_are_registered_in(
    project: Project, tick: Tick
) -> None:
    """Its bucket has an object for so long, and no longer, even if it was removed meanwhile."""
    tick()
    assert not guarded(project)

    owner = project.owner()
    owner.register("east", {})
    tick()
    assert guarded(project)
    bucket(project).delete(REGISTERED)
    tick()
    assert guarded(project)

    owner.here.declare.deregister("fleet/east")
    tick()
    assert not guarded(project)


def test_a_failed_tick_says_so_and_the_next_one_catches_up(
    project: Project, tick: Tick, caplog: pytest.LogCaptureFixture
) -> None:
    """Google counts what is no success, the log says why, and the next tick does it all."""
    kept = project.environment.pop("BELLHOP_DATABASE")

    assert tick()[1] == 500
    assert [each.levelname for each in caplog.records] == ["ERROR"]
    project.environment["BELLHOP_DATABASE"] = kept
    assert tick() == ({"published": 1}, 200)


def test_a_guard_that_is_not_there_yet_fails_nobody(
    project: Project, tick: Tick, storage: Storage
) -> None:
    """It is made last and destroyed first: a warning, and the next tick looks again."""
    project.owner().register("east", {})
    storage.fail("GET", 403, times=9)

    assert tick()[1] == 200
    [line] = [each for each in project.lines() if each["severity"] != "INFO"]
    assert (line["severity"], line["message"]) == ("WARNING", "Cannot guard the installation")
    storage.forgive()
    tick()
    assert guarded(project)


def test_without_a_guard_there_is_nothing_to_keep(project: Project, tick: Tick) -> None:
    """An installation that may be destroyed with its clusters has no such bucket."""
    del project.environment["BELLHOP_GUARD"]
    project.owner().register("east", {})

    assert tick()[1] == 200
