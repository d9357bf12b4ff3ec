"""ConfigMaps and Secrets that the pods of a workload read, and whether they have changed.

Every way counts in which a pod has one: volumes, projected ones too, and environments, those of
init containers among them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from bellhop.core.digest import digest
from bellhop.core.gvk import Identity

RELOADED = "bellhop.dev/reloaded"
"""The annotation of a pod template whose change restarts its pods: a digest of what they read."""

CONFIG_MAP, SECRET = "ConfigMap", "Secret"

_WORKLOADS = frozenset({"Deployment", "StatefulSet", "DaemonSet"})
_CONTAINERS = ("containers", "initContainers")
_LENGTH = 16


def is_workload(key: Identity) -> bool:
    """Say whether an object is one whose pods are restarted."""
    return key.group == "apps" and key.kind in _WORKLOADS


def mounted(manifest: Mapping[str, Any], namespace: str) -> dict[Identity, bool]:
    """Return the ConfigMaps and Secrets that a workload's pods read, and which they may lack."""
    pod = _at(manifest, "spec", "template", "spec")
    found: dict[Identity, bool] = {}
    for kind, name, optional in (*_in_volumes(pod), *_in_environments(pod)):
        if isinstance(name, str) and name:
            key = Identity("", kind, namespace, name)
            found[key] = optional and found.get(key, True)
    return found


def state(holder: Mapping[str, Any]) -> str:
    """Return a digest of what a ConfigMap or Secret holds."""
    return digest([holder.get("data") or {}, holder.get("binaryData") or {}])[:_LENGTH]


def is_changed(before: Mapping[str, str], now: Mapping[str, str]) -> bool:
    """Say whether something that was read before is another now; what is new is not."""
    return any(name in before and before[name] != now[name] for name in now)


def mark(now: Mapping[str, str]) -> str:
    """Return what the annotation says while pods read this."""
    return digest(now)[:_LENGTH]


def marked(manifest: Mapping[str, Any], text: str) -> dict[str, Any]:
    """Return a workload whose pod template has the annotation; an empty text leaves it as it is."""
    if not text:
        return dict(manifest)
    template = _at(manifest, "spec", "template")
    metadata = _at(template, "metadata")
    annotations = {**_at(metadata, "annotations"), RELOADED: text}
    template = {**template, "metadata": {**metadata, "annotations": annotations}}
    return {**manifest, "spec": {**_at(manifest, "spec"), "template": template}}


def _in_volumes(pod: Mapping[str, Any]) -> Iterator[tuple[str, Any, bool]]:
    for volume in _list(pod, "volumes"):
        yield from _ref(CONFIG_MAP, _at(volume, "configMap"), "name")
        yield from _ref(SECRET, _at(volume, "secret"), "secretName")
        for each in _list(_at(volume, "projected"), "sources"):
            yield from _ref(CONFIG_MAP, _at(each, "configMap"), "name")
            yield from _ref(SECRET, _at(each, "secret"), "name")


def _in_environments(pod: Mapping[str, Any]) -> Iterator[tuple[str, Any, bool]]:
    for container in (each for name in _CONTAINERS for each in _list(pod, name)):
        for each in _list(container, "envFrom"):
            yield from _ref(CONFIG_MAP, _at(each, "configMapRef"), "name")
            yield from _ref(SECRET, _at(each, "secretRef"), "name")
        for each in _list(container, "env"):
            yield from _ref(CONFIG_MAP, _at(each, "valueFrom", "configMapKeyRef"), "name")
            yield from _ref(SECRET, _at(each, "valueFrom", "secretKeyRef"), "name")


def _ref(kind: str, ref: Mapping[str, Any], name: str) -> Iterator[tuple[str, Any, bool]]:
    if ref:
        yield kind, ref.get(name), ref.get("optional") is True


def _at(value: Any, *names: str) -> Mapping[str, Any]:
    """Follow names into an object; what is no object on the way is an empty one."""
    for name in names:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def _list(value: Mapping[str, Any], name: str) -> list[Any]:
    found = value.get(name)
    return found if isinstance(found, list) else []
