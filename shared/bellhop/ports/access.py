"""How Bellhop gets into a cluster: from what is stored at registration to a client."""

from __future__ import annotations

from typing import Protocol

from bellhop.ports.kube import Kube


class Access(Protocol):
    """Clients for registered clusters."""

    def open(self, cluster: str, *, version: str = "", account: str = "") -> Kube:
        """Return a client for the cluster `namespace/name`; clients are shared between threads.

        `version` is that of the credentials, as the cluster's record has it: a client of other
        credentials is not used any more. Without it a change is noticed only after a while. With an
        `account`, a service account `namespace/name`, what is asked of objects is asked with its
        rights alone: whoever may not act for it is denied.

        Raises:
            MissingError: the cluster has no stored credentials.
            InvalidError: what is stored cannot be used, or leads where no call may go.
        """
        ...

    def kubeconfig(self, cluster: str, *, version: str = "", account: str = "") -> bytes:
        """Return how another program gets into a cluster, as `open` would: JSON, and secret.

        That program's calls need the guard of our own.

        Raises:
            MissingError: the cluster has no stored credentials.
            InvalidError: what is stored cannot be used, or leads where no call may go.
        """
        ...
