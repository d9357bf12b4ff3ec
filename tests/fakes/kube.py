"""A cluster in memory, for unit tests of decisions; what a real API server can say is asked of one.

It keeps what decisions depend on: uids and resource versions, which kinds and namespaces exist,
that the versions of a kind show the same objects, whose fields an apply may take away, what
finalizers hold, and every way in which a cluster can refuse. Between versions it converts nothing
but their name.
"""

from __future__ import annotations

import copy
import itertools
import json
import re
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from bellhop.adapters.kube.discovery import BUILT_IN
from bellhop.core.digest import same
from bellhop.core.gvk import GVK, Identity, ObjectKey, Resource
from bellhop.errors import (
    BellhopError,
    InvalidError,
    MissingError,
    StaleError,
    TooLargeError,
)
from bellhop.ports.kube import Check, Manifest, Page, Unread
from tests.fakes.rights import Rights

NAMESPACE = GVK("", "v1", "Namespace")
CONFIG = GVK("", "v1", "ConfigMap")
_BINDING = GVK("rbac.authorization.k8s.io", "v1", "RoleBinding")
_CLUSTER_BINDING = _BINDING._replace(kind="ClusterRoleBinding")
CRD = GVK("apiextensions.k8s.io", "v1", "CustomResourceDefinition")

