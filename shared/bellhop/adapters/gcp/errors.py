"""Errors of Google and its libraries as Bellhop's: one table by class.

Permanent is only what the request itself is refused for. Everything else is the installation's: a
right that a service account lacks, a database that is not there yet, a quota that is used up. A
message that meets such a thing must not be taken for finished, so all of it may pass: it passes
once somebody has put it right.

No word of Google's is repeated, as it may quote what was sent; the code is.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

import grpc
from google.api_core import exceptions as sdk
from google.auth import exceptions as auth

from bellhop.errors import (
    BellhopError,
    BusyError,
    CloudDeniedError,
    InvalidError,
    StaleError,
    TemporaryError,
    ThrottledError,
    TooLargeError,
    UnreachableError,
)

Row = tuple[type[BellhopError], str]

_SLOWER: Row = (ThrottledError, "Google asks to slow down, or a quota is used up")
_FAILED: Row = (UnreachableError, "Google failed")
_SILENT: Row = (UnreachableError, "Google does not answer")
_BUSY: Row = (BusyError, "somebody else is writing it just now")
_STALE: Row = (StaleError, "something else is there by now; read it again")
_INVALID: Row = (InvalidError, "Google does not take what was sent")
_TOO_LARGE: Row = (TooLargeError, "it is larger than Google takes")
_DENIED: Row = (
    CloudDeniedError,
    "Google denies it; give the service account or the user this right",
)
_NOBODY: Row = (CloudDeniedError, "Google does not accept the credentials; log in again")
_ABSENT: Row = (TemporaryError, "a part of the installation is not there; apply Terraform again")
_UNFIT: Row = (TemporaryError, "the installation is not made for it; apply Terraform again")
_SETTING: Row = (TemporaryError, "Google's library is not set up for it; look at the project")

CLASSES: Mapping[type[Exception], Row] = {
    sdk.TooManyRequests: _SLOWER,
    sdk.Aborted: _BUSY,
    sdk.Conflict: _STALE,
    sdk.PreconditionFailed: _STALE,
    sdk.FailedPrecondition: _UNFIT,
    sdk.BadRequest: _INVALID,
    sdk.NotFound: _ABSENT,
    sdk.Forbidden: _DENIED,
    sdk.Unauthorized: _NOBODY,
    sdk.MethodNotImplemented: _UNFIT,
    sdk.Cancelled: _SILENT,
    sdk.GatewayTimeout: _SILENT,
    sdk.ServiceUnavailable: _SILENT,
    sdk.RetryError: _SILENT,
    sdk.ResumableTransferError: _FAILED,
    sdk.ServerError: _FAILED,
    sdk.GoogleAPIError: _SETTING,
    auth.TransportError: _SILENT,
    auth.TimeoutError: _SILENT,
    auth.ResponseError: _SILENT,
    auth.GoogleAuthError: _NOBODY,
    grpc.RpcError: _SILENT,
    OSError: _SILENT,
}
"""By class, the nearest of an exception's ancestors."""

STATUSES: Mapping[int, Row] = {413: _TOO_LARGE, 408: _SILENT}
"""By the status of an answer that has no class of its own."""

FAILURES = (sdk.GoogleAPIError, auth.GoogleAuthError, grpc.RpcError, OSError)
"""Exceptions of Google's libraries, and of the libraries below them."""

_SERVERS_FAULT = 500
_DELAY = timedelta(seconds=2)
_LONGEST_DELAY = timedelta(minutes=5)


def translate(error: Exception, doing: str) -> BellhopError:
    """Return Bellhop's error for one of Google's or its libraries', met while `doing` something."""
    kind, why = _row(error)
    reason = code_of(error)
    if kind is ThrottledError:
        return ThrottledError(f"cannot {doing}: {why}", delay=_delay(error), reason=reason)
    shown = "" if reason == type(error).__name__ else f" ({reason})"
    return kind(f"cannot {doing}: {why}{shown}", reason=reason)


def code_of(error: Exception) -> str:
    """Return gRPC's name of an answer's status, HTTP's number, or else the class' name."""
    status = getattr(error, "grpc_status_code", None)
    if status is not None:
        return str(status.name)
    number = getattr(error, "code", None)
    return str(int(number)) if isinstance(number, int) else type(error).__name__


def _row(error: Exception) -> Row:
    if isinstance(error, auth.GoogleAuthError) and error.retryable:
        return _SILENT  # The machine's own source of tokens did not answer.
    if type(error) is sdk.GoogleAPICallError:
        status = int(error.code or 0)
        return STATUSES.get(status, _FAILED if status >= _SERVERS_FAULT else _SETTING)
    return next(CLASSES[each] for each in type(error).__mro__ if each in CLASSES)


def _delay(error: Exception) -> timedelta:
    """Return how long Google asks to wait, where it says so, within reason."""
    for detail in getattr(error, "details", ()):
        found = getattr(detail, "retry_delay", None)
        if found is not None:
            return min(timedelta(seconds=int(found.seconds) + 1), _LONGEST_DELAY)
    return _DELAY
