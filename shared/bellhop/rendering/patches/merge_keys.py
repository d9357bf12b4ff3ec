"""Merge keys: the fields by which a strategic merge identifies entries of lists, by kind.

An API server's OpenAPI document says it (`x-kubernetes-patch-merge-key`, and for some lists
`x-kubernetes-list-map-keys`, which kustomize prefers). A list that is not named here is replaced as
a whole, as kustomize does: lists of custom resources, and some that came with later versions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Shape(NamedTuple):
    """The schema of a value.

    `keys` name the fields that identify entries of a list; in a `set` the entry identifies itself.
    `fields` lie below: of an object, or of each entry.
    """

    keys: tuple[str, ...] = ()
    is_set: bool = False
    fields: Mapping[str, Shape] = {}


UNKNOWN = Shape()

_BY_NAME = Shape(("name",))
_BY_TYPE = Shape(("type",))

_METADATA = Shape(fields={"ownerReferences": Shape(("uid",)), "finalizers": Shape(is_set=True)})

_CONTAINER = {
    "env": _BY_NAME,
    "ports": Shape(("containerPort", "protocol")),
    "volumeDevices": Shape(("devicePath",)),
    "volumeMounts": Shape(("mountPath",)),
}
_POD = {
    "containers": Shape(("name",), fields=_CONTAINER),
    "ephemeralContainers": Shape(("name",), fields=_CONTAINER),
    "hostAliases": Shape(("ip",)),
    "imagePullSecrets": _BY_NAME,
    "initContainers": Shape(("name",), fields=_CONTAINER),
    "topologySpreadConstraints": Shape(("topologyKey", "whenUnsatisfiable")),
    "volumes": _BY_NAME,
}
_TEMPLATE = Shape(fields={"metadata": _METADATA, "spec": Shape(fields=_POD)})
_WORKLOAD = {
    "spec": Shape(fields={"template": _TEMPLATE}),
    "status": Shape(fields={"conditions": _BY_TYPE}),
}
_JOB = Shape(fields={"metadata": _METADATA, "spec": Shape(fields={"template": _TEMPLATE})})
_CONDITIONS = {"status": Shape(fields={"conditions": _BY_TYPE})}
_WEBHOOKS = {"webhooks": _BY_NAME}

_KINDS: Mapping[tuple[str, str], Mapping[str, Shape]] = {
    ("", "ComponentStatus"): {"conditions": _BY_TYPE},
    ("", "Namespace"): _CONDITIONS,
    ("", "Node"): {
        "spec": Shape(fields={"podCIDRs": Shape(is_set=True)}),
        "status": Shape(fields={"addresses": _BY_TYPE, "conditions": _BY_TYPE}),
    },
    ("", "PersistentVolumeClaim"): _CONDITIONS,
    ("", "Pod"): {
        "spec": Shape(fields=_POD),
        "status": Shape(fields={"conditions": _BY_TYPE, "podIPs": Shape(("ip",))}),
    },
    ("", "PodTemplate"): {"template": _TEMPLATE},
    ("", "ReplicationController"): _WORKLOAD,
    ("", "Service"): {
        "spec": Shape(fields={"ports": Shape(("port", "protocol"))}),
        "status": Shape(fields={"conditions": _BY_TYPE}),
    },
    ("", "ServiceAccount"): {"secrets": _BY_NAME},
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"): _WEBHOOKS,
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"): _WEBHOOKS,
    ("apiregistration.k8s.io", "APIService"): _CONDITIONS,
    ("apps", "DaemonSet"): _WORKLOAD,
    ("apps", "Deployment"): _WORKLOAD,
    ("apps", "ReplicaSet"): _WORKLOAD,
    ("apps", "StatefulSet"): _WORKLOAD,
    ("batch", "CronJob"): {"spec": Shape(fields={"jobTemplate": _JOB})},
    ("batch", "Job"): _WORKLOAD,
    ("storage.k8s.io", "CSINode"): {"spec": Shape(fields={"drivers": _BY_NAME})},
}


def shape_of(api_version: str, kind: str) -> Shape:
    """Return what is known of a kind; of a custom one nothing is."""
    group = api_version.rpartition("/")[0]
    fields = _KINDS.get((group, kind))
    known = fields is not None or group in _BUILT_IN
    return Shape(fields={"metadata": _METADATA, **(fields or {})}) if known else UNKNOWN


_BUILT_IN = frozenset(
    {
        "",
        "admissionregistration.k8s.io",
        "apiextensions.k8s.io",
        "apiregistration.k8s.io",
        "apps",
        "authentication.k8s.io",
        "authorization.k8s.io",
        "autoscaling",
        "batch",
        "certificates.k8s.io",
        "coordination.k8s.io",
        "discovery.k8s.io",
        "events.k8s.io",
        "flowcontrol.apiserver.k8s.io",
        "networking.k8s.io",
        "node.k8s.io",
        "policy",
        "rbac.authorization.k8s.io",
        "resource.k8s.io",
        "scheduling.k8s.io",
        "storage.k8s.io",
    }
)
