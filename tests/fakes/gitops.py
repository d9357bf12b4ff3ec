"""Flux and Argo CD as an API server sees them: they apply, compare, prune and read health.

Both are played by the requests of their controllers: kustomize-controller's server-side apply with
a dry run before it, and the client-side apply of `kubectl` by which Argo CD syncs. A desired state
is a list of manifests, as a folder of a repository has them.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from bellhop.celbox import CelError, Rule
from bellhop.core.gvk import ObjectKey
from bellhop.luabox import Script
from infra.demo.user import User

Manifest = dict[str, Any]
_MANAGER = "kustomize-controller"
_LABELS = {
    "kustomize.toolkit.fluxcd.io/name": "fleet",
    "kustomize.toolkit.fluxcd.io/namespace": "flux-system",
}
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


class GitOps(Protocol):
    """A controller that has a cluster follow a repository."""

    def sync(self, desired: Sequence[Manifest]) -> list[str]:
        """Have the cluster follow, and return the names of what was written or deleted."""
        ...

    def find_drift(self, desired: Sequence[Manifest]) -> list[str]:
        """Return the names of objects that differ from the repository; change nothing."""
        ...

    def read_health(self, key: ObjectKey) -> str:
        """Return the health of an object in the words of the controller."""
        ...


class Flux:
    """A Kustomization with `prune` and `wait`; `checks` are its `healthCheckExprs` by kind."""

    def __init__(self, user: User, checks: Mapping[str, Mapping[str, str]] = {}) -> None:
        self._user = user
        self._checks = checks
        self._inventory: list[ObjectKey] = []

    def sync(self, desired: Sequence[Manifest]) -> list[str]:
        """Apply what differs, those that define others first; then prune what left the folder."""
        manifests = sorted(map(self._label, desired), key=_stage)
        written = [each for each in manifests if self._differs(each)]
        for each in written:
            self._user.apply(each, _MANAGER)
        keys = list(map(ObjectKey.of, manifests))
        pruned = [each for each in self._inventory if each not in keys and self._is_mine(each)]
        for key in pruned:
            self._user.delete(key)
        self._inventory = keys
        return [each["metadata"]["name"] for each in written] + [each.name for each in pruned]

    def find_drift(self, desired: Sequence[Manifest]) -> list[str]:
        """Compare each object with the answer to a dry run of its apply."""
        manifests = map(self._label, desired)
        return [each["metadata"]["name"] for each in manifests if self._differs(each)]

    def read_health(self, key: ObjectKey) -> str:
        """Return the status that kstatus computes, or that expressions say."""
        found = self._user.get(key)
        if found is None:
            return "NotFound"
        if "deletionTimestamp" in found["metadata"]:
            return "Terminating"
        status = found.get("status") or {}
        observed = status.get("observedGeneration", found["metadata"].get("generation"))
        if observed != found["metadata"].get("generation"):
            return "InProgress"
        if key.gvk.kind in self._checks:
            return self._evaluate(self._checks[key.gvk.kind], found)
        truths = {each["type"]: each["status"] for each in status.get("conditions") or ()}
        if truths.get("Reconciling") == "True":
            return "InProgress"
        if truths.get("Stalled") == "True":
            return "Failed"
        return "Current" if truths.get("Ready", "True") == "True" else "InProgress"

    def _label(self, manifest: Manifest) -> Manifest:
        metadata = manifest["metadata"]
        labels = {**(metadata.get("labels") or {}), **_LABELS}
        return {**manifest, "metadata": {**metadata, "labels": labels}}

    def _differs(self, manifest: Manifest) -> bool:
        there = self._user.get(ObjectKey.of(manifest))
        if there is None:
            return True
        then = self._user.apply(manifest, _MANAGER, dry_run=True)
        return _comparable(there) != _comparable(then)

    def _is_mine(self, key: ObjectKey) -> bool:
        found = self._user.get(key)
        return bool(found) and _LABELS.items() <= found["metadata"].get("labels", {}).items()

    def _evaluate(self, checks: Mapping[str, str], found: Manifest) -> str:
        try:
            for state in ("inProgress", "failed", "current"):
                if state in checks and _holds(checks[state], found):
                    return state[0].upper() + state[1:]
        except CelError:
            # A field that an expression names is not there yet: Flux waits until its time-out.
            return "InProgress"
        return "InProgress"


class ArgoCD:
    """An Application that is synced with prune; `checks` are the health scripts in Lua by kind."""

    def __init__(self, user: User, checks: Mapping[str, str] = {}) -> None:
        self._user = user
        self._checks = checks
        self._kinds: set[Any] = set()

    def sync(self, desired: Sequence[Manifest]) -> list[str]:
        """Apply what differs as `kubectl apply` does, and delete what it tracks besides."""
        manifests = sorted(map(self._track, desired), key=_stage)
        self._kinds |= {ObjectKey.of(each).gvk for each in manifests}
        written = [each for each in manifests if self._differs(each)]
        for each in written:
            self._apply(each)
        pruned = self._find_extra(manifests)
        for key in pruned:
            self._user.delete(key)
        return [each["metadata"]["name"] for each in written] + [each.name for each in pruned]

    def find_drift(self, desired: Sequence[Manifest]) -> list[str]:
        """Compare three ways: last applied, desired and live; and what is to be pruned."""
        manifests = list(map(self._track, desired))
        differing = [each["metadata"]["name"] for each in manifests if self._differs(each)]
        return differing + [each.name for each in self._find_extra(manifests)]

    def read_health(self, key: ObjectKey) -> str:
        """Return the health that the script of the kind computes; without one there is none."""
        found = self._user.get(key)
        if found is None:
            return "Missing"
        if "deletionTimestamp" in found["metadata"]:
            return "Progressing"
        if key.gvk.kind not in self._checks:
            return ""
        text = f"function evaluate()\n{self._checks[key.gvk.kind]}\nend"
        health = Script(text, name=key.gvk.kind).call("evaluate", globals={"obj": found})
        return str(health["status"])

    def _track(self, manifest: Manifest) -> Manifest:
        key, metadata = ObjectKey.of(manifest), manifest["metadata"]
        place = f"{key.namespace or 'default'}/{key.name}"
        mark = f"fleet:{key.gvk.group}/{key.gvk.kind}:{place}"
        annotations = {**(metadata.get("annotations") or {}), _TRACKING: mark}
        return {**manifest, "metadata": {**metadata, "annotations": annotations}}

    def _differs(self, manifest: Manifest) -> bool:
        live = self._user.get(ObjectKey.of(manifest))
        return live is None or _merged(live, _compare_three(manifest, live)) != live

    def _apply(self, manifest: Manifest) -> None:
        live = self._user.get(ObjectKey.of(manifest))
        metadata = manifest["metadata"]
        annotations = {**metadata["annotations"], LAST_APPLIED: json.dumps(manifest)}
        modified = {**manifest, "metadata": {**metadata, "annotations": annotations}}
        if live is None:
            self._user.create(modified)
        else:
            self._user.patch(ObjectKey.of(manifest), _compare_three(modified, live))

    def _find_extra(self, manifests: Iterable[Manifest]) -> list[ObjectKey]:
        wanted = set(map(ObjectKey.of, manifests))
        found = (each for gvk in self._kinds for each in _list(self._user, gvk))
        tracked = {key for key, each in found if _is_tracked(each)}
        return sorted(tracked - wanted)


_TRACKING = "argocd.argoproj.io/tracking-id"
_FIELDS = re.compile(r"(?<![\w.])(metadata|spec|status)\b")


def _list(user: User, gvk: Any) -> Iterable[tuple[ObjectKey, Manifest]]:
    for each in user.list(gvk):
        metadata = each["metadata"]
        yield ObjectKey(gvk, metadata.get("namespace", ""), metadata["name"]), each


def _is_tracked(found: Manifest) -> bool:
    annotations = found["metadata"].get("annotations") or {}
    leaving = "deletionTimestamp" in found["metadata"]
    return not leaving and str(annotations.get(_TRACKING, "")).startswith("fleet:")


def _stage(manifest: Manifest) -> tuple[int, str]:
    """Order objects as both do: what others need comes first."""
    first = ("CustomResourceDefinition", "Namespace", "Secret", "ConfigMap")
    kind = manifest["kind"]
    return first.index(kind) if kind in first else len(first), kind


def _comparable(found: Manifest) -> Manifest:
    """Return the parts of an object in which Flux looks for drift."""
    rest = {key: each for key, each in found.items() if key not in ("metadata", "status")}
    metadata = found["metadata"]
    marks = {key: metadata.get(key) or {} for key in ("labels", "annotations")}
    return {**rest, "metadata": marks}


def _holds(expression: str, found: Manifest) -> bool:
    """Evaluate an expression of Flux: its variables are the fields of the object."""
    return Rule(_FIELDS.sub(r"resource.\1", expression), name="health").holds(found)


def _compare_three(modified: Manifest, live: Manifest) -> Manifest:
    """Return the JSON merge patch of an apply: changes of `live`, and what was applied before."""
    annotations = live["metadata"].get("annotations") or {}
    original = json.loads(annotations.get(LAST_APPLIED, "{}"))
    changes = _without_deletions(_difference(live, modified))
    return _merged_patches(changes, _only_deletions(_difference(original, modified)))


def _difference(old: Manifest, new: Manifest) -> Manifest:
    """Return the JSON merge patch from one document to another."""
    patch: Manifest = {key: None for key in old if key not in new}
    for key, value in new.items():
        before = old.get(key)
        if isinstance(value, dict) and isinstance(before, dict):
            if deeper := _difference(before, value):
                patch[key] = deeper
        elif key not in old or before != value:
            patch[key] = value
    return patch


def _without_deletions(patch: Manifest) -> Manifest:
    kept: Manifest = {}
    for key, value in patch.items():
        if isinstance(value, dict):
            if deeper := _without_deletions(value):
                kept[key] = deeper
        elif value is not None:
            kept[key] = value
    return kept


def _only_deletions(patch: Manifest) -> Manifest:
    kept: Manifest = {}
    for key, value in patch.items():
        if value is None:
            kept[key] = None
        elif isinstance(value, dict) and (deeper := _only_deletions(value)):
            kept[key] = deeper
    return kept


def _merged_patches(one: Manifest, other: Manifest) -> Manifest:
    merged = dict(one)
    for key, value in other.items():
        both = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = _merged_patches(merged[key], value) if both else value
    return merged


def _merged(live: Manifest, patch: Manifest) -> Manifest:
    """Return a document after a JSON merge patch."""
    merged = copy.deepcopy(live)
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, dict):
            before = merged.get(key)
            merged[key] = _merged(before if isinstance(before, dict) else {}, value)
        else:
            merged[key] = value
    return merged
