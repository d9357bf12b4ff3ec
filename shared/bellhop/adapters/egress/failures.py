"""Failures of connections in words: readers of a message know no class of a library."""

from __future__ import annotations

import re
import ssl
from socket import gaierror

import urllib3.exceptions as http

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
