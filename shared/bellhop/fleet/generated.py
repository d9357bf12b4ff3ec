"""What a trigger generates, as the ClusterProfile that Sveltos' users know."""

from __future__ import annotations

import hashlib
import re
from typing import Any

from bellhop.model.allow import ANNOTATION as ALLOW
from bellhop.model.gvk import ObjectKey
from bellhop.model.names import label_value_problem
from bellhop.model.record import PLAIN, Handling, Profile

_PREFIX = "eventtrigger.lib.projectsveltos.io/"
_ILLEGAL = re.compile(r"[^A-Za-z0-9_.-]")
_READABLE, _DIGEST = 50, 12


def origin_labels(profile: Profile, source: str) -> dict[str, str]:
    """Return the labels by which users of Sveltos find what a trigger generated.

    What is no label's value, as the name of a ClusterRole may be, is written as far as it is one,
    with a digest of all of it.
    """
    namespace, _, name = profile.cluster.partition("/")
    told = {
        "eventtriggername": profile.trigger,
        "clusterNamespace": namespace,
        "clustername": name,
        "clustertype": "Sveltos",
        "eventreportname": source,
        "eventsourcename": source,
    }
    if profile.object:
        key = ObjectKey.parse(profile.object)
        told |= {"resourcenamespace": key.namespace, "resourcename": key.name}
    return {f"{_PREFIX}{label}": _value(text) for label, text in told.items() if text}


def instance_labels(profile: Profile, source: str, namespace: str, name: str) -> dict[str, str]:
    """Return the labels of what was instantiated of a ConfigMap or Secret."""
    ref = {"refnamespace": namespace, "refname": name}
    own = {f"{_PREFIX}{label}": _value(text) for label, text in ref.items()}
    return {**origin_labels(profile, source), **own}


def _value(text: str) -> str:
    if not label_value_problem(text):
        return text
    readable = _ILLEGAL.sub("-", text)[:_READABLE].strip("-_.")
    return f"{readable}-{hashlib.sha256(text.encode()).hexdigest()[:_DIGEST]}".lstrip("-")


def manifest(profile: Profile, source: str) -> dict[str, Any]:
    """Return a generated profile as a ClusterProfile; what it holds is in its refs."""
    refs: dict[str, dict[str, Any]] = {}
    for content in profile.contents:
        kind, _, place = content.ref.partition(" ")
        parts = place.partition("/")
        own = _handling(content.how)
        refs[content.ref] = {"kind": kind, "namespace": parts[0], "name": parts[2], **own}
    return {
        "apiVersion": "config.projectsveltos.io/v1beta1",
        "kind": "ClusterProfile",
        "metadata": {
            "name": profile.name,
            "labels": origin_labels(profile, source),
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
            **_added(profile),
            "policyRefs": list(refs.values()),
        },
    }


def _handling(how: Handling) -> dict[str, Any]:
    """Return what a ref asks for beside the usual."""
    asked = {"tier": how.tier, "force": how.force, "skipNamespaceCreation": how.skip_namespace}
    usual = (PLAIN.tier, PLAIN.force, PLAIN.skip_namespace)
    return {
        field: value
        for (field, value), default in zip(asked.items(), usual, strict=True)
        if value != default
    }


def _added(profile: Profile) -> dict[str, Any]:
    """Return the metadata that all objects of a profile get, as each of its contents has them."""
    how = profile.contents[0].how if profile.contents else PLAIN
    added = {"extraLabels": how.labels, "extraAnnotations": how.annotations}
    return {field: dict(value) for field, value in added.items() if value}


def cluster_ref(key: str) -> dict[str, str]:
    """Return a cluster as a ClusterProfile refers to it."""
    namespace, _, name = key.partition("/")
    return {
        "apiVersion": "lib.projectsveltos.io/v1beta1",
        "kind": "SveltosCluster",
        "namespace": namespace,
        "name": name,
    }