_NAMESPACED = {
    "v1": {
        "ConfigMap": "configmaps",
        "Event": "events",
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
_SERVERS_FIELDS = ("uid", "resourceVersion", "creationTimestamp", "deletionTimestamp")
_OURS = {"manager": "bellhop", "operation": "Apply"}
_CHANGES = ("apply", "apply status", "merge", "merge status", "remove")
_VERBS = ("resource", "served", "get", "list", *_CHANGES, "issuer", "rights", "proxied")
_VERSION = re.compile(r"v(\d+)(?:(alpha|beta)(\d+))?")


@dataclass(frozen=True, slots=True)
class Call:
    """What was asked of the cluster; `name` is empty for a list, and so for each of its pages.

    Who asks which versions are served names none. By an `account` its rights count.
    """

    verb: str
    gvk: GVK
    namespace: str = ""
    name: str = ""
    dry_run: bool = False
    account: str = ""


class FakeKube:
    """One cluster; `calls` records what was asked, in order.

    It has the namespaces default and kube-system. Kinds beyond the usual ones come by `serve`, or
    by applying a CustomResourceDefinition.
    """

    def __init__(self, cluster: str = "fleet/fake") -> None:
        self.cluster = cluster
        self.account = ""
        self.rbac = Rights()
        self.calls: list[Call] = []
        self.skew: timedelta | None = None
        self.ends_at: datetime | None = None
        self.kubernetes = "v1.20.2"
        self.keys: list[Manifest] = []
        self.files: dict[tuple[str, str, str], bytes] = {}
        """What Services serve, by namespace, service and path."""
        self.unreadable: set[tuple[str, str]] = set()
        """Kinds and names of objects that are larger, or nested deeper, than is taken."""
        self._lock = threading.RLock()
        self._objects: dict[Identity, Manifest] = {}
        self._applied_status: dict[str, Manifest] = {}
        self._applied: dict[Identity, Manifest] = {}
        self._lists: dict[str, Sequence[Manifest]] = {}
        self._resources = dict(_builtin())
        self._versions = itertools.count(1001)
        self._failures: dict[str, BellhopError] = {}
        for name in ("default", "kube-system"):
            self.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})

    def acting_as(self, account: str) -> FakeKube:
        """Return the same cluster, as a service account may use it."""
        acting = copy.copy(self)
        acting.account = account
        return acting

    def follow_bindings(self) -> None:
        """Let accounts do what the roles that are bound to them say, from now on."""
        self.rbac.bound = self._is_bound

    def _is_bound(self, account: str, verb: str, kind: str, namespace: str) -> bool:
        rules = (rule for each in self._roles_of(account, namespace) for rule in each["rules"])
        plurals = {each.plural for gvk, each in self._resources.items() if gvk.kind == kind}
        return any(
            {verb, "*"} & {*rule["verbs"]} and plurals & {*rule["resources"]} for rule in rules
        )

    def _roles_of(self, account: str, namespace: str) -> Iterator[Manifest]:
        for gvk, role in ((_BINDING, "Role"), (_CLUSTER_BINDING, "ClusterRole")):
            for each in self.objects(gvk):
                place = each["metadata"].get("namespace", "")
                bound = {f"{who['namespace']}/{who['name']}" for who in each["subjects"]}
                key = Identity(_BINDING.group, role, place, each["roleRef"]["name"])
                if place in ("", namespace) and account in bound and key in self._objects:
                    yield self._objects[key]

    def fail_with(self, error: BellhopError | None, *verbs: str) -> None:
        """Raise `error` from the verbs (those of `Call`; all, if none is named).

        None makes them work again.
        """
        for verb in verbs or _VERBS:
            self._failures.pop(verb, None)
            if error is not None:
                self._failures[verb] = error

    def serve(self, resource: Resource) -> None:
        """Make a kind known."""
        self._resources[resource.gvk] = resource

    def unserve(self, gvk: GVK) -> None:
        """Stop to serve a version; with the last one of a kind go its objects."""
        self._resources.pop(gvk, None)
        if self._served(gvk.group, gvk.kind):
            return
        for identity in [each for each in self._objects if each[:2] == (gvk.group, gvk.kind)]:
            self._delete(identity)

    def expire(self) -> None:
        """Forget the states from which lists are being read, as time does."""
        self._lists.clear()

    def put(self, manifest: Manifest) -> Manifest:
        """Write an object as a user of the cluster would: nothing is recorded as a call."""
        with self._lock:
            key, manifest = self._placed(manifest)
            applied = self._applied.get(key.identity)
            if applied is not None:
                self._applied[key.identity] = _left(applied, manifest)
            return copy.deepcopy(self._store(key, manifest))

    def drop(self, gvk: GVK, namespace: str, name: str) -> None:
        """Delete an object as a user of the cluster would."""
        with self._lock:
            self._delete(Identity(gvk.group, gvk.kind, namespace, name))

    def objects(self, gvk: GVK | None = None) -> Sequence[Manifest]:
        """Return copies of what is there, for a test to look at; nothing is recorded as a call."""
        with self._lock:
            return [
                _shown(self._objects[each], gvk)
                for each in sorted(self._objects)
                if gvk is None or each[:2] == (gvk.group, gvk.kind)
            ]

    def refuse(self, name: str, error: Exception) -> Callable[[], None]:
        """Refuse to apply an object of a name from now on; return what ends that."""
        apply = self.apply

        def refusing(manifest: Manifest, **how: Any) -> Any:
            if manifest["metadata"]["name"] == name:
                raise error
            return apply(manifest, **how)

        def end() -> None:
            self.apply = apply  # type: ignore[method-assign]

        self.apply = refusing  # type: ignore[assignment, method-assign]
        return end

    def names(self, gvk: GVK = CONFIG) -> list[str]:
        """Return the names of a kind's objects, in the order of their namespaces and names."""
        return [each["metadata"]["name"] for each in self.objects(gvk)]

    def data(self) -> dict[str, Mapping[str, str]]:
        """Return the data of all ConfigMaps by name."""
        return {each["metadata"]["name"]: each.get("data", {}) for each in self.objects(CONFIG)}

    def version(self) -> str:
        """Read the version; nothing is recorded as a call."""
        return self.kubernetes

    def issuer(self) -> tuple[str, Manifest]:
        """Read who makes its accounts' tokens; nothing is recorded as a call."""
        if "issuer" in self._failures:
            raise self._failures["issuer"]
        return "https://kubernetes.default.svc", {"keys": list(self.keys)}

    def proxied(self, namespace: str, service: str, path: str) -> bytes:
        """Download a file from a Service."""
        self._called(Call("proxied", GVK("", "v1", "Service"), namespace, f"{service}/{path}"))
        found = self.files.get((namespace, service, path))
        if found is None:
            raise MissingError(f"Service '{namespace}/{service}' has no '{path}'.")
        return found

    def resource(self, gvk: GVK) -> Resource | None:
        self._called(Call("resource", gvk))
        return self._resources.get(gvk)

    def served(self, group: str, kind: str) -> Resource | None:
        self._called(Call("served", GVK(group, "", kind)))
        return next(iter(self._served(group, kind)), None)

    def versions(self, group: str, kind: str) -> tuple[str, ...]:
        self._called(Call("served", GVK(group, "", kind)))
        return tuple(each.gvk.version for each in self._served(group, kind))

    def get(self, gvk: GVK, namespace: str, name: str) -> Manifest | None:
        """Read one object."""
        with self._lock:
            self._called(Call("get", gvk, namespace, name))
            way = self._known(gvk, any_version=True)
            there = self._objects.get(Identity(gvk.group, gvk.kind, namespace, name))
            if there is not None and self._is_unreadable(ObjectKey(gvk, namespace, name)):
                raise TooLargeError(f"The {gvk.kind} '{name}' in {self.cluster!r} is too large.")
            return self._with_managers(_shown(there, way.gvk)) if there is not None else None

    def page(
        self, gvk: GVK, *, limit: int, after: str = "", namespace: str = "", labels: str = ""
    ) -> Page:
        """Read at most `limit` objects of a kind, by namespace and name, as they were at first."""
        with self._lock:
            found = self._list(gvk, namespace, labels)
            token, _, start = after.partition("/")
            if after and token not in self._lists:
                raise StaleError(f"The list of {gvk} in {self.cluster!r} is too old by now.")
            if not after:
                token, start = str(uuid.uuid4()), "0"
                self._lists[token] = found
            end = int(start) + limit
            rest = self._lists[token]
            shown = rest[int(start) : end]
            unread = [each for each in map(ObjectKey.of, shown) if self._is_unreadable(each)]
            items = [
                self._with_managers(each) for each in shown if ObjectKey.of(each) not in unread
            ]
            after = f"{token}/{end}" if end < len(rest) else ""
            left_out = tuple(Unread(each, "too large") for each in unread)
            return Page(items, after, left_out, len(json.dumps(items)))

    def list(self, gvk: GVK, *, namespace: str = "", labels: str = "") -> Iterator[Manifest]:
        """Yield the objects of a kind, by namespace and name; it fails before the first one."""
        with self._lock:
            found = self._list(gvk, namespace, labels)
            for each in filter(self._is_unreadable, map(ObjectKey.of, found)):
                raise TooLargeError(f"The {each.gvk.kind} '{each.name}' is too large.")
            return iter(found)

    def apply(
        self,
        manifest: Manifest,
        *,
        uid: str | None = None,
        version: str = "",
        dry_run: bool = False,
    ) -> Manifest:
        """Apply one object: fields applied before and not now go, those of others stay."""
        with self._lock:
            key = ObjectKey.of(manifest)
            self._called(Call("apply", key.gvk, key.namespace, key.name, dry_run))
            key, manifest = self._placed(manifest)
            manifest["metadata"].pop("managedFields", None)
            if "status" in self._known(key.gvk).subresources:
                manifest.pop("status", None)
            there = self._objects.get(key.identity)
            if uid is not None and uid != ((there or {}).get("metadata") or {}).get("uid", ""):
                raise StaleError(f"The {key.gvk.kind} '{key.name}' in {self.cluster!r} is another.")
            if version and uid and version != (there or {})["metadata"]["resourceVersion"]:
                raise StaleError(
                    f"The {key.gvk.kind} '{key.name}' in {self.cluster!r} has changed."
                )
            ours = self._applied.get(key.identity, {})
            merged = _merge(_without(copy.deepcopy(there or {}), ours, manifest), manifest)
            if dry_run:
                servers = {"uid": str(uuid.uuid4()), **(there or {}).get("metadata", {})}
                return {**merged, "metadata": {**servers, **merged["metadata"]}}
            self._applied[key.identity] = copy.deepcopy(manifest)
            return self._with_managers(self._store(key, merged))

    def merge_status(self, manifest: Manifest, *, uid: str) -> None:
        """Merge the status of one life of an object."""
        with self._lock:
            key, manifest, there = self._life("merge status", manifest, uid)
            self._store(key, _patched(there, {"status": manifest["status"]}))

    def apply_status(self, manifest: Manifest, *, uid: str) -> None:
        """Apply the status of one life of an object: fields applied before and not now go."""
        with self._lock:
            key, manifest, there = self._life("apply status", manifest, uid)
            ours = self._applied_status.get(uid, {})
            now = {"status": manifest["status"]}
            merged = _merge(_without(copy.deepcopy(there), ours, now), now)
            self._applied_status[uid] = copy.deepcopy(now)
            self._store(key, merged)

    def _life(
        self, verb: str, manifest: Manifest, uid: str
    ) -> tuple[ObjectKey, Manifest, Manifest]:
        key = ObjectKey.of(manifest)
        self._called(Call(verb, key.gvk, key.namespace, key.name))
        key, manifest = self._placed(manifest)
        if "status" not in self._known(key.gvk).subresources:
            raise InvalidError(f"the kind of '{key.name}' has no status of its own; leave it out")
        there = self._objects.get(key.identity)
        if there is None or there["metadata"]["uid"] != uid:
            raise StaleError(f"The {key.gvk.kind} '{key.name}' in {self.cluster!r} is another.")
        return key, manifest, there

    def merge(self, gvk: GVK, namespace: str, name: str, patch: Manifest) -> bool:
        with self._lock:
            self._called(Call("merge", gvk, namespace, name))
            self._known(gvk, any_version=True)
            there = self._objects.get(Identity(gvk.group, gvk.kind, namespace, name))
            if there is None:
                return False
            version = there["metadata"]["resourceVersion"]
            if (patch.get("metadata") or {}).get("resourceVersion", version) != version:
                raise StaleError(f"The {gvk.kind} '{name}' in {self.cluster!r} was changed.")
            patch = copy.deepcopy(patch)
            managers = (patch.get("metadata") or {}).pop("managedFields", None)
            if managers is not None and not any(map(_is_applied, managers)):
                self._applied.pop(ObjectKey(gvk, namespace, name).identity, None)
            self._store(ObjectKey(gvk, namespace, name), _patched(there, patch))
            return True

    def rights(self, checks: Sequence[Check]) -> Sequence[Check]:
        """Return those rights that are missing."""
        if "rights" in self._failures:
            raise self._failures["rights"]
        self.rbac.refuse(self.account, "rights", "", "")
        kinds = {(each.gvk.group, each.plural): each.gvk.kind for each in self._resources.values()}
        return [
            check
            for check in checks
            if not self.rbac.may(self.account, check[0], kinds[check[1], check[2]], check[4])
        ]

    def remove(self, gvk: GVK, namespace: str, name: str, *, uid: str = "") -> Manifest | None:
        """Delete one object (only if it still has `uid`, where given); return what is left."""
        with self._lock:
            self._called(Call("remove", gvk, namespace, name))
            identity = Identity(gvk.group, gvk.kind, namespace, name)
            there = self._objects.get(identity)
            if there is None or uid not in ("", there["metadata"]["uid"]):
                return None
            if there["metadata"].get("finalizers"):
                there["metadata"]["deletionTimestamp"] = "2026-01-01T12:00:00Z"
                there["metadata"]["resourceVersion"] = str(next(self._versions))
                return copy.deepcopy(there)
            self._delete(identity)
            return {}

    def _is_unreadable(self, key: ObjectKey) -> bool:
        return (key.gvk.kind, key.name) in self.unreadable

    def _list(self, gvk: GVK, namespace: str, labels: str) -> Sequence[Manifest]:
        self._called(Call("list", gvk, namespace))
        self._known(gvk)
        requirements = _requirements(labels)
        found = [
            manifest
            for manifest in self.objects(gvk)
            if namespace in ("", manifest["metadata"].get("namespace", ""))
            and _fits(manifest["metadata"].get("labels") or {}, requirements)
        ]
        # As etcd keeps them: namespace `a-b` comes before `a`, since `-` is less than `/`.
        return sorted(found, key=_place)

    def _with_managers(self, manifest: Manifest) -> Manifest:
        shown = copy.deepcopy(manifest)
        applied = self._applied.get(ObjectKey.of(manifest).identity)
        if applied is not None:
            others = shown["metadata"].get("managedFields") or []
            ours = {**_OURS, "fieldsV1": _fields(applied)}
            shown["metadata"]["managedFields"] = [*others, ours]
        return shown

    def _served(self, group: str, kind: str) -> Sequence[Resource]:
        found = [each for gvk, each in self._resources.items() if gvk[::2] == (group, kind)]
        return sorted(found, key=lambda each: _priority(each.gvk.version))

    def _called(self, call: Call) -> None:
        with self._lock:
            self.calls.append(replace(call, account=self.account))
        if call.verb in self._failures:
            raise self._failures[call.verb]
        self.rbac.refuse(self.account, call.verb, call.gvk.kind, call.namespace)

    def _known(self, gvk: GVK, *, any_version: bool = False) -> Resource:
        found = self._resources.get(gvk)
        if found is None and any_version:
            found = next(iter(self._served(gvk.group, gvk.kind)), None)
        if found is None:
            raise MissingError(f"The cluster {self.cluster!r} does not know the kind '{gvk}'.")
        return found

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
        if Identity("", "Namespace", "", key.namespace) not in self._objects:
            raise MissingError(
                f"The cluster {self.cluster!r} has no namespace {key.namespace!r} for '{key}'."
            )
        return key, manifest

    def _store(self, key: ObjectKey, manifest: Manifest) -> Manifest:
        identity = key.identity
        there = self._objects.get(identity)
        metadata = manifest["metadata"]
        for name in _SERVERS_FIELDS:
            metadata.pop(name, None)
        if there is None:
            metadata |= {"uid": str(uuid.uuid4()), "creationTimestamp": "2026-01-01T12:00:00Z"}
        else:
            if there.get("immutable") is True and there.get("data") != manifest.get("data"):
                raise InvalidError(
                    f"The cluster {self.cluster!r} refuses to change what is immutable: '{key}'.",
                    status=422,
                )
            before = there["metadata"]
            metadata |= {name: before[name] for name in _SERVERS_FIELDS if name in before}
        if there is None or not same(manifest, there):
            metadata["resourceVersion"] = str(next(self._versions))
            self._objects[identity] = manifest
            self._define(key, manifest)
        if "deletionTimestamp" in metadata and not metadata.get("finalizers"):
            self._delete(identity)
        return manifest

    def _define(self, key: ObjectKey, manifest: Manifest) -> None:
        if key.gvk != CRD:
            return
        spec = manifest["spec"]
        for version in spec["versions"]:
            gvk = GVK(spec["group"], version["name"], spec["names"]["kind"])
            if version.get("served", True):
                namespaced, parts = spec["scope"] == "Namespaced", version.get("subresources") or {}
                self.serve(Resource(gvk, spec["names"]["plural"], namespaced, tuple(parts)))
            else:
                self._resources.pop(gvk, None)

    def _delete(self, identity: Identity) -> None:
        there = self._objects.pop(identity, None)
        self._applied.pop(identity, None)
        if there is None:
            return
        if identity[:2] == ("", "Namespace"):
            for inner in [each for each in self._objects if each.namespace == identity.name]:
                self._delete(inner)
        if identity[:2] == (CRD.group, CRD.kind):
            group, names = there["spec"]["group"], there["spec"]["names"]
            for resource in self._served(group, names["kind"]):
                self.unserve(resource.gvk)


