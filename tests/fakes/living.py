"""Clusters with a past: definitions come and go, backups are restored."""

from __future__ import annotations

import copy
import itertools
from dataclasses import dataclass
from typing import Any

from bellhop.core.gvk import GVK, Identity, ObjectKey, Resource
from bellhop.ports.kube import Manifest
from tests.fakes.kube import FakeKube

WIDGET = GVK("shop.io", "v1", "Widget")
"""A kind of a definition that may vanish; sources watch it."""

GADGET = GVK("shop.io", "v1", "Gadget")
"""Another one; profiles deploy it."""

CHECKED = "checked"
"""The name of what is touched only where a gate is open; gates are opened, and never shut again."""

_GATE = Identity("", "ConfigMap", "kube-system", "gate")
_PLAIN_GATE: Manifest = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "gate", "namespace": "kube-system"},
}

BUDGET = GVK("policy", "v1", "PodDisruptionBudget")
OLD_BUDGET = BUDGET._replace(version="v1beta1")

_SERVED = (
    Resource(WIDGET, "widgets", namespaced=True),
    Resource(GADGET, "gadgets", namespaced=True),
    Resource(BUDGET, "poddisruptionbudgets", namespaced=True),
    Resource(OLD_BUDGET, "poddisruptionbudgets", namespaced=True),
)


@dataclass(frozen=True)
class Backup:
    """All that etcd holds, and the number of its next write."""

    objects: dict[Identity, Manifest]
    applied: dict[Identity, Manifest]
    version: int


class LivingKube(FakeKube):
    """One cluster that serves kinds of definitions, and remembers what was wronged."""

    def __init__(self, cluster: str = "fleet/fake") -> None:
        self.theirs: set[str] = set()
        """The lives of objects that began otherwise than through the port."""
        super().__init__(cluster)
        self.wronged: list[ObjectKey] = []
        """What was removed through the port though it began otherwise, or touched behind a gate."""
        self.order: tuple[str, str] | None = None
        """Two ConfigMaps, of which the first is to be there whenever the second is."""
        self.disordered: list[str] = []
        for resource in _SERVED:
            self.serve(resource)
        self.follow_bindings()

    def define(self, gvk: GVK, *, there: bool) -> None:
        """Serve a kind of a definition, or delete the definition and its objects."""
        if there:
            self.serve(next(each for each in _SERVED if each.gvk == gvk))
        else:
            self.unserve(gvk)

    def backup(self) -> Backup:
        """Keep what is there."""
        with self._lock:
            version = next(self._versions)
            return Backup(copy.deepcopy(self._objects), copy.deepcopy(self._applied), version)

    def restore(self, backup: Backup) -> None:
        """Be as at a backup; what was written since never was, and its versions come again."""
        with self._lock:
            there = copy.deepcopy(backup.objects).items()
            self._objects = {key: each for key, each in there if self._served(*key[:2])}
            self._applied = copy.deepcopy(backup.applied)
            self._versions = itertools.count(backup.version)

    def gate(self, word: str, *, open: bool) -> None:  # noqa: A002 - as handlers are.
        """Say yes or no to what checks ask for; without a word yes to all."""
        there = self._objects.get(_GATE)
        said = (there or {}).get("data") or {}
        data = {**said, word: "yes" if open else "no"} if word else {}
        super().put({**_PLAIN_GATE, "data": data})

    def _shut(self, word: str) -> bool:
        there = self._objects.get(_GATE)
        return there is not None and (there.get("data") or {}).get(word) == "no"

    def apply(self, manifest: Manifest, **how: Any) -> Manifest:
        key = ObjectKey.of(manifest)
        self._keep_order("applied", key.name, 1)
        if key.name == CHECKED and self._shut("preDeployChecks"):
            self.wronged.append(key)
        return super().apply(manifest, **how)

    def put(self, manifest: Manifest) -> Manifest:
        with self._lock:
            before = {each["metadata"]["uid"] for each in self._objects.values()}
            written = super().put(manifest)
            self.theirs |= {written["metadata"]["uid"]} - before
            return written

    def _keep_order(self, what: str, name: str, number: int) -> None:
        """Note objects applied before the first exists, or removed before the second is deleted."""
        if self.order is None or name != self.order[number]:
            return
        other = self.order[1 - number]
        there = any(key.name == other for key in self._objects)
        if there is not bool(number):
            self.disordered.append(f"{name} {what} while {other} is{'' if there else ' not'} there")

    def remove(self, gvk: GVK, namespace: str, name: str, *, uid: str = "") -> bool:
        self._keep_order("removed", name, 0)
        key = ObjectKey(gvk, namespace, name)
        there = self._objects.get(key.identity)
        strange = there is not None and (
            key.identity not in self._applied or there["metadata"]["uid"] in self.theirs
        )
        removed = super().remove(*key, uid=uid)
        if removed and (strange or (name == CHECKED and self._shut("preDeleteChecks"))):
            self.wronged.append(key)
        return removed
