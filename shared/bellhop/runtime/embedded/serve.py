"""`bellhop serve`: the HTTP function and every stage in one process, until a signal stops them."""

from __future__ import annotations

import gc
import json
import os
import secrets as entropy
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from msgspec.structs import replace

from bellhop.adapters.local.files import write_whole
from bellhop.adapters.local.server import Server
from bellhop.adapters.programs.home import remove_abandoned_homes
from bellhop.deploy.lease import Peers
from bellhop.errors import MissingError
from bellhop.ingest.handler import Ingest
from bellhop.installation.installation import Inbound, Installation
from bellhop.logs import Log, configure
from bellhop.runtime.embedded import lazy
from bellhop.runtime.embedded.http import Front
from bellhop.runtime.embedded.identity import ListenerIdentity
from bellhop.runtime.embedded.notes import Notes
from bellhop.runtime.embedded.observer import Observer, Scraping
from bellhop.runtime.embedded.resync import resync_unbuffered
from bellhop.runtime.embedded.signals import stop_on_signals, wait_for
from bellhop.runtime.embedded.state import Embedded, make_folder, only_one, open_state, room
from bellhop.runtime.embedded.state_files import StateFiles
from bellhop.runtime.embedded.upkeep import Upkeep
from bellhop.runtime.embedded.warmup import WarmUp
from bellhop.runtime.embedded.workers import Workers, make_stages
from bellhop.settings import Settings, read


def _keep_silent(_url: str) -> None:
    """Announce nothing."""


_SWITCH_SECONDS = 0.0005
"""A tenth of Python's own: an event waits for the interpreter at each of its statements of SQLite,
and each time for as long where another thread computes."""


def serve(
    state: Path,
    *,
    host: str,
    port: int,
    advertise: str = "",
    metrics: Scraping | None = None,
    announce: Callable[[str], None] = _keep_silent,
) -> None:
    """Serve from a state folder until SIGINT or SIGTERM; call `announce` with the URL when ready.

    `advertise` is the URL by which clusters reach us, where it is not the listener's own.
    At `metrics` Prometheus may scrape over plain HTTP.

    Raises:
        BusyError: another process serves from this folder.
        InvalidError: the folder, the port or a setting cannot be used.
        MissingError: the folder was deleted or replaced meanwhile.
    """
    configure()
    settings = read(os.environ)
    log = Log()
    sys.setswitchinterval(_SWITCH_SECONDS)
    stop = stop_on_signals()
    make_folder(state)
    with (
        only_one(state),
        running(state, settings, log, host, port, advertise, metrics) as url,
    ):
        # What was loaded until here stays for good. To look through it for garbage stopped every
        # thread for a twentieth of a second, now and then.
        gc.collect()
        gc.freeze()
        log.info("Bellhop serves", url=url, state=str(state))
        announce(url)
        try:
            wait_for(stop, StateFiles(state).refuse_replaced)
        except MissingError as error:
            log.warning("Bellhop ends", error=str(error))
            raise
        log.info("Bellhop stops")


@contextmanager
def running(
    state: Path,
    settings: Settings,
    log: Log,
    host: str,
    port: int,
    advertise: str = "",
    metrics: Scraping | None = None,
) -> Iterator[str]:
    """Run the embedded mode; yield the URL that clusters are to use.

    Raises:
        BusyError: the installation was left for another one.
    """
    with ExitStack() as stack:
        embedded = open_state(state, settings)
        stack.callback(embedded.close)
        embedded.installation.records.moves.refuse()
        observer = Observer()
        if metrics:
            exporter = lazy.exporter(embedded, metrics, log)
            stack.callback(exporter.stop)
            observer = exporter.metrics
        # Nobody else works on this folder: what a killed process had in flight is free.
        for queue in embedded.queues.values():
            queue.release()
        remove_abandoned_homes()
        clock = embedded.installation.records.clock
        identity = ListenerIdentity(state / "tls", _names(host, advertise), clock.now())
        certificate, key = identity.certificate(clock.now())
        front = _front(embedded.installation, log, observer)
        server = Server(front, host=host, port=port, certificate_pem=certificate, key_pem=key)
        server.start()
        stack.callback(server.stop)
        resync_unbuffered(embedded.installation.records)
        url = advertise.rstrip("/") or f"https://{_bracketed(host)}:{server.port}"
        _write_address(state, url, identity.ca)
        # The address that was read when the state was opened is that of an earlier start.
        here = replace(embedded.installation, inbound=Inbound(url, identity.ca))
        upkeep = Upkeep(clock, identity, server, log, partial(room, state))
        stack.enter_context(_at_work(replace(embedded, installation=here), log, observer))
        upkeep.start()
        stack.callback(upkeep.stop)
        # Nothing is taken in any more before anybody is waited for.
        stack.callback(server.stop)
        yield url


@contextmanager
def _at_work(embedded: Embedded, log: Log, observer: Observer) -> Iterator[None]:
    """Run all stages and the schedule within the block, then finish what is in flight."""
    here = embedded.installation
    # Leases of a process that was killed name another one.
    me = entropy.token_hex(8)
    workers = Workers(embedded, make_stages(here, Peers(me, me.__eq__), log), log, observer)
    warm_up = WarmUp(here, log)
    notes = Notes(here.records.ledger, here.records.clock, log)
    notes.start()
    workers.start()
    warm_up.start()
    try:
        yield
    finally:
        warm_up.stop()
        workers.stop()
        notes.stop()


def _front(here: Installation, log: Log, observer: Observer | None = None) -> Front:
    return Front(Ingest(here.records, here.publisher, here.settings, log), observer)


def _names(host: str, advertise: str) -> list[str]:
    names = {host, "localhost", "127.0.0.1"} - {"0.0.0.0", "::", ""}  # noqa: S104 - names nobody
    if advertise:
        names.add(urlsplit(advertise).hostname or "localhost")
    return sorted(names)


def _write_address(state: Path, url: str, authority: str) -> None:
    write_whole(state / "address.json", json.dumps({"url": url, "ca": authority}).encode())


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
