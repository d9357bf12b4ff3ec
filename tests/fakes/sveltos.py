"""A management cluster of Sveltos: its definitions on a real API server, its controllers played.

`reconcile` does what event-manager and addon-controller do in their own time: profiles of triggers
are generated, objects are applied by Sveltos' field manager with its labels and annotations, and
what a deleted profile had deployed is deleted, or released if it has `LeavePolicies`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml

from bellhop.adapters.kube.client import KubeClient
from bellhop.adapters.kube.refusal import Call
from bellhop.adapters.kube.transport import Request
from bellhop.configuration.definitions import make_definitions
from bellhop.core.gvk import GVK
from tests.waiting import eventually

LIB, CONFIG = "lib.projectsveltos.io", "config.projectsveltos.io"
CLUSTER_API = "cluster.x-k8s.io"
PROFILE = GVK(CONFIG, "v1beta1", "ClusterProfile")
TRIGGER = GVK(LIB, "v1beta1", "EventTrigger")
SUMMARY = GVK(CONFIG, "v1beta1", "ClusterSummary")
CONFIG_MAP = GVK("", "v1", "ConfigMap")
CRD = GVK("apiextensions.k8s.io", "v1", "CustomResourceDefinition")

MANAGER = "application/apply-patch"
OWNED = ("projectsveltos.io/owner-kind", "projectsveltos.io/owner-name")
TIER = "projectsveltos.io/owner-tier"
REFERENCES = tuple(f"projectsveltos.io/reference-{part}" for part in ("kind", "name", "namespace"))

_PATIENCE_SECONDS = 60.0

KINDS = {
    "SveltosCluster": (LIB, True),
    "Cluster": (CLUSTER_API, True),
    "ClusterSet": (LIB, False),
    "Set": (LIB, True),
    "Classifier": (LIB, False),
    "EventSource": (LIB, False),
    "EventTrigger": (LIB, False),
    "HealthCheck": (LIB, False),
    "ClusterHealthCheck": (LIB, False),
    "RoleRequest": (LIB, False),
    "ClusterProfile": (CONFIG, False),
    "Profile": (CONFIG, True),
    "ClusterSummary": (CONFIG, True),
}
"""Each kind, its group, and whether it has namespaces."""


def definition(kind: str) -> dict[str, Any]:
    """Return the definition of one of the kinds, whose objects may have any fields."""
    group, namespaced = KINDS[kind]
    plural = "clustersummaries" if kind == "ClusterSummary" else f"{kind.lower()}s"
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": "v1beta1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": anything},
    }
    return {
        "apiVersion": CRD.api_version,
        "kind": CRD.kind,
        "metadata": {
            "name": f"{plural}.{group}",
            "annotations": {"api-approved.kubernetes.io": "https://example.org/in-a-test"},
        },
        "spec": {
            "group": group,
            "scope": "Namespaced" if namespaced else "Cluster",
            "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
            "versions": [version],
        },
    }


def full_definitions() -> Iterator[dict[str, Any]]:
    """Yield the definitions with Sveltos' schemas: without conditions, and with defaults.

    Names, scopes and fields are those of Sveltos 1.14, as `definitions.py` has them.
    """
    for each in make_definitions(rules=False):
        del each["metadata"]["labels"]
        [version] = each["spec"]["versions"]
        properties = version["schema"]["openAPIV3Schema"]["properties"]
        for name in ("conditions", "observedGeneration"):
            properties.get("status", {}).get("properties", {}).pop(name, None)
        for name, default in _DEFAULTS.get(each["spec"]["names"]["kind"], {}).items():
            properties["spec"]["properties"][name]["default"] = default
        yield each


_PROFILE_DEFAULTS = {
    "continueOnConflict": False,
    "reloader": False,
    "stopMatchingBehavior": "WithdrawPolicies",
    "syncMode": "Continuous",
    "tier": 100,
}
_DEFAULTS: dict[str, dict[str, Any]] = {
    "ClusterProfile": _PROFILE_DEFAULTS,
    "EventTrigger": {**_PROFILE_DEFAULTS, "oneForEvent": False},
    "Profile": _PROFILE_DEFAULTS,
}


def wait_until_served(kube: KubeClient, kind: str) -> None:
    """Wait until an API server serves a kind that was defined."""
    eventually(
        lambda: f"{kind} is not served",
        lambda: kube.served(KINDS[kind][0], kind) is not None,
        patience=_PATIENCE_SECONDS,
    )


class Sveltos:
    """Sveltos' controllers between a management cluster and the one cluster `fleet/east`.

    Triggers match the one object `event`; of templates only its name is rendered.
    """

    def __init__(self, hub: KubeClient, east: KubeClient, event: str) -> None:
        self._hub, self._east, self._event = hub, east, event
        self._known: dict[str, dict[str, Any]] = {}
        self._deployed: dict[str, list[dict[str, Any]]] = {}

    def install(self) -> None:
        """Define the kinds, and wait until they are served."""
        for kind in KINDS:
            self._hub.apply(definition(kind))
        for kind in KINDS:
            wait_until_served(self._hub, kind)

    def reconcile(self) -> None:
        """Do once what the controllers do all the time."""
        self._generate()
        profiles = {each["metadata"]["name"]: each for each in self._hub.list(PROFILE)}
        for name in self._known.keys() - profiles.keys():
            self._withdraw(name)
        for name, profile in profiles.items():
            self._known[name] = profile
            self._hub.apply(_summary(name, profile["spec"]))
            self._deploy(name, profile["spec"])

    def _generate(self) -> None:
        """Have a ClusterProfile and a ConfigMap for each trigger, and none of a deleted one."""
        triggers = {each["metadata"]["name"]: each["spec"] for each in self._hub.list(TRIGGER)}
        for each in list(self._hub.list(PROFILE)):
            labels = each["metadata"].get("labels") or {}
            of = labels.get(f"eventtrigger.{LIB}/eventtriggername")
            if of and of not in triggers:
                self._hub.remove(PROFILE, "", each["metadata"]["name"])
        for name, spec in triggers.items():
            labels = {f"eventtrigger.{LIB}/eventtriggername": name}
            [ref] = spec["policyRefs"]
            holder = self._hub.get(CONFIG_MAP, ref["namespace"], ref["name"])
            assert holder
            made = f"sveltos-{name}"
            data = {key: self._rendered(text) for key, text in holder["data"].items()}
            for manifest in (
                _object(CONFIG_MAP, made, {"data": data}, namespace="projectsveltos"),
                _object(PROFILE, made, {"spec": _generated(spec, made)}),
            ):
                manifest["metadata"]["labels"] = labels
                self._hub.apply(manifest)

    def _rendered(self, text: str) -> str:
        return text.replace("{{ .Resource.metadata.name }}", self._event)

    def _deploy(self, name: str, spec: dict[str, Any]) -> None:
        [ref] = spec["policyRefs"]
        holder = self._hub.get(CONFIG_MAP, ref["namespace"], ref["name"])
        assert holder
        self._deployed[name] = []
        for text in holder["data"].values():
            manifest = yaml.safe_load(text)
            _mark(manifest, name, ref)
            query = {"fieldManager": MANAGER, "force": "true"}
            path = self._path(manifest)
            media = "application/apply-patch+yaml"
            self._send(Request("PATCH", path, query, manifest, media))
            self._deployed[name].append(manifest)

    def _withdraw(self, name: str) -> None:
        """Delete or release what a deleted profile deployed, if its annotations still say so."""
        leaves = self._known.pop(name)["spec"].get("stopMatchingBehavior") == "LeavePolicies"
        for manifest in self._deployed.pop(name):
            metadata, gvk = manifest["metadata"], GVK.of(manifest)
            there = self._east.get(gvk, metadata["namespace"], metadata["name"])
            if there is None or there["metadata"].get("annotations", {}).get(OWNED[1]) != name:
                continue
            if not leaves:
                self._east.remove(gvk, metadata["namespace"], metadata["name"])
                continue
            for mark in (*OWNED, TIER, *REFERENCES):
                there["metadata"]["annotations"].pop(mark, None)
            query = {"fieldManager": "manager"}
            self._send(Request("PUT", self._path(manifest), query, there))

    def _path(self, manifest: dict[str, Any]) -> str:
        gvk, metadata = GVK.of(manifest), manifest["metadata"]
        resource = self._east.resource(gvk)
        assert resource
        root = f"/apis/{gvk.api_version}" if gvk.group else f"/api/{gvk.version}"
        return f"{root}/namespaces/{metadata['namespace']}/{resource.plural}/{metadata['name']}"

    def _send(self, request: Request) -> None:
        self._east._transport.send(request, Call("fleet/east", "play Sveltos"))


def _mark(manifest: dict[str, Any], profile: str, ref: dict[str, str]) -> None:
    reference = (ref["kind"], ref["name"], ref["namespace"])
    manifest["metadata"]["labels"] = {"projectsveltos.io/reason": "Resources"}
    manifest["metadata"]["annotations"] = {
        **dict(zip(OWNED, ("ClusterProfile", profile), strict=True)),
        **dict(zip(REFERENCES, reference, strict=True)),
        TIER: "100",
        "projectsveltos.io/hash": "sha256:0",
    }


def _generated(spec: dict[str, Any], name: str) -> dict[str, Any]:
    passed_on = ("syncMode", "stopMatchingBehavior")
    kept: dict[str, Any] = {key: spec[key] for key in passed_on if key in spec}
    ref = {"kind": "ConfigMap", "namespace": "projectsveltos", "name": name}
    return {**kept, "clusterRefs": [{"namespace": "fleet", "name": "east"}], "policyRefs": [ref]}


def _summary(profile: str, spec: dict[str, Any]) -> dict[str, Any]:
    place = {"clusterNamespace": "fleet", "clusterName": "east", "clusterType": "Sveltos"}
    body = {"spec": {**place, "clusterProfileSpec": spec}}
    return _object(SUMMARY, f"{profile}-sveltos-east", body, namespace="fleet")


def _object(gvk: GVK, name: str, body: dict[str, Any], namespace: str = "") -> dict[str, Any]:
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": gvk.api_version, "kind": gvk.kind, "metadata": metadata, **body}
