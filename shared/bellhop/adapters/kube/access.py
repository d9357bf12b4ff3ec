"""Clients of registered clusters, made from the kubeconfigs in the secret store.

One client for each cluster is kept, with its connections and its discovery, and the secret is read
only when there is reason to: the version that a cluster's record names is another one than that
of the client, or the API server stops accepting the credentials, so that neither a cluster that
was registered again nor a rotated token costs a failure. Without a version the client's secret
was read within the last minute. The client is replaced only if the content changed.

A generated token that is refused is generated again: before the credentials are read again, their
maker is called with the refused ones.
"""

from __future__ import annotations

import json
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from bellhop.adapters.kube.client import KubeClient
from bellhop.adapters.kube.transport import user_of
from bellhop.clusters.kubeconfig import Kubeconfig, sanitise
from bellhop.core.address_policy import AddressPolicy
from bellhop.errors import InvalidError, MissingError
from bellhop.ports.store import Secrets

FRESH_SECONDS = 60
# How often a doubt may send us to the secret store, which bills each read, or have a token made.
_DOUBT_SECONDS = 5
# A resync or a profile for all of a fleet takes its clusters in order: a smaller cache would never
# have a hit. One takes some twenty kilobytes; connections have a bound of
# their own.
_KEPT = 8192

Refused = Callable[[str, str], object]
"""Reports to the maker of a cluster's credentials that the cluster has refused this token."""


@dataclass(slots=True)
class _Entry:
    lock: threading.Lock = field(default_factory=threading.Lock)
    client: KubeClient | None = None
    version: str = ""
    """The version of the credentials that the client has."""
    sought: str = ""
    """The version that was asked for when the secret was read last; it may have another one."""
    read_at: float = float("-inf")
    doubted_at: float = float("-inf")
    """When credentials that were refused were read again."""


class KubeAccess:
    """Opens clusters by name; shared between threads.

    `reach` says where calls may go.
    """

    def __init__(
        self,
        secrets: Secrets,
        *,
        reach: AddressPolicy,
        refused: Refused = lambda _cluster, _token: None,
        seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        self._secrets = secrets
        self._refused = refused
        self._reach = reach
        self._seconds = seconds
        self._lock = threading.Lock()
        self._entries: OrderedDict[str, _Entry] = OrderedDict()

    def open(self, cluster: str, *, version: str = "", account: str = "") -> KubeClient:
        """Return a client; one for an `account` is not cached, and shares the connections."""
        client = self._open(cluster, version)
        return client.acting_as(account) if account else client

    def kubeconfig(self, cluster: str, *, version: str = "", account: str = "") -> bytes:
        document = self._open(cluster, version).kubeconfig.to_dict()
        if account:
            document["users"][0]["user"]["as"] = user_of(account)
        return json.dumps(document).encode()

    def _open(self, cluster: str, version: str) -> KubeClient:
        entry = self._entry(cluster)
        with entry.lock:  # Threads that need one cluster wait for one of them to read its secret.
            if entry.client is not None and self._fresh(entry, version):
                return entry.client
            kubeconfig = self._read(cluster)
            if entry.client is None or kubeconfig.version != entry.version:
                _close(entry)
                entry.client = KubeClient(
                    cluster,
                    kubeconfig,
                    renew=lambda refused: self._renew(cluster, refused),
                    reach=self._reach,
                )
            entry.version, entry.sought = kubeconfig.version, version
            entry.read_at = self._seconds()
            return entry.client

    def _fresh(self, entry: _Entry, version: str) -> bool:
        """Say if the client has the credentials that are asked for, as far as one can know."""
        age = self._seconds() - entry.read_at
        if not version:
            return age < FRESH_SECONDS
        if version == entry.version:
            return True
        # Not what the store has: the record is behind, or a registration is under way.
        return version == entry.sought and age < _DOUBT_SECONDS

    def forget(self, cluster: str) -> None:
        """Drop the client of a cluster that was registered again or is no longer registered."""
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

    def _renew(self, cluster: str, refused: Kubeconfig) -> Kubeconfig | None:
        """Read the credentials again for a client whose own were refused."""
        entry = self._entry(cluster)
        with entry.lock:
            if self._seconds() - entry.doubted_at < _DOUBT_SECONDS:
                return None
            entry.doubted_at = self._seconds()
            self._refused(cluster, refused.token)
            kubeconfig = self._read(cluster)
            entry.version, entry.read_at = kubeconfig.version, self._seconds()
            return kubeconfig

    def _read(self, cluster: str) -> Kubeconfig:
        try:
            content = self._secrets.read(f"kubeconfig/{cluster}")
        except MissingError as exc:
            self.forget(cluster)
            raise MissingError(
                f"cluster '{cluster}' has no stored credentials; register it"
            ) from exc
        try:
            return sanitise(content, reach=self._reach)
        except InvalidError as exc:
            raise InvalidError(str(exc), where=f"the kubeconfig of cluster '{cluster}'") from exc


def _close(entry: _Entry) -> None:
    if entry.client is not None:
        entry.client.close()