def _shown(manifest: Manifest, gvk: GVK | None) -> Manifest:
    """Return a copy as a version shows it, or as it was written."""
    shown = copy.deepcopy(manifest)
    return shown if gvk is None else {**shown, "apiVersion": gvk.api_version}


def _is_applied(manager: Mapping[str, Any]) -> bool:
    return {**manager, **_OURS} == manager


def _place(manifest: Manifest) -> str:
    metadata = manifest["metadata"]
    return f"{metadata.get('namespace', '')}/{metadata['name']}"


def _priority(version: str) -> tuple[int, int, int, str]:
    """Sort versions as API servers prefer them: stable ones first, newer ones before older."""
    found = _VERSION.fullmatch(version)
    if not found:
        return 3, 0, 0, version
    major, stage, minor = found.groups()
    return {None: 0, "beta": 1, "alpha": 2}[stage], -int(major), -int(minor or 0), version


def _builtin() -> Iterator[tuple[GVK, Resource]]:
    for table, namespaced in ((_NAMESPACED, True), (_CLUSTER_SCOPED, False)):
        for api_version, kinds in table.items():
            for kind, plural in kinds.items():
                gvk = GVK.parse(api_version, kind)
                yield gvk, BUILT_IN.get(gvk) or Resource(gvk, plural, namespaced)


