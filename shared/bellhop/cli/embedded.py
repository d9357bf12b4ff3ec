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
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from random import random

from bellhop.adapters.kube.access import KubeAccess
from bellhop.adapters.local.blobs import FileBlobs
from bellhop.adapters.local.clock import SystemClock
from bellhop.adapters.local.queue import SqliteQueue
from bellhop.adapters.local.secrets import FileSecrets
from bellhop.adapters.local.store import SqliteStore
from bellhop.cli.installation import Inbound, Installation
from bellhop.errors import BusyError, InvalidError
from bellhop.logs import Log
from bellhop.ports.clock import Clock
from bellhop.ports.queue import Queue
from bellhop.records import Records, Sealer, messages
from bellhop.records.catalogs import Catalogs
from bellhop.settings import Settings
from bellhop.stages.declare import Declare
from bellhop.stages.inbox import Inbox, Stage

KEY_BYTES = 32
_BATCH = 50
_WAIT = timedelta(seconds=1)
_TICK = 1.0


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
    installation = Installation(
        settings=settings,
        records=records,
        catalogs=catalogs,
        declare=Declare(records, catalogs, queues["deploy"], queues["sweep"]),
        secrets=vault,
        access=KubeAccess(vault),
        evaluate=queues["evaluate"],
        deploy=queues["deploy"],
        sweep=queues["sweep"],
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


class Workers:
    """Threads that feed the stages until they are told to stop."""

    def __init__(self, embedded: Embedded, stages: dict[str, Stage], log: Log) -> None:
        settings = embedded.installation.settings
        self._log = log
        self._embedded = embedded
        self._stopping = threading.Event()
        self._due: dict[str, datetime] = {}
        counts = {"evaluate": 2, "deploy": settings.workers, "sweep": 2}
        self._threads = [
            threading.Thread(
                target=self._work,
                args=(
                    embedded.queues[name],
                    Inbox(name, stage, embedded.queues[name], settings, log),
                ),
                name=f"{name}-{number}",
            )
            for name, stage in stages.items()
            for number in range(counts[name])
        ]
        self._threads.append(threading.Thread(target=self._keep_time, name="schedule"))

    def start(self) -> None:
        """Begin to work."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Finish what is in hand and end."""
        self._stopping.set()
        for thread in self._threads:
            thread.join()

    def _work(self, queue: Queue, inbox: Inbox) -> None:
        self._repeat(lambda: inbox.work(queue.receive(_BATCH, wait=_WAIT)), pause=0.0)

    def _keep_time(self) -> None:
        self._repeat(self._tick, pause=_TICK)

    def _tick(self) -> None:
        """Ask for the sweeps that are due, each cluster at its own time; finish abandoned work."""
        installation = self._embedded.installation
        records = installation.records
        interval = installation.settings.sweep_interval
        now = records.clock.now()
        for key in installation.catalogs.current().clusters:
            # Jitter keeps a fleet registered at once from being listed at once for ever.
            pause = interval * (0.9 + 0.2 * random())  # noqa: S311 - spreads load, guards nothing
            if key not in self._due:
                swept = records.health(key).swept_at
                self._due[key] = (swept or now) + pause
            if now >= self._due[key]:
                self._due[key] = now + pause
                installation.sweep.publish([messages.sweep(key)])
        installation.declare.resume()
        self._embedded.store.sweep_expired()

    def _repeat(self, work: Callable[[], None], *, pause: float) -> None:
        while not self._stopping.is_set():
            try:
                work()
            except Exception as error:  # noqa: BLE001 - a worker outlives whatever it meets
                self._log.error("Failed between messages", error)
                self._stopping.wait(1.0)
            self._stopping.wait(pause)
