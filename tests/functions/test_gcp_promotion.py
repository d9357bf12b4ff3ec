"""A promotion on Google Cloud: from stage to stage by functions with their accounts only."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from bellhop.state.messages import INBOXES, Promote, Resolve
from infra.lab.cluster import Cluster
from tests.cli.conftest import on_gcp
from tests.functions.conftest import SETTINGS
from tests.functions.gcp_lab import NAME as INSTALLATION
from tests.functions.gcp_lab import Project, Stand
from tests.functions.google_grants import granted
from tests.functions.staged import NAME, StagedFleet
from tests.functions.writes import Deaths, Writes
from tests.lab.google_access import Access
from tests.lab.google_identity import Identity
from tests.lab.google_storage import Storage
from tests.waiting import eventually

pytestmark = pytest.mark.timeout(600)

STAGES = {*INBOXES.values(), "ingest", "schedule"}
APPROVER = "ann@example.com"


class Guarded:
    """A project whose functions have the permissions of their accounts; deploy's writes are seen.

    a function ─► its proxy, which allows what its account may ─► emulator
    deploy ─► writes ─► its proxy ─► emulator
    """

    def __init__(
        self, project: Project, sources: Path, installed: Path, folder: Path, end: ExitStack
    ) -> None:
        self.project = project
        self.proxies = {stage: end.enter_context(Access(project.emulators)) for stage in STAGES}
        for stage, proxy in self.proxies.items():
            database = project.environment["BELLHOP_DATABASE"]
            proxy.may(granted(stage, project.name, INSTALLATION, database))
        own: dict[str, Mapping[str, str]] = {
            stage: each.environment for stage, each in self.proxies.items()
        }
        self.writes = end.enter_context(Writes(own["deploy"]))
        own["deploy"] = {**own["deploy"], **self.writes.emulators}
        self.stand = Stand(project, sources, installed, folder, own)
        end.callback(self.stand.close)

    def denied(self) -> set[tuple[str, str]]:
        """Return what was denied: stages, and the permissions they lack."""
        return {
            (stage, each.right) for stage, proxy in self.proxies.items() for each in proxy.denied()
        }


@pytest.fixture
def guarded(
    pubsub_place: str,
    storage: Storage,
    google_sources: Path,
    google_installed: Path,
    tmp_path: Path,
) -> Iterator[Guarded]:
    with ExitStack() as end:
        project = Project(pubsub_place, storage, **{**SETTINGS, "attempts": 12})
        end.callback(project.close)
        folder = tmp_path / "functions"
        folder.mkdir()
        yield Guarded(project, google_sources, google_installed, folder, end)


@pytest.fixture
def fleet(
    guarded: Guarded, both_clusters: tuple[Cluster, Cluster], tmp_path: Path
) -> Iterator[StagedFleet]:
    """Three stages, and the command line of a Google account."""
    with Identity(APPROVER) as identity:
        own = {"OPENID_CONNECT_EMULATOR_HOST": identity.address}
        house = on_gcp(tmp_path, guarded.project, own)
        one = StagedFleet(guarded.project.owner(), both_clusters, house, tmp_path)
        yield one
        one.close()
        house.opened.close()


def test_a_release_reaches_production_once_an_account_of_google_approves_it(
    guarded: Guarded, fleet: StagedFleet
) -> None:
    """Production changes for nothing else: no tick, no repeated message, no killed function.

    It takes long: functions start, and one dies at each of its first writes.
    """
    stand, publisher = guarded.stand, guarded.project.owner().here.publisher
    for release in (1, 2):
        version, before = f"2.{release}", fleet.read("production")
        fleet.apply(version)
        eventually("it soaks", partial(fleet.is_in, "staging", "Soaking", release), patience=60)
        eventually("the delay is over", fleet.is_due)
        assert not fleet.has("canary", version)
        deaths = Deaths(most=4)
        with guarded.writes.seen(stand.functions["deploy"], deaths):
            stand.wait(partial(fleet.is_in, "canary", "AwaitingApproval", release))
        assert deaths.count > 1
        for message in (Promote(NAME), Promote(NAME), Resolve(f"{NAME}-production")):
            publisher.publish([message])
        eventually("no function writes", guarded.writes.quiet, patience=60)
        assert fleet.has("canary", version)
        assert fleet.read("production") == before

        fleet.do("approve", "promotion", NAME, "--reason", "CHG-4711")
        stand.wait(partial(fleet.is_in, "production", "Promoted", release))
        assert fleet.has("production", version)

    assert guarded.denied() == set()
    history = json.loads(fleet.do("history", "promotion", NAME, "-o", "json"))
    approved = {(each["stage"], each["release"]): each["approved"] for each in history}
    assert approved.pop(("canary", 1)) == approved.pop(("canary", 2)) == f"{APPROVER}: CHG-4711"
    assert set(approved.values()) == {""}