def _merge(there: Manifest, applied: Mapping[str, Any]) -> Manifest:
    merged = dict(there)
    for name, value in applied.items():
        if isinstance(value, Mapping):
            before = merged.get(name)
            merged[name] = _merge(before if isinstance(before, dict) else {}, value)
        else:
            merged[name] = copy.deepcopy(value)
    return merged


def _patched(there: Any, patch: Mapping[str, Any]) -> Manifest:
    merged = copy.deepcopy(there) if isinstance(there, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            is_map = isinstance(value, Mapping)
            merged[name] = _patched(merged.get(name), value) if is_map else copy.deepcopy(value)
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


def _left(applied: Manifest, now: Mapping[str, Any]) -> Manifest:
    """Return what stays ours of what was applied once another has written: what is as it was."""
    left = {}
    for name, value in applied.items():
        if isinstance(value, Mapping) and isinstance(now.get(name), Mapping):
            left[name] = _left(dict(value), now[name])
        elif name in now and now[name] == value:
            left[name] = value
    return left


def _fields(applied: Mapping[str, Any]) -> Manifest:
    """Name the fields of what was applied, as an API server does; a list is one field."""
    return {
        f"f:{name}": _fields(value) if isinstance(value, Mapping) else {}
        for name, value in applied.items()
    }


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
