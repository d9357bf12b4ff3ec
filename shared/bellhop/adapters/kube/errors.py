"""What an API server and urllib3 report, as Bellhop's own errors.

The one table from foreign to ours. API servers answer with a `Status`; its words help the person
who wrote the manifest and are kept, cut short, except for Secrets: there they may quote the data.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import field
from datetime import timedelta
from http import HTTPStatus
from typing import Any

import urllib3.exceptions as http

from bellhop.errors import (
    BellhopError,
    ConflictError,
    DeniedError,
    InvalidError,
    MissingError,
    StaleError,
    ThrottledError,
    TooLargeError,
    UnauthorizedError,
    UnreachableError,
)
from bellhop.frozen import frozen

_WORDS_AT_MOST = 512
_LONGEST_DELAY = 3600
# Of Secrets only this sentence is repeated: it names a right and nothing of the object.
_MISSING_RIGHT = re.compile(
    r"User \"[^\"]*\" cannot [a-z]+ resource \"[^\"]*\" in API group \"[^\"]*\""
    r"(?: in the namespace \"[^\"]*\"| at the cluster scope)?"
)

# Its code and reason are those of any missing right: only these words say whose it is.
_NO_IMPERSONATION = re.compile(r" cannot impersonate resource \"serviceaccounts\"")

# The code and reason of any missing right, too: roles, and bindings of roles.
_ESCALATION = "attempting to grant RBAC permissions not currently held"

# To who may patch an object and not create it an API server says no more than this.
_UNREASONED = re.compile(r" is forbidden:\s*$")

_REASONS = frozenset(
    {"AlreadyExists", "BadRequest", "Conflict", "Expired", "Forbidden", "Gone", "InternalError"}
    | {"Invalid", "MethodNotAllowed", "NotAcceptable", "NotFound", "RequestEntityTooLarge"}
    | {"ServerTimeout", "ServiceUnavailable", "StoreReadError", "Timeout", "TooManyRequests"}
    | {"Unauthorized", "UnsupportedMediaType"}
)
_FIELD = re.compile(
    r"\.?(metadata(?:\.(?:annotations|finalizers|generateName|labels|name|namespace|ownerReferences"
    r"))?|apiVersion|binaryData|data|immutable|kind|roleRef|rules|spec|stringData|subjects|type"
    r"|webhooks)(?![\w-])"
)


class LateError(UnreachableError):
    """An answer took longer than one may as a whole."""


class UntrustedError(UnreachableError):
    """A server's certificate is not one that the stored kubeconfig trusts."""


# Most specific first. Values: temperament and what happened, in the words of the message.
TRANSPORT: dict[type[Exception], tuple[type[BellhopError], str]] = {
    http.LocationValueError: (InvalidError, "its address is not one that can be called"),
    http.ProxySchemeUnsupported: (InvalidError, "its address is not one that can be called"),
    http.SSLError: (UnreachableError, "TLS failed"),
    http.NameResolutionError: (UnreachableError, "its host name is not known"),
    http.NewConnectionError: (UnreachableError, "the connection is refused or has no route"),
    http.ConnectTimeoutError: (UnreachableError, "it takes no connection in time"),
    http.TimeoutError: (UnreachableError, "it does not answer in time"),
    http.TimeoutStateError: (UnreachableError, "the timeout could not be kept"),
    http.MaxRetryError: (UnreachableError, "it does not answer"),
    http.HostChangedError: (UnreachableError, "it sends elsewhere"),
    http.PoolError: (UnreachableError, "no connection is free"),
    http.ProxyError: (UnreachableError, "a proxy stands between and fails"),
    http.ProtocolError: (UnreachableError, "the connection broke off"),
    http.IncompleteRead: (UnreachableError, "the answer broke off"),
    http.InvalidChunkLength: (UnreachableError, "the answer broke off"),
    http.DecodeError: (UnreachableError, "the answer cannot be unpacked"),
    http.ResponseError: (UnreachableError, "the answer cannot be read"),
    http.BodyNotHttplibCompatible: (UnreachableError, "the answer cannot be read"),
    http.InvalidHeader: (UnreachableError, "the answer has a damaged header"),
    http.HeaderParsingError: (UnreachableError, "the answer has a damaged header"),
    http.UnrewindableBodyError: (UnreachableError, "the request could not be sent again"),
    OSError: (UnreachableError, "the connection broke off"),
}


