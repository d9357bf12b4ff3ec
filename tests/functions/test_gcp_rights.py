"""Functions on Google do their work with the permissions of their accounts, and need all of them.

Emulators check no permissions. Each stage calls them through `tests/lab/google_access.py`, which
allows what google_rights.json lists for the stage's account; tests of the module compare that list
with what Terraform grants.
"""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from bellhop.adapters.gcp.blobs import CloudBlobs
from bellhop.clusters.kubeconfig import sanitise
from bellhop.core.address_policy import LOCAL
from bellhop.core.gvk import GVK, ObjectKey
from bellhop.errors import MissingError
from bellhop.registration.registration import register
from bellhop.registration.request import Registration
from bellhop.state.blob_garbage import BlobGarbage, blob_name
from bellhop.state.ingest_policy import WatchedKind
from bellhop.state.messages import INBOXES, CollectGarbage, Renew, Resync
from infra.lab.cluster import Cluster
from tests.fakes.manifests import (
    FOR_EACH,
    INSTANTIATE,
    config,
    holder,
    join,
    profile,
    source,
    trigger,
)
from tests.functions.conftest import SETTINGS
from tests.functions.gcp_lab import NAME, PATIENCE, Flow, Project, Stand
from tests.functions.google_grants import granted
from tests.functions.hub import Hub, HubFleet
from tests.functions.registered_objects import CLUSTER, SILENT, make_cluster
from tests.functions.roles import noise
from tests.functions.writes import Writes
from tests.lab.google_access import Access, Asked
from tests.lab.google_storage import Storage
from tests.waiting import eventually

STAGES = {*INBOXES.values(), "ingest", "schedule"}

LOST = {"storage.objects.list"}
"""Needed only for a blob that is lost; without it Cloud Storage answers 403 instead of 404."""

LONG, LARGE = 8_000, 300_000
"""Characters of noise whose payload is a record of its own, and a blob."""

ENDED = timedelta(days=2)
SOURCE, NORTH = "fleet/source", "fleet/north"
BIG = ObjectKey(GVK("", "v1", "ConfigMap"), "default", "big")
COPY = ObjectKey(BIG.gvk, "default", "for-big")
OWN = ObjectKey(GVK("config.projectsveltos.io", "v1beta1", "ClusterProfile"), "", "own")
WEST = ObjectKey(CLUSTER, "default", "west")
SUMMARY = GVK(OWN.gvk.group, "v1beta1", "ClusterSummary")
MADE = ObjectKey(BIG.gvk, "default", "made")
RULES = join(
    source("ConfigMap", name="large", more=", labelFilters: [{key: large, operation: Has}]"),
    trigger("copies", origin="large"),
    holder(
        "copies",
        config(FOR_EACH, "words: '{{ .Resource.data.words }}'"),
        annotations=INSTANTIATE,
    ),
)


class Guarded:
    """A flow whose functions have the permissions of their accounts, and no others."""

    def __init__(self, flow: Flow, proxies: Mapping[str, Access]) -> None:
        self.flow = flow
        self.proxies = proxies
        self._asked: dict[str, set[str]] = {stage: set() for stage in proxies}
        self._versions = itertools.count()

    def asked(self, stage: str) -> set[str]:
        """Return the permissions that a stage has needed until now."""
        self._asked[stage] |= {each.right for each in self.proxies[stage].asked()}
        return self._asked[stage]

    def denied(self) -> set[tuple[str, str]]:
        """Return what was denied since the last look: stages, and the permissions they lack."""
        return {
            (stage, each.right) for stage, proxy in self.proxies.items() for each in proxy.denied()
        }

    def until(self, stage: str, permission: str, act: Callable[[], object]) -> None:
        """Repeat an action until a stage needs a permission: another stage may be faster."""

        def step() -> bool:
            found = permission in self.asked(stage)
            if not found:
                act()
            return found

        eventually(f"{stage} needs {permission}", step, patience=PATIENCE, pause=0.5)

    def changes(self) -> None:
        """Change the small object, and send it."""
        words = {"words": f"version {next(self._versions)}"}
        assert self.flow.ring(self.flow.source.patch(BIG, {"data": words})).status in {200, 503}


@pytest.fixture(scope="class")
def guarded(
    shared_place: str,
    _storage: Storage,
    google_sources: Path,
    google_installed: Path,
    both_clusters: tuple[Cluster, Cluster],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Guarded]:
    """Functions behind a proxy for each stage.

    The first test that needs it waits until they have started.
    """
    with ExitStack() as end:
        project = Project(shared_place, _storage, **SETTINGS)
        end.callback(project.close)
        writes = end.enter_context(Writes(project.emulators))
        behind = {**project.emulators, **writes.emulators}
        proxies = {stage: end.enter_context(Access(behind)) for stage in sorted(STAGES)}
        for stage, each in proxies.items():
            each.may(_granted(stage, project))
        own = {stage: each.environment for stage, each in proxies.items()}
        folder = tmp_path_factory.mktemp("functions")
        stand = Stand(project, google_sources, google_installed, folder, own)
        end.callback(stand.close)
        flow = Flow(stand, *both_clusters, writes)
        end.callback(flow.close)
        yield Guarded(flow, proxies)


