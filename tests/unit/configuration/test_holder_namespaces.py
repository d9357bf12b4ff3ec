"""The webhook for ConfigMaps and Secrets is called only in namespaces that the configuration names.

The API server here sends what its webhook configuration asks for, and nothing else.
"""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec.structs import replace

from bellhop.api.kinds import CLUSTER
from bellhop.core.gvk import GVK, Resource
from bellhop.registration.forwarder_manifests import HOLDERS, NAMESPACE
from bellhop.registration.holder_namespaces import MOST
from tests.fakes import rig
from tests.fakes.manifests import config, holder, profile
from tests.fakes.mortal import FateOf
from tests.unit.configuration.hub import HUB, SETTLE, Hub

WEBHOOK = GVK("admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration")
WIRED = {"url": "https://127.0.0.1:1", "ca": "PEM", "path": "/x"}
NAMED = "kubernetes.io/metadata.name"


class Sending(Hub):
    """A hub whose API server calls the webhooks that are configured."""

    def __init__(self, folder: Path, version: str = "v1.36.2") -> None:
        super().__init__(folder)
        resource = Resource(WEBHOOK, "validatingwebhookconfigurations", namespaced=False)
        self.kube.serve(resource)
        self.kube.kubernetes = version
        for name in ("team", "other", NAMESPACE):
            self.kube.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        kept = self.fleet.records.clusters.get(HUB)
        assert kept
        self.fleet.declare.register(replace(kept.value, forwarder=WIRED, kubernetes=version))
        self.fleet.pump()

    def apply(self, *texts: str) -> None:
        """Write objects; their names are sent if a webhook asks for them."""
        for text in texts:
            stored = self.kube.put(yaml.safe_load(text))
            if any(_asks(each, stored) for each in self.webhooks()):
                self.hint(stored, before=0)
            self.fleet.pump()

    def webhooks(self) -> list[dict[str, Any]]:
        [found] = self.kube.objects(WEBHOOK)
        return list(found["webhooks"])

    def limits(self) -> list[str] | None:
        """Return the namespaces of the webhook for ConfigMaps and Secrets; None for all."""
        found = [each for each in self.webhooks() if each["name"] == HOLDERS]
        if found:
            return list(found[0]["namespaceSelector"]["matchExpressions"][1]["values"])
        reported = {
            x for hook in self.webhooks() for rule in hook["rules"] for x in rule["resources"]
        }
        return None if "configmaps" in reported else []


def _asks(hook: dict[str, Any], stored: dict[str, Any]) -> bool:
    """Return whether an API server since 1.22 calls a webhook for an object."""
    plural = f"{stored['kind'].lower()}s"
    if not any(plural in rule["resources"] for rule in hook["rules"]):
        return False
    namespace = stored["metadata"].get("namespace")
    return all(
        (namespace in each["values"]) == (each["operator"] == "In")
        for each in hook["namespaceSelector"]["matchExpressions"]
        if each["key"] == NAMED and namespace
    )


@pytest.fixture
def hub(tmp_path: Path) -> Sending:
    return Sending(tmp_path)


def in_team(name: str = "own", *, namespace: str = "team") -> str:
    """Return a profile whose ConfigMap is in a namespace."""
    return profile(name=name).replace("namespace: default", f"namespace: '{namespace}'")


def held(*objects: str) -> str:
    return holder("own", *objects, namespace="team")


def test_only_named_namespaces_are_asked_for(hub: Sending, tmp_path: Path) -> None:
    """Without a manifest none is, and those of SveltosClusters are, for their Secrets."""
    hub.register_clusters(tmp_path)
    assert hub.limits() == []

    hub.apply(profile(), holder("own", config("made")))
    hub.fleet.wait(SETTLE)
    assert hub.limits() == ["default"]

    place = {"namespace": "other", "name": "eu-1"}
    cluster = {"apiVersion": CLUSTER.api_version, "kind": CLUSTER.kind, "metadata": place}
    hub.apply(yaml.safe_dump({**cluster, "spec": {}}))
    hub.fleet.wait(SETTLE)
    assert hub.limits() == ["default", "other"]


