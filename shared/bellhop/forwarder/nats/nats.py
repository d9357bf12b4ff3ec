"""Messaging put together: the Secret is followed, and there are threads only where it is there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from bellhop.errors import BellhopError, DeniedError
from bellhop.forwarder.counts import Counts
from bellhop.forwarder.ingest_client import IngestClient
from bellhop.forwarder.nats import secret
from bellhop.forwarder.nats.receiver import Receiver
from bellhop.forwarder.nats.secret import Server
from bellhop.forwarder.nats.sender import FILE, MessageSender, MessageStore
from bellhop.logs import Log
from bellhop.ports.kube import Kube

if TYPE_CHECKING:
    from bellhop.forwarder.nats.subscriber import Subscribed

HANDING_OVER_SECONDS = 3.0
"""How long what is held may take to be sent, where the Secret changed."""


class Messaging:
    """A cluster's NATS, as the Secret has it when somebody looks; one thread looks."""

    def __init__(
        self,
        kube: Kube,
        folder: Path,
        ingest_client: Callable[[], IngestClient],
        counts: Counts,
        log: Log,
    ) -> None:
        self._kube = kube
        self._folder = folder
        self._ingest_client = ingest_client
        self._counts = counts
        self._log = log
        self._servers: tuple[Server, ...] = ()
        self._receiver: Receiver | None = None
        self._subscribed: Subscribed | None = None
        self._said = ""
        # Why the Secret cannot be followed.
        self._unread = ""

    def start(self) -> None:
        """Send what an earlier process kept, and subscribe as the Secret says."""
        if (self._folder / FILE).exists():
            try:
                self._open()
            except BellhopError as error:
                self._say(error)
        self.look()

    def look(self) -> None:
        """Read the Secret, and follow its changes; events of Kubernetes go on in any case."""
        try:
            servers = secret.read(self._kube)
            if servers != self._servers:
                self._follow(servers)
        except BellhopError as error:
            self._say(error)
        else:
            self._said = self._unread = ""

    def _follow(self, servers: tuple[Server, ...]) -> None:
        """Subscribe to what is asked for by now, and to nothing else."""
        former, begun = self._subscribed, None
        if servers:
            # Loaded where a Secret asks for it: without NATS its memory is saved.
            from bellhop.forwarder.nats.subscriber import Subscribed  # noqa: PLC0415

            begun = Subscribed(servers, self._open())
        self._subscribed, self._servers = begun, servers
        # Begun before the former is ended, so that few messages come while nobody is there.
        if former:
            former.stop(HANDING_OVER_SECONDS)
            former.join()
        if not servers:
            self._log.info("Unsubscribed from NATS: its Secret is gone", secret=secret.PLACE)

    def nudge(self) -> None:
        """Try again at once, since something changed."""
        if self._receiver:
            self._receiver.sender.nudge()

    def alive(self) -> bool:
        """Say if all threads still work."""
        sender = self._receiver is None or self._receiver.sender.alive()
        return sender and (self._subscribed is None or self._subscribed.alive())

    def trouble(self) -> str:
        """Say what keeps us from being subscribed as the Secret says; empty for nothing."""
        return self._unread or (self._subscribed.trouble() if self._subscribed else "")

    def kept(self) -> int:
        """Return how many CloudEvents wait on disk."""
        return len(self._receiver.store) if self._receiver else 0

    def stop(self, seconds: float) -> None:
        """Take no more; what is held may take so long to be sent."""
        if self._subscribed:
            self._subscribed.stop(seconds)

    def close(self, seconds: float) -> None:
        """End, after `stop`; the request that is under way may take as long as given."""
        if self._subscribed:
            self._subscribed.join()
        if self._receiver:
            self._receiver.sender.close(seconds)
            self._receiver.store.close()

    def _open(self) -> Receiver:
        """Return what subscribers share, and begin to send."""
        if self._receiver is None:
            store = MessageStore(self._folder)
            sender = MessageSender(self._ingest_client(), store, self._counts, self._log)
            self._receiver = Receiver(sender, store, self._counts, self._log)
            sender.start()
        return self._receiver

    def _say(self, error: BellhopError) -> None:
        """Log what keeps us from following the Secret, when it is another thing than before."""
        denied = isinstance(error, DeniedError)
        said = type(error).__name__ if denied else str(error)
        # Where no source asks for CloudEvents the Secret may not be read, and nobody minds.
        self._unread = "" if denied and not self._servers else str(error)
        if said == self._said:
            return
        self._said = said
        if denied and not self._servers:
            self._log.info("Not subscribed to NATS: its Secret may not be read")
        else:
            self._log.warning("Keep to what the Secret of NATS said before", error=str(error))
