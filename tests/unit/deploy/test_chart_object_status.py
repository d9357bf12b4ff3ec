"""Readiness of the objects of a release, by the rules of `helm upgrade --wait`."""

from __future__ import annotations

from typing import Any

import pytest

from bellhop.core.gvk import Identity
from bellhop.deploy.features.charts.inputs import UNKNOWN, hooks_of
from bellhop.deploy.features.charts.object_status import is_waited_for, shortfall

AVAILABLE = {"type": "Available", "status": "True"}
ALL = {"replicas": 2, "readyReplicas": 2, "updatedReplicas": 2, "availableReplicas": 2}


def condition(name: str, status: str = "True", reason: str = "") -> dict[str, Any]:
    return {"conditions": [{"type": name, "status": status, "reason": reason}]}


DEPLOYMENT, SET, DAEMONS = ("apps", "Deployment"), ("apps", "StatefulSet"), ("apps", "DaemonSet")
REPLICAS, POD, CLAIM = ("apps", "ReplicaSet"), ("", "Pod"), ("", "PersistentVolumeClaim")
JOB, CUSTOM = ("batch", "Job"), ("example.org", "Gauge")
CRD = ("apiextensions.k8s.io", "CustomResourceDefinition")
TWO = {"replicas": 2}
NODES = {
    "observedGeneration": 1,
    "desiredNumberScheduled": 2,
    "updatedNumberScheduled": 2,
    "numberReady": 2,
    "numberAvailable": 2,
}


@pytest.mark.parametrize(
    ("kind", "spec", "status", "lacks"),
    [
        (DEPLOYMENT, {}, {}, "0 of 1 ready"),
        (DEPLOYMENT, TWO, {**ALL, "conditions": [AVAILABLE]}, ""),
        (DEPLOYMENT, {"replicas": 0}, {"conditions": [AVAILABLE]}, ""),
        (DEPLOYMENT, TWO, {**ALL, "updatedReplicas": 1}, "1 of 2 updated"),
        (DEPLOYMENT, TWO, {**ALL, "availableReplicas": 1}, "1 of 2 available"),
        (DEPLOYMENT, TWO, {**ALL, "replicas": 3}, "1 more to end"),
        (DEPLOYMENT, TWO, ALL, "2 of 2 ready, it is not available"),
        (
            DEPLOYMENT,
            TWO,
            condition("Progressing", "False", "ProgressDeadlineExceeded"),
            "0 of 2 ready, its progress deadline is exceeded",
        ),
        (DEPLOYMENT, {**TWO, "paused": True}, {}, ""),
        (REPLICAS, TWO, ALL, ""),
        (REPLICAS, TWO, {"readyReplicas": 1}, "1 of 2 ready"),
        (REPLICAS, TWO, condition("ReplicaFailure"), "0 of 2 ready, its pods cannot be created"),
        (SET, TWO, ALL, ""),
        (SET, {}, {}, "0 of 1 ready"),
        (SET, TWO, {**ALL, "currentRevision": "a", "updateRevision": "b"}, "2 of 2 updated"),
        (SET, {**TWO, "updateStrategy": {"type": "OnDelete"}}, {}, ""),
        (
            SET,
            {**TWO, "updateStrategy": {"rollingUpdate": {"partition": 1}}},
            {**ALL, "updatedReplicas": 1, "currentRevision": "a", "updateRevision": "b"},
            "",
        ),
        (DAEMONS, {}, {}, "not scheduled yet"),
        (DAEMONS, {}, NODES, ""),
        (DAEMONS, {}, {**NODES, "numberReady": 1}, "1 of 2 ready"),
        (JOB, {}, {}, "0 of 1 complete"),
        (JOB, {"completions": 3}, {"succeeded": 2}, "2 of 3 complete"),
        (JOB, {}, condition("Complete"), ""),
        (JOB, {}, condition("Failed"), "0 of 1 complete, it has failed"),
        (POD, {}, {}, "Pending"),
        (POD, {}, {"phase": "Running"}, "Running, not ready"),
        (POD, {}, {"phase": "Running", **condition("Ready")}, ""),
        (POD, {}, {"phase": "Succeeded"}, ""),
        (POD, {}, {"phase": "Failed"}, "Failed"),
        (CLAIM, {}, {}, "Pending"),
        (CLAIM, {}, {"phase": "Bound"}, ""),
        (CRD, {}, {}, "not established"),
        (CRD, {}, condition("Established"), ""),
        (("", "Service"), {"type": "LoadBalancer"}, {"loadBalancer": {}}, ""),
        (CUSTOM, {}, {}, ""),
        (CUSTOM, {}, condition("Ready"), ""),
        (CUSTOM, {}, condition("Ready", "Unknown"), "Ready is Unknown"),
        (CUSTOM, {}, condition("Reconciling"), "Reconciling"),
        (CUSTOM, {}, condition("Stalled"), "Stalled"),
        (CUSTOM, {}, {"observedGeneration": 0}, "its last change is not processed yet"),
        (CUSTOM, "anything", "anything", ""),
        (CUSTOM, {}, {"conditions": {"Ready": "True"}}, ""),
        (CUSTOM, {}, {"conditions": ["Ready"]}, ""),
    ],
)
def test_an_object_is_ready_once_it_lacks_nothing(
    kind: tuple[str, str], spec: Any, status: Any, lacks: str
) -> None:
    """The shortfall is counted, in words that fit in parentheses."""
    manifest = {"metadata": {"generation": 1}, "spec": spec, "status": status}
    assert shortfall(Identity(*kind, "apps", "x"), manifest) == lacks


def test_an_object_that_is_deleted_is_not_ready() -> None:
    key = Identity(*CUSTOM, "apps", "x")
    assert shortfall(key, None) == "deleted"
    assert shortfall(key, {"metadata": {"deletionTimestamp": "now"}}) == "being deleted"


def test_jobs_are_waited_for_only_where_that_is_asked() -> None:
    """Objects without a status need not be read at all."""
    job = Identity(*JOB, "apps", "x")
    assert is_waited_for(job, jobs=True)
    assert not is_waited_for(job, jobs=False)
    assert is_waited_for(Identity(*DEPLOYMENT, "apps", "x"), jobs=False)
    assert not is_waited_for(Identity("", "ConfigMap", "apps", "x"), jobs=True)


@pytest.mark.parametrize(
    ("rendered", "hooks"),
    [
        ("kind: ConfigMap", set()),
        (
            "  annotations:\n    helm.sh/hook: post-install,pre-delete",
            {"post-install", "pre-delete"},
        ),
        ("    \"helm.sh/hook\": 'test'", {"test"}),
        ('    "helm.sh/hook-weight": "1"', set()),
        ("    helm.sh/hook: >-\n      post-install", set(UNKNOWN)),
    ],
)
def test_hooks_are_those_that_annotations_name(rendered: str, hooks: set[str]) -> None:
    """One whose annotation goes over several lines may be any."""
    assert hooks_of(rendered) == hooks
