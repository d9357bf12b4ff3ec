"""SveltosClusters and Secrets as an API server shows them."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

from bellhop.adapters.kube.client import KubeClient
from bellhop.clusters.kubeconfig import sanitise
from bellhop.configuration.cluster_objects import SecretReader
from bellhop.core.address_policy import LOCAL
from bellhop.ports.kube import Manifest
from infra.lab.cluster import Cluster

KEY = "prod/eu-1"
UID = "11111111-1111-1111-1111-111111111111"


def sveltos_cluster(*, uid: str = UID, spec: Mapping[str, Any] = {}, **metadata: Any) -> Manifest:
    """Return the SveltosCluster prod/eu-1."""
    return {
        "apiVersion": "lib.projectsveltos.io/v1beta1",
        "kind": "SveltosCluster",
        "metadata": {
            "namespace": "prod",
            "name": "eu-1",
            "uid": uid,
            "resourceVersion": "7",
            "generation": 1,
            "finalizers": ["example.com/other"],
            **metadata,
        },
        "spec": dict(spec),
        "status": {"ready": True},
    }


def secrets(
    kubeconfig: Mapping[str, Any] | str,
    /,
    name: str = "eu-1-sveltos-kubeconfig",
    entry: str = "kubeconfig",
    **more: str,
) -> SecretReader:
    """Return a reader of a namespace with one Secret, which holds a kubeconfig."""
    text = kubeconfig if isinstance(kubeconfig, str) else json.dumps(kubeconfig)
    data = {
        key: base64.b64encode(each.encode()).decode() for key, each in {entry: text, **more}.items()
    }
    metadata = {"namespace": "prod", "name": name}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data}
    return lambda namespace, asked: secret if (namespace, asked) == ("prod", name) else None


def no_secret(_namespace: str, _name: str) -> None:
    """Stand for a namespace without Secrets."""


def elsewhere(cluster: Cluster, server: str) -> dict[str, Any]:
    """Return the kubeconfig of a cluster with another address."""
    document: dict[str, Any] = cluster.kubeconfig()
    document["clusters"][0]["cluster"]["server"] = server
    return document


def kube_of(cluster: Cluster) -> KubeClient:
    """Return an administrator's client of a cluster."""
    return KubeClient("test", sanitise(cluster.kubeconfig(), reach=LOCAL), reach=LOCAL)
