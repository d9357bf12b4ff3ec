"""Looking a host's name up, for no longer than its caller can wait.

The C library takes no deadline and cannot be called off: whoever runs a name's DNS server may keep
it waiting for as long as it likes. So each look-up has a thread of its own, which its callers leave
behind when their time is up. A name under way is not begun again, whoever asks; and there are never
more than so many threads.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from concurrent.futures import Future

AT_ONCE = 64
"""Names under way in one process. Those of them that hang do so until the C library gives up."""

Resolve = Callable[[str], list[str]]


class CrowdedError(Exception):
    """Too many look-ups hang to begin another."""


class Lookups:
    """The look-ups under way, by name; shared between threads."""

    def __init__(self, resolve: Resolve | None = None, *, at_once: int = AT_ONCE) -> None:
        self._resolve = resolve or _resolve
        self._at_once = at_once
        self._lock = threading.Lock()
        self._under_way: dict[str, Future[list[str]]] = {}

    def addresses(self, host: str, seconds: float) -> list[str]:
        """Return a name's addresses, none of them twice.

        Raises:
            TimeoutError: it takes longer than `seconds`.
            CrowdedError: too many others do.
            OSError, UnicodeError: the name is not known, or is none.
        """
        return list(dict.fromkeys(self._begun(host).result(seconds)))

    def _begun(self, host: str) -> Future[list[str]]:
        with self._lock:
            found = self._under_way.get(host)
            if found is None:
                if len(self._under_way) >= self._at_once:
                    raise CrowdedError
                found = Future()
                threading.Thread(
                    target=self._look_up, args=(host, found), name="look-up", daemon=True
                ).start()
                # Its thread takes it out again, and waits for the lock until it is in.
                self._under_way[host] = found
            return found

    def _look_up(self, host: str, found: Future[list[str]]) -> None:
        try:
            addresses = self._resolve(host)
        except Exception as error:  # noqa: BLE001 - it is raised where it is waited for
            self._end(host)
            found.set_exception(error)
        else:
            self._end(host)
            found.set_result(addresses)

    def _end(self, host: str) -> None:
        with self._lock:
            del self._under_way[host]


def _resolve(host: str) -> list[str]:
    return [str(each[4][0]) for each in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)]


LOOKUPS = Lookups()
"""Those of this process."""
