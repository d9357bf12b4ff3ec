"""Remember how a fresh cluster looks in etcd, and set it back to that.

Deleting behind the API server's back is safe because its watch reports it; what follows late are
its caches, so those whose lag could reach into the next test are waited for.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable

from bellhop.errors import UnreachableError
from infra.lab.etcd import Entry, Etcd

Get = Callable[[str], tuple[int, bytes]]
"""GET a path of the API server: the status and the body, or OSError where it is down."""

# The servers and controllers refresh these on their own; a test leaves none of them.
_RESTLESS = ("masterleases/", "leases/", "events/", "apiregistration.k8s.io/apiservices/")

# What the server decides by, and so must have forgotten before the next test begins.
_RBAC = "/apis/rbac.authorization.k8s.io/v1"
_ADMISSION = "/apis/admissionregistration.k8s.io/v1"
_CRDS = "apiextensions.k8s.io/customresourcedefinitions/"
_CACHED = {
    "namespaces/": "/api/v1/namespaces",
    "configmaps/": "/api/v1/configmaps",
    "secrets/": "/api/v1/secrets",
    "clusterroles/": f"{_RBAC}/clusterroles",
    "clusterrolebindings/": f"{_RBAC}/clusterrolebindings",
    "roles/": f"{_RBAC}/roles",
    "rolebindings/": f"{_RBAC}/rolebindings",
    "mutatingwebhookconfigurations/": f"{_ADMISSION}/mutatingwebhookconfigurations",
    "validatingwebhookconfigurations/": f"{_ADMISSION}/validatingwebhookconfigurations",
    _CRDS: "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
}
_SECONDS = 60.0


class Baseline:
    """The entries of one cluster as they were when it had just started."""

    def __init__(self, etcd: Etcd, prefix: str) -> None:
        self._etcd = etcd
        self._prefix = prefix
        self._entries: dict[str, Entry] = {}

    def take(self, calm: float) -> None:
        """Remember the entries once they have not changed for `calm` seconds."""
        until = time.monotonic() + _SECONDS
        entries = self._read(values=True)
        while time.monotonic() < until:
            time.sleep(calm)
            before, entries = entries, self._read(values=True)
            if entries == before:
                break
        self._entries = entries

    def restore(self, get: Get | None) -> None:
        """Set the cluster back; `get` asks its API server, None says that it is down.

        Raises:
            UnreachableError: Something keeps writing to the cluster.
        """
        until = time.monotonic() + _SECONDS
        while time.monotonic() < until:
            if not (touched := self._restore_once()):
                return
            if get is not None:
                self._await_caches(get, *touched)
        raise UnreachableError(f"cannot reset '{self._prefix}': it keeps changing")

    def mentions(self, *words: str) -> list[str]:
        """List the remembered keys that have one of these words in their name or value."""
        sought = [word.encode() for word in words]
        return sorted(
            key
            for key, entry in self._entries.items()
            if any(word in key.encode() or word in entry.value for word in sought)
        )

    def _restore_once(self) -> tuple[set[str], int] | None:
        now = self._read(values=False)
        extra = now.keys() - self._entries.keys()
        lost = {
            key: entry.value
            for key, entry in self._entries.items()
            if key not in now
            or (now[key].revision != entry.revision and not key.startswith(_RESTLESS))
        }
        if not extra and not lost:
            return None
        revision = self._etcd.change(
            {self._prefix + key for key in extra},
            {self._prefix + key: value for key, value in lost.items()},
        )
        self._entries |= {key: Entry(value, revision) for key, value in lost.items()}
        return extra | lost.keys(), revision

    def _read(self, *, values: bool) -> dict[str, Entry]:
        found = self._etcd.entries(self._prefix, values=values)
        return {key.removeprefix(self._prefix): entry for key, entry in found.items()}

    def _await_caches(self, get: Get, touched: set[str], revision: int) -> None:
        for start, path in _CACHED.items():
            if any(key.startswith(start) for key in touched):
                # A list "not older than" is answered from the cache, once it is that new.
                get(f"{path}?resourceVersion={revision}&resourceVersionMatch=NotOlderThan")
        if groups := self._groups(touched) - self._groups(self._entries):
            _await_absence(get, groups)

    @staticmethod
    def _groups(keys: set[str] | dict[str, Entry]) -> set[str]:
        # The key ends with the definition's name: "plural.group".
        return {key.rpartition("/")[2].partition(".")[2] for key in keys if key.startswith(_CRDS)}


def _await_absence(get: Get, groups: set[str]) -> None:
    until = time.monotonic() + _SECONDS
    while time.monotonic() < until:
        served = {group["name"] for group in json.loads(get("/apis")[1])["groups"]}
        if not groups & served:
            return
        time.sleep(0.005)
    raise UnreachableError(f"cannot reset the API: its groups {sorted(groups)} do not go away")
