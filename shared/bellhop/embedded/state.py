"""The embedded mode: one folder of state, and one process that runs every stage.

state/
  key             seals records and secrets; 0600, made at the first start
  store.db        records            queue.db   the three inboxes
  blobs/          large payloads     secrets/   kubeconfigs
  tls/            the listener's authority and certificate
  address.json    where `serve` listens, for registrations
  lock            held while `serve` runs
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets as entropy
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bellhop.adapters.kube.access import KubeAccess
from bellhop.adapters.local.blobs import FileBlobs
from bellhop.adapters.local.clock import SystemClock
from bellhop.adapters.local.queue import SqliteQueue
from bellhop.adapters.local.secrets import FileSecrets
from bellhop.adapters.local.store import SqliteStore
from bellhop.errors import BusyError, InvalidError
from bellhop.fleet.installation import Inbound, Installation
from bellhop.messages import Publisher
from bellhop.model.reach import HERE
from bellhop.ports.clock import Clock
from bellhop.records import Records, Sealer
from bellhop.records.catalogs import Catalogs
from bellhop.settings import Settings
from bellhop.stages.declare import Declare

KEY_BYTES = 32


@dataclass(frozen=True)
class Embedded:
    """An opened state folder."""

    state: Path
    installation: Installation
    queues: dict[str, SqliteQueue]
    store: SqliteStore

    def close(self) -> None:
        """Let go of all files."""
        for queue in self.queues.values():
            queue.close()
        self.store.close()


def open_state(state: Path, settings: Settings, *, clock: Clock | None = None) -> Embedded:
    """Open a state folder, or make it.

    Raises:
        InvalidError: the folder cannot be used, or its files belong to another version or key.
    """
    clock = clock or SystemClock()
    _make_folder(state)
    key = _key(state / "key")
    store = SqliteStore(state / "store.db", clock=clock)
    queues = {
        name: SqliteQueue(
            state / "queue.db",
            name,
            clock=clock,
            visibility=settings.visibility,
            attempts=settings.attempts,
            groups=1,
        )
        for name in ("evaluate", "deploy", "sweep")
    }
    vault = FileSecrets(state / "secrets", key)
    records = Records(store, FileBlobs(state / "blobs"), Sealer(key), clock)
    catalogs = Catalogs(records)
    publisher = Publisher(queues)
    installation = Installation(
        settings=settings,
        records=records,
        catalogs=catalogs,
        declare=Declare(records, catalogs, publisher, settings),
        secrets=vault,
        access=KubeAccess(vault, reach=HERE),
        reach=HERE,
        publisher=publisher,
        dead=dict(queues),
        inbound=_inbound(state),
    )
    return Embedded(state, installation, queues, store)


def _make_folder(state: Path) -> None:
    try:
        state.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise InvalidError(f"cannot use the state folder '{state}': {error.strerror}") from error


def _key(path: Path) -> bytes:
    """Read the key, or make it; two that make it at once agree on one."""
    if not path.exists():
        fresh = path.with_suffix(f".{os.getpid()}")
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(entropy.token_bytes(KEY_BYTES))
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(fresh, path)
        except FileExistsError:
            pass
        finally:
            fresh.unlink()
    key = path.read_bytes()
    if len(key) != KEY_BYTES:
        raise InvalidError(
            f"cannot use the key in '{path}': it has {len(key)} bytes, not {KEY_BYTES};"
            " give back the file this state was made with"
        )
    return key


def _inbound(state: Path) -> Inbound:
    try:
        address = json.loads((state / "address.json").read_text())
    except FileNotFoundError:
        return Inbound("", "")
    return Inbound(address["url"], address["ca"])


@contextmanager
def only_one(state: Path) -> Iterator[None]:
    """Hold the state folder for one `serve`.

    Raises:
        BusyError: another one has it.
    """
    with (state / "lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise BusyError(
                f"cannot serve from '{state}': another `bellhop serve` does; stop it first"
            ) from error
        yield