@pytest.mark.timeout(600)
class TestPermissions:
    """One installation, whose functions all tests share."""

    def test_functions_need_the_permissions_of_their_accounts_and_no_others(
        self, guarded: Guarded, source_cluster: Cluster
    ) -> None:
        """No request is denied, and each permission is needed: none of them could be removed.

        It takes long: functions deploy, prune, resync and renew, one after the other.
        """
        copies_an_object(guarded)
        for permission, left in (("secrets.create", False), ("versions.destroy", True)):
            renews = partial(renews_a_registration, guarded.flow, source_cluster, left=left)
            guarded.until("sweep", f"secretmanager.{permission}", renews)
        collects_a_blob(guarded.flow)

        given = {stage: _granted(stage, guarded.flow.stand.project) for stage in guarded.proxies}
        assert guarded.denied() == set()
        assert {stage: guarded.asked(stage) | LOST for stage in given} == {
            stage: each.keys() | LOST for stage, each in given.items()
        }

    @pytest.mark.thorough
    def test_a_permission_that_is_missing_is_missed(self, guarded: Guarded) -> None:
        """Evaluate's proxy denies what its account is not granted, and nothing is deployed."""
        flow, proxy = guarded.flow, guarded.proxies["evaluate"]
        given = _granted("evaluate", flow.stand.project)
        proxy.may({**given, "pubsub.topics.publish": ("projects/none",)})
        flow.declare("service-discovery")
        flow.make(60000)
        denied: set[Asked] = set()
        flow.stand.wait(lambda: denied.update(proxy.denied()) or denied)
        assert {each.right for each in denied} == {"pubsub.topics.publish"}
        assert not flow.there(60000)

        proxy.may(given)
        flow.stand.wait(lambda: flow.there(60000))
        proxy.denied()

    def test_objects_of_a_configuration_cluster_take_no_other_permissions(
        self, guarded: Guarded, source_cluster: Cluster
    ) -> None:
        """A ClusterProfile is deployed, has its status written, and is withdrawn.

        A cluster is registered by an object once its kubeconfig may be stored.
        """
        flow = guarded.flow
        hub = Hub(source_cluster.kubeconfig(), flow.owner, flow.stand.send)
        flow.stand.wait(lambda: flow.owner.here.records.gates.get("fleet/hub"))
        guarded.denied()

        selected = "clusterSelector: {matchLabels: {dep: eng}}"
        hub.apply(join(profile(selected), holder("own", config(MADE.name))))
        flow.stand.wait(lambda: flow.destination.get(MADE))
        flow.stand.wait(lambda: is_ready(hub.get(OWN)))
        flow.stand.wait(lambda: [*map(feature_status, hub.list(SUMMARY))] == ["Provisioned"])

        hub.delete(OWN)
        flow.stand.wait(lambda: flow.destination.get(MADE) is None and hub.get(OWN) is None)
        flow.stand.wait(lambda: not hub.list(SUMMARY))
        assert guarded.denied() == set()

        hub.write(*make_cluster("west", SILENT))
        flow.stand.wait(lambda: "`configuration_cluster = true`" in hub.read_failure(WEST))
        assert guarded.denied() == {("sweep", "secretmanager.versions.add")}
        guarded.proxies["sweep"].may(_granted("sweep", flow.stand.project, configuration=True))
        flow.owner.here.publisher.publish([Resync("fleet/hub")])
        clusters = flow.owner.here.records.clusters
        flow.stand.wait(lambda: clusters.get("default/west"))
        hub.delete(WEST)
        flow.stand.wait(lambda: clusters.get("default/west") is None)
        flow.owner.here.declare.configure("fleet/hub", "")
        hub.close()
        assert list(flow.owner.here.secrets.names("kubeconfig/default")) == []
        assert guarded.denied() == set()

    @pytest.mark.thorough
    def test_each_example_works_by_the_api_server_only(
        self, guarded: Guarded, both_clusters: tuple[Cluster, Cluster]
    ) -> None:
        stand, owner = guarded.flow.stand, guarded.flow.owner
        # Files would hold the names of the examples.
        guarded.flow.end()
        guarded.flow.declare("")
        guarded.denied()
        fleet = HubFleet(both_clusters, owner, stand.send, stand.wait)
        fleet.play_all()
        fleet.close()
        assert guarded.denied() == set()


def is_ready(stored: Mapping[str, Any] | None) -> bool:
    """Return whether an object's condition `Ready` is true."""
    conditions = ((stored or {}).get("status") or {}).get("conditions") or ()
    return any((each["type"], each["status"]) == ("Ready", "True") for each in conditions)


def feature_status(summary: Mapping[str, Any]) -> str:
    """Return the status of a ClusterSummary's first feature; empty before it has one."""
    features = (summary.get("status") or {}).get("featureSummaries") or [{"status": ""}]
    return str(features[0]["status"])


