"""Credentials of the cluster that `serve` runs in: those of its pod, read when they are needed.

No kubeconfig of it is stored, since the token lasts an hour.
"""

from __future__ import annotations

from bellhop.adapters.kube.service_account import read_account
from bellhop.clusters.kubeconfig import Kubeconfig
from bellhop.ports.store import Secrets
from bellhop.runtime.cloud.managed import MadeKubeconfigs
from bellhop.state.records import Records

IN_CLUSTER = "in-cluster"
"""The field `managed` of a cluster that is opened by the account of the pod."""


def with_own_account(secrets: Secrets, records: Records) -> MadeKubeconfigs[str]:
    """Return a secret store that makes the kubeconfig of the own cluster, and reads all others."""

    def find_account(cluster: str) -> str | None:
        kept = records.clusters.get(cluster)
        return IN_CLUSTER if kept and kept.value.managed == IN_CLUSTER else None

    return MadeKubeconfigs(secrets, _PodAccounts(), find_account)


class _PodAccounts:
    """The account of this pod, under the only name that a cluster of it has."""

    def kubeconfig(self, _name: str) -> Kubeconfig:
        """Read the token that is mounted now."""
        return read_account()

    def refused(self, _name: str, _token: str) -> None:
        """Keep nothing: the file is read again anyway."""
