"""What an API server is given so that its audit log rings: a policy, and where to send it.

Both are files that the API server reads at its start. The policy names the kinds that ring, whole,
and nothing else: neither what is only read, nor what an API server writes of itself.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any

from bellhop.core.gvk import Resource

POLICY = "audit-policy.yaml"
KUBECONFIG = "audit-webhook.kubeconfig"

_WRITING = frozenset({"status", "finalize", "scale"})
"""Subresources that change the object; what others answer is none, and may be secret."""


def policy(resources: Sequence[Resource]) -> dict[str, Any]:
    """Return an audit policy that tells of writes to these resources and their status."""
    grouped: dict[str, set[str]] = {}
    for each in resources:
        own = grouped.setdefault(each.gvk.group, set())
        own |= {f"{each.plural}/{sub}" for sub in each.subresources if sub in _WRITING}
        own.add(each.plural)
    named = [
        {"group": group, "resources": sorted(plurals)} for group, plurals in sorted(grouped.items())
    ]
    whole = {
        "level": "RequestResponse",
        "verbs": ["create", "update", "patch", "delete", "deletecollection"],
        "resources": named,
    }
    return {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "rules": [*([whole] if named else ()), {"level": "None"}],
    }


def token_of(kubeconfig: Any) -> str:
    """Return the token of a kubeconfig that we wrote; empty if it is none."""
    try:
        return str(kubeconfig["users"][0]["user"]["token"])
    except (IndexError, KeyError, TypeError):
        return ""


def kubeconfig(record: Mapping[str, str], token: str) -> dict[str, Any]:
    """Return the kubeconfig by which an API server sends its audit log to ingest."""
    cluster = {"server": record["url"]}
    if record["ca"]:
        bundle = base64.b64encode(record["ca"].encode()).decode()
        cluster["certificate-authority-data"] = bundle
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "bellhop", "cluster": cluster}],
        "users": [{"name": "api-server", "user": {"token": token}}],
        "contexts": [{"name": "bellhop", "context": {"cluster": "bellhop", "user": "api-server"}}],
        "current-context": "bellhop",
    }
