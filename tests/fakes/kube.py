"""A cluster in memory, for unit tests of decisions; what a real API server can say is asked of one.

It keeps what decisions depend on: uids and resource versions, which kinds and namespaces exist,
whose fields an apply may take away, and every way in which a cluster can refuse.
"""

from __future__ import annotations

import copy
import itertools
import re
import threading
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from bellhop.errors import BellhopError, InvalidError, MissingError, StaleError
from bellhop.model.gvk import GVK, ObjectKey, Resource
from bellhop.ports.kube import Manifest

NAMESPACE = GVK("", "v1", "Namespace")
CRD = GVK("apiextensions.k8s.io", "v1", "CustomResourceDefinition")

_NAMESPACED = {
    "v1": {
        "ConfigMap": "configmaps",
        "Pod": "pods",
        "Secret": "secrets",
        "Service": "services",
        "ServiceAccount": "serviceaccounts",
    },
    "apps/v1": {"DaemonSet": "daemonsets", "Deployment": "deployments"},
    "batch/v1": {"Job": "jobs"},
    "networking.k8s.io/v1": {"Ingress": "ingresses", "NetworkPolicy": "networkpolicies"},
    "rbac.authorization.k8s.io/v1": {"Role": "roles", "RoleBinding": "rolebindings"},
}
_CLUSTER_SCOPED = {
    "v1": {"Namespace": "namespaces", "Node": "nodes"},
    "apiextensions.k8s.io/v1": {"CustomResourceDefinition": "customresourcedefinitions"},
    "rbac.authorization.k8s.io/v1": {
        "ClusterRole": "clusterroles",
        "ClusterRoleBinding": "clusterrolebindings",
    },
}
_SERVERS_FIELDS = ("uid", "resourceVersion", "creationTimestamp")


@dataclass(frozen=True, slots=True)
class Call:
    """What was asked of the cluster; `name` is empty for a list."""

    verb: str
    gvk: GVK
    namespace: str = ""
    name: str = ""
    dry_run: bool = False


