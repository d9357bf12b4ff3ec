"""A worker is killed as a SveltosCluster registers a cluster, changes it and deregisters it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec.structs import replace

from bellhop.adapters.kube.client import KubeClient
from bellhop.adapters.local.secrets import FileSecrets
from bellhop.configuration.cluster_objects import CONFIGURATION_DIGEST
from bellhop.installation import Inbound, Installation
from bellhop.logs import Log
from bellhop.runtime.handlers.sweep import make_sweep_table
from bellhop.settings import Settings
from infra.lab.cluster import Cluster
from tests.fakes import rig
from tests.fakes.fleet import Fleet
from tests.fakes.mortal import FateOf, Killed, Mortal
from tests.fakes.share import SHARE
from tests.unit.configuration.hub import Hub, find_gvk
from tests.unit.configuration.objects import KEY, kube_of, secrets, sveltos_cluster

SENDS = Settings(forwarder_image="registry.example.com/bellhop-forwarder:1")
INBOUND = Inbound("https://ingest.example", "")
_STRIDE = SHARE if SHARE == 1 else 3 * SHARE


class RegisteringFleet(Fleet):
    """A fleet in which objects register clusters; its secrets are written by mortals, too."""

    fate = FateOf("bellhop.configuration")

    def _wire(self) -> None:
        super()._wire()
        table = make_sweep_table(self.installation(), Log(self.output))
        self.handlers.update(table)

    def installation(self) -> Installation:
        vault: Any = Mortal("secrets", FileSecrets(self.folder / "secrets", bytes(32)), self.fate)
        return replace(super().installation(), secrets=vault, inbound=INBOUND)


class RegisteringHub(Hub):
    """A hub whose namespace `prod` has the Secret of a real cluster."""

    def __init__(self, folder: Path, target: Cluster, client: KubeClient) -> None:
        fleet = RegisteringFleet(folder, SENDS)
        super().__init__(folder, fleet=fleet)
        self.fate = fleet.fate = FateOf("bellhop.configuration")
        fleet.access.clusters[KEY] = client  # type: ignore[assignment]
        rig.make_mortal(fleet, self.fate)
        self.kube.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "prod"}})
        self.secret = secrets(target.kubeconfig())("prod", "eu-1-sveltos-kubeconfig")

    def play(self, steps: int) -> list[str]:
        """Register, label and deregister; the worker dies at a step, and another one goes on."""
        self.fate.doom(steps)
        found = []
        for act in (self._register, self._label, self._delete):
            try:
                act()
            except Killed:
                self._begin_again()
            try:
                rig.settle(self.fleet)
            except Killed:
                self._begin_again()
                rig.settle(self.fleet)
            found.append(self.look())
        return found

    def _begin_again(self) -> None:
        self.fate.revive()
        self.fleet.reread()
        rig.release(self.fleet)

    def _register(self) -> None:
        cluster = sveltos_cluster(labels={"env": "prod"})
        cluster["metadata"].pop("finalizers")
        self.write(yaml.safe_dump_all([self.secret, cluster]))

    def _label(self) -> None:
        cluster = sveltos_cluster(labels={"env": "test"}, spec={"paused": True})
        cluster["metadata"].pop("finalizers")
        self.write(yaml.safe_dump(cluster))

    def _delete(self) -> None:
        self.delete("SveltosCluster", "eu-1", "prod")

    def look(self) -> str:
        """Return all that is known of the cluster, but what each registration draws."""
        records = self.fleet.records
        kept = records.clusters.get(KEY)
        cluster = None
        if kept:
            found = kept.value
            assert found.annotations[CONFIGURATION_DIGEST]
            cluster = [found.labels, sorted(found.annotations), found.spec, found.kubernetes]
            # One that was registered twice renews its token at the same time.
            cluster += [found.uid, found.forwarder.get("url"), "begun" in found.forwarder]
        configured = records.configured.get("SveltosCluster", "prod", "eu-1")
        record = (configured.value.state, configured.value.in_force) if configured else None
        names = sorted(self.fleet.installation().secrets.names())
        mirrors = self.kube.names(find_gvk("ClusterProfile")._replace(kind="ClusterConfiguration"))
        pending = list(records.pending.all())
        return json.dumps([cluster, record, names, mirrors, pending], default=str)


@pytest.fixture
def client(destination_cluster: Cluster) -> Iterator[KubeClient]:
    """A client of the cluster that is registered."""
    found = kube_of(destination_cluster)
    yield found
    found.close()


def test_ends_as_if_no_worker_had_died(destination_cluster: Cluster, client: KubeClient) -> None:
    """Each change: the cluster is registered once, follows its object, and is deregistered."""

    def play(steps: int) -> tuple[list[str], list[str]]:
        destination_cluster.reset()
        with rig.folder() as folder:
            hub = RegisteringHub(Path(folder), destination_cluster, client)
            found = hub.play(steps)
            hub.fleet.close()
        return found, hub.fate.steps

    desired, steps = play(0)
    for number in range(0, len(steps), _STRIDE):
        assert play(number + 1)[0] == desired, f"died {number} {steps[number]}"
