"""The times at which objects appear, by a watch.

Polling for an object would load the API server, and one of few cores, during the measurement.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

import urllib3

from bellhop.core.gvk import GVK
from infra.demo.user import User

_PATIENCE_SECONDS = 120.0


class Arrivals:
    """The objects of a kind in a namespace as they come and change, and when each was seen."""

    def __init__(self, user: User, gvk: GVK, place: str) -> None:
        self._seen: dict[str, list[tuple[float, dict[str, Any]]]] = defaultdict(list)
        self._more = threading.Condition()
        look = threading.Thread(target=self._look, args=(user, gvk, place), daemon=True)
        look.start()

    def wait(
        self, name: str, holds: Callable[[dict[str, Any]], bool] | None = None, *, after: int = 0
    ) -> float:
        """Wait until an object is there, and something `holds` of it; return when it first was.

        So many of its versions, `after` which it is looked for, do not count.

        Raises:
            TimeoutError: it was not.
        """
        with self._more:
            if not self._more.wait_for(lambda: self._at(name, holds, after), _PATIENCE_SECONDS):
                raise TimeoutError(name)
            return self._at(name, holds, after)

    def of(self, names: Iterable[str]) -> list[float]:
        """Wait until all objects are there; return when each came."""
        return [self.wait(name) for name in names]

    def versions(self, name: str) -> list[dict[str, Any]]:
        """Return each version of an object that was seen, in their order."""
        with self._more:
            return [manifest for _, manifest in self._seen[name]]

    def _at(self, name: str, holds: Callable[[dict[str, Any]], bool] | None, after: int) -> float:
        seen = self._seen[name][after:]
        found = (at for at, manifest in seen if holds is None or holds(manifest))
        return next(found, 0.0)

    def _look(self, user: User, gvk: GVK, place: str) -> None:
        # It breaks off with the connections.
        with suppress(urllib3.exceptions.HTTPError):
            for manifest in user.watch(gvk, place):
                at = time.perf_counter()
                with self._more:
                    self._seen[manifest["metadata"]["name"]].append((at, manifest))
                    self._more.notify_all()
