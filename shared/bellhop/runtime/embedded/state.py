"""The embedded mode: one folder of state, and one `serve` that runs every stage.

state/
  key             seals records and secrets; 0600, made at the first start
  store.db        records            queue.db   the inboxes
  blobs/          large payloads     secrets/   kubeconfigs
  charts/         archives of Helm charts, which may be deleted at any time
  tls/            the listener's authority and certificate
  address.json    where `serve` listens, for registrations
  lock            held while `serve` runs
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import secrets as entropy
import time
from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import IO, ClassVar

from msgspec import Struct
from msgspec.structs import replace

from bellhop.adapters.local.clock import SystemClock
from bellhop.adapters.local.database import Database, Place, Still
from bellhop.adapters.local.files import translated, write_whole
from bellhop.adapters.local.queue import SqliteQueue
from bellhop.adapters.local.queue_rows import SCHEMA
from bellhop.adapters.local.store import FileBlobs, SqliteStore
from bellhop.core.address_policy import LOCAL
from bellhop.core.structs import Redacted
from bellhop.errors import BellhopError, BusyError, InvalidError, MissingError
from bellhop.installation import Inbound, Installation, ProcessStatus, Room
from bellhop.ports.clock import Clock
from bellhop.runtime.embedded import lazy
from bellhop.settings import Settings
from bellhop.state.event_log import Bounds
from bellhop.state.messages import CHARTS, INBOXES
from bellhop.state.records import Records
from bellhop.state.sealer import Sealer

KEY_BYTES = 32

BACKUP = "last-backup"
"""An empty file in the state folder, whose time is that of the last backup."""


_QUICK = frozenset({"evaluate", "review", "deploy"})
"""Inboxes whose work waits for no cluster, and for no script that takes long."""

_HELD = (errno.EWOULDBLOCK, errno.EACCES)
_PAUSES = (0.0, *[0.05] * 20)
"""Seconds before each try for the lock: many may be looking whether it is held, all the time."""


class Embedded(Struct, frozen=True):
    """An opened state folder."""

    state: Path
    installation: Installation
    queues: dict[str, SqliteQueue]
    inboxes: Database
    store: SqliteStore

    def snapshot(self) -> AbstractContextManager[None]:
        """Have reads of records within the block see them as they are now; nothing is written."""
        return self.store.snapshot()

    def close(self) -> None:
        self.inboxes.close()
        self.store.close()


def open_state(
    state: Path, settings: Settings, *, clock: Clock | None = None, whole: bool = True
) -> Embedded:
    """Open a state folder, or make it; if not `whole`, load what it needs when it is asked.

    Raises:
        InvalidError: its files belong to another version or key, or its key is missing.
        DeniedError: the folder may not be used.
        TemporaryError: the disk is full.
    """
    clock = clock or SystemClock()
    make_folder(state)
    make = lazy.at_once if whole else lazy.late
    return _open_folder(_Folder(state, _key(state)), settings, clock, make)


def require_state(state: Path) -> None:
    """Refuse a folder that is no state: one that was mistyped is not to look like an empty one.

    Raises:
        MissingError: it is none, or is not there.
        DeniedError: it may not be read.
    """
    with translated(state):
        there = (state / "store.db").exists() or _seal(state)
    if not there:
        raise MissingError(
            f"there is no state in '{state}': start `bellhop serve`, which makes it, or name"
            " another folder by --state or BELLHOP_STATE"
        )


def look_into(state: Path, settings: Settings, *, clock: Clock | None = None) -> Embedded:
    """Open a state folder to look at it: nothing in it is made or changed, whatever it is like.

    Raises:
        MissingError: there is none.
        InvalidError: its files belong to another version or key, or its key is missing.
        DeniedError: the folder may not be read.
    """
    require_state(state)
    folder = _Folder(state, _key(state), still=True)
    embedded = _open_folder(folder, settings, clock or SystemClock(), lazy.late)
    here = replace(embedded.installation, vitals=vitals(state))
    return replace(embedded, installation=here)


def vitals(state: Path) -> ProcessStatus:
    """Return whether a process serves from a folder, and the free space; change nothing."""
    return ProcessStatus(state, _is_held(state), room(state))


def room(state: Path) -> Room:
    """Return the free space on the disk of a folder."""
    with translated(state):
        disk = os.statvfs(state)
    # A file system that counts its files may be full of them.
    names = not disk.f_files or bool(disk.f_favail)
    return Room(state, disk.f_bavail * disk.f_frsize, disk.f_blocks * disk.f_frsize, names)


def _is_held(state: Path) -> bool:
    """Say whether a process holds the folder: its lock ends with it, however it ends."""
    try:
        with translated(state), (state / "lock").open() as lock:
            # Shared, so that two who look see only who serves.
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BellhopError as error:
        cause = error.__cause__
        if isinstance(cause, OSError) and cause.errno in _HELD:
            return True
        if isinstance(cause, FileNotFoundError):
            return False
        raise
    return False


class _Folder(Redacted, frozen=True):
    """A state folder with its key; one that is `still` is only looked at."""

    secret_fields: ClassVar[Collection[str]] = ("key",)
    path: Path
    key: bytes
    still: bool = False

    def file(self, name: str) -> Place:
        path = self.path / name
        return Still(path) if self.still else path


def _open_folder(folder: _Folder, settings: Settings, clock: Clock, make: lazy.Make) -> Embedded:
    with ExitStack() as opened:
        store = SqliteStore(folder.file("store.db"), clock=clock)
        opened.callback(store.close)
        inboxes = Database(folder.file("queue.db"), SCHEMA)
        opened.callback(inboxes.close)
        embedded = _put_together(folder, settings, clock, store, inboxes, make)
        opened.pop_all()
    return embedded


def _put_together(
    folder: _Folder,
    settings: Settings,
    clock: Clock,
    store: SqliteStore,
    inboxes: Database,
    make: lazy.Make,
) -> Embedded:
    state = folder.path
    queues = {name: _queue(inboxes, name, settings, clock) for name in (*INBOXES, CHARTS)}
    bounds = Bounds(timedelta(days=settings.ledger_days), settings.ledger_megabytes * 1024 * 1024)
    blobs = FileBlobs(state / "blobs", still=folder.still)
    records = Records(store, blobs, Sealer(folder.key), clock, bounds)
    vault = make(partial(lazy.vault, state, folder.key, records, still=folder.still))
    catalogs = make(partial(lazy.catalogs, records))
    publisher = make(partial(lazy.publisher, queues))
    installation = Installation(
        settings=settings,
        records=records,
        catalogs=catalogs,
        declare=make(partial(lazy.declare, records, catalogs, publisher, settings)),
        secrets=vault,
        access=make(partial(lazy.access, vault)),
        reach=LOCAL,
        publisher=publisher,
        dead=dict(queues),
        inbound=_read_inbound(state),
        queues=dict(queues),
        tools=make(partial(lazy.tools, None if folder.still else state, settings, clock)),
    )
    return Embedded(state, installation, queues, inboxes, store)


def _queue(inboxes: Database, name: str, settings: Settings, clock: Clock) -> SqliteQueue:
    return SqliteQueue(
        inboxes,
        name,
        clock=clock,
        visibility=settings.visibility,
        attempts=settings.attempts,
        groups=1,
        # Of the two workers of a quick inbox one is left to the other fairness keys.
        per_share=1 if name in _QUICK else settings.workers,
    )


def make_folder(state: Path) -> None:
    """Make the state folder, closed to others; one that is there stays as it is."""
    with translated(state):
        state.mkdir(parents=True, exist_ok=True, mode=0o700)


def _key(state: Path) -> bytes:
    """Read the key, or make it; two that make it at once agree on one."""
    path = state / "key"
    # A new state gets its key first: read in this order, sealed files have one.
    sealed = _seal(state)
    with translated(path):
        if not path.exists():
            if sealed:
                raise InvalidError(
                    f"cannot open the state in '{state}': its key '{path.name}' is missing, without"
                    f" which nobody can read '{sealed}'; give back the file this state was made"
                    " with, or name another folder to start with empty state"
                )
            _make_key(path)
        key = path.read_bytes()
    if len(key) != KEY_BYTES:
        raise InvalidError(
            f"cannot use the key in '{path}': it has {len(key)} bytes, not {KEY_BYTES};"
            " give back the file this state was made with"
        )
    return key


def _seal(state: Path) -> str:
    """Name something in the folder that was sealed with a key; empty if there is nothing."""
    for name in ("store.db", "queue.db"):
        if (state / name).exists():
            return name
    return "secrets" if any((state / "secrets").glob("*.sealed")) else ""


def _make_key(path: Path) -> None:
    fresh = path.with_suffix(f".{os.getpid()}-{entropy.token_hex(4)}")
    write_whole(fresh, entropy.token_bytes(KEY_BYTES))
    try:
        # Unlike a rename, a link takes nobody's place.
        os.link(fresh, path)
    except FileExistsError:
        pass
    finally:
        fresh.unlink()


def _read_inbound(state: Path) -> Inbound:
    path = state / "address.json"
    try:
        with translated(path):
            address = json.loads(path.read_text()) if path.exists() else {"url": "", "ca": ""}
        return Inbound(address["url"], address["ca"])
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidError(
            f"cannot read '{path}': it is damaged; remove it, and start `bellhop serve`"
        ) from error


@contextmanager
def only_one(state: Path, refusal: str = "cannot serve from") -> Iterator[None]:
    """Hold the state folder for one `serve`, or for another command that needs it to itself.

    `refusal` begins the sentence of who cannot have it.

    Raises:
        BusyError: another one has it.
    """
    with _open(state / "lock") as lock:
        if not any(_has_taken(lock, pause) for pause in _PAUSES):
            raise BusyError(
                f"{refusal} '{state}': another process, as `bellhop serve`, is at work there;"
                " stop it first"
            )
        yield


def _has_taken(lock: IO[str], pause: float) -> bool:
    time.sleep(pause)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _open(path: Path) -> IO[str]:
    with translated(path):
        return path.open("a")