class FakeKube:
    """One cluster; `calls` records what was asked, in order.

    It has the namespaces default and kube-system. Kinds beyond the usual ones come by `serve`, or
    by applying a CustomResourceDefinition.
    """

    def __init__(self, cluster: str = "fleet/fake") -> None:
        self.cluster = cluster
        self.calls: list[Call] = []
        self.skew: timedelta | None = None
        self._lock = threading.RLock()
        self._objects: dict[ObjectKey, Manifest] = {}
        self._applied: dict[ObjectKey, Manifest] = {}
        self._resources = dict(_builtin())
        self._versions = itertools.count(1001)
        self._failures: dict[str, BellhopError] = {}
        for name in ("default", "kube-system"):
            self.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})

    def fail_with(self, error: BellhopError | None, *verbs: str) -> None:
        """Raise `error` from the verbs (resource get list apply remove; all, if none is named).

        None makes them work again.
        """
        for verb in verbs or ("resource", "get", "list", "apply", "remove"):
            self._failures.pop(verb, None)
            if error is not None:
                self._failures[verb] = error

    def serve(self, resource: Resource) -> None:
        """Make a kind known."""
        self._resources[resource.gvk] = resource

    def unserve(self, gvk: GVK) -> None:
        """Make a kind unknown, and its objects with it, as deleting its definition does."""
        self._resources.pop(gvk, None)
        for key in [key for key in self._objects if key.gvk == gvk]:
            self._delete(key)

    def put(self, manifest: Manifest) -> Manifest:
        """Write an object as a user of the cluster would: nothing is recorded as a call."""
        with self._lock:
            key, manifest = self._placed(manifest)
            return copy.deepcopy(self._store(key, manifest))

    def drop(self, gvk: GVK, namespace: str, name: str) -> None:
        """Delete an object as a user of the cluster would."""
        with self._lock:
            self._delete(ObjectKey(gvk, namespace, name))

    def objects(self, gvk: GVK | None = None) -> Sequence[Manifest]:
        """Return copies of what is there, for a test to look at; nothing is recorded as a call."""
        with self._lock:
            found = (key for key in sorted(self._objects) if gvk in (None, key.gvk))
            return [copy.deepcopy(self._objects[key]) for key in found]

    def resource(self, gvk: GVK) -> Resource | None:
        """Find the resource that serves a kind; None if the cluster does not know the kind."""
        self._called(Call("resource", gvk))
        return self._resources.get(gvk)

    def get(self, gvk: GVK, namespace: str, name: str) -> Manifest | None:
        """Read one object."""
        with self._lock:
            self._called(Call("get", gvk, namespace, name))
            self._known(gvk)
            return copy.deepcopy(self._objects.get(ObjectKey(gvk, namespace, name)))

    def list(self, gvk: GVK, *, namespace: str = "", labels: str = "") -> Iterator[Manifest]:
        """Yield the objects of a kind, by namespace and name; it fails before the first one."""
        with self._lock:
            self._called(Call("list", gvk, namespace))
            self._known(gvk)
            requirements = _requirements(labels)
            found = [
                manifest
                for manifest in self.objects(gvk)
                if namespace in ("", manifest["metadata"].get("namespace", ""))
                and _fits(manifest["metadata"].get("labels") or {}, requirements)
            ]
        return iter(found)

    def apply(self, manifest: Manifest, *, dry_run: bool = False) -> Manifest:
        """Apply one object: fields applied before and not now go, those of others stay."""
        with self._lock:
            key = ObjectKey.of(manifest)
            self._called(Call("apply", key.gvk, key.namespace, key.name, dry_run))
            key, manifest = self._placed(manifest)
            there = self._objects.get(key)
            ours = self._applied.get(key, {})
            merged = _merge(_without(copy.deepcopy(there or {}), ours, manifest), manifest)
            if dry_run:
                return {
                    **merged,
                    "metadata": {**(there or {}).get("metadata", {}), **merged["metadata"]},
                }
            self._applied[key] = copy.deepcopy(manifest)
            return copy.deepcopy(self._store(key, merged))

    def remove(self, gvk: GVK, namespace: str, name: str, *, uid: str = "") -> bool:
        """Delete one object (only if it still has `uid`, where given); say if it was there."""
        with self._lock:
            self._called(Call("remove", gvk, namespace, name))
            key = ObjectKey(gvk, namespace, name)
            there = self._objects.get(key)
            if there is None:
                return False
            if uid not in ("", there["metadata"]["uid"]):
                raise StaleError(
                    f"The cluster {self.cluster!r} has another object under the name '{key}'."
                )
            self._delete(key)
            return True

    def _called(self, call: Call) -> None:
        with self._lock:
            self.calls.append(call)
        if call.verb in self._failures:
            raise self._failures[call.verb]

    def _known(self, gvk: GVK) -> Resource:
        if gvk not in self._resources:
            raise MissingError(f"The cluster {self.cluster!r} does not know the kind '{gvk}'.")
        return self._resources[gvk]

    def _placed(self, manifest: Manifest) -> tuple[ObjectKey, Manifest]:
        """Return a copy in the namespace where it ends up, if its kind has any, and its key."""
        key = ObjectKey.of(manifest)
        if not key.gvk.kind or not key.name:
            raise InvalidError(f"The cluster {self.cluster!r} refuses an object without a name.")
        manifest = copy.deepcopy(manifest)
        if not self._known(key.gvk).namespaced:
            manifest["metadata"].pop("namespace", None)
            return key._replace(namespace=""), manifest
        key = key._replace(namespace=key.namespace or "default")
        manifest["metadata"]["namespace"] = key.namespace
        if ObjectKey(NAMESPACE, "", key.namespace) not in self._objects:
            raise MissingError(
                f"The cluster {self.cluster!r} has no namespace {key.namespace!r} for '{key}'."
            )
        return key, manifest

    def _store(self, key: ObjectKey, manifest: Manifest) -> Manifest:
        there = self._objects.get(key)
        metadata = manifest["metadata"]
        for name in _SERVERS_FIELDS:
            metadata.pop(name, None)
        if there is None:
            metadata |= {"uid": str(uuid.uuid4()), "creationTimestamp": "2026-01-01T12:00:00Z"}
        else:
            metadata |= {name: there["metadata"][name] for name in _SERVERS_FIELDS}
        if manifest != there:
            metadata["resourceVersion"] = str(next(self._versions))
            self._objects[key] = manifest
            self._define(key, manifest)
        return self._objects[key]

    def _define(self, key: ObjectKey, manifest: Manifest) -> None:
        if key.gvk != CRD:
            return
        spec = manifest["spec"]
        for version in spec["versions"]:
            gvk = GVK(spec["group"], version["name"], spec["names"]["kind"])
            namespaced = spec["scope"] == "Namespaced"
            self.serve(Resource(gvk, spec["names"]["plural"], namespaced))

    def _delete(self, key: ObjectKey) -> None:
        self._objects.pop(key, None)
        self._applied.pop(key, None)
        if key.gvk == NAMESPACE:
            for inner in [inner for inner in self._objects if inner.namespace == key.name]:
                self._delete(inner)


