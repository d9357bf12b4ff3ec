"""Clusters that a cloud manages: called with the caller's identity, by unstored kubeconfigs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Generic, Protocol, TypeVar

from bellhop.clusters.kubeconfig import Kubeconfig
from bellhop.ports.store import Secrets
from bellhop.state.cluster import Cluster
from bellhop.state.records import Records

_PREFIX = "kubeconfig/"
_Name = TypeVar("_Name")
_Name_contra = TypeVar("_Name_contra", contravariant=True)


class Clusters(Protocol[_Name_contra]):
    """The clusters of one cloud, by the names that it gives them."""

    def kubeconfig(self, name: _Name_contra) -> Kubeconfig:
        """Make a kubeconfig that is taken for some minutes.

        Raises:
            MissingError: there is no such cluster.
            InvalidError: this is no name of one.
        """
        ...

    def refused(self, name: _Name_contra, token: str) -> None:
        """Give out a token no more that the cluster has refused."""
        ...


class MadeKubeconfigs(Generic[_Name]):
    """A secret store that makes the kubeconfigs of managed clusters, and asks another for the rest.

    It takes the place of the secret store, so that access to clusters only knows kubeconfigs.
    `managed` returns the cloud's name of the cluster `namespace/name`; None if it has none.
    """

    def __init__(
        self, behind: Secrets, clusters: Clusters[_Name], managed: Callable[[str], _Name | None]
    ) -> None:
        self._behind = behind
        self._clusters = clusters
        self._managed = managed

    def read(self, name: str) -> bytes:
        managed = self._managed(name.removeprefix(_PREFIX)) if name.startswith(_PREFIX) else None
        if managed is None:
            return self._behind.read(name)
        return json.dumps(self._clusters.kubeconfig(managed).to_dict()).encode()

    def refused(self, cluster: str, token: str) -> None:
        """Have another token made for a cluster that has refused this one; others are stored."""
        managed = self._managed(cluster)
        if managed is not None:
            self._clusters.refused(managed, token)

    def put(self, name: str, value: bytes) -> None:
        self._behind.put(name, value)

    def delete(self, name: str) -> None:
        self._behind.delete(name)

    def names(self, prefix: str = "") -> Iterator[str]:
        return self._behind.names(prefix)


def managed_in(
    records: Records, name_of: Callable[[Cluster], _Name]
) -> Callable[[str], _Name | None]:
    """Return a function from a cluster's name to its name in the cloud, by its record."""

    def managed(cluster: str) -> _Name | None:
        kept = records.clusters.get(cluster)
        return name_of(kept.value) if kept and kept.value.managed else None

    return managed