@frozen
class Call:
    """What is being done, for messages: `cannot apply Service 'default/web' on cluster 'a/b'`."""

    cluster: str
    doing: str
    namespace: str = ""
    private: bool = False
    """Whether the API server's words may quote what nobody should see."""

    def __str__(self) -> str:
        return f"cannot {self.doing} on cluster '{self.cluster}'"


@frozen
class Refusal:
    """An answer that is no success: the `Status` of an API server, or what stands for one."""

    code: int
    reason: str = ""
    message: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)
    retry_after: timedelta | None = None
    account: str = ""
    """The service account as which it was asked for."""

    @classmethod
    def read(cls, code: int, body: bytes | str | None, headers: Mapping[str, str]) -> Refusal:
        """Read the answer; a body that is no Status (a proxy's page) leaves its code alone."""
        status = _status(body)
        details = status.get("details")
        details = details if isinstance(details, dict) else {}
        return cls(
            code=code,
            reason=str(status.get("reason") or ""),
            message=_printable(str(status.get("message") or "")),
            details=details,
            retry_after=_delay(headers.get("Retry-After") or details.get("retryAfterSeconds")),
        )

    def names(self, plural: str, kind: str, name: str) -> bool:
        """Say if it is a NotFound of this very object, and not of its kind or namespace."""
        return (
            self.code == HTTPStatus.NOT_FOUND
            and self.reason == "NotFound"
            and self.details.get("name") == name
            and str(self.details.get("kind", "")).lower() in {plural.lower(), kind.lower()}
        )

    def causes(self) -> list[Mapping[str, Any]]:
        """Return the single causes that the API server lists."""
        causes = self.details.get("causes")
        return [c for c in causes if isinstance(c, dict)] if isinstance(causes, list) else []


def transport_error(exc: Exception, call: Call) -> BellhopError:
    """Map a failure that no API server answered."""
    error = _unanswered(exc, call)
    error.context["plain"] = str(error)
    return error


def _unanswered(exc: Exception, call: Call) -> BellhopError:
    if isinstance(exc, http.SSLError) and "CERTIFICATE_VERIFY_FAILED" in str(exc):
        # Temporary: while an authority is replaced, the stored one is behind for a moment.
        return UntrustedError(
            f"{call}: its certificate is not signed by the certificate authority of the stored "
            "kubeconfig, or is for another host; if that changed,"
            f" `bellhop register cluster {call.cluster} --kubeconfig FILE` with its present one",
            given=f"{call}: its certificate is not signed by the certificate authority of the "
            "kubeconfig that was given, or is for another host; correct its "
            "certificate-authority-data or its server",
        )
    for foreign, (ours, happened) in TRANSPORT.items():
        if isinstance(exc, foreign):
            return ours(f"{call}: {happened}")
    return UnreachableError(f"{call}: {type(exc).__name__}")


def refusal_error(refusal: Refusal, call: Call) -> BellhopError:
    """Map what an API server answered; the context has it `plain`, without a word of its."""
    error = _mapped(refusal, call, _words(refusal, call))
    error.context["plain"] = str(_mapped(refusal, call, _outline(refusal)))
    return error


def _mapped(refusal: Refusal, call: Call, words: str) -> BellhopError:
    code = refusal.code
    if code == HTTPStatus.UNAUTHORIZED:
        return UnauthorizedError(
            f"{call}: the credentials are not accepted: they expired, or were revoked;"
            f" `bellhop register cluster {call.cluster} --kubeconfig FILE` gives it others",
            given=f"{call}: it does not accept the credentials of the kubeconfig that was given;"
            " try them with kubectl, and give a kubeconfig whose user it knows",
        )
    if code == HTTPStatus.FORBIDDEN:
        return _forbidden(refusal, call, words)
    if code == HTTPStatus.NOT_FOUND:
        return _not_found(refusal, call, words)
    if code == HTTPStatus.CONFLICT:
        return _conflict(refusal, call, words)
    if code == HTTPStatus.GONE:
        return StaleError(f"{call}: what was read is too old by now")
    if code == HTTPStatus.TOO_MANY_REQUESTS:
        return ThrottledError(f"{call}: it asks to slow down", delay=refusal.retry_after)
    if code == HTTPStatus.REQUEST_ENTITY_TOO_LARGE or _exceeds_etcd(refusal):
        return TooLargeError(f"{call}: it is larger than the API server takes")
    if code == HTTPStatus.REQUEST_TIMEOUT or (_fails(code) and not _is_about_the_object(refusal)):
        return UnreachableError(
            f"{call}: it answers {code}{words}", delay=refusal.retry_after, status=code
        )
    if any(cause.get("field") == "metadata.uid" for cause in refusal.causes()):
        return StaleError(f"{call}: another object of its name is there by now")
    return InvalidError(f"{call}: it is refused{words}", status=code)


