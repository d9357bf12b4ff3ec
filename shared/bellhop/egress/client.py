"""The guarded HTTP client: bounded in bytes, in time and in where it connects.

Nobody vouches for the server behind a stored kubeconfig, or behind a webhook in a Secret. Its
answer may be a few kilobytes that unpack to gigabytes, a byte every few seconds, or headers without
end; its name may lead to another address tomorrow, or never be found. So a connection goes to an
address that was checked, and an answer ends: after so many bytes on the wire, so many unpacked, and
so many seconds as a whole, from looking its name up to its last byte. No redirect is followed.
"""

from __future__ import annotations

import io
import socket
import time
import zlib
from collections.abc import Iterator, Mapping
from functools import partial
from http import HTTPStatus
from http.client import HTTPResponse
from typing import Any, NamedTuple
from urllib.parse import urlencode, urlsplit

import urllib3
import urllib3.exceptions as http
from urllib3 import connection, connectionpool
from urllib3.util.connection import create_connection

from bellhop.egress.addresses import ForbiddenAddressError, allowed_addresses, is_address
from bellhop.egress.idle import IDLE, Idle
from bellhop.egress.lookups import LOOKUPS, CrowdedError, Lookups
from bellhop.errors import BellhopError, InvalidError, TooLargeError, UnreachableError
from bellhop.model.reach import Reach

WHOLE_SECONDS = 30.0
"""How long one answer may take as a whole, however it comes."""

LOOKUP_SECONDS = 10.0
"""How long a name may take of it: resolvers ask a second server after five."""

LARGEST = 8 << 20
"""Bytes of an unpacked answer; etcd keeps objects of 1.5 MiB, and API servers take 3 MiB."""

_REFUSAL = 1 << 20
_HEAD = 128 << 10
_PIECE = 64 << 10
_SEND = 16 << 10
_GZIP = 31

HttpError = http.HTTPError
"""What an exchange that failed raises."""


class LateError(UnreachableError):
    """An answer took longer than one may as a whole."""


class LimitError(Exception):
    """The other side went beyond a limit; `error` is ours for it, `words` what happened."""

    def __init__(self, error: type[BellhopError], words: str) -> None:
        super().__init__(words)
        self.error = error
        self.words = words


class Answer(NamedTuple):
    """A whole answer."""

    status: int
    data: bytes
    headers: Mapping[str, str]
    reason: str = ""

    @property
    def succeeded(self) -> bool:
        """Say if the status is one of success."""
        return HTTPStatus.OK <= self.status < HTTPStatus.MULTIPLE_CHOICES


class HttpClient:
    """The connections to one server, shared between threads.

    `reach` says where they may go; each exchange takes at most `whole` seconds, WHOLE_SECONDS if
    none are given, and each answer has at most `largest` bytes, or LARGEST.
    """

    def __init__(
        self,
        server: str,
        *,
        reach: Reach,
        threads: int,
        lookups: Lookups = LOOKUPS,
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
        how: dict[str, Any] = {"reach": reach, "lookups": lookups, "whole": seconds}
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
        return _whole(response, self._largest or LARGEST)

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
        reach: Reach,
        lookups: Lookups,
        whole: float,
        largest: int | None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self._reach = reach
        self._largest = largest
        self._lookups = lookups
        self._whole = whole
        # Of the request under way; none between two.
        self._deadline: _Deadline | None = None

    def connect(self) -> None:
        """Connect and shake hands, which is part of the exchange's time."""
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
            _Response, deadline=self._begin(), wire=2 * (self._largest or LARGEST)
        )
        self.response_class = answer
        self._deadline = None
        return super().getresponse()

    def _begin(self) -> _Deadline:
        self._deadline = self._deadline or _Deadline(self._whole)
        return self._deadline

    def _new_conn(self) -> socket.socket:
        deadline = self._begin()
        failure: Exception = http.NewConnectionError(self, "it has no address")
        for address in self._addresses(deadline):
            try:
                return create_connection(
                    (address, self.port),
                    min(float(self.timeout or self._whole), deadline.left()),
                    socket_options=self.socket_options,
                )
            except TimeoutError:
                failure = http.ConnectTimeoutError(self, "it takes no connection in time")
            except OSError as error:
                failure = http.NewConnectionError(self, str(error))
        raise failure

    def _addresses(self, deadline: _Deadline) -> list[str]:
        """Look the host up and check what is found: what is called is what was checked."""
        host, seconds = self._dns_host, min(LOOKUP_SECONDS, deadline.left())
        try:
            return allowed_addresses(host, self._reach, self._lookups, seconds)
        except ForbiddenAddressError as error:
            # A name may lead elsewhere tomorrow.
            kind = InvalidError if is_address(host) else UnreachableError
            raise LimitError(kind, f"{error}; nothing is called there") from error
        except TimeoutError:
            words = f"looking its host name up took longer than {seconds:.3g} s"
        except CrowdedError:
            words = "its host name was not looked up, since too many others take long"
        except OSError as error:
            raise http.NameResolutionError(self.host, self, error) from error  # type: ignore[arg-type]
        except UnicodeError as error:
            raise http.LocationValueError(str(error)) from error
        raise LimitError(UnreachableError, words)


