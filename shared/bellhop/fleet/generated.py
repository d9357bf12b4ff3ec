"""What a trigger generates, as the ClusterProfile that Sveltos' users know."""

from __future__ import annotations

from typing import Any

from bellhop.model.allow import ANNOTATION as ALLOW
from bellhop.model.record import Profile

TRIGGER_LABEL = "eventtrigger.lib.projectsveltos.io/name"
CLUSTER_LABEL = "eventtrigger.lib.projectsveltos.io/cluster-name"
NAMESPACE_LABEL = "eventtrigger.lib.projectsveltos.io/cluster-namespace"


def origin_labels(trigger: str, cluster: str) -> dict[str, str]:
    """Return the labels by which users find what a trigger generated for a source cluster."""
    namespace, _, name = cluster.partition("/")
    return {TRIGGER_LABEL: trigger, NAMESPACE_LABEL: namespace, CLUSTER_LABEL: name}


def manifest(profile: Profile) -> dict[str, Any]:
    """Return a generated profile as a ClusterProfile; what it holds is in its refs."""
    refs: dict[str, dict[str, str]] = {}
    for content in profile.contents:
        kind, _, place = content.ref.partition(" ")
        parts = place.partition("/")
        refs[content.ref] = {"kind": kind, "namespace": parts[0], "name": parts[2]}
    return {
        "apiVersion": "config.projectsveltos.io/v1beta1",
        "kind": "ClusterProfile",
        "metadata": {
            "name": profile.name,
            "labels": origin_labels(profile.trigger, profile.cluster),
            **({"annotations": {ALLOW: profile.allow}} if profile.allow else {}),
        },
        "spec": {
            "clusterRefs": [cluster_ref(each) for each in profile.destinations],
            "syncMode": "Continuous",
            "tier": profile.tier,
            "continueOnConflict": profile.continue_on_conflict,
            "stopMatchingBehavior": (
                "LeavePolicies" if profile.leaves_policies else "WithdrawPolicies"
            ),
            "policyRefs": list(refs.values()),
        },
    }


def cluster_ref(key: str) -> dict[str, str]:
    """Return a cluster as a ClusterProfile refers to it."""
    namespace, _, name = key.partition("/")
    return {
        "apiVersion": "lib.projectsveltos.io/v1beta1",
        "kind": "SveltosCluster",
        "namespace": namespace,
        "name": name,
    }
