"""Clusters whose API server sends its audit log, by files that it reads at its start.

It is unknown when it has read them: beside a new token the former one is accepted for as long as
API servers take to restart.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import yaml
from msgspec.structs import replace

from bellhop.adapters.local.files import write_whole
from bellhop.api.kinds import CONFIGURED_KINDS
from bellhop.core.gvk import Resource
from bellhop.documents.document import dump
from bellhop.errors import BusyError
from bellhop.ports.kube import Kube
from bellhop.registration import instructions
from bellhop.registration.forwarder_manifests import is_audited
from bellhop.state.cluster import Cluster

POLICY = "audit-policy.yaml"
KUBECONFIG = "audit-webhook.kubeconfig"

_WRITING = frozenset({"status", "finalize", "scale"})
"""Subresources that change the object; what others answer is none, and may be secret."""


def list_configured(kube: Kube, cluster: Cluster) -> list[Resource]:
    """Return the resources of the configuration, if the cluster holds it."""
    kinds = CONFIGURED_KINDS if cluster.configuration else ()
    found = (kube.resource(gvk) for gvk in kinds)
    return [resource for resource in found if resource is not None]


def make_policy(
    resources: Sequence[Resource], configured: Sequence[Resource] = ()
) -> dict[str, Any]:
    """Return an audit policy that sends writes to these resources and their status.

    The API server reads policy and kubeconfig at its start. The policy names whole kinds and
    nothing else: neither reads, nor the API server's own writes. Of the `configured` kinds, those
    of the configuration, it sends no objects, only their names.
    """
    whole = _make_rule("RequestResponse", resources)
    names = _make_rule("Metadata", [replace(each, subresources=()) for each in configured])
    return {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "rules": [*whole, *names, {"level": "None"}],
    }


def _make_rule(level: str, resources: Sequence[Resource]) -> list[dict[str, Any]]:
    grouped: dict[str, set[str]] = {}
    for each in resources:
        own = grouped.setdefault(each.gvk.group, set())
        own |= {f"{each.plural}/{sub}" for sub in each.subresources if sub in _WRITING}
        own.add(each.plural)
    named = [
        {"group": group, "resources": sorted(plurals)} for group, plurals in sorted(grouped.items())
    ]
    verbs = ["create", "update", "patch", "delete", "deletecollection"]
    return [{"level": level, "verbs": verbs, "resources": named}] if named else []


def read_token(kubeconfig: Any) -> str:
    """Return the token of a kubeconfig by `make_kubeconfig`; empty if it is another."""
    try:
        return str(kubeconfig["users"][0]["user"]["token"])
    except (IndexError, KeyError, TypeError):
        return ""


def make_kubeconfig(record: Mapping[str, str], token: str) -> dict[str, Any]:
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


def write_files(
    folder: Path,
    forwarder: instructions.Instructions,
    resources: Sequence[Resource],
    configured: Sequence[Resource],
) -> None:
    """Write the policy and the kubeconfig for an API server.

    This precedes the record: a token that no record has is harmless.
    """
    config = make_kubeconfig(forwarder.record, forwarder.entries["token"])
    for name, manifest in (
        (POLICY, make_policy(resources, configured)),
        (KUBECONFIG, config),
    ):
        write_whole(folder / name, dump(manifest).encode())


def read_valid_token(old: Cluster | None, folder: Path) -> str:
    """Return the token in the folder's kubeconfig; empty if it is not accepted."""
    if old is None or not is_audited(old.forwarder):
        return ""
    try:
        token = read_token(yaml.safe_load((folder / KUBECONFIG).read_text()))
    except (OSError, ValueError, yaml.YAMLError):
        return ""
    return token if instructions.digest_token(token) == old.token_digest else ""


def refuse_second_rotation(old: Cluster, now: datetime) -> None:
    """Refuse a third token: one of the two is in use, and it is unknown which."""
    if old.former_digest and (old.former_until or now) > now:
        raise BusyError(
            f"cannot rotate the token of cluster '{old.key}' again: its API servers may have the"
            f" former one, which counts until {old.former_until:%Y-%m-%d %H:%M} UTC; give them the"
            " file that was written"
        )


def set_former_end(cluster: Cluster, old: Cluster | None, now: datetime) -> Cluster:
    """Return a cluster with the end of its former token, if the token changed."""
    if old and old.token_digest == cluster.token_digest:
        settle = {k: v for k, v in old.forwarder.items() if k == "settle"}
        record = {k: v for k, v in cluster.forwarder.items() if k != "begun"} | settle
        return replace(
            cluster,
            forwarder=record,
            former_digest=old.former_digest,
            former_until=old.former_until,
        )
    record = instructions.mark_secret_written(cluster.forwarder, now, instructions.AUDIT_OVERLAP)
    return replace(cluster, forwarder=record, former_until=now + instructions.AUDIT_OVERLAP)


def choose_token(old: Cluster | None, audit: Path | None, now: datetime, *, renews: bool) -> str:
    """Return the accepted token in the folder `audit`; empty for a new one, as a renewal needs."""
    if audit is None:
        return ""
    if old and is_audited(old.forwarder) and renews:
        refuse_second_rotation(old, now)
        return ""
    return read_valid_token(old, audit)