class _Plain(_Bounded):
    """Without TLS."""


class _Secure(_Bounded, connection.HTTPSConnection):
    """With TLS."""


class _Deadline:
    """The end of one exchange."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._end = time.monotonic() + seconds

    def left(self) -> float:
        """Return the seconds that are left; raise if none are."""
        left = self._end - time.monotonic()
        if left <= 0:
            raise self.passed()
        return left

    def passed(self) -> LimitError:
        return LimitError(LateError, f"it took longer than {self._seconds:g} s")


# How much, and how long -------------------------------------------------------------------------


class _Response(HTTPResponse):
    """An answer whose every byte, of head, chunks and body, is read within budget and time."""

    def __init__(
        self,
        sock: socket.socket,
        *args: Any,
        deadline: _Deadline | None = None,
        wire: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(sock, *args, **kwargs)
        assert deadline
        # Chunks of a chunked answer have heads of their own; real ones are a small part of it.
        self._wire = wire
        self._metered = _Metered(self.fp.detach(), sock, deadline)
        self.fp = io.BufferedReader(self._metered)

    def begin(self) -> None:
        """Read the head."""
        self._metered.budget = _HEAD
        super().begin()
        self._metered.budget = self._wire


class _Metered(io.RawIOBase):
    """A socket's bytes until a budget is spent or time is up."""

    def __init__(self, raw: Any, sock: socket.socket, deadline: _Deadline) -> None:
        super().__init__()
        self._raw = raw
        self._sock = sock
        self._pause = sock.gettimeout()
        self._deadline = deadline
        self.budget = 0

    def readable(self) -> bool:
        """Say that it is read."""
        return True

    def readinto(self, buffer: Any) -> int | None:
        """Read once, waiting for no longer than there is time."""
        left = self._deadline.left()
        pause = left if self._pause is None else min(self._pause, left)
        self._sock.settimeout(pause)
        try:
            count: int = self._raw.readinto(buffer)
        except TimeoutError:
            if pause < left:
                raise
            raise self._deadline.passed() from None
        self.budget -= count
        if self.budget < 0:
            raise LimitError(TooLargeError, "the answer is larger than what is taken")
        return count

    def close(self) -> None:
        """Let go of the socket."""
        self._raw.close()
        super().close()


def _whole(response: urllib3.BaseHTTPResponse, largest: int) -> Answer:
    success = HTTPStatus.OK <= response.status < HTTPStatus.MULTIPLE_CHOICES
    limit = largest if success else _REFUSAL
    pieces, size = [], 0
    try:
        for piece in _unpacked(response):
            pieces.append(piece)
            size += len(piece)
            if size > limit:
                raise LimitError(TooLargeError, f"the answer has more than {limit} bytes")  # noqa: TRY301
    except LimitError:
        response.close()
        if success:
            raise
        # Its code says enough: no refusal of an API server is so long.
        pieces = []
    return Answer(response.status, b"".join(pieces), response.headers, response.reason or "")


def _unpacked(response: urllib3.BaseHTTPResponse) -> Iterator[bytes]:
    """Yield the content in pieces no larger than what is asked for, however tight it is packed."""
    encoding = response.headers.get("Content-Encoding", "").strip().lower()
    pieces = response.stream(_PIECE, decode_content=False)
    if encoding in {"", "identity"}:
        yield from pieces
        return
    if encoding != "gzip":
        raise LimitError(UnreachableError, "the answer is packed in a way that was not asked for")
    unpack = zlib.decompressobj(_GZIP)
    try:
        for packed in pieces:
            rest = packed
            while rest and not unpack.eof:
                yield unpack.decompress(rest, _PIECE)
                rest = unpack.unconsumed_tail
        yield unpack.flush()
    except zlib.error as error:
        raise http.DecodeError(str(error)) from error
    if not unpack.eof:
        raise http.ProtocolError("the packed answer ends early")
