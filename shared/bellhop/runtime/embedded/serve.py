"""`bellhop serve`: the HTTP function and every stage in one process, until a signal stops them."""

from __future__ import annotations

import gc
import json
import os
import secrets as entropy
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from msgspec.structs import replace

from bellhop.adapters.local.files import write_whole
from bellhop.adapters.local.server import Server
from bellhop.adapters.programs.box import remove_abandoned_homes
from bellhop.deploy.lease import Peers
from bellhop.errors import MissingError
from bellhop.ingest.handler import Ingest
from bellhop.installation import Inbound, Installation
from bellhop.logs import Log, configure
from bellhop.runtime.embedded import lazy
from bellhop.runtime.embedded.consumer import Observer, Scraping
from bellhop.runtime.embedded.http import Front
from bellhop.runtime.embedded.lifecycle import (
    StateFiles,
    WarmUp,
    resync_unbuffered,
    stop_on_signals,
    wait_for,
)
from bellhop.runtime.embedded.notes import Notes
from bellhop.runtime.embedded.own_cluster import registering
from bellhop.runtime.embedded.state import Embedded, make_folder, only_one, open_state, room
from bellhop.runtime.embedded.upkeep import Identity, ListenerIdentity, MountedIdentity, Upkeep
from bellhop.runtime.embedded.workers import Workers, make_stages
from bellhop.settings import Settings, read


def _keep_silent(_url: str) -> None:
    """Announce nothing."""


_SWITCH_SECONDS = 0.0005
"""A tenth of Python's own: an event waits for the interpreter at each of its statements of SQLite,
and each time for as long where another thread computes."""


def serve(  # noqa: PLR0913 - one parameter an option
    state: Path,
    *,
    host: str,
    port: int,
    advertise: str = "",
    metrics: Scraping | None = None,
    own_cluster: str = "",
    certificate: Path | None = None,
    announce: Callable[[str], None] = _keep_silent,
) -> None:
    """Serve from a state folder until SIGINT or SIGTERM; call `announce` with the URL when ready.

    `advertise` is the URL by which clusters reach us, where it is not the listener's own.
    At `metrics` Prometheus may scrape over plain HTTP. As `own_cluster` the cluster of this pod is
    registered. The listener has the `certificate` in a folder, or makes its own.

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
        running(
            *(state, settings, log, host, port, advertise, metrics),
            own_cluster=own_cluster,
            certificate=certificate,
        ) as url,
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
def running(  # noqa: PLR0913 - one parameter an option
    state: Path,
    settings: Settings,
    log: Log,
    host: str,
    port: int,
    advertise: str = "",
    metrics: Scraping | None = None,
    *,
    own_cluster: str = "",
    certificate: Path | None = None,
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
        identity = _identity(state, certificate, _names(host, advertise), clock.now())
        issued, key = identity.certificate(clock.now())
        front = _front(embedded.installation, log, observer)
        server = Server(front, host=host, port=port, certificate_pem=issued, key_pem=key)
        server.start()
        stack.callback(server.stop)
        resync_unbuffered(embedded.installation.records)
        url = advertise.rstrip("/") or f"https://{_bracket(host)}:{server.port}"
        _write_address(state, url, identity.ca)
        # The address that was read when the state was opened is that of an earlier start.
        here = replace(embedded.installation, inbound=Inbound(url, identity.ca))
        upkeep = Upkeep(clock, identity, server, log, partial(room, state))
        stack.enter_context(_work(replace(embedded, installation=here), log, observer))
        stack.enter_context(registering(here, own_cluster, log))
        upkeep.start()
        stack.callback(upkeep.stop)
        # Nothing is taken in any more before anybody is waited for.
        stack.callback(server.stop)
        yield url


@contextmanager
def _work(embedded: Embedded, log: Log, observer: Observer) -> Iterator[None]:
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


def _identity(
    state: Path, certificate: Path | None, names: Sequence[str], now: datetime
) -> Identity:
    if certificate:
        return MountedIdentity(certificate, now)
    return ListenerIdentity(state / "tls", names, now)


def _names(host: str, advertise: str) -> list[str]:
    names = {host, "localhost", "127.0.0.1"} - {"0.0.0.0", "::", ""}  # noqa: S104 - names nobody
    if advertise:
        names.add(urlsplit(advertise).hostname or "localhost")
    return sorted(names)


def _write_address(state: Path, url: str, authority: str) -> None:
    write_whole(state / "address.json", json.dumps({"url": url, "ca": authority}).encode())


def _bracket(host: str) -> str:
    return f"[{host}]" if ":" in host else host
