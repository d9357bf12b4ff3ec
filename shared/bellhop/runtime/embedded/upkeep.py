"""The certificate of `serve`, renewed in time, and a watch on the free space of its disk.

Bellhop makes the certificate, or reads the one of a folder, as nodes mount a Secret that
cert-manager fills.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Protocol

from bellhop.adapters.local.certificates import Authority, issue, life, make_authority
from bellhop.adapters.local.files import prepare, read_at_most, translated, write_whole
from bellhop.adapters.local.server import Server
from bellhop.errors import BellhopError, InvalidError
from bellhop.installation import Room
from bellhop.logs import Log
from bellhop.ports.clock import Clock

_LARGEST = 1 << 20
_MOUNTED = timedelta(hours=1)
"""The time between two reads of a mounted certificate; others renew it weeks before it expires."""

_AUTHORITY = timedelta(days=3650)
_CERTIFICATE = timedelta(days=90)
"""A certificate is made at each start and, in a process that runs on, after a half of this."""


class Identity(Protocol):
    """The certificate of a listener, and the time to ask for it again."""

    renew_at: datetime

    @property
    def ca(self) -> str:
        """The authority that clients must trust, as PEM; empty for public ones."""
        ...

    def certificate(self, now: datetime) -> tuple[bytes, bytes]:
        """Return the certificate and its key as PEM."""
        ...


class MountedIdentity:
    """The certificate in a folder: `tls.crt`, `tls.key` and, for a private authority, `ca.crt`.

    The authority is the one of the start: clusters got it when they were registered.

    Raises:
        InvalidError: a file is missing or cannot be read.
    """

    def __init__(self, folder: Path, now: datetime) -> None:
        self._folder = folder
        self.renew_at = now
        self.ca = self._read("ca.crt").decode() if (folder / "ca.crt").exists() else ""

    def certificate(self, now: datetime) -> tuple[bytes, bytes]:
        """Read certificate and key as they are now.

        Raises:
            InvalidError: a file is missing or cannot be read.
        """
        self.renew_at = now + _MOUNTED
        return self._read("tls.crt"), self._read("tls.key")

    def _read(self, name: str) -> bytes:
        path = self._folder / name
        try:
            return read_at_most(path, _LARGEST)
        except OSError as error:
            raise InvalidError(
                f"cannot serve with the certificate in '{self._folder}': '{name}' cannot be read:"
                f" {error.strerror}; mount a Secret of the type kubernetes.io/tls"
            ) from error


class ListenerIdentity:
    """The listener's authority, in a folder of the state, and the names it answers to.

    Raises:
        InvalidError: the authority's file is damaged.
        TemporaryError: the disk is full.
    """

    def __init__(self, folder: Path, names: Sequence[str], now: datetime) -> None:
        self._names = names
        self._authority = _authority(folder, now)
        self.renew_at = now

    @property
    def ca(self) -> str:
        """Return the authority that clients must trust, as PEM."""
        return self._authority.certificate_pem.decode()

    def certificate(self, now: datetime) -> tuple[bytes, bytes]:
        """Issue a certificate; return it and its key as PEM.

        Raises:
            InvalidError: the authority has ended.
        """
        made = issue(self._authority, self._names, now=now, validity=_CERTIFICATE)
        # The nearer its authority's end, the shorter it lasts.
        self.renew_at = now + (life(made[0])[1] - now) / 2
        return made


def _authority(folder: Path, now: datetime) -> Authority:
    prepare(folder)
    path = folder / "authority.json"
    with translated(path):
        kept = path.read_text() if path.exists() else ""
    if kept:
        return _read(path, kept)
    made = make_authority("Bellhop", now=now, validity=_AUTHORITY)
    text = {"certificate": made.certificate_pem.decode(), "key": made.key_pem.decode()}
    write_whole(path, json.dumps(text).encode())
    return made


def _read(path: Path, text: str) -> Authority:
    try:
        kept = json.loads(text)
        return Authority(kept["certificate"].encode(), kept["key"].encode())
    except (AttributeError, KeyError, TypeError, ValueError):
        pass
    # Outside of the handler: a chained decoding error would hold the key.
    raise InvalidError(
        f"cannot use the authority in '{path}': the file is damaged; restore it, or move it away"
        " and register every cluster again"
    )


_TICK_SECONDS = 30.0
_AFTER_A_FAILURE = timedelta(minutes=10)


class Upkeep:
    """A thread that checks every half minute, and does what is due.

    The certificate belongs to this process, and says itself when it must be renewed. A process
    that starts makes a new one.
    """

    def __init__(
        self,
        clock: Clock,
        identity: Identity,
        server: Server,
        log: Log,
        space: Callable[[], Room],
    ) -> None:
        self._clock = clock
        self._identity = identity
        self._server = server
        self._log = log
        self._space = space
        self._warned = ""
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._work, name="upkeep")

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """Finish the current check and end."""
        self._stopping.set()
        self._thread.join()

    def tick(self) -> None:
        self._check_space()
        now = self._clock.now()
        if now < self._identity.renew_at:
            return
        try:
            self._server.renew(*self._identity.certificate(now))
        except BellhopError as error:
            self._identity.renew_at = now + _AFTER_A_FAILURE
            self._log.warning("Cannot renew the listener's certificate", error=str(error))
        else:
            self._log.info("Renewed the listener's certificate")

    def _check_space(self) -> None:
        """Warn once about little space, once about a full disk, and log the end of either."""
        space = self._space()
        state = "full" if space.full else "low" if space.low else ""
        if state == self._warned:
            return
        self._warned = state
        if state:
            self._log.warning(
                "The disk of the state is full" if space.full else "The disk of the state fills up",
                folder=str(space.folder),
                problem=space.problem,
            )
        else:
            self._log.info("The disk of the state has free space again", folder=str(space.folder))

    def _work(self) -> None:
        while not self._stopping.wait(_TICK_SECONDS):
            try:
                self.tick()
            except Exception as error:  # noqa: BLE001 - upkeep outlives whatever it meets
                self._log.error("Failed to look what is due", error)
