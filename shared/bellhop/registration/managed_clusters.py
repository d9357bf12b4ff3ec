"""Clusters that a cloud manages: how users name one, and the port that finds it."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from msgspec import Struct

from bellhop.clusters.kubeconfig import Kubeconfig
from bellhop.errors import InvalidError

EKS = "EKS"
GKE = "GKE"

_IDENTITIES = {EKS: "role of AWS", GKE: "account of Google Cloud"}


class ClusterRequest(Struct, frozen=True):
    """A cluster that a cloud manages, as a user names it, and the role to assume for it, if any."""

    service: str
    name: str
    region: str = ""
    assume_role: str = ""
    external_id: str = ""


class FoundCluster(NamedTuple):
    """A cluster that a cloud manages: its full name there, and a kubeconfig valid for minutes."""

    name: str
    kubeconfig: Kubeconfig


class ManagedClusters(Protocol):
    """The clusters of one cloud, as the worker's own account sees them."""

    def find(self, request: ClusterRequest) -> FoundCluster:
        """Return a cluster.

        Raises:
            InvalidError: it is of another cloud, or the request names none.
            MissingError: there is no such cluster.
            TemporaryError: the cloud does not answer, or refuses the account.
        """
        ...


class NoManagedClusters:
    """The clusters of no cloud: an embedded installation has no account of one."""

    def find(self, request: ClusterRequest) -> FoundCluster:
        """Refuse any cluster.

        Raises:
            InvalidError: always.
        """
        raise make_unreachable_error(request, "an embedded installation")


def make_unreachable_error(request: ClusterRequest, where: str) -> InvalidError:
    """Make the error of an installation without an identity in the service of a cluster."""
    return InvalidError(
        f"cannot register the {request.service} cluster '{request.name}' in {where}, which has no"
        f" {_IDENTITIES[request.service]} to reach it by; `bellhop register cluster` takes a"
        " kubeconfig with a token"
    )