def _builtin() -> Iterator[tuple[GVK, Resource]]:
    for table, namespaced in ((_NAMESPACED, True), (_CLUSTER_SCOPED, False)):
        for api_version, kinds in table.items():
            for kind, plural in kinds.items():
                gvk = GVK.parse(api_version, kind)
                yield gvk, Resource(gvk, plural, namespaced)


def _merge(there: Manifest, applied: Mapping[str, Any]) -> Manifest:
    merged = dict(there)
    for name, value in applied.items():
        if isinstance(value, Mapping):
            before = merged.get(name)
            merged[name] = _merge(before if isinstance(before, dict) else {}, value)
        else:
            merged[name] = copy.deepcopy(value)
    return merged


def _without(there: Manifest, before: Mapping[str, Any], now: Mapping[str, Any]) -> Manifest:
    """Take away what was applied before and is not now."""
    for name, value in before.items():
        if name not in now:
            if isinstance(value, Mapping) and isinstance(there.get(name), dict):
                there[name] = _without(there[name], value, {})
                if there[name]:
                    continue
            there.pop(name, None)
        elif isinstance(value, Mapping) and isinstance(now[name], Mapping) and name in there:
            there[name] = _without(there[name], value, now[name])
    return there


_Requirement = tuple[str, str, frozenset[str]]
_SET_BASED = re.compile(r"(\S+)\s+(in|notin)\s+\((.*)\)")
_EQUALITY = re.compile(r"([^!=\s]+)\s*(!=|==|=)\s*(.*)")


def _requirements(selector: str) -> Sequence[_Requirement]:
    return [
        _requirement(part.strip()) for part in re.split(r",(?![^(]*\))", selector) if part.strip()
    ]


def _requirement(text: str) -> _Requirement:
    if found := _SET_BASED.fullmatch(text):
        return found[1], found[2], frozenset(value.strip() for value in found[3].split(","))
    if found := _EQUALITY.fullmatch(text):
        return found[1], "notin" if found[2] == "!=" else "in", frozenset([found[3].strip()])
    return text.lstrip("!"), "absent" if text.startswith("!") else "exists", frozenset()


def _fits(labels: Mapping[str, str], requirements: Sequence[_Requirement]) -> bool:
    return all(_meets(labels, *requirement) for requirement in requirements)


def _meets(labels: Mapping[str, str], name: str, operator: str, values: frozenset[str]) -> bool:
    if operator == "in":
        return name in labels and labels[name] in values
    if operator == "notin":
        return labels.get(name) not in values
    return (name in labels) == (operator == "exists")
