"""The guarded HTTP client: bounded in bytes, in time and in where it connects.

Nobody vouches for the server behind a stored kubeconfig, or behind a webhook in a Secret. Its
answer may be a few kilobytes that unpack to gigabytes, a byte every few seconds, or headers without
end; its name may lead to another address tomorrow, or never be found. So a connection goes to an
address that was checked, and an answer ends: after so many bytes on the wire, so many unpacked, and
so many seconds as a whole, from looking its name up to its last byte. No redirect is followed.
"""

from __future__ import annotations

import resource
import socket
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Protocol
from urllib.parse import urlencode, urlsplit

import urllib3
import urllib3.exceptions as http
from urllib3 import connection, connectionpool

from bellhop.adapters.egress.answer import Answer, BoundedResponse, Deadline, read_answer
from bellhop.adapters.egress.dialer import Dialer, UnknownNameError

MOST = 2_048
"""Idle connections of a process, where it may open enough files; each takes some 50 KB."""

SECONDS = 60.0
"""Seconds that one may lie idle: load balancers forget it after that."""

_SHARE_OF_FILES = 0.25
"""Of the files that the process may open: stores and senders need theirs."""


class Connection(Protocol):
    """A connection that can be closed; it connects again at its next use."""

    def close(self) -> None:
        """Close the socket."""
        ...


