"""Names, labels and references of written objects, as Sveltos' clients look for them."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping

from bellhop.configuration.objects import ObjectReference
from bellhop.core.digest import digest
from bellhop.core.gvk import GVK
from bellhop.core.identity import profile_kind
from bellhop.core.names import LONGEST_SUBDOMAIN
from bellhop.diagnosis.profile_manifests import cluster_ref
from bellhop.rendering.origin_labels import label_value

CLUSTER_TYPE = "Sveltos"
_PREFIX = CLUSTER_TYPE.lower()
_DIGEST = 12
CLUSTER_NAME_LABEL = "projectsveltos.io/cluster-name"
CLUSTER_TYPE_LABEL = "projectsveltos.io/cluster-type"
PROFILE_LABELS = {
    "ClusterProfile": "projectsveltos.io/cluster-profile-name",
    "Profile": "projectsveltos.io/profile-name",
}


def cut_name(name: str) -> str:
    """Return the name of an object: one of over 253 characters is cut, with a digest of it."""
    if len(name) <= LONGEST_SUBDOMAIN:
        return name
    suffix = hashlib.sha256(name.encode()).hexdigest()[:_DIGEST]
    return f"{name[: LONGEST_SUBDOMAIN - _DIGEST - 1].rstrip('-.')}-{suffix}"


def name_summary(profile: str, cluster: str) -> str:
    """Return the name of the ClusterSummary of a profile, as people know it, in a cluster."""
    return cut_name(f"{_profile_prefix(profile)}-{_PREFIX}-{_name_of(cluster)}")


def name_dry_run(profile: str, cluster: str) -> str:
    """Return the name of the ClusterReport of a profile in a cluster."""
    return cut_name(f"{_profile_prefix(profile)}--{_PREFIX}--{_name_of(cluster)}")


def name_report(rule: str, cluster: str) -> str:
    """Return the name of the report of a source, a health check or a classifier in a cluster."""
    return cut_name(f"{_PREFIX}--{rule}--{_name_of(cluster)}")


def name_content(cluster: str) -> str:
    """Return the name of the ClusterConfiguration of a cluster."""
    return cut_name(f"{_PREFIX}--{_name_of(cluster)}")


def label_of_profile(profile: str, cluster: str) -> dict[str, str]:
    """Return the labels of the ClusterSummary, or the ClusterReport, of a profile in a cluster."""
    label = PROFILE_LABELS[profile_kind(profile)]
    return make_labels(
        {
            label: profile.rpartition("/")[2],
            CLUSTER_NAME_LABEL: _name_of(cluster),
            CLUSTER_TYPE_LABEL: CLUSTER_TYPE,
        }
    )


def make_labels(labels: Mapping[str, str]) -> dict[str, str]:
    """Return labels of which a value that is none is cut, with a digest."""
    return {name: label_value(value) for name, value in labels.items()}


def refer_to_cluster(cluster: str) -> ObjectReference:
    """Return a reference to a cluster `namespace/name`."""
    ref = cluster_ref(cluster)
    return ObjectReference(
        api_version=ref["apiVersion"],
        kind=ref["kind"],
        namespace=ref["namespace"],
        name=ref["name"],
    )


def refer_to_object(gvk: GVK, namespace: str, name: str) -> ObjectReference:
    """Return a reference to an object of a cluster."""
    return ObjectReference(
        api_version=gvk.api_version, kind=gvk.kind, namespace=namespace, name=name
    )


def make_hash(*values: object) -> str:
    """Return a digest of JSON values as a field of bytes has it: in base64."""
    return base64.b64encode(bytes.fromhex(digest(list(values)))).decode()


def _profile_prefix(profile: str) -> str:
    name = profile.rpartition("/")[2]
    return f"p--{name}" if profile_kind(profile) == "Profile" else name


def _name_of(cluster: str) -> str:
    return cluster.partition("/")[2]
