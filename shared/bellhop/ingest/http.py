"""HTTP requests and responses of ingest, and the paths that it serves.

/clusters/NAMESPACE/NAME[/TOKEN]            a cluster's own sender
/clusters/NAMESPACE/NAME/senders/SENDER     a sender outside the cluster, of CloudEvents for it
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from msgspec import Struct

from bellhop.errors import BellhopError, InvalidError, TooLargeError
from bellhop.ingest import signatures
from bellhop.ingest.signatures import Signed

_PARTS = (3, 4)
_OUTSIDE_PARTS = 5
_OUTSIDE = "senders"
_LONGEST_NAME = 253
_METHODS = "POST, OPTIONS"


class Caller(NamedTuple):
    """Sender that a request claims: a cluster's own one, or one outside the cluster with a name.

    A claim with an invalid signature has the `signed` of no sender.
    """

    cluster: str
    token: str
    sender: str = ""
    signed: Signed | None = None

    def make_request(
        self, body: bytes, media: str, sent: str, attributes: Mapping[str, str]
    ) -> Request:
        """Return the whole request, once its body is read."""
        return Request(
            self.cluster, self.token, body, media, sent, attributes, self.sender, self.signed
        )


NOT_SIGNED = Signed("", 0, ())
"""The value of an invalid signature, which is never in time."""


class Request(Struct, frozen=True):
    """Request as the HTTP server passes it on.

    `token` is the sender's proof, `media` the Content-Type, `sent` the Date header; `attributes`
    are those of a CloudEvent in headers. A `sender` is outside the cluster, and may have `signed`
    the request.
    """

    cluster: str
    token: str
    body: bytes
    media: str = ""
    sent: str = ""
    attributes: Mapping[str, str] = {}
    sender: str = ""
    signed: Signed | None = None


class Response(Struct, frozen=True):
    """Response, which the HTTP server sends as JSON."""

    status: int
    body: Mapping[str, Any]
    headers: Mapping[str, str] = {}


def address(path: str, authorization: str) -> Caller | None:
    """Read the caller from a path and a Bearer header.

    API servers can send neither a header nor a query to a webhook, so their token is in the path
    (validated by ValidatingWebhookConfiguration's check of URLs). None if the path is another one,
    or no cluster can have such a name: a store limits the names of items.
    """
    parts = path.strip("/").split("/")
    from_outside = len(parts) == _OUTSIDE_PARTS and parts[3] == _OUTSIDE
    if parts[0] != "clusters" or not (len(parts) in _PARTS or from_outside):
        return None
    names = [*parts[1:3], *(parts[4:] if from_outside else ())]
    if not all(each.isascii() and len(each) <= _LONGEST_NAME for each in names):
        return None
    scheme, _, given = authorization.partition(" ")
    bearer = given.strip() if scheme.lower() == "bearer" else ""
    cluster = f"{parts[1]}/{parts[2]}"
    if from_outside:
        return Caller(cluster, bearer, parts[4])
    return Caller(cluster, bearer or (parts[3] if len(parts) > _PARTS[0] else ""))


def path_of(cluster: str, sender: str) -> str:
    """Return where a sender from outside sends to."""
    return f"/clusters/{cluster}/{_OUTSIDE}/{sender}"


def share_of(cluster: str, sender: str) -> str:
    """Return the fairness key of an outside sender's work."""
    return f"{cluster}/{_OUTSIDE}/{sender}"


def caller(method: str, path: str, headers: Mapping[str, str]) -> Caller | Response:
    """Read the caller, or return why nothing of the request can be served.

    Header names are in lower case.
    """
    found = address(path, headers.get("authorization", ""))
    if found is None:
        text = "nothing is served here; events go to /clusters/NAMESPACE/NAME"
        return Response(404, body_of("Missing", text))
    if method == "OPTIONS" and "webhook-request-origin" in headers:
        return _GRANTED
    if method != "POST":
        text = "events are sent by POST"
        return Response(405, body_of(InvalidError.code, text), {"Allow": _METHODS})
    if not found.sender or not signatures.is_signed(headers):
        return found
    return found._replace(signed=signatures.read(headers) or NOT_SIGNED)


_GRANTED = Response(
    200,
    {"allowed": True},
    {"Allow": _METHODS, "WebHook-Allowed-Origin": "*", "WebHook-Allowed-Rate": "*"},
)
"""Response to a sender that asks whether it may send CloudEvents here, before it does.

Any authenticated sender may send from anywhere, in any amount: an address is no proof, and is not
checked. So nothing is read for it. This is the protocol of CloudEvents' web hooks:
https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/http-webhook.md.
"""


def too_large(length: int, limit: int) -> Response:
    """Refuse a request by its length; a front may do so before it is read."""
    text = f"cannot take a request of {length} bytes: the limit is {limit}; send less at once"
    return Response(413, body_of(TooLargeError.code, text))


def refusal(status: int, error: BellhopError) -> Response:
    """Answer by an error."""
    return Response(status, body_of(error.code, str(error)))


def body_of(code: str, message: str) -> dict[str, Any]:
    """Return the body of an answer that refuses."""
    return {"error": {"code": code, "message": message}}
