"""A hub: a real cluster that holds the configuration, and what its users and forwarder do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import yaml

from bellhop.adapters.kube.client import KubeClient
from bellhop.clusters.kubeconfig import sanitise
from bellhop.configuration.definitions import DEFINITIONS
from bellhop.configuration.installer import install_definitions
from bellhop.configuration.origin import set_configuration_cluster
from bellhop.core.address_policy import LOCAL
from bellhop.core.gvk import GVK, ObjectKey
from infra.demo.user import User
from tests.functions.gcp_lab import BATCH, EXAMPLES
from tests.functions.owner import Owner
from tests.waiting import eventually

HUB, TEAM = "hub", "web"
NOTE = ObjectKey(GVK("", "v1", "ConfigMap"), TEAM, "whose-is-this")
"""The object that the welcome example deploys into the namespace of a team."""

WELCOME = EXAMPLES / "welcome" / "welcome.yaml"
TRIGGER = ObjectKey(GVK("lib.projectsveltos.io", "v1beta1", "EventTrigger"), "", "welcome-team")

Send = Callable[[str, Mapping[str, Any]], object]
"""Sends a batch to ingest in the name of a cluster."""


class Hub:
    """The cluster `fleet/hub` of an installation: it serves the definitions."""

    def __init__(
        self,
        kubeconfig: Mapping[str, Any],
        owner: Owner,
        send: Send,
        name: str = HUB,
        **labels: str,
    ) -> None:
        self._user = User(kubeconfig)
        self._send = send
        self._name = name
        allowed = sanitise(kubeconfig, reach=LOCAL)
        client = KubeClient(f"fleet/{name}", allowed, reach=LOCAL)
        for _ in install_definitions(client):
            pass
        for each in DEFINITIONS:
            gvk = GVK(each.group, "v1beta1", each.kind)
            eventually(f"{each.kind} is served", lambda gvk=gvk: client.resource(gvk))
        client.close()
        owner.register(name, kubeconfig, **labels)
        set_configuration_cluster(owner.here, f"fleet/{name}", preview=False)

    def apply(self, text: str) -> None:
        """Apply objects of YAML as `kubectl` does; the forwarder sends each name."""
        self.write(*filter(None, yaml.safe_load_all(text)))

    def write(self, *manifests: Mapping[str, Any]) -> None:
        """Apply objects as `kubectl` does; the forwarder sends each name."""
        for manifest in manifests:
            self._hint(self._user.apply(manifest), before=0)

    def delete(self, key: ObjectKey) -> None:
        """Delete an object, and send its name; a finalizer may keep it for a while."""
        stored = self._user.get(key)
        assert stored
        self._user.delete(key)
        self._hint(stored, before=int(stored["metadata"]["resourceVersion"]))

    def get(self, key: ObjectKey) -> dict[str, Any] | None:
        """Read an object; None if it is not there."""
        return self._user.get(key)

    def list(self, gvk: GVK) -> Sequence[dict[str, Any]]:
        """List the objects of a kind."""
        return self._user.list(gvk)

    def read_failure(self, key: ObjectKey) -> str:
        """Return the failure message in an object's status; empty without one."""
        status = (self._user.get(key) or {}).get("status") or {}
        return str(status.get("failureMessage") or "")

    def close(self) -> None:
        """Close the connections."""
        self._user.close()

    def _hint(self, stored: Mapping[str, Any], *, before: int) -> None:
        hint = {"key": str(ObjectKey.of(stored)), "uid": stored["metadata"]["uid"]}
        self._send(self._name, {**BATCH, "items": [{"hint": {**hint, "before": before}}]})


def make_team(user: User) -> None:
    """Make the namespace of a team, for which the welcome example deploys objects."""
    about = {"name": TEAM, "labels": {"team": TEAM}}
    user.create({"apiVersion": "v1", "kind": "Namespace", "metadata": about})
