"""What the forwarder is in a cluster: its pods, the Service that leads to them, whom they call.

`infra/base` shows the same with the reason for each line; a test holds the two together. All of
it is served by every Kubernetes from 1.20 on. A disruption budget is not: no version of it is in
1.20 and in 1.25. It is not missed, since a forwarder that starts has the cluster looked at.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from bellhop import __version__
from bellhop.core.identity import MANAGER
from bellhop.errors import InvalidError
from bellhop.registration.forwarder_manifests import NAME, NAMESPACE, forwarder_rights

IMAGE = f"{NAME}:{__version__}"
"""What `infra/forwarder/Dockerfile` is built as, where no registry is named."""

CALLED = (443, 4222, 6443)
"""Where API servers listen in most clusters, and ingest; and NATS servers."""

AUDIENCE = "https://bellhop.example.com"
"""For whom the token of the forwarder's account is, where nobody says where it sends to."""

MOUNTED = "/var/run/secrets/bellhop.dev/token"
"""Where the forwarder finds that token."""

_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_TOKEN_SECONDS = 3600
_CONTAINER = "forwarder"
_RING, _HEALTH, _USER = 8443, 8080, 65532
_IMAGE = re.compile(r"[A-Za-z0-9][\w.\-/:]*(?:@sha256:[0-9a-f]{64})?", re.ASCII)
_POD = {"app.kubernetes.io/name": NAME}
_LABELS = {**_POD, "app.kubernetes.io/part-of": "bellhop"}
_METADATA = {"name": NAME, "namespace": NAMESPACE, "labels": _LABELS}


def forwarder_manifests(
    image: str, ports: Iterable[int] = (), audience: str = AUDIENCE
) -> list[dict[str, Any]]:
    """Return all that a cluster's forwarder needs but its Secret, and its role over kinds.

    `ports` are those beside 443 and 6443 at which it calls its API server or ingest; `audience` is
    the address of its ingest, for which alone the token is that it proves itself with.

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


def image_of(deployment: Mapping[str, Any]) -> str:
    """Return the image that a Deployment of the forwarder has; empty if it is none of ours."""
    containers = deployment["spec"]["template"]["spec"]["containers"]
    return next((str(each["image"]) for each in containers if each["name"] == _CONTAINER), "")


def applied_by(deployment: Mapping[str, Any]) -> str:
    """Return which tool but Bellhop applies a Deployment, server-side or as kubectl does; or ""."""
    metadata = deployment["metadata"]
    for each in metadata.get("managedFields") or ():
        if each.get("operation") == "Apply" and each.get("manager") != MANAGER:
            return str(each.get("manager"))
    return "kubectl apply" if _LAST_APPLIED in (metadata.get("annotations") or {}) else ""


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
            f"--listen=0.0.0.0:{_RING}",
            f"--health=0.0.0.0:{_HEALTH}",
            "--spool=/var/spool/bellhop",
            "--linger=5",
            "--grace=30",
        ],
        "ports": [
            {"name": "ring", "protocol": "TCP", "containerPort": _RING},
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
                {"ports": [{"protocol": "TCP", "port": port} for port in (_RING, _HEALTH)]}
            ],
            "egress": [
                {"ports": names},
                {"ports": [{"protocol": "TCP", "port": port} for port in called]},
            ],
        },
    }
