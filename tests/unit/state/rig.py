"""A store, a blob store and records over them, and one record of every kind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bellhop.adapters.local.store import FileBlobs, SqliteStore
from bellhop.core.gvk import GVK, ObjectKey
from bellhop.ports.store import Store
from bellhop.state.cluster import Cluster
from bellhop.state.content import Content
from bellhop.state.heads import INLINE
from bellhop.state.ingest_policy import IngestPolicy, WatchedKind
from bellhop.state.match import Observation
from bellhop.state.profile import Profile
from bellhop.state.records import Records
from bellhop.state.sealer import Sealer
from tests.fakes.clock import START, FakeClock

EAST = "fleet/east"
SERVICE = GVK("", "v1", "Service")
WEB = ObjectKey(SERVICE, "default", "web")
ROLE = ObjectKey(GVK("rbac.authorization.k8s.io", "v1", "ClusterRole"), "", "system:web:ü")
LARGE = "".join(chr(0x4E00 + number * 7919 % 20000) for number in range(3 * INLINE // 4))
"""A text that stays large when it is compressed."""


class Rig:
    """Records over the embedded adapters, whose files a test may look at.

    No payload is so short that it would lie in its head, unless a test has it so.
    """

    def __init__(self, folder: Path, *, short: int = 0) -> None:
        self.clock = FakeClock()
        self.store = SqliteStore(folder / "store.db", clock=self.clock)
        self.folder = folder / "blobs"
        self.short = short
        self.records = self.reopen(self.store)

    def reopen(self, store: Store) -> Records:
        """Return records over the same blobs that know of nothing yet."""
        blobs = FileBlobs(self.folder)
        return Records(store, blobs, Sealer(bytes(32)), self.clock, short=self.short)

    def blobs(self) -> int:
        return sum(1 for path in self.folder.rglob("*") if path.is_file())


def observation(uid: str = "u1", version: int = 5, **changes: Any) -> Observation:
    manifest = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web", "namespace": "default", "uid": uid},
        "spec": {"port": 80, "share": 0.5, "on": True, "none": None, "word": "ü\u2028"},
        **changes,
    }
    return Observation(EAST, WEB, uid, version, manifest, START)


def gone(uid: str = "u1", version: int = 5) -> Observation:
    return Observation(EAST, WEB, uid, version, None, START)


def profile(text: str = "x", **changes: Any) -> Profile:
    values: dict[str, Any] = {
        "name": "p",
        "trigger": "t",
        "cluster": EAST,
        "object": str(WEB),
        "contents": (
            Content("ConfigMap default/a", "main.yaml", ({"kind": "X", "text": text},)),
            Content("Secret default/b", "later.yaml", (), "{{ Cluster }}", "jinja2", secret=True),
        ),
        "destinations": (EAST, "fleet/west"),
        "leaves": False,
        "tier": 7,
        "leaves_policies": True,
        "continue_on_conflict": True,
        "digest": "d",
        "error": "e",
        "error_code": "Missing",
    }
    return Profile(**{**values, **changes})


def cluster(name: str = "east") -> Cluster:
    wired = {"url": "https://127.0.0.1:1", "ca": "PEM"}
    return Cluster("fleet", name, {"env": "production"}, "v1.34.2", "abc", START, wired)


def gate(token: str = "a", revision: int = 1) -> IngestPolicy:
    return IngestPolicy(token, (WatchedKind(SERVICE, "services"), WatchedKind(ROLE.gvk)), revision)
