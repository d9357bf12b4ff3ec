"""What the first event after a start would wait for, done while nobody waits.

Languages load what they need when they are first used; a cluster's client finds its address, shakes
hands and asks which kinds there are. So each is used once, in the background: whoever is quicker
does it as before. A large fleet is not called as a whole, since sweeps meet each cluster soon.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from itertools import islice

from bellhop import luabox
from bellhop.errors import BellhopError
from bellhop.gotemplate import Limits
from bellhop.installation.installation import Installation
from bellhop.logs import Log
from bellhop.rendering.manifests import render_manifests
from bellhop.rendering.templates import TemplateText

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
            # What is away or refuses us is met again by whoever needs it, and told there.
            with suppress(IndexError, BellhopError):
                key, credentials = self._waiting.popleft()
                self._here.access.open(key, version=credentials).served(*_CORE)
