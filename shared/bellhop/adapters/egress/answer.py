"""Answers of the guarded client: bounded in bytes and time, in any encoding.

Every byte counts, of head, chunks and body: a budget bounds what comes over the wire, another one
what it unpacks to, and a deadline ends the exchange as a whole.
"""

from __future__ import annotations

import io
import re
import socket
import ssl
import time
import zlib
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from http.client import HTTPResponse
from socket import gaierror
from typing import Any, NamedTuple

import urllib3
import urllib3.exceptions as http

from bellhop.errors import BellhopError, TooLargeError, UnreachableError

_REFUSAL = 1 << 20
_HEAD = 128 << 10
_PIECE = 64 << 10
_GZIP = 31


class LateError(UnreachableError):
    """An answer took longer than one may as a whole."""


class LimitError(Exception):
    """The other side went beyond a limit; `error` is ours for it, `words` what happened."""

    def __init__(self, error: type[BellhopError], words: str) -> None:
        super().__init__(words)
        self.error = error
        self.words = words


class Answer(NamedTuple):
    """A whole answer; `url` is where a download found it, after redirects."""

    status: int
    data: bytes
    headers: Mapping[str, str]
    reason: str = ""
    url: str = ""

    @property
    def succeeded(self) -> bool:
        return HTTPStatus.OK <= self.status < HTTPStatus.MULTIPLE_CHOICES


class Deadline:
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
        """Return the error of an exchange that took too long."""
        return LimitError(LateError, f"it took longer than {self._seconds:g} s")


class BoundedResponse(HTTPResponse):
    """An answer whose every byte, of head, chunks and body, is read within budget and time."""

    def __init__(
        self,
        sock: socket.socket,
        *args: Any,
        deadline: Deadline | None = None,
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
        self._metered.budget = _HEAD
        super().begin()
        self._metered.budget = self._wire


class _Metered(io.RawIOBase):
    """A socket's bytes until a budget is spent or time is up."""

    def __init__(self, raw: Any, sock: socket.socket, deadline: Deadline) -> None:
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
        self._raw.close()
        super().close()


def read_answer(response: urllib3.BaseHTTPResponse, largest: int) -> Answer:
    """Read all of an answer, unpacked; of a refusal that is too long only its status.

    Raises:
        LimitError: a success has more than `largest` bytes, or is packed as nobody asked.
    """
    success = HTTPStatus.OK <= response.status < HTTPStatus.MULTIPLE_CHOICES
    limit = largest if success else _REFUSAL
    pieces, size = [], 0
    try:
        for piece in _unpack(response):
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


def _unpack(response: urllib3.BaseHTTPResponse) -> Iterator[bytes]:
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


# Most specific first.
HAPPENED: dict[type[Exception], str] = {
    http.LocationValueError: "its address is not one that can be called",
    http.ProxySchemeUnsupported: "its address is not one that can be called",
    http.SSLError: "TLS failed",
    http.NameResolutionError: "its host name is not known",
    http.NewConnectionError: "the connection is refused or has no route",
    http.ConnectTimeoutError: "it takes no connection in time",
    http.TimeoutError: "it does not answer in time",
    http.TimeoutStateError: "the timeout could not be kept",
    http.MaxRetryError: "it does not answer",
    http.HostChangedError: "it sends elsewhere",
    http.PoolError: "no connection is free",
    http.ProxyError: "a proxy in between fails",
    http.ProtocolError: "the connection broke off",
    http.IncompleteRead: "the answer broke off",
    http.InvalidChunkLength: "the answer broke off",
    http.DecodeError: "the answer cannot be unpacked",
    http.ResponseError: "the answer cannot be read",
    http.BodyNotHttplibCompatible: "the answer cannot be read",
    http.InvalidHeader: "the answer has a damaged header",
    http.HeaderParsingError: "the answer has a damaged header",
    http.UnrewindableBodyError: "the request could not be sent again",
    gaierror: "its host name is not known",
    ConnectionRefusedError: "the connection is refused or has no route",
    TimeoutError: "it does not answer in time",
    OSError: "the connection broke off",
}

_PLAIN = re.compile("WRONG_VERSION_NUMBER|RECORD_LAYER_FAILURE|HTTP_REQUEST|record layer failure")

NO_TLS = "TLS failed: it seems to serve plain HTTP"


def happened(error: Exception) -> str:
    """Say what became of a request that nobody answered."""
    if isinstance(error, http.SSLError | ssl.SSLError):
        return _in_tls(str(error))
    found = (words for kind, words in HAPPENED.items() if isinstance(error, kind))
    return next(found, "the request cannot be made")


def cause(error: Exception) -> Exception:
    """Return the innermost exception that a library wraps into its own ones."""
    while True:
        wrapped = (getattr(error, "reason", None), *error.args[:1])
        inner = next((each for each in wrapped if isinstance(each, Exception)), None)
        if inner is None:
            return error
        error = inner


def _in_tls(said: str) -> str:
    if "CERTIFICATE_VERIFY_FAILED" in said:
        return "TLS failed: its certificate is not trusted, or is for another host"
    return NO_TLS if _PLAIN.search(said) else HAPPENED[http.SSLError]
