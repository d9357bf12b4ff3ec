"""The forwarder in a cluster: its pods, their Service, and the addresses that they call.

`infra/base` has the same with the reason for each line; a test compares the two. Every Kubernetes
from 1.20 on serves all of it. There is no disruption budget, since no version of it is in both 1.20
and 1.25; a forwarder that starts has its cluster resynced instead.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from bellhop import __version__
from bellhop.core.gvk import GVK
from bellhop.core.identity import MANAGER
from bellhop.errors import DeniedError, InvalidError
from bellhop.ports.kube import Kube
from bellhop.registration.forwarder_manifests import NAME, NAMESPACE, forwarder_rights

DEPLOYMENT = GVK("apps", "v1", "Deployment")

IMAGE = f"{NAME}:{__version__}"
"""The image of `infra/forwarder/Dockerfile` without a registry."""

CALLED = (443, 4222, 6443)
"""Ports of API servers in most clusters, of ingest, and of NATS servers."""

AUDIENCE = "https://bellhop.example.com"
"""The audience of the forwarder's token without an address of ingest."""

MOUNTED = "/var/run/secrets/bellhop.dev/token"
"""The path of that token in the forwarder's pod."""

_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_TOKEN_SECONDS = 3600
_CONTAINER = "forwarder"
_WEBHOOK, _HEALTH, _USER = 8443, 8080, 65532
_IMAGE = re.compile(r"[A-Za-z0-9][\w.\-/:]*(?:@sha256:[0-9a-f]{64})?", re.ASCII)
_POD = {"app.kubernetes.io/name": NAME}
_LABELS = {**_POD, "app.kubernetes.io/part-of": "bellhop"}
_METADATA = {"name": NAME, "namespace": NAMESPACE, "labels": _LABELS}

NO_REGISTRY = (
    f"the forwarder's image '{IMAGE}' has no registry: load it into the cluster's nodes, or"
    " register again with --image"
)
NO_FORWARDER = (
    "no forwarder is in the cluster yet, and no events arrive; register again with --install, or"
    " apply"
    " what --print-manifests writes"
)


def forwarder_manifests(
    image: str, ports: Iterable[int] = (), audience: str = AUDIENCE
) -> list[dict[str, Any]]:
    """Return all objects of a cluster's forwarder but its Secret, and its role over kinds.

    `ports` are those beside 443 and 6443 at which it calls its API server or ingest; `audience` is
    the address of ingest, the only one for which its account's token is valid.

    Raises:
        InvalidError: the image is none.
    """
    if not _IMAGE.fullmatch(image):
        raise InvalidError(
            f"cannot install the forwarder: '{image}' is not an image; write it as in"
            " 'registry.example.com/bellhop-forwarder:0.1.0'"
        )
    called = sorted({*CALLED, *ports})
    return [
        *forwarder_rights(),
        _service(),
        _deployment(image, audience or AUDIENCE),
        _network(called),
    ]


def read_image(deployment: Mapping[str, Any]) -> str:
    """Return the image of the forwarder's Deployment; empty if the Deployment is another one."""
    containers = deployment["spec"]["template"]["spec"]["containers"]
    return next((str(each["image"]) for each in containers if each["name"] == _CONTAINER), "")


def find_applier(deployment: Mapping[str, Any]) -> str:
    """Return the tool besides Bellhop that applies a Deployment; empty if there is none."""
    metadata = deployment["metadata"]
    for each in metadata.get("managedFields") or ():
        if each.get("operation") == "Apply" and each.get("manager") != MANAGER:
            return str(each.get("manager"))
    return "kubectl apply" if _LAST_APPLIED in (metadata.get("annotations") or {}) else ""


def warn_of_image(tool: str, image: str, deployment: Mapping[str, Any]) -> Iterator[str]:
    """Warn if another tool applies the Deployment, with another image than the requested one."""
    if tool and image and image != read_image(deployment):
        yield (
            f"the image is not changed: '{tool}' applies the forwarder's Deployment; change it"
            " there, or give --install"
        )


def _service() -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _METADATA,
        "spec": {
            "selector": _POD,
            "ports": [{"name": "ring", "protocol": "TCP", "port": 443, "targetPort": "ring"}],
        },
    }


def _deployment(image: str, audience: str) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": _METADATA,
        "spec": {
            "replicas": 2,
            "strategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1},
            },
            "selector": {"matchLabels": _POD},
            "template": {"metadata": {"labels": _LABELS}, "spec": _pod(image, audience)},
        },
    }


def _pod(image: str, audience: str) -> dict[str, Any]:
    token = {"audience": audience, "expirationSeconds": _TOKEN_SECONDS, "path": "token"}
    apart = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": _POD}}
    return {
        "serviceAccountName": NAME,
        "terminationGracePeriodSeconds": 40,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _USER,
            "runAsGroup": _USER,
            "fsGroup": _USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "affinity": {
            "podAntiAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 100, "podAffinityTerm": apart}
                ]
            }
        },
        "containers": [_container(image)],
        "volumes": [
            {"name": "spool", "emptyDir": {"sizeLimit": "256Mi"}},
            {"name": "account", "projected": {"sources": [{"serviceAccountToken": token}]}},
        ],
    }


def _container(image: str) -> dict[str, Any]:
    return {
        "name": _CONTAINER,
        "image": image,
        "args": [
            f"--listen=0.0.0.0:{_WEBHOOK}",
            f"--health=0.0.0.0:{_HEALTH}",
            "--spool=/var/spool/bellhop",
            "--linger=5",
            "--grace=30",
        ],
        "ports": [
            {"name": "ring", "protocol": "TCP", "containerPort": _WEBHOOK},
            {"name": "health", "protocol": "TCP", "containerPort": _HEALTH},
        ],
        "livenessProbe": {
            "httpGet": {"path": "/healthz", "port": "health"},
            "periodSeconds": 10,
            "timeoutSeconds": 3,
            "failureThreshold": 6,
        },
        "readinessProbe": {
            "httpGet": {"path": "/readyz", "port": "health"},
            "periodSeconds": 2,
            "timeoutSeconds": 2,
        },
        "resources": {"requests": {"cpu": "10m", "memory": "64Mi"}, "limits": {"memory": "256Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [
            {"name": "spool", "mountPath": "/var/spool/bellhop"},
            {"name": "account", "mountPath": MOUNTED.rpartition("/")[0], "readOnly": True},
        ],
    }


def _network(called: Iterable[int]) -> dict[str, Any]:
    names = [{"protocol": protocol, "port": 53} for protocol in ("UDP", "TCP")]
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": _METADATA,
        "spec": {
            "podSelector": {"matchLabels": _POD},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [
                {"ports": [{"protocol": "TCP", "port": port} for port in (_WEBHOOK, _HEALTH)]}
            ],
            "egress": [
                {"ports": names},
                {"ports": [{"protocol": "TCP", "port": port} for port in called]},
            ],
        },
    }


def find_deployment(kube: Kube) -> Mapping[str, Any] | None:
    """Return the forwarder's Deployment; None if there is none, empty if it may not be read."""
    try:
        return kube.get(DEPLOYMENT, NAMESPACE, NAME)
    except DeniedError:
        # Without --install the permission is not needed.
        return {}
