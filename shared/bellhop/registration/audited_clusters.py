"""Clusters whose API server sends its audit log, by files that it reads at its start.

Nobody can see when it has read them: a token that was drawn anew leaves the former one to count for
as long as API servers take to start again.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import yaml
from msgspec.structs import replace

from bellhop.adapters.local.files import write_whole
from bellhop.core.gvk import Resource
from bellhop.documents.document import dump
from bellhop.errors import BusyError
from bellhop.registration import audit_config, instructions
from bellhop.registration.forwarder_manifests import is_audited
from bellhop.state.record import Cluster


def write(
    folder: Path, forwarder: instructions.Instructions, resources: Sequence[Resource]
) -> None:
    """Write the policy and the kubeconfig that an API server is given.

    It is done before the record is written: a token that nobody knows does no harm.
    """
    config = audit_config.kubeconfig(forwarder.record, forwarder.entries["token"])
    for name, manifest in (
        (audit_config.POLICY, audit_config.policy(resources)),
        (audit_config.KUBECONFIG, config),
    ):
        write_whole(folder / name, dump(manifest).encode())


def kept_token(old: Cluster | None, folder: Path) -> str:
    """Return the token that the folder's kubeconfig has; empty if it is not the one that counts."""
    if old is None or not is_audited(old.forwarder):
        return ""
    try:
        token = audit_config.token_of(
            yaml.safe_load((folder / audit_config.KUBECONFIG).read_text())
        )
    except (OSError, ValueError, yaml.YAMLError):
        return ""
    return token if instructions.digest_of(token) == old.token_digest else ""


def refuse_to_rotate_again(old: Cluster, now: datetime) -> None:
    """Refuse a third token: of two, one is in use, and nobody knows which.

    Raises:
        BusyError: the one before counts still.
    """
    if old.former_digest and (old.former_until or now) > now:
        raise BusyError(
            f"cannot rotate the token of cluster '{old.key}' again: its API servers may have the"
            f" former one, which counts until {old.former_until:%Y-%m-%d %H:%M} UTC; give them the"
            " file that was written"
        )


def settled(cluster: Cluster, old: Cluster | None, now: datetime) -> Cluster:
    """Return a cluster with when its former token ends; where the token stays, so does that."""
    if old and old.token_digest == cluster.token_digest:
        settle = {k: v for k, v in old.forwarder.items() if k == "settle"}
        record = {k: v for k, v in cluster.forwarder.items() if k != "begun"} | settle
        return replace(
            cluster,
            forwarder=record,
            former_digest=old.former_digest,
            former_until=old.former_until,
        )
    record = instructions.told(cluster.forwarder, now, instructions.AUDIT_OVERLAP)
    return replace(cluster, forwarder=record, former_until=now + instructions.AUDIT_OVERLAP)
