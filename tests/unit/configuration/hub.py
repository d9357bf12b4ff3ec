"""A hub: the cluster `fleet/hub` holds the configuration, and `fleet/east` gets add-ons."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import yaml
from msgspec.structs import replace

from bellhop.adapters.local.secrets import KEY_BYTES, FileSecrets
from bellhop.configuration.cluster_objects import ClusterObjects
from bellhop.configuration.definitions import make_definitions
from bellhop.configuration.records import ConfiguredObject
from bellhop.core.gvk import GVK, ObjectKey
from bellhop.installation import Installation
from bellhop.logs import Log
from bellhop.runtime.handlers import Handlers
from bellhop.runtime.handlers.sweep import make_resync_table
from bellhop.settings import Settings
from bellhop.state.consumer import Inbox
from tests.fakes.fleet import Fleet
from tests.fakes.kube import FakeKube

HUB = "fleet/hub"
SETTLE = timedelta(seconds=3)
"""Time after which an object that was deleted leaves."""


class Hub:
    """A fleet whose configuration is in a cluster; what is written there is sent as hints."""

    def __init__(
        self, folder: Path, settings: Settings | None = None, fleet: Fleet | None = None
    ) -> None:
        self.fleet = fleet or Fleet(folder, settings)
        self.kube: FakeKube = self.fleet.register("hub")
        self.east: FakeKube = self.fleet.register("east", env="production")
        for each in make_definitions(rules=False):
            self.kube.apply(each)
        self.fleet.declare.configure(HUB, "on")
        self.fleet.pump()

    def register_clusters(self, folder: Path) -> Installation:
        """Have SveltosClusters register clusters from now on; return the installation of it."""
        fleet, secrets = self.fleet, FileSecrets(folder / "secrets", bytes(KEY_BYTES))
        here = replace(fleet.installation(), secrets=secrets)
        given = fleet.records, fleet.catalogs, fleet.access, fleet.publisher, fleet.settings
        log = Log(fleet.output)
        stage = Handlers("sweep", make_resync_table(*given, log, ClusterObjects(here)))
        for inbox in ("sweep", "confirm", "probe"):
            fleet.inboxes[inbox] = Inbox(inbox, stage, fleet.settings, log)
        return here

    def write(self, *texts: str, sent: bool = True) -> None:
        """Write objects as `kubectl apply` would, have their names sent, and work."""
        for document in (each for text in texts for each in yaml.safe_load_all(text) if each):
            stored = self.kube.put(document)
            if sent:
                self.hint(stored, before=0)
        self.fleet.pump()

    def delete(self, kind: str, name: str, namespace: str = "", *, sent: bool = True) -> None:
        """Delete an object as `kubectl delete` would, have its name sent, and let it leave."""
        gvk = find_gvk(kind)
        stored = self.kube.get(gvk, namespace, name)
        assert stored, f"there is no {kind} '{name}'"
        self.kube.remove(gvk, namespace, name)
        if sent:
            self.hint(stored, before=int(stored["metadata"]["resourceVersion"]))
        self.fleet.pump()
        self.fleet.wait(SETTLE, times=4)

    def hint(self, stored: dict[str, Any], *, before: int, own: bool = False) -> dict[str, Any]:
        """Send the name of an object as the forwarder does; return what ingest counts."""
        hint = {"key": str(ObjectKey.of(stored)), "uid": stored["metadata"]["uid"]}
        item = {"hint": {**hint, "before": before}, "own": own}
        reply = self.fleet.send("hub", item)
        assert reply.status == 200
        return dict(reply.body)

    def read(self, kind: str, name: str, namespace: str = "") -> ConfiguredObject:
        """Return the record of an object, which must have one."""
        found = self.fleet.records.configured.get(kind, namespace, name)
        assert found, f"{kind} '{namespace}/{name}' has no record"
        return found.value

    def is_stored(self, kind: str, name: str, namespace: str = "") -> bool:
        """Return whether there is a manifest of that name."""
        return self.fleet.records.manifests.has(kind, namespace, name)


def find_gvk(kind: str) -> GVK:
    """Return a kind of the configuration."""
    if kind in ("ConfigMap", "Secret"):
        return GVK("", "v1", kind)
    group = "config" if kind in ("ClusterProfile", "Profile", "ClusterPromotion") else "lib"
    return GVK(f"{group}.projectsveltos.io", "v1beta1", kind)
