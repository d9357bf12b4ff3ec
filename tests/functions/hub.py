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
from bellhop.state.cluster import MANAGEMENT
from infra.demo.user import User
from infra.lab.cluster import Cluster
from tests.functions.gcp_lab import BATCH, gone
from tests.functions.owner import Owner, name_cluster
from tests.scenarios import EXAMPLES, SCENARIOS, read_example
from tests.waiting import eventually

HUB, TEAM = "hub", "web"
NOTE = ObjectKey(GVK("", "v1", "ConfigMap"), TEAM, "whose-is-this")
"""The object that the welcome example deploys into the namespace of a team."""

WELCOME = EXAMPLES / "welcome" / "welcome.yaml"
TRIGGER = ObjectKey(GVK("lib.projectsveltos.io", "v1beta1", "EventTrigger"), "", "welcome-team")

Send = Callable[[str, Mapping[str, Any]], object]
"""Sends a batch to ingest in the name of a cluster."""


class Hub:
    """A cluster of an installation, by default `fleet/hub`: it serves the definitions."""

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
        self._configured = owner.here.records.configured
        key, allowed = name_cluster(name), sanitise(kubeconfig, reach=LOCAL)
        client = KubeClient(key, allowed, reach=LOCAL)
        for _ in install_definitions(client):
            pass
        for each in DEFINITIONS:
            gvk = GVK(each.group, "v1beta1", each.kind)
            eventually(f"{each.kind} is served", lambda gvk=gvk: client.resource(gvk))
        client.close()
        owner.register(name, kubeconfig, **labels)
        set_configuration_cluster(owner.here, key, preview=False)

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

    def is_in_force(self, key: ObjectKey) -> bool:
        """Return whether an object's content counts."""
        found = self._configured.get(key.gvk.kind, key.namespace, key.name)
        return found is not None and found.value.state == "InForce"

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


class ForwardedUser(User):
    """Somebody in a cluster whose forwarder sends each change at once."""

    def __init__(self, kubeconfig: Mapping[str, Any], cluster: str, send: Send) -> None:
        super().__init__(kubeconfig)
        self._cluster = cluster
        self._send = send

    def create(self, manifest: Mapping[str, Any]) -> dict[str, Any]:
        """Create an object, and send it."""
        return self._report(super().create(manifest))

    def patch(self, key: ObjectKey, change: Mapping[str, Any], sub: str = "") -> dict[str, Any]:
        """Change an object, and send it."""
        return self._report(super().patch(key, change, sub))

    def delete(self, key: ObjectKey) -> None:
        """Delete an object, and send that it is deleted."""
        stored = self.get(key)
        super().delete(key)
        if stored:
            self._send(self._cluster, {**BATCH, "items": [{"gone": gone(stored)}]})

    def _report(self, stored: dict[str, Any]) -> dict[str, Any]:
        self._send(self._cluster, {**BATCH, "items": [{"object": stored}]})
        return stored


class HubFleet:
    """The clusters `source` and `destination` of an installation, of which the first is a hub, too.

    `wait` has the functions work until something is so.
    """

    def __init__(
        self,
        clusters: tuple[Cluster, Cluster],
        owner: Owner,
        send: Send,
        wait: Callable[[Callable[[], object]], object],
    ) -> None:
        kubeconfig, other = (each.kubeconfig() for each in clusters)
        self._wait = wait
        self.hub = Hub(kubeconfig, owner, send, MANAGEMENT)
        self.source: User = ForwardedUser(kubeconfig, "source", send)
        self.destination = User(other)
        self._applied: list[ObjectKey] = []
        wait(lambda: owner.here.records.gates.get(MANAGEMENT))

    def apply(self, example: str) -> None:
        """Apply an example of the docs, and wait until all of it counts."""
        manifests = read_example(example)
        self.hub.write(*manifests)
        keys = [ObjectKey.of(each) for each in manifests]
        self._applied += keys
        rules = [each for each in keys if each.gvk.group]
        self.wait("all is in force", lambda: all(map(self.hub.is_in_force, rules)))

    def wait(self, what: str, done: Callable[[], object]) -> object:  # noqa: ARG002 - others say it
        """Wait until something is so."""
        return self._wait(done)

    def play_all(self) -> None:
        """Play all scenarios, one after the other; nothing is left of each."""
        for play in SCENARIOS:
            play(self)
            for key in self._applied:
                self.hub.delete(key)
            self.wait("all is deleted", lambda: not any(map(self.hub.get, self._applied)))
            self._applied.clear()

    def close(self) -> None:
        """Close the connections."""
        self.hub.close()
        self.source.close()
        self.destination.close()
