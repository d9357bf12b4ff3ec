"""The start and the end of `serve`.

At the start, threads in the background load what the first event needs, and resync some clusters.
The first event would wait for languages to load and for a cluster's client to connect and ask for
its kinds. A large fleet is not called as a whole, since resyncs reach each cluster soon.

Events of clusters without a forwarder were lost while `serve` did not run: an API server that calls
ingest, or sends its audit log there, drops undelivered events. A forwarder keeps events on disk and
asks for a resync itself.

It ends at a signal, or when its state folder was deleted or replaced. An open file outlives its
name: `serve` would go on, and lose all that it writes when it ends, while
another `serve` starts beside it under the same path.
"""

from __future__ import annotations

import signal
import threading
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import timedelta
from itertools import islice
from pathlib import Path

from bellhop import luabox
from bellhop.errors import BellhopError, MissingError
from bellhop.gotemplate import Limits
from bellhop.installation import Installation
from bellhop.logs import Log
from bellhop.registration.forwarder_manifests import is_audited, is_direct
from bellhop.rendering.manifests import render_manifests
from bellhop.rendering.templates import TemplateText
from bellhop.state.delays import sweep_timer
from bellhop.state.messages import Resync
from bellhop.state.records import Records

MOST = 64
"""Clusters that are called."""

_AT_ONCE = 4
# Which versions of it are served is asked each time, and everybody may.
_CORE = ("", "ConfigMap")
_TEMPLATE = "{apiVersion: v1, kind: ConfigMap, metadata: {name: '{{ .name }}'}}"
_SCRIPT = "function evaluate() return {matching = true} end"


class WarmUp:
    """Threads that end by themselves; none of them holds up the end of the process."""

    def __init__(self, here: Installation, log: Log) -> None:
        self._here = here
        self._log = log
        self._waiting: deque[tuple[str, str]] = deque()
        self._stopping = False

    def start(self) -> None:
        """Begin, with the languages."""
        self._in_thread(self._languages)

    def stop(self) -> None:
        """Begin nothing more."""
        self._stopping = True

    def _in_thread(self, work: Callable[[], None]) -> None:
        def guarded() -> None:
            try:
                work()
            except Exception as error:  # noqa: BLE001 - it only costs what it would have saved
                # The state may be closed under it.
                if not self._stopping:
                    self._log.error("Failed to warm up", error)

        threading.Thread(target=guarded, name="warming", daemon=True).start()

    def _languages(self) -> None:
        render_manifests(TemplateText(_TEMPLATE, "warming"), {"name": "warm"}, Limits())
        luabox.evaluate(luabox.Script(_SCRIPT), {})
        clusters = self._here.catalogs.current().clusters.values()
        self._waiting.extend((each.key, each.credentials) for each in islice(clusters, MOST))
        for _ in range(_AT_ONCE):
            self._in_thread(self._clusters)

    def _clusters(self) -> None:
        while self._waiting and not self._stopping:
            # A later event meets the same error, and reports it.
            with suppress(IndexError, BellhopError):
                key, credentials = self._waiting.popleft()
                self._here.access.open(key, version=credentials).served(*_CORE)


STEP = timedelta(milliseconds=50)
LONGEST = timedelta(minutes=1)
"""Between two of those resyncs, and until the last of a large fleet."""


def resync_unbuffered(records: Records) -> int:
    """Pull the resync timers of clusters without a forwarder's buffer to now; return how many.

    Ingest must listen already, so that nothing falls between the resync and what it takes.
    """
    clusters = [each.key for each in records.clusters.all() if _is_unbuffered(each.forwarder)]
    now, step = records.clock.now(), min(STEP, LONGEST / max(1, len(clusters)))
    for number, cluster in enumerate(clusters):
        message = Resync(cluster).message().body
        records.timers.set_by(sweep_timer(cluster), now + number * step, message, now=now)
    return len(clusters)


def _is_unbuffered(forwarder: Mapping[str, str]) -> bool:
    return is_direct(forwarder) or is_audited(forwarder)


_CHECK_SECONDS = 0.5


def stop_on_signals() -> threading.Event:
    """Return what SIGINT and SIGTERM set."""
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    return stop


def wait_for(stop: threading.Event, check: Callable[[], None] = lambda: None) -> None:
    """Wait until it is set, or until `check`, which is called twice a second, raises.

    Not in one wait without an end: CPython handles a signal that arrives just before the
    wait of a lock only after that wait, which would be never.
    """
    while not stop.wait(_CHECK_SECONDS):
        check()


_NAMES = ("lock", "store.db", "queue.db")
"""Files that are open for as long as `serve` runs, so that no other file gets their inodes."""

_Inode = tuple[int, int]
"""Device and number."""


class StateFiles:
    """The files of a state folder, as they were when `serve` opened them."""

    def __init__(self, state: Path) -> None:
        self._state = state
        self._opened = {name: _inode(state / name) for name in _NAMES}

    def refuse_replaced(self) -> None:
        """Compare the files at their paths with the open ones.

        Raises:
            MissingError: one is not there any more, or another file is in its place.
        """
        for name, opened in self._opened.items():
            found = _inode(self._state / name)
            if found != opened or found is None:
                what = "is not there any more" if found is None else "is another file by now"
                raise MissingError(
                    f"cannot go on serving from '{self._state}': its '{name}' {what}, and what is"
                    " written from now on would be lost; put the folder back, or restore a backup,"
                    " and start `bellhop serve` again"
                )


def _inode(path: Path) -> _Inode | None:
    """Return which file is at a path; None if there is none."""
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_dev, found.st_ino
