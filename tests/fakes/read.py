"""A cluster that stands for Sveltos' management cluster, and profiles whose templates read it."""

from __future__ import annotations

import hashlib
from typing import Any

from msgspec.structs import replace

from bellhop.core.gvk import GVK, ObjectKey, Resource
from bellhop.ingest.http import Response
from bellhop.state.cluster import MANAGEMENT
from tests.fakes.fleet import Fleet
from tests.fakes.kube import FakeKube
from tests.fakes.manifests import config, holder, join, profile

CONFIG = GVK("", "v1", "ConfigMap")
SERVICE = GVK("", "v1", "Service")
WEBHOOK = GVK("admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration")
WIDGET = GVK("shop.io", "v1", "Widget")
TEMPLATE = "projectsveltos.io/template: ok"
SAID = "v: '{{ with getResource \"Read\" }}{{ .data.v }}{{ else }}none{{ end }}'"
WIRED = {"url": "https://127.0.0.1:1", "ca": "PEM", "path": "/ring/x"}


def management(fleet: Fleet, *, rings: bool = True, **more: Any) -> FakeKube:
    """Register a cluster as `mgmt/mgmt`, whose API server calls a forwarder or none."""
    found = fleet.records.clusters.get("fleet/east")
    assert found
    kube = fleet.access.clusters.setdefault(MANAGEMENT, FakeKube(MANAGEMENT))
    kube.serve(Resource(WIDGET, "widgets", namespaced=True))
    kube.serve(Resource(WEBHOOK, "validatingwebhookconfigurations", namespaced=False))
    fields = {
        "namespace": "mgmt",
        "name": "mgmt",
        "labels": {},
        "uid": "mgmt",
        "token_digest": hashlib.sha256(b"mgmt").hexdigest(),
        "forwarder": WIRED if rings else {},
    }
    fleet.declare.register(replace(found.value, **{**fields, **more}))
    return kube


def widget(value: str, name: str = "read") -> dict[str, Any]:
    """Return an object of a kind that only clusters have."""
    metadata = {"name": name, "namespace": "default"}
    kind = {"apiVersion": WIDGET.api_version, "kind": WIDGET.kind}
    return {**kind, "metadata": metadata, "data": {"v": value}}


def refs(name: str = "read", *, more: str = "", kind: GVK = WIDGET) -> str:
    """Return templateResourceRefs with one object."""
    named = f"apiVersion: {kind.api_version}, kind: {kind.kind}, namespace: default, name: '{name}'"
    return f"templateResourceRefs: [{{resource: {{{named}}}, identifier: Read{more}}}]"


def reads(more: str = "", text: str = SAID, *, name: str = "own") -> str:
    """Return a profile whose template reads an object, and writes it to a ConfigMap `got`."""
    made = holder(name, config(f"got-{name}", text), annotations=TEMPLATE)
    return join(profile(name=name, more=more or refs()), made)


def said(kube: FakeKube) -> dict[str, str]:
    """Return the deployed objects of profiles, by name."""
    return {each["metadata"]["name"]: each["data"]["v"] for each in kube.objects(CONFIG)}


def sent_resources(kube: FakeKube) -> list[str]:
    """Name the resources of which every object is sent, by the webhook configuration."""
    hooks = [hook for each in kube.objects(WEBHOOK) for hook in each["webhooks"]]
    rules = [rule for hook in hooks if "objectSelector" not in hook for rule in hook["rules"]]
    return sorted(rule["resources"][0] for rule in rules)


def ring(fleet: Fleet, item: dict[str, Any]) -> Response:
    """Send the batch of `mgmt/mgmt`, as its forwarder does."""
    return fleet.send(MANAGEMENT, item, token="mgmt")


def write(fleet: Fleet, manifest: dict[str, Any]) -> int:
    """Write an object in `mgmt/mgmt`, and send the event; return how many events were taken."""
    reply = ring(fleet, {"object": fleet.access.clusters[MANAGEMENT].put(manifest)})
    assert reply.status == 200
    return int(reply.body["taken"])


def drop(fleet: Fleet, key: ObjectKey) -> None:
    """Delete an object in `mgmt/mgmt`, and send the event."""
    kube = fleet.access.clusters[MANAGEMENT]
    (there,) = [each for each in kube.objects(key.gvk) if ObjectKey.of(each) == key]
    kube.drop(*key)
    metadata = there["metadata"]
    version = int(metadata["resourceVersion"])
    deleted = {"key": str(key), "uid": metadata["uid"], "version": version}
    assert ring(fleet, {"gone": deleted}).status == 200


def noted(fleet: Fleet) -> list[tuple[str, str, str]]:
    """Return which profile is noted to read which object for which cluster, by every record."""
    readers = fleet.records.readers
    found = {
        (key.name, reader.profile, reader.destination)
        for kind in readers.kinds()
        for key, reader in readers.of_kind(kind)
    }
    settled = {
        (key.name, each.profile, each.destination)
        for kind in readers.kinds()
        for _, reader in readers.of_kind(kind)
        for key, each in readers.read_for(reader.destination, reader.profile).items()
        if each.settled
    }
    assert found == settled
    return sorted(found)
