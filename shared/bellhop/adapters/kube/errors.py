"""Errors of API servers and urllib3 as Bellhop's own, in one table.

 API servers answer with a `Status`; its words help the person
who wrote the manifest and are kept, cut short, except for Secrets: there they may quote the data.
"""

from __future__ import annotations

import re
from http import HTTPStatus

import urllib3.exceptions as http

from bellhop.adapters.egress.answer import HAPPENED
from bellhop.adapters.kube.old_servers import is_refused_manifest
from bellhop.adapters.kube.refusal import Call, Refusal
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

_WORDS_AT_MOST = 512
# Of Secrets only this sentence is repeated: it names a right and nothing of the object.
_MISSING_RIGHT = re.compile(
    r"User \"[^\"]*\" cannot [a-z:-]+ resource \"[^\"]*\" in API group \"[^\"]*\""
    r"(?: in the namespace \"[^\"]*\"| at the cluster scope)?"
)

# Its code and reason are those of any missing right: only these words say whose it is. Since 1.36
# the verb names what is impersonated, as in `impersonate-on:serviceaccount:patch`.
_NO_IMPERSONATION = re.compile(
    r" cannot (?:impersonate resource \"serviceaccounts\"|impersonate-on:serviceaccount:[a-z]+ )"
)

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


class UntrustedError(UnreachableError):
    """A server's certificate is not one that the stored kubeconfig trusts."""


_NEVER_CALLED = (http.LocationValueError, http.ProxySchemeUnsupported)

TRANSPORT: dict[type[Exception], tuple[type[BellhopError], str]] = {
    each: (InvalidError if issubclass(each, _NEVER_CALLED) else UnreachableError, happened)
    for each, happened in HAPPENED.items()
}
"""Temperament, and what happened in the words of the message; most specific first."""


def transport_error(exc: Exception, call: Call) -> BellhopError:
    """Map a failure that no API server answered."""
    error = _unanswered_error(exc, call)
    error.context["plain"] = str(error)
    return error


def _unanswered_error(exc: Exception, call: Call) -> BellhopError:
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
    return UnreachableError(f"{call}: the request cannot be made")


def refusal_error(refusal: Refusal, call: Call) -> BellhopError:
    """Map what an API server answered; the context has it `plain`, without a word of its."""
    error = _map(refusal, call, _words(refusal, call))
    error.context["plain"] = str(_map(refusal, call, _outline(refusal)))
    return error


def _map(refusal: Refusal, call: Call, words: str) -> BellhopError:
    code = refusal.code
    if code == HTTPStatus.UNAUTHORIZED:
        return UnauthorizedError(
            f"{call}: the credentials are not accepted: they expired, or were revoked;"
            f" `bellhop register cluster {call.cluster} --kubeconfig FILE` gives it others",
            given=f"{call}: it does not accept the credentials of the kubeconfig that was given;"
            " try them with kubectl, and give a kubeconfig whose user it knows",
        )
    if code == HTTPStatus.FORBIDDEN:
        return _forbidden_error(refusal, call, words)
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
    if code == HTTPStatus.REQUEST_TIMEOUT or (_fails(code) and not is_refused_manifest(refusal)):
        return UnreachableError(
            f"{call}: it answers {code}{words}", delay=refusal.retry_after, status=code
        )
    if any(cause.get("field") == "metadata.uid" for cause in refusal.causes()):
        return StaleError(f"{call}: another object of its name is there by now")
    return InvalidError(f"{call}: it is refused{words}", status=code)


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
    listed = ", ".join(filter(None, [reason, *known]))
    return f": {listed}" if listed else ""


def _forbidden_error(refusal: Refusal, call: Call, words: str) -> BellhopError:
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
    subject = who if refusal.account else "Bellhop's credentials there"
    if _UNREASONED.search(refusal.message):
        return DeniedError(
            f"{call}: it is not there, and {subject} may not create it; grant the verb create, too"
        )
    if _ESCALATION in refusal.message:
        return DeniedError(
            f"{call}{words}; nobody may grant what he may not do himself: give {subject} these"
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
    """Return whether a 500 is about an object too large for etcd, though a request may have it."""
    return _fails(refusal.code) and any(
        words in refusal.message
        for words in ("larger than max", "request is too large", "request too large")
    )
