"""The token with which a cluster's API server calls ingest itself, where no forwarder does it.

It stands in the cluster's webhook configuration, which sweeps write, so it has to be kept: sealed.
"""

from __future__ import annotations

from bellhop.errors import MissingError
from bellhop.state.payloads import Payloads


class Callers:
    """The present token of each API server that calls by itself."""

    def __init__(self, payloads: Payloads) -> None:
        self._payloads = payloads

    def get(self, cluster: str) -> str:
        """Read a cluster's token; empty if there is none, or it is lost."""
        try:
            found = self._payloads.get("caller", cluster)
        except MissingError:
            return ""
        return str(found.payload) if found else ""

    def put(self, cluster: str, token: str) -> None:
        """Keep a cluster's token, over the one before."""
        self._payloads.put("caller", cluster, {}, token)

    def delete(self, cluster: str) -> None:
        """Forget a cluster's token."""
        self._payloads.delete("caller", cluster)
