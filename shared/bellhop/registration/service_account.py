"""Bellhop's own service account in a cluster, created with the login of a person.

A login ends within hours, belongs to a person, and is never stored: its token creates the account,
and the account's token is stored. That is one of a Secret, since an API server may shorten the life
of each requested token. The namespace is the account's own: GKE lets nobody write to kube-system in
its Autopilot clusters.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Callable
from typing import Any, TypeVar

from msgspec.structs import replace

from bellhop.adapters.kube.client import KubeClient, Right
from bellhop.clusters.kubeconfig import Kubeconfig, sanitise
from bellhop.core.gvk import GVK
from bellhop.errors import UnauthorizedError, UnreachableError
from bellhop.installation import Installation
from bellhop.registration.registration import reword_errors
from bellhop.registration.request import Pause

T = TypeVar("T")

_NAMESPACE = "bellhop-account"
_NAME = "bellhop"
_TOKEN = "bellhop-token"  # noqa: S105 - a name
ACCOUNT = f"{_NAMESPACE}/{_NAME}"

_RBAC = "rbac.authorization.k8s.io"
_BINDING = GVK(_RBAC, "v1", "ClusterRoleBinding")
_SECRET = GVK("", "v1", "Secret")
_LABELS = {"app.kubernetes.io/name": _NAME, "app.kubernetes.io/part-of": "bellhop"}

_TRIES = 150
_PAUSE_SECONDS = 0.2


def create_account(
    here: Installation, key: str, login: Kubeconfig, *, pause: Pause = time.sleep
) -> Kubeconfig:
    """Create the account with its rights and token; return the kubeconfig that logs in as it.

    An account that is there keeps its token, and the rights that its ClusterRoleBinding gives it.

    Raises:
        InvalidError: the address is one that this installation does not call.
        UnreachableError: the cluster does not answer, or makes no token for the account.
        DeniedError: the person lacks the rights.
    """
    sanitise(login.to_dict(), reach=here.reach)
    kube = KubeClient(key, login, reach=here.reach)
    try:
        with reword_errors():
            for manifest in _manifests(bound=kube.get(_BINDING, "", _NAMESPACE) is not None):
                kube.apply(manifest)
            token = _wait_until(lambda: _read_token(kube), f"cluster '{key}' makes no token", pause)
    finally:
        kube.close()
    own = replace(login, token=token, client_certificate_data="", client_key_data="")
    _wait_until(lambda: _is_accepted(here, key, own), f"cluster '{key}' accepts no token", pause)
    return own


def _manifests(*, bound: bool) -> list[dict[str, Any]]:
    """Return what the account consists of; its binding only if there is none."""
    account = {"kind": "ServiceAccount", "name": _NAME, "namespace": _NAMESPACE}
    place = {"namespace": _NAMESPACE, "labels": _LABELS}
    binding = {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": _NAMESPACE, "labels": _LABELS},
        "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [account],
    }
    return [
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": _NAMESPACE, "labels": _LABELS},
        },
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": _NAME, **place}},
        *([] if bound else [binding]),
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {
                "name": _TOKEN,
                "annotations": {"kubernetes.io/service-account.name": _NAME},
                **place,
            },
            "type": "kubernetes.io/service-account-token",
        },
    ]


def _read_token(kube: KubeClient) -> str:
    """Read the token; empty until a controller of the cluster has filled the Secret."""
    secret = kube.get(_SECRET, _NAMESPACE, _TOKEN) or {}
    return base64.b64decode((secret.get("data") or {}).get("token", "")).decode()


def _is_accepted(here: Installation, key: str, own: Kubeconfig) -> bool:
    """Say if the API server knows the account and its binding yet: it learns of both by watches."""
    kube = KubeClient(key, own, reach=here.reach)
    try:
        return not kube.rights([Right("get", "", "namespaces")])
    except UnauthorizedError:
        return False
    finally:
        kube.close()


def _wait_until(condition: Callable[[], T], problem: str, pause: Pause) -> T:
    for _ in range(_TRIES):
        if found := condition():
            return found
        pause(_PAUSE_SECONDS)
    seconds = _TRIES * _PAUSE_SECONDS
    raise UnreachableError(
        f"{problem} of service account '{ACCOUNT}' within {seconds:g} s; look at its"
        " controller manager and at the ClusterRoleBinding of the account, and try again"
    )
