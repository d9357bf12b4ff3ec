"""The forwarder put together, from its start to its end."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from queue import Empty, SimpleQueue

from msgspec import Struct

from bellhop.adapters.local.server import Server
from bellhop.adapters.local.status_server import StatusServer
from bellhop.errors import BellhopError
from bellhop.forwarder import instructions as secret
from bellhop.forwarder.counts import Counts
from bellhop.forwarder.ingest_client import Account, IngestClient
from bellhop.forwarder.instructions import Instructions
from bellhop.forwarder.nats.nats import Messaging
from bellhop.forwarder.outbox import Outbox
from bellhop.forwarder.pending import Journal
from bellhop.forwarder.reader import Readers
from bellhop.forwarder.sender import Sender
from bellhop.forwarder.webhook import Webhook
from bellhop.forwarder.workqueue import DelayingQueue
from bellhop.logs import Log
from bellhop.ports.kube import Kube

LOOK_SECONDS = 60.0
"""How often the Secret is read again."""

DOUBT_SECONDS = 1.0
"""How often at most it is read for a refused token or a request to another path."""

OLD_PATH_SECONDS = 600.0
"""How long API servers may still call the former path: the webhook configuration changes later."""

_WAIT_SECONDS = 3.0
_SAY_EVERY = 20
_WEBHOOK_THREADS = 8
_LAST_REQUEST_SECONDS = 1.0


class Options(Struct, frozen=True):
    """Options of the command line; times in seconds."""

    listen: tuple[str, int]
    spool: Path
    health: tuple[str, int] | None = None
    linger: float = 0.0
    grace: float = 3.0
    account: Path | None = None


class Forwarder:
    """The forwarder of a process; `run` serves, and `stop` may be called from any thread."""

    def __init__(self, options: Options, kube: Kube, log: Log) -> None:
        self._options = options
        self._kube = kube
        self._log = log
        self._counts = Counts()
        self._spool = Journal(options.spool)
        self._queue = DelayingQueue(self._spool, log, self._report_unspooled)
        self._outbox = Outbox()
        self._readers = Readers(kube, self._queue, self._outbox, self._counts, log)
        self._messaging = Messaging(
            kube,
            options.spool,
            lambda: IngestClient(
                lambda: self._present, self._look_again, Account(options.account), log
            ),
            self._counts,
            log,
        )
        self._sender = Sender(
            lambda: self._present,
            self._look_again,
            self._outbox,
            self._queue,
            self._counts,
            log,
            unreadable=self._readers.refused,
            release=self._readers.release,
            messaging=self._messaging.trouble,
            account=Account(options.account),
        )
        # A SimpleQueue, because a signal handler may put into it whatever its thread is at.
        self._calls: SimpleQueue[str] = SimpleQueue()
        self._read_at = float("-inf")
        self._present: Instructions
        self._former_path = ("", float("-inf"))
        self._ready = False

    def stop(self) -> None:
        """Have `run` finish and return."""
        self._calls.put("stop")

    def run(self) -> int:
        """Serve until stopped; return the exit status."""
        health = self._start_health()
        first = self._wait_for_instructions()
        if first is None:
            return 0
        self._present = first
        server = self._start()
        self._log.info(
            "Ready for events", cluster=first.cluster, address=server.url, ingest=first.ingest_url
        )
        self._follow(server)
        self._end(server)
        if health:
            health.stop()
        return 0

    def _start_health(self) -> StatusServer | None:
        if self._options.health is None:
            return None
        pages = {"/healthz": self._healthz, "/readyz": self._readyz, "/metrics": self._metrics}
        health = StatusServer(self._options.health, pages, "health")
        self._log.info("Ready to be probed", port=health.port)
        return health

    def _wait_for_instructions(self) -> Instructions | None:
        tries = 0
        while True:
            try:
                found = secret.read(self._kube)
                why = "it is not there yet; register the cluster"
            except BellhopError as error:
                found, why = None, str(error)
            if found is not None:
                self._read_at = time.monotonic()
                return found
            if tries % _SAY_EVERY == 0:
                self._log.warning("Waiting for the Secret", secret=secret.PLACE, why=why)
            tries += 1
            if self._wait_for_call(_WAIT_SECONDS):
                return None

    def _start(self) -> Server:
        left = self._queue.restore()
        if left:
            self._log.info("Taking up what an earlier process owed", objects=left)
        webhook = Webhook(self._queue.add, self._paths, self._look_again, self._counts, self._log)
        host, port = self._options.listen
        server = Server(
            webhook,
            host=host,
            port=port,
            certificate_pem=self._present.certificate,
            key_pem=self._present.key,
            threads=_WEBHOOK_THREADS,
            log=self._log,
        )
        server.start()
        self._readers.start()
        # Events that no forwarder received are lost: ingest must resync the cluster.
        self._sender.ask_for_a_look()
        self._sender.start()
        self._ready = True
        self._messaging.start()
        return server

    def _follow(self, server: Server) -> None:
        """Follow the Secret until stopped."""
        while not self._wait_for_call(LOOK_SECONDS):
            wait = self._read_at + DOUBT_SECONDS - time.monotonic()
            if wait > 0 and self._wait_for_call(wait, passing_over=True):
                return
            try:
                found = secret.read(self._kube)
                if found and found != self._present:
                    self._change(server, found)
            except BellhopError as error:
                self._log.warning("Keep to what the Secret said before", error=str(error))
            self._messaging.look()
            self._read_at = time.monotonic()

    def _change(self, server: Server, found: Instructions) -> None:
        former = self._present
        if (found.certificate, found.key) != (former.certificate, former.key):
            server.renew(found.certificate, found.key)
        leaving = former.path if found.path != former.path else former.former_path
        if leaving:
            self._former_path = (leaving, time.monotonic() + OLD_PATH_SECONDS)
        self._present = found
        self._sender.nudge()
        self._messaging.nudge()
        self._log.info("The Secret changed", cluster=found.cluster, ingest=found.ingest_url)

    def _end(self, server: Server) -> None:
        self._ready = False
        ends = time.monotonic() + self._options.grace
        self._messaging.stop(self._options.grace)
        # API servers call until all of them know that this pod ends.
        time.sleep(min(self._options.linger, self._options.grace))
        server.stop()
        clear = self._queue.wait_until_clear(max(0.0, ends - time.monotonic()))
        self._queue.close()
        self._sender.close(_LAST_REQUEST_SECONDS)
        self._messaging.close(_LAST_REQUEST_SECONDS)
        left, _ = self._queue.owed()
        self._spool.close()
        self._log.info("Ended" if clear else "Ended with objects owed, kept on disk", objects=left)

    def _wait_for_call(self, seconds: float, *, passing_over: bool = False) -> bool:
        """Wait for a call, or a refusal unless these are passed over; return whether to stop."""
        ends = time.monotonic() + seconds
        while True:
            try:
                call = self._calls.get(timeout=max(0.0, ends - time.monotonic()))
            except Empty:
                return False
            if call == "stop":
                return True
            if not passing_over:
                return False

    def _report_unspooled(self) -> None:
        self._sender.ask_for_a_look()

    def _look_again(self) -> None:
        if self._calls.empty():
            self._calls.put("look")

    def _paths(self) -> tuple[str, ...]:
        present = self._present
        former, until = self._former_path
        given = (former,) if time.monotonic() < until else ()
        return tuple(filter(None, (present.path, present.former_path, *given)))

    def _healthz(self) -> tuple[HTTPStatus, str]:
        if self._ready and not self._alive():
            return HTTPStatus.SERVICE_UNAVAILABLE, "a thread ended\n"
        return HTTPStatus.OK, "ok\n"

    def _alive(self) -> bool:
        return self._readers.alive() and self._sender.alive() and self._messaging.alive()

    def _readyz(self) -> tuple[HTTPStatus, str]:
        if self._ready:
            return HTTPStatus.OK, "ok\n"
        return HTTPStatus.SERVICE_UNAVAILABLE, "no events are accepted yet, or no longer\n"

    def _metrics(self) -> tuple[HTTPStatus, str]:
        owed, since = self._queue.owed()
        age = 0.0
        if since:
            age = (datetime.now(UTC) - datetime.fromisoformat(since)).total_seconds()
        return HTTPStatus.OK, self._counts.text(
            {
                "spooled": ("Objects that are owed to ingest.", owed),
                "oldest_spooled_seconds": ("For how long the first of them is owed.", age),
                "retrying": (
                    "Those that ingest failed on, and that are sent again.",
                    self._outbox.retrying(),
                ),
                "events_kept": (
                    "CloudEvents of NATS that wait on disk for ingest.",
                    self._messaging.kept(),
                ),
            }
        )
