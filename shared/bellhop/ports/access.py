"""How Bellhop gets into a cluster: from what is stored at registration to a client."""

from __future__ import annotations

from typing import Protocol

from bellhop.ports.kube import Kube


class Access(Protocol):
    """Clients for registered clusters."""

    def open(self, cluster: str) -> Kube:
        """Return a client for the cluster `namespace/name`; clients are shared between threads.

        Raises:
            MissingError: the cluster has no stored credentials.
        """
        ...
