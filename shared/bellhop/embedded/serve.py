"""`bellhop serve`: every stage and the HTTP function in one process, until it is told to stop."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import functions_framework

from bellhop.adapters.local.certificates import Authority, issue, make_authority
from bellhop.adapters.local.server import Server
from bellhop.embedded import ingest_function
from bellhop.embedded.state import Embedded, only_one, open_state
from bellhop.embedded.workers import Workers
from bellhop.logs import Log
from bellhop.settings import Settings, read
from bellhop.stages.deploy import Deploy
from bellhop.stages.evaluate import Evaluate
from bellhop.stages.execute import Execute
from bellhop.stages.inbox import Stage
from bellhop.stages.ingest import Ingest
from bellhop.stages.sweep import Sweep

_AUTHORITY = timedelta(days=3650)
_CERTIFICATE = timedelta(days=365)
"""A certificate is made at each start: a year is longer than any process runs."""


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
        authority, certificate, key = _identity(state / "tls", host, advertise, clock.now())
        server = Server(
            _app(embedded, log), host=host, port=port, certificate_pem=certificate, key_pem=key
        )
        server.start()
        try:
            url = advertise.rstrip("/") or f"https://{_bracketed(host)}:{server.port}"
            _write_address(state, url, authority)
            workers = Workers(embedded, _stages(embedded, log), log)
            workers.start()
            try:
                yield url
            finally:
                server.stop()
                workers.stop()
        finally:
            server.stop()
    finally:
        embedded.close()


def _made(state: Path) -> Path:
    state.mkdir(parents=True, exist_ok=True, mode=0o700)
    return state


def _stop_on_signals() -> threading.Event:
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    return stop


def _stages(embedded: Embedded, log: Log) -> dict[str, Stage]:
    here = embedded.installation
    execute = Execute(here.records, here.access, here.publisher, here.settings, alone=True)
    return {
        "evaluate": Evaluate(here.records, here.catalogs, here.publisher, here.settings),
        "deploy": Deploy(here.records, here.catalogs, here.publisher, execute, here.settings),
        "sweep": Sweep(
            here.records,
            here.catalogs,
            here.access,
            here.publisher,
            here.settings,
            log,
        ),
    }


def _app(embedded: Embedded, log: Log) -> Any:
    here = embedded.installation
    app: Any = functions_framework.create_app(  # type: ignore[no-untyped-call]
        "ingest", ingest_function.__file__
    )
    app.extensions["bellhop.ingest"] = Ingest(here.records, here.publisher, here.settings, log)
    return ingest_function.Bounded(app, here.settings.body_limit)


def _identity(folder: Path, host: str, advertise: str, now: datetime) -> tuple[str, bytes, bytes]:
    """Return authority, certificate and key in PEM; the authority outlives restarts."""
    folder.mkdir(mode=0o700, exist_ok=True)
    authority_file = folder / "authority.json"
    if authority_file.exists():
        kept = json.loads(authority_file.read_text())
        authority = Authority(kept["certificate"].encode(), kept["key"].encode())
    else:
        authority = make_authority("Bellhop", now=now, validity=_AUTHORITY)
        kept = {
            "certificate": authority.certificate_pem.decode(),
            "key": authority.key_pem.decode(),
        }
        _write_private(authority_file, json.dumps(kept))
    names = {host, "localhost", "127.0.0.1"} - {"0.0.0.0", "::", ""}  # noqa: S104 - names nobody
    if advertise:
        names.add(urlsplit(advertise).hostname or "localhost")
    certificate, key = issue(authority, sorted(names), now=now, validity=_CERTIFICATE)
    return authority.certificate_pem.decode(), certificate, key


def _write_address(state: Path, url: str, authority: str) -> None:
    _write_private(state / "address.json", json.dumps({"url": url, "ca": authority}))


def _write_private(path: Path, text: str) -> None:
    fresh = path.with_suffix(".new")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
    fresh.replace(path)


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