class Idle:
    """The idle connections; shared between threads.

    Each client would keep some, and a process keeps thousands of clients. So when there are too
    many in all, the least recently used ones are closed, of any client; and each connection that
    becomes idle closes those that were idle for too long.

    They are closed under the lock: who has taken one up is not disturbed.
    """

    def __init__(
        self,
        most: int | None = None,
        *,
        seconds: float = SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._most = most
        self._seconds = seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._since: OrderedDict[Connection, float] = OrderedDict()

    def lay_down(self, connection: Connection) -> None:
        """Note that a connection is not used any more, and close those that are too many."""
        now = self._clock()
        with self._lock:
            self._most = self._most or _most()
            self._since[connection] = now
            self._since.move_to_end(connection)
            while len(self._since) > self._most or self._oldest() < now - self._seconds:
                self._since.popitem(last=False)[0].close()

    def take_up(self, connection: Connection) -> None:
        """Note that a connection is used from now on: until it is laid down nobody closes it."""
        with self._lock:
            self._since.pop(connection, None)

    def _oldest(self) -> float:
        return next(iter(self._since.values()))


IDLE = Idle()
"""Those of this process."""


def _most() -> int:
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return MOST
    return max(1, min(MOST, int(files * _SHARE_OF_FILES)))


WHOLE_SECONDS = 30.0
"""How long one answer may take as a whole, however it comes."""

LARGEST = 8 << 20
"""Bytes of an unpacked answer; etcd keeps objects of 1.5 MiB, and API servers take 3 MiB."""

_SEND = 16 << 10

HttpError = http.HTTPError
"""The base of errors of a failed exchange."""


class HttpClient:
    """The connections to one server, shared between threads.

    The `dialer` says where they may go; each exchange takes at most `whole` seconds, WHOLE_SECONDS
    if none are given, and each answer has at most `largest` bytes, or LARGEST.
    """

    def __init__(
        self,
        server: str,
        *,
        dialer: Dialer,
        threads: int,
        idle: Idle = IDLE,
        whole: float | None = None,
        largest: int | None = None,
        **tls: Any,
    ) -> None:
        parts = urlsplit(server)
        self._prefix, self._query = parts.path.rstrip("/"), parts.query
        self._server = server
        self._pools = urllib3.PoolManager(num_pools=1, maxsize=threads, retries=False, **tls)
        seconds = WHOLE_SECONDS if whole is None else whole
        how: dict[str, Any] = {"dialer": dialer, "whole": seconds}
        self._largest = largest
        how["largest"] = largest
        makers: dict[str, Any] = {
            "http": partial(_pool, _PlainPool, partial(_Plain, **how), idle),
            "https": partial(_pool, _SecurePool, partial(_Secure, **how), idle),
        }
        self._pools.pool_classes_by_scheme = makers

    def request(
        self,
        method: str,
        path: str = "",
        *,
        headers: Mapping[str, str],
        timeout: urllib3.Timeout | float,
        body: bytes | None = None,
        query: Mapping[str, str] | None = None,
    ) -> Answer:
        """Send a request and read its answer whole; `path` is below the server's address.

        Raises:
            LimitError: the server is where no call may go, or its answer goes on and on.
            urllib3.exceptions.HTTPError: the exchange failed.
        """
        asked = urlencode(query) if query else self._query
        target = (f"{self._prefix}{path}" or "/") + (f"?{asked}" if asked else "")
        response = self._pools.connection_from_url(self._server).urlopen(
            method,
            target,
            body=body,
            headers=headers,
            retries=False,
            redirect=False,
            assert_same_host=False,
            timeout=timeout,
            preload_content=False,
        )
        return read_answer(response, self._largest or LARGEST)

    def close(self) -> None:
        """Close the idle connections; those in use finish first."""
        self._pools.clear()


class _Pool(connectionpool.HTTPConnectionPool):
    """The connections to one server, of which all that lie idle in the process are known."""

    idle: Idle

    def _get_conn(self, timeout: float | None = None) -> Any:
        taken = super()._get_conn(timeout)
        self.idle.take_up(taken)
        return taken

    def _put_conn(self, conn: Any) -> None:
        if conn is not None:
            # Before anybody can take it up again.
            self.idle.lay_down(conn)
        super()._put_conn(conn)


class _PlainPool(_Pool):
    """Without TLS."""


class _SecurePool(_Pool, connectionpool.HTTPSConnectionPool):
    """With TLS."""


def _pool(kind: type[_Pool], connecting: Any, idle: Idle, *args: Any, **kwargs: Any) -> _Pool:
    pool = kind(*args, **kwargs)
    pool.idle = idle
    pool.ConnectionCls = connecting
    return pool


# Where ------------------------------------------------------------------------------------------


class _Bounded(connection.HTTPConnection):
    """A connection to a checked address, with one deadline for each request and its answer."""

    def __init__(
        self,
        *args: Any,
        dialer: Dialer,
        whole: float,
        largest: int | None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self._dialer = dialer
        self._largest = largest
        self._whole = whole
        # Of the request under way; none between two.
        self._deadline: Deadline | None = None

    def connect(self) -> None:
        """Connect, with the TLS handshake, within the exchange's time."""
        try:
            super().connect()
        except TimeoutError:
            self._begin().left()
            raise

    def request(self, *args: Any, **kwargs: Any) -> None:
        """Send a request; its time began with connecting, if that was needed."""
        self._begin()
        super().request(*args, **kwargs)

    def close(self) -> None:
        """Close the connection; another request has its own deadline."""
        self._deadline = None
        super().close()

    def send(self, data: Any) -> None:
        """Send in pieces, none of which begins after the deadline."""
        if not isinstance(data, bytes):
            super().send(data)
            return
        deadline = self._begin()
        for start in range(0, len(data), _SEND):
            deadline.left()
            super().send(data[start : start + _SEND])

    def getresponse(self) -> Any:
        """Read the head of the answer."""
        answer: Any = partial(
            BoundedResponse, deadline=self._begin(), wire=2 * (self._largest or LARGEST)
        )
        self.response_class = answer
        self._deadline = None
        return super().getresponse()

    def _begin(self) -> Deadline:
        self._deadline = self._deadline or Deadline(self._whole)
        return self._deadline

    def _new_conn(self) -> socket.socket:
        deadline = self._begin()
        seconds = min(float(self.timeout or self._whole), deadline.left())
        try:
            return self._dialer.dial(
                self._dns_host,
                self.port,
                deadline,
                seconds=seconds,
                options=self.socket_options or (),
            )
        except UnknownNameError as error:
            raise http.NameResolutionError(self.host, self, error) from error  # type: ignore[arg-type]
        except UnicodeError as error:
            raise http.LocationValueError(str(error)) from error
        except TimeoutError as error:
            words = "it takes no connection in time"
            raise http.ConnectTimeoutError(self, words) from error
        except OSError as error:
            raise http.NewConnectionError(self, str(error)) from error


class _Plain(_Bounded):
    """Without TLS."""


class _Secure(_Bounded, connection.HTTPSConnection):
    """With TLS."""
