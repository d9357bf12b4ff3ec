"""Readiness of a release's objects, by the rules that `helm upgrade --wait` applies (kstatus).

A worker that evaluates them itself reads the objects now and then, instead of holding a process of
Helm that watches them. Controllers write most of a status some time after the object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from bellhop.core.gvk import Identity

Object = Mapping[str, Any]

_NEVER_WAITED_FOR = frozenset(
    {
        ("", "ConfigMap"),
        ("", "Secret"),
        ("", "ServiceAccount"),
        ("batch", "CronJob"),
        ("rbac.authorization.k8s.io", "Role"),
        ("rbac.authorization.k8s.io", "RoleBinding"),
        ("rbac.authorization.k8s.io", "ClusterRole"),
        ("rbac.authorization.k8s.io", "ClusterRoleBinding"),
    }
)
"""Kinds without a status: they need not be read."""

_JOB = ("batch", "Job")


def is_waited_for(key: Identity, *, jobs: bool) -> bool:
    """Return whether an object of this kind may be unready; a Job is only where `jobs` count."""
    kind = (key.group, key.kind)
    return kind not in _NEVER_WAITED_FOR and (jobs or kind != _JOB)


def shortfall(key: Identity, there: Object | None) -> str:
    """Return what an object lacks to be ready, as `0 of 1 ready`; empty if it is ready."""
    if there is None:
        return "deleted"
    metadata, spec, status = (_mapping(there.get(each)) for each in ("metadata", "spec", "status"))
    if metadata.get("deletionTimestamp"):
        return "being deleted"
    seen, generation = status.get("observedGeneration"), metadata.get("generation")
    if seen is not None and generation is not None and seen != generation:
        return "its last change is not processed yet"
    conditions = _conditions(status)
    for name in ("Reconciling", "Stalled"):
        if _is(conditions, name, "True"):
            return name
    rule = _RULES.get((key.group, key.kind), _by_condition)
    return next(rule(spec, status, conditions), "")


Rule = Callable[[Object, Object, Mapping[str, Object]], Iterator[str]]


def _by_condition(spec: Object, status: Object, conditions: Mapping[str, Object]) -> Iterator[str]:
    del spec, status
    if "Ready" in conditions and not _is(conditions, "Ready", "True"):
        yield f"Ready is {conditions['Ready'].get('status')}"


def _deployment(spec: Object, status: Object, conditions: Mapping[str, Object]) -> Iterator[str]:
    if spec.get("paused"):
        return
    desired = spec.get("replicas", 1)
    if conditions.get("Progressing", {}).get("reason") == "ProgressDeadlineExceeded":
        yield f"{_ready(status, desired)}, its progress deadline is exceeded"
    yield from _fewer(status, "readyReplicas", desired, "ready")
    yield from _fewer(status, "updatedReplicas", desired, "updated")
    yield from _fewer(status, "availableReplicas", desired, "available")
    yield from _surplus(status, desired)
    if not _is(conditions, "Available", "True"):
        yield f"{_ready(status, desired)}, it is not available"


def _replica_set(spec: Object, status: Object, conditions: Mapping[str, Object]) -> Iterator[str]:
    desired = spec.get("replicas", 1)
    if _is(conditions, "ReplicaFailure", "True"):
        yield f"{_ready(status, desired)}, its pods cannot be created"
    yield from _fewer(status, "readyReplicas", desired, "ready")
    yield from _fewer(status, "availableReplicas", desired, "available")
    yield from _surplus(status, desired)


def _stateful_set(spec: Object, status: Object, conditions: Mapping[str, Object]) -> Iterator[str]:
    del conditions
    strategy = spec.get("updateStrategy") or {}
    if strategy.get("type") == "OnDelete":
        return
    desired = spec.get("replicas", 1)
    yield from _fewer(status, "readyReplicas", desired, "ready")
    yield from _surplus(status, desired)
    partition = (strategy.get("rollingUpdate") or {}).get("partition") or 0
    if partition:
        yield from _fewer(status, "updatedReplicas", desired - partition, "updated")
    elif status.get("currentRevision") != status.get("updateRevision"):
        yield _count(status, "updatedReplicas", desired, "updated")


def _daemon_set(spec: Object, status: Object, conditions: Mapping[str, Object]) -> Iterator[str]:
    del spec, conditions
    desired = status.get("desiredNumberScheduled")
    if desired is None or status.get("observedGeneration") is None:
        yield "not scheduled yet"
        return
    yield from _fewer(status, "numberReady", desired, "ready")
    yield from _fewer(status, "updatedNumberScheduled", desired, "updated")
    yield from _fewer(status, "numberAvailable", desired, "available")


def _job(spec: Object, status: Object, conditions: Mapping[str, Object]) -> Iterator[str]:
    desired = spec.get("completions") or spec.get("parallelism") or 1
    if _is(conditions, "Complete", "True"):
        return
    failed = ", it has failed" if _is(conditions, "Failed", "True") else ""
    yield _count(status, "succeeded", desired, "complete") + failed


def _pod(spec: Object, status: Object, conditions: Mapping[str, Object]) -> Iterator[str]:
    del spec
    phase = status.get("phase") or "Pending"
    if phase == "Running" and not _is(conditions, "Ready", "True"):
        yield "Running, not ready"
    elif phase not in ("Running", "Succeeded"):
        yield str(phase)


def _claim(spec: Object, status: Object, conditions: Mapping[str, Object]) -> Iterator[str]:
    del spec, conditions
    if status.get("phase") != "Bound":
        yield str(status.get("phase") or "Pending")


def _definition(spec: Object, status: Object, conditions: Mapping[str, Object]) -> Iterator[str]:
    del spec, status
    if not _is(conditions, "Established", "True"):
        yield "not established"


_RULES: Mapping[tuple[str, str], Rule] = {
    ("apps", "Deployment"): _deployment,
    ("apps", "ReplicaSet"): _replica_set,
    ("apps", "StatefulSet"): _stateful_set,
    ("apps", "DaemonSet"): _daemon_set,
    _JOB: _job,
    ("", "Pod"): _pod,
    ("", "PersistentVolumeClaim"): _claim,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): _definition,
}


def _mapping(value: Any) -> Object:
    """Return a field that should be a mapping; a custom resource may have anything there."""
    return value if isinstance(value, Mapping) else {}


def _conditions(status: Object) -> Mapping[str, Object]:
    listed = status.get("conditions")
    found = map(_mapping, listed if isinstance(listed, list) else ())
    return {str(each.get("type")): each for each in found}


def _is(conditions: Mapping[str, Object], name: str, status: str) -> bool:
    return conditions.get(name, {}).get("status") == status


def _ready(status: Object, desired: int) -> str:
    return _count(status, "readyReplicas", desired, "ready")


def _count(status: Object, field: str, desired: int, word: str) -> str:
    return f"{status.get(field) or 0} of {desired} {word}"


def _fewer(status: Object, field: str, desired: int, word: str) -> Iterator[str]:
    if (status.get(field) or 0) < desired:
        yield _count(status, field, desired, word)


def _surplus(status: Object, desired: int) -> Iterator[str]:
    """Yield how many pods of an earlier revision are still to end."""
    surplus = (status.get("replicas") or 0) - desired
    if surplus > 0:
        yield f"{surplus} more to end"
