"""`bellhop serve`: every stage and the HTTP function in one process, until it is told to stop."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

from bellhop.adapters.local.files import write_whole
from bellhop.adapters.local.server import Server
from bellhop.embedded.front import Front
from bellhop.embedded.identity import ListenerIdentity
from bellhop.embedded.notes import Notes
from bellhop.embedded.state import make_folder, only_one, open_state
from bellhop.embedded.upkeep import Upkeep
from bellhop.embedded.warming import WarmUp
from bellhop.embedded.workers import Workers
from bellhop.fleet.installation import Inbound, Installation
from bellhop.fleet.renewal import Renewals
from bellhop.logs import Log
from bellhop.settings import Settings, read
from bellhop.stages.deploy import Deploy
from bellhop.stages.evaluate import Evaluate
from bellhop.stages.execute import Execute
from bellhop.stages.hands import HELPERS, Hands
from bellhop.stages.inbox import Stage
from bellhop.stages.ingest import Ingest
from bellhop.stages.sweep import Sweep


def serve(state: Path, *, host: str, port: int, advertise: str = "") -> None:
    """Serve from a state folder until SIGINT or SIGTERM; write one line when ready.

    `advertise` is the URL by which clusters reach us, where it is not the listener's own.

    Raises:
        BusyError: another process serves from this folder.
        InvalidError: the folder, the port or a setting cannot be used.
    """
    settings = read(os.environ)
    log = Log()
    stop = _stop_on_signals()
    with only_one(_made(state)), running(state, settings, log, host, port, advertise) as url:
        log.info("Bellhop serves", url=url, state=str(state))
        stop.wait()
        log.info("Bellhop stops")


@contextmanager
def running(
    state: Path, settings: Settings, log: Log, host: str, port: int, advertise: str = ""
) -> Iterator[str]:
    """Run the embedded mode; yield the URL that clusters are to use."""
    embedded = open_state(state, settings)
    try:
        for queue in embedded.queues.values():
            queue.release()
        clock = embedded.installation.records.clock
        identity = ListenerIdentity(state / "tls", _names(host, advertise), clock.now())
        certificate, key = identity.certificate(clock.now())
        front = _front(embedded.installation, log)
        server = Server(front, host=host, port=port, certificate_pem=certificate, key_pem=key)
        server.start()
        try:
            url = advertise.rstrip("/") or f"https://{_bracketed(host)}:{server.port}"
            _write_address(state, url, identity.ca)
            # The address that was read when the state was opened is that of an earlier start.
            here = replace(embedded.installation, inbound=Inbound(url, identity.ca))
            workers = Workers(embedded, _stages(here, log), log)
            upkeep = Upkeep(clock, identity, server, log)
            warm_up = WarmUp(here, log)
            notes = Notes(here.records.ledger, clock, log)
            notes.start()
            workers.start()
            upkeep.start()
            warm_up.start()
            try:
                yield url
            finally:
                server.stop()
                warm_up.stop()
                upkeep.stop()
                workers.stop()
                notes.stop()
        finally:
            server.stop()
    finally:
        embedded.close()


def _made(state: Path) -> Path:
    make_folder(state)
    return state


def _stop_on_signals() -> threading.Event:
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    return stop


def _stages(here: Installation, log: Log) -> dict[str, Stage]:
    sweep = Sweep(here.records, here.catalogs, here.access, here.publisher, here.settings, log)
    hands = Hands(HELPERS)
    execute = Execute(
        here.records, here.access, here.publisher, here.settings, log, alone=True, hands=hands
    )
    return {
        "evaluate": Evaluate(here.records, here.catalogs, here.publisher, here.settings, log),
        "deploy": Deploy(here.records, here.catalogs, here.publisher, execute, here.settings),
        "sweep": Renewals(here, sweep, log),
    }


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