def _status(body: bytes | str | None) -> dict[str, Any]:
    try:
        status = json.loads(body or b"")
    except (ValueError, RecursionError):
        return {}
    return status if isinstance(status, dict) and status.get("kind") == "Status" else {}


def _printable(words: str) -> str:
    """Leave out what would act on the terminal, or the log, that shows a stranger's words."""
    return "".join(letter if letter.isprintable() else " " for letter in words)


def _delay(seconds: object) -> timedelta | None:
    text = str(seconds or "")
    if not (
        text.isascii() and text.isdigit()
    ):  # A date is allowed too, and no API server sends it.
        return None
    return timedelta(seconds=min(int(text), _LONGEST_DELAY))


def _words(refusal: Refusal, call: Call) -> str:
    """Return `: ` and the API server's own words, or as much of them as may be seen."""
    message = " ".join(refusal.message.split())
    if call.private:
        right = _MISSING_RIGHT.search(message)
        if not right:
            return _outline(refusal)
        message = right[0]
    if len(message) > _WORDS_AT_MOST:
        message = message[:_WORDS_AT_MOST] + " …"
    return f": {message}" if message else ""


def _outline(refusal: Refusal) -> str:
    """Return `: `, why it is refused and at which fields, all in words that are known before.

    A path of a field goes on with keys that the object's author chose, or a template made.
    """
    reason = refusal.reason if refusal.reason in _REASONS else ""
    fields = {_FIELD.match(str(cause.get("field"))) for cause in refusal.causes()}
    known = sorted({found[1] for found in fields if found})
    told = ", ".join(filter(None, [reason, *known]))
    return f": {told}" if told else ""


def _forbidden(refusal: Refusal, call: Call, words: str) -> BellhopError:
    if any(c.get("reason") == "NamespaceTerminating" for c in refusal.causes()):
        return StaleError(
            f"{call}: namespace '{call.namespace}' is being deleted; try again once it is gone"
        )
    who = f"service account '{refusal.account}'"
    if refusal.account and _NO_IMPERSONATION.search(refusal.message):
        return DeniedError(
            f"{call}: Bellhop's credentials there may not act for {who}, whose rights count; grant"
            " them the verb impersonate on serviceaccounts, or register the cluster with others"
        )
    whom = who if refusal.account else "Bellhop's credentials there"
    if _UNREASONED.search(refusal.message):
        return DeniedError(
            f"{call}: it is not there, and {whom} may not create it; grant the verb create, too"
        )
    if _ESCALATION in refusal.message:
        return DeniedError(
            f"{call}{words}; nobody may grant what he may not do himself: give {whom} these"
            " rights, or the verbs escalate and bind on roles and clusterroles"
        )
    cure = f"; the rights of {who} count: grant it this one" if refusal.account else ""
    return DeniedError(f"{call}{words or ': it is forbidden'}{cure}")


def _not_found(refusal: Refusal, call: Call, words: str) -> BellhopError:
    if refusal.details.get("kind") == "namespaces" and call.namespace:
        return MissingError(f"{call}: namespace '{call.namespace}' is not there; create it first")
    if refusal.details.get("name"):
        return MissingError(f"{call}{words}")
    return MissingError(f"{call}: the cluster does not serve this kind (any more)")


def _conflict(refusal: Refusal, call: Call, words: str) -> BellhopError:
    if any(c.get("reason") == "FieldManagerConflict" for c in refusal.causes()):
        return ConflictError(f"{call}{words}")
    # What is left is a lost race: a precondition, an object just created or just changed.
    return StaleError(f"{call}: it was changed meanwhile{words}")


def _fails(code: int) -> bool:
    return code >= HTTPStatus.INTERNAL_SERVER_ERROR or code < HTTPStatus.BAD_REQUEST


def _exceeds_etcd(refusal: Refusal) -> bool:
    """Tell the 500s that are too large an object: smaller than a request may be, not a record."""
    return _fails(refusal.code) and any(
        words in refusal.message
        for words in ("larger than max", "request is too large", "request too large")
    )


def _is_about_the_object(refusal: Refusal) -> bool:
    """Tell the 500s that are a refusal: up to 1.20 a manifest's wrong field is answered so."""
    return refusal.message.startswith(("failed to create typed patch object", "failed to convert"))