def _granted(
    stage: str, project: Project, *, configuration: bool = False
) -> dict[str, tuple[str, ...]]:
    """Return the permissions of a stage's account in a project of the lab."""
    database = project.environment["BELLHOP_DATABASE"]
    return granted(stage, project.name, NAME, database, configuration=configuration)


def copies_an_object(guarded: Guarded) -> None:
    """Its payload, the rules and the ingest policy are blobs for a while."""
    flow, records = guarded.flow, guarded.flow.owner.here.records
    flow.owner.apply(RULES)
    about = {"name": BIG.name, "namespace": BIG.namespace, "labels": {"large": "yes"}}
    made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": about}
    flow.source.create({**made, "data": {"words": ""}})
    for size in (LARGE, LONG, LONG + 2):
        words = noise(size)
        stored = flow.source.patch(BIG, {"data": {"words": words}})
        assert flow.ring(stored).status == 200
        flow.stand.wait(lambda words=words: copied(flow) == words)

    def rules_change() -> None:
        records.catalog.change("declared")
        guarded.changes()

    guarded.until("evaluate", "storage.objects.create", rules_change)

    def resync() -> None:
        flow.owner.here.publisher.publish([Resync(SOURCE, full=True)])

    def rules_change_before_a_resync() -> None:
        records.catalog.change("declared")
        resync()

    def evaluate_reads_changed_rules_before_a_resync() -> None:
        records.catalog.change("declared")
        stored = flow.source.patch(BIG, {"data": {"words": f"{time.monotonic()}"}})
        flow.stand.wait(lambda: flow.ring(stored).status == 200)
        flow.settle(lambda: copied(flow) == stored["data"]["words"])
        resync()

    # The first stage that sees changed rules writes their blob; the others read it.
    guarded.until("sweep", "storage.objects.create", rules_change_before_a_resync)
    guarded.until("sweep", "storage.objects.get", evaluate_reads_changed_rules_before_a_resync)
    guarded.until("ingest", "storage.objects.get", lambda: knows_many_kinds(guarded))
    flow.remove(BIG)
    flow.settle(lambda: flow.source.get(COPY) is None)


def copied(flow: Flow) -> str:
    """Return the contents of the copy; nothing if there is none."""
    found = flow.source.get(COPY)
    return str(found["data"]["words"]) if found else ""


def knows_many_kinds(guarded: Guarded) -> None:
    """So many kinds count in the cluster that for a while their list is a blob."""
    gates, text = guarded.flow.owner.here.records.gates, noise(LARGE)
    kept = gates.get(SOURCE)
    assert kept
    many = [GVK(text[place : place + 60], "v1", "Kind") for place in range(0, LARGE, 60)]
    gates.put(SOURCE, replace(kept.value, kinds=(*kept.value.kinds, *map(WatchedKind, many))))
    guarded.changes()
    gates.put(SOURCE, kept.value)


def renews_a_registration(flow: Flow, cluster: Cluster, *, left: bool) -> None:
    """Another cluster has the address: its credentials are kept apart, over some that were left."""
    here, kubeconfig = flow.owner.here, sanitise(cluster.kubeconfig(), reach=LOCAL)
    if here.records.clusters.get(NORTH) is None:
        spec = Registration("fleet", "north", kubeconfig, {}, here.inbound, twice=True)
        register(here, spec, pause=lambda _: None)
    if left:
        here.secrets.put(f"abandoned/{NORTH}", b"x")
    here.secrets.put(f"kubeconfig/{NORTH}", json.dumps(kubeconfig.to_dict(), indent=1).encode())
    kept = here.records.clusters.get(NORTH)
    assert kept
    forwarder = {**kept.value.forwarder, "begun": (datetime.now(UTC) - ENDED).isoformat()}
    here.records.clusters.put(replace(kept.value, forwarder=forwarder, uid="another"))
    here.publisher.publish([Renew(NORTH)])

    def renewed() -> bool:
        found = here.records.clusters.get(NORTH)
        return bool(found) and "begun" not in found.value.forwarder

    flow.stand.wait(renewed)
    flow.stand.wait(lambda: list(here.secrets.names("abandoned")) == [])


def collects_a_blob(flow: Flow) -> None:
    """A blob that no record names is deleted a day later."""
    project = flow.stand.project
    kept = CloudBlobs(project.services, project.environment["BELLHOP_BUCKET"])
    name = blob_name("catalog", "revision")
    kept.put(name, b"x")
    trash = BlobGarbage(flow.owner.here.records.store, kept)
    trash.put(name, "catalog", "revision", datetime.now(UTC) - ENDED)
    flow.owner.here.publisher.publish([CollectGarbage()])
    flow.stand.wait(lambda: lost(kept, name))


def lost(blobs: CloudBlobs, name: str) -> bool:
    """Say whether there is no such blob."""
    try:
        return not blobs.get(name)
    except MissingError:
        return True