def test_no_change_is_lost_while_the_webhook_lacks_a_namespace(hub: Sending) -> None:
    """The resync that adds it reads all that is named, after it has written the webhook."""
    hub.apply(held(config("first")))
    hub.apply(in_team())
    assert hub.east.names() == ["first"]
    assert "team" not in (hub.limits() or [])

    hub.apply(held(config("second")))
    assert hub.east.names() == ["first"]
    hub.fleet.wait(SETTLE)
    assert hub.limits() == ["team"]
    assert hub.east.names() == ["second"]

    hub.apply(held(config("third")))
    assert hub.east.names() == ["third"]


def test_a_change_just_before_the_webhook_is_written_is_read(hub: Sending) -> None:
    """Nobody reports it: it is stored when everything else was read."""
    hub.apply(held(config("first")), in_team())
    hub.apply(held(config("second")))
    real, calls = hub.kube.apply, []

    def apply(manifest: dict[str, Any], **how: Any) -> Any:
        if manifest["kind"] == WEBHOOK.kind and not calls:
            calls.append(1)
            hub.kube.put(yaml.safe_load(held(config("third"))))
        return real(manifest, **how)

    hub.kube.apply = apply  # type: ignore[method-assign]
    hub.fleet.wait(SETTLE)

    assert calls
    assert hub.east.names() == ["third"]


def test_a_worker_with_an_older_catalog_is_corrected(hub: Sending) -> None:
    """It takes the namespace away again; the next resync adds it, and finds what was missed."""
    hub.apply(held(config("first")), in_team())
    hub.fleet.wait(SETTLE)
    [newest] = hub.kube.objects(WEBHOOK)
    older = {**newest, "webhooks": [x for x in newest["webhooks"] if x["name"] != HOLDERS]}
    hub.kube.put(older)
    hub.apply(held(config("second")))
    assert hub.east.names() == ["first"]

    hub.fleet.resync(HUB)
    assert hub.limits() == ["team"]
    assert hub.east.names() == ["second"]


def test_a_worker_that_dies_leaves_no_namespace_out(tmp_path: Path) -> None:
    """Before any write: soon after the manifest counts, the webhook has its namespace."""
    for steps in count(1, 2):
        hub = Sending(tmp_path / str(steps))
        hub.apply(held(config("first")))
        fate = rig.make_mortal(hub.fleet, FateOf("bellhop.configuration.admission"))
        died = rig.kill(hub.fleet, fate, steps, lambda hub=hub: hub.apply(in_team()))
        hub.fleet.pump()
        hub.fleet.wait(SETTLE)
        assert (steps, hub.limits()) == (steps, ["team"])
        rig.settle(hub.fleet)
        assert (steps, hub.east.names()) == (steps, ["first"])
        if not died:
            break
    assert steps > 9


def test_a_repeated_resync_changes_nothing(hub: Sending) -> None:
    hub.apply(held(config("first")), in_team())
    hub.fleet.wait(SETTLE)
    before = hub.kube.objects(WEBHOOK)
    for _ in range(3):
        hub.fleet.resync(HUB)

    assert hub.kube.objects(WEBHOOK) == before


@pytest.mark.parametrize(
    "names",
    [
        pytest.param(["{{ .Cluster.metadata.namespace }}"], id="a template"),
        pytest.param([""], id="that of each cluster"),
        pytest.param([f"n{number}" for number in range(MOST + 1)], id="too many"),
    ],
)
def test_all_namespaces_are_asked_for(hub: Sending, names: list[str]) -> None:
    """And again only some, once they are few and known."""
    hub.apply(in_team("fixed"))
    hub.fleet.wait(SETTLE)
    assert hub.limits() == ["team"]

    for number, name in enumerate(names):
        hub.apply(in_team(f"p{number}", namespace=name))
    hub.fleet.wait(SETTLE)
    assert hub.limits() is None

    for number, _ in enumerate(names):
        hub.delete("ClusterProfile", f"p{number}")
    hub.fleet.resync(HUB)
    assert hub.limits() == ["team"]


@pytest.mark.parametrize("version", ["v1.20.15", "v1.21.14", "unknown"])
def test_an_older_server_cannot_limit_it(tmp_path: Path, version: str) -> None:
    """Its namespaces need not have their names as labels."""
    hub = Sending(tmp_path, version)
    hub.apply(in_team(), held(config("first")))
    hub.fleet.wait(SETTLE)

    assert hub.limits() is None
    assert hub.east.names() == ["first"]
