"""`bellhop serve`: the HTTP function and every stage, until it is told to stop.

One process leads: it has the HTTP function, the schedule and the listener's certificate, and works
like any other. Where more are wanted, it starts others that only work.
"""

from __future__ import annotations

import gc
import json
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from bellhop.adapters.local.files import write_whole
from bellhop.adapters.local.server import Server
from bellhop.embedded.front import Front
from bellhop.embedded.identity import ListenerIdentity
from bellhop.embedded.living import Living
from bellhop.embedded.mates import Mates
from bellhop.embedded.resync import resync_unbuffered
from bellhop.embedded.signals import stop_on_signals, wait_for
from bellhop.embedded.state import Embedded, make_folder, only_one, open_state, room
from bellhop.embedded.state_files import StateFiles
from bellhop.embedded.team import at_work
from bellhop.embedded.upkeep import Upkeep
from bellhop.errors import MissingError
from bellhop.fleet.installation import Inbound, Installation
from bellhop.logs import Log
from bellhop.settings import Settings, read
from bellhop.stages.ingest import Ingest
from bellhop.stages.lease import Peers


def serve(state: Path, *, host: str, port: int, advertise: str = "", processes: int = 1) -> None:
    """Serve from a state folder until SIGINT or SIGTERM; write one line when ready.

    `advertise` is the URL by which clusters reach us, where it is not the listener's own.

    Raises:
        BusyError: another process serves from this folder.
        InvalidError: the folder, the port or a setting cannot be used.
        MissingError: the folder was deleted or replaced meanwhile.
    """
    settings = read(os.environ)
    log = Log()
    stop = stop_on_signals()
    make_folder(state)
    with (
        only_one(state),
        running(state, settings, log, host, port, advertise, processes=processes) as url,
    ):
        # What was loaded until here stays for good. To look through it for garbage stopped every
        # thread for a twentieth of a second, now and then.
        gc.collect()
        gc.freeze()
        log.info("Bellhop serves", url=url, state=str(state))
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
    *,
    processes: int = 1,
) -> Iterator[str]:
    """Run the embedded mode, by so many processes; yield the URL that clusters are to use.

    Raises:
        BusyError: a process that a killed `serve` left still works on this folder, or the
            installation was left for another one.
    """
    with ExitStack() as stack:
        embedded = open_state(state, settings)
        stack.callback(embedded.close)
        embedded.installation.records.moves.refuse()
        living = Living(state)
        living.outlive()
        _release(embedded)
        clock = embedded.installation.records.clock
        identity = ListenerIdentity(state / "tls", _names(host, advertise), clock.now())
        certificate, key = identity.certificate(clock.now())
        front = _front(embedded.installation, log)
        server = Server(front, host=host, port=port, certificate_pem=certificate, key_pem=key)
        server.start()
        stack.callback(server.stop)
        resync_unbuffered(embedded.installation.records)
        url = advertise.rstrip("/") or f"https://{_bracketed(host)}:{server.port}"
        _write_address(state, url, identity.ca)
        # The address that was read when the state was opened is that of an earlier start.
        here = replace(embedded.installation, inbound=Inbound(url, identity.ca))
        mates = Mates(state, processes - 1, living, partial(_release, embedded), log)
        upkeep = Upkeep(clock, identity, server, log, partial(room, state))
        badge, _ = stack.enter_context(living.issued())
        stack.callback(mates.join)
        peers = Peers(badge, living.lives)
        stack.enter_context(at_work(replace(embedded, installation=here), peers, log, leads=True))
        upkeep.start()
        stack.callback(upkeep.stop)
        # Nothing is taken in any more, and the others begin to end before anybody is waited for.
        stack.callback(server.stop)
        stack.callback(mates.end)
        mates.start()
        yield url


def _release(embedded: Embedded, holder: str | None = None) -> None:
    """Give back what a process held that is dead, or all that are."""
    for queue in embedded.queues.values():
        queue.release(holder)


def _front(here: Installation, log: Log) -> Front:
    return Front(Ingest(here.records, here.publisher, here.settings, log))


def _names(host: str, advertise: str) -> list[str]:
    names = {host, "localhost", "127.0.0.1"} - {"0.0.0.0", "::", ""}  # noqa: S104 - names nobody
    if advertise:
        names.add(urlsplit(advertise).hostname or "localhost")
    return sorted(names)


def _write_address(state: Path, url: str, authority: str) -> None:
    write_whole(state / "address.json", json.dumps({"url": url, "ca": authority}).encode())


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
