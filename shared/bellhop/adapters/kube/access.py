"""Clients of registered clusters, made from the kubeconfigs in the secret store.

One client for each cluster is kept, with its connections and its discovery. The secret is read
again after a minute and the client replaced only if its content changed; when an API server stops
accepting the credentials it is read at once, so that a rotated token costs no failure.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from bellhop.adapters.kube.client import KubeClient
from bellhop.errors import InvalidError, MissingError
from bellhop.model.kubeconfig import Kubeconfig, sanitise
from bellhop.ports.secrets import Secrets

FRESH_SECONDS = 60
# How often refused credentials may send us to the secret store, which bills each read.
_DOUBT_SECONDS = 5
_KEPT = 256


@dataclass(slots=True)
class _Entry:
    lock: threading.Lock = field(default_factory=threading.Lock)
    client: KubeClient | None = None
    digest: bytes = b""
    read_at: float = float("-inf")


class KubeAccess:
    """Opens clusters by name; shared between threads."""

    def __init__(self, secrets: Secrets, *, seconds: Callable[[], float] = time.monotonic) -> None:
        self._secrets = secrets
        self._seconds = seconds
        self._lock = threading.Lock()
        self._entries: OrderedDict[str, _Entry] = OrderedDict()

    def open(self, cluster: str) -> KubeClient:
        """Return a client for the cluster `namespace/name`; clients are shared between threads.

        Raises:
            MissingError: the cluster has no stored credentials.
            InvalidError: what is stored is not a kubeconfig that is taken.
        """
        entry = self._entry(cluster)
        with entry.lock:  # Threads that want one cluster wait for one of them to read its secret.
            if entry.client is not None and self._seconds() - entry.read_at < FRESH_SECONDS:
                return entry.client
            kubeconfig, digest = self._read(cluster)
            if entry.client is None or digest != entry.digest:
                _close(entry)
                entry.client = KubeClient(cluster, kubeconfig, renew=lambda: self._renew(cluster))
            entry.digest, entry.read_at = digest, self._seconds()
            return entry.client

    def forget(self, cluster: str) -> None:
        """Drop the client of a cluster that was registered anew or is no longer registered."""
        with self._lock:
            entry = self._entries.pop(cluster, None)
        if entry is not None:
            _close(entry)

    def _entry(self, cluster: str) -> _Entry:
        with self._lock:
            entry = self._entries.setdefault(cluster, _Entry())
            self._entries.move_to_end(cluster)
            oldest = self._entries.popitem(last=False)[1] if len(self._entries) > _KEPT else None
        if oldest is not None:
            _close(oldest)
        return entry

    def _renew(self, cluster: str) -> Kubeconfig | None:
        """Read the credentials again for a client whose own were refused."""
        entry = self._entry(cluster)
        with entry.lock:
            if self._seconds() - entry.read_at < _DOUBT_SECONDS:
                return None
            kubeconfig, entry.digest = self._read(cluster)
            entry.read_at = self._seconds()
            return kubeconfig

    def _read(self, cluster: str) -> tuple[Kubeconfig, bytes]:
        try:
            content = self._secrets.read(f"kubeconfig/{cluster}")
        except MissingError as exc:
            self.forget(cluster)
            raise MissingError(
                f"cluster '{cluster}' has no stored credentials; register it"
            ) from exc
        try:
            return sanitise(content), hashlib.sha256(content).digest()
        except InvalidError as exc:
            raise InvalidError(str(exc), where=f"the kubeconfig of cluster '{cluster}'") from exc


def _close(entry: _Entry) -> None:
    if entry.client is not None:
        entry.client.close()
