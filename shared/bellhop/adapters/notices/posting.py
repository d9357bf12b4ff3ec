"""Posts a notice as JSON to where a Secret says, through the guarded client.

Each opens an incident while a cluster is unhealthy and closes it when the cluster recovers, both by
the same key, so that a notification that is sent twice opens one incident. Only text is cut to the
length that a service takes: it refuses the whole request otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

from bellhop.adapters.egress.answer import LimitError, happened
from bellhop.adapters.egress.client import HttpClient, HttpError
from bellhop.adapters.egress.dialer import Dialer
from bellhop.core.address_policy import AddressPolicy
from bellhop.errors import (
    BellhopError,
    DeniedError,
    InvalidError,
    ThrottledError,
    TooLargeError,
    UnreachableError,
)

SECONDS = 10.0
"""How long the connection, the handshake or one read may take."""

WHOLE_SECONDS = 20.0
"""How long one call may take as a whole."""

_BUSY = {HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS}


def post(
    url: str,
    body: bytes,
    headers: dict[str, str],
    reach: AddressPolicy,
    seconds: float = WHOLE_SECONDS,
) -> bytes:
    """Post JSON and return the answer; an error names only the host.

    Raises:
        InvalidError: the address may not be called, or the request is refused.
        DeniedError: the credentials are refused.
        ThrottledError: the other side asks to slow down.
        UnreachableError: the server does not answer in time, or cannot handle it now.
    """
    said = f"cannot send a notice to '{_host(url, reach)}'"
    headers = {"Content-Type": "application/json", **headers}
    client = HttpClient(url, dialer=Dialer(reach), threads=1, whole=seconds)
    try:
        answer = client.request("POST", headers=headers, body=body, timeout=SECONDS)
    except LimitError as error:
        if error.error is TooLargeError:
            return b""  # It took the notice, and goes on and on about it.
        raise error.error(f"{said}: {error.words}") from None
    except (HttpError, OSError, ValueError) as error:
        # What these errors quote may be the path, which has a secret in it.
        raise UnreachableError(f"{said}: {happened(error)}") from None
    finally:
        client.close()
    if not answer.succeeded:
        raise _refusal(said, answer.status)
    return answer.data


def _host(url: str, reach: AddressPolicy) -> str:
    parts = urlsplit(url)
    host = parts.hostname or ""
    if not host or not (parts.scheme == "https" or (parts.scheme == "http" and reach.loopback)):
        raise InvalidError("cannot send a notice: its address does not begin with https://")
    try:
        parts.port  # noqa: B018 - reading it checks it
    except ValueError as error:
        raise InvalidError(f"cannot send a notice to '{host}': its port is invalid") from error
    if refused := reach.refusal(host):
        raise InvalidError(f"cannot send a notice to '{host}': it {refused}")
    return host


def _refusal(said: str, status: int) -> BellhopError:
    said = f"{said}: it answers {status}"
    if status in _BUSY:
        return ThrottledError(said)
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return UnreachableError(said)
    if status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
        return DeniedError(f"{said}; see whether the Secret still counts there")
    return InvalidError(f"{said}; see what the Secret names")


Values = Mapping[str, str]

_SEVERITIES = ("critical", "error", "warning", "info")
_PRIORITIES = ("P1", "P2", "P3", "P4", "P5")
_LONGEST_SUMMARY = 1024
_LONGEST_MESSAGE = 130
_LONGEST_VALUE = 255
_LONGEST_ALERT = timedelta(days=30)
_DETAILS = ("cluster", "clusterHealthCheck", "promotion", "stage", "since")


class Request(NamedTuple):
    """A POST request with a JSON body."""

    url: str
    body: Any
    headers: dict[str, str]


def pagerduty(secret: Values, facts: Mapping[str, Any], endpoint: str) -> Request:
    """Return an event of the Events API v2: `trigger`, or `resolve` of the same key."""
    event = {
        "routing_key": _require(secret, "PAGERDUTY_ROUTING_KEY"),
        "event_action": "resolve" if facts["healthy"] else "trigger",
        "dedup_key": facts["incident"],
    }
    if not facts["healthy"]:
        event["client"] = "Bellhop"
        event["payload"] = {
            "summary": facts["subject"][:_LONGEST_SUMMARY],
            "source": _source(facts),
            "severity": _choice(secret, "PAGERDUTY_SEVERITY", _SEVERITIES, "error"),
            "timestamp": facts["since"],
            "component": facts["stage"] if "stage" in facts else facts["clusterHealthCheck"],
            "custom_details": {"text": facts["text"]},
        }
    return Request(secret.get("PAGERDUTY_URL") or endpoint, event, {})


def opsgenie(secret: Values, facts: Mapping[str, Any], endpoint: str) -> Request:
    """Return a request of the Alert API: create an alert, or close it by its alias."""
    url = f"{(secret.get('OPSGENIE_URL') or endpoint).rstrip('/')}/v2/alerts"
    headers = {"Authorization": f"GenieKey {_require(secret, 'OPSGENIE_API_KEY')}"}
    alias = facts["incident"]
    if facts["healthy"]:
        url += f"/{quote(alias, safe='')}/close?identifierType=alias"
        return Request(url, {"source": "Bellhop", "note": facts["text"]}, headers)
    alert = {
        "message": facts["subject"][:_LONGEST_MESSAGE],
        "alias": alias,
        "description": facts["text"],
        "entity": _source(facts),
        "source": "Bellhop",
        "priority": _choice(secret, "OPSGENIE_PRIORITY", _PRIORITIES, "P3"),
        "details": {name: facts[name] for name in _DETAILS if name in facts},
    }
    return Request(url, alert, headers)


def alertmanager(secret: Values, facts: Mapping[str, Any], _: str) -> Request:
    """Return an alert of the API v2; it ends by its `endsAt`, or if it is not sent again in time.

    An alert of a cluster that fires has no times: a clock that is wrong here cannot end it there.
    One of a promotion is sent once, and so has to last until its end is sent.
    """
    headers = {}
    if token := secret.get("ALERTMANAGER_TOKEN"):
        headers["Authorization"] = f"Bearer {token}"
    alert: dict[str, Any] = {
        "labels": {
            **_alert_labels(facts),
            "severity": (secret.get("ALERTMANAGER_SEVERITY") or "warning")[:_LONGEST_VALUE],
        },
        "annotations": {
            "summary": facts["subject"],
            "description": facts["text"],
        },
    }
    if facts["healthy"]:
        alert["endsAt"] = facts["since"]
    elif "promotion" in facts:
        ends_at = datetime.fromisoformat(facts["since"]) + _LONGEST_ALERT
        alert |= {"startsAt": facts["since"], "endsAt": f"{ends_at:%Y-%m-%dT%H:%M:%SZ}"}
    url = f"{_require(secret, 'ALERTMANAGER_URL').rstrip('/')}/api/v2/alerts"
    return Request(url, [alert], headers)


FORMATS: Mapping[str, Callable[[Values, Mapping[str, Any], str], Request]] = {
    "PagerDuty": pagerduty,
    "Opsgenie": opsgenie,
    "Alertmanager": alertmanager,
}
"""The request of each incident manager, by the type of a notification."""


def _source(facts: Mapping[str, Any]) -> str:
    """Return the cluster or promotion that an incident is about."""
    return str(facts["promotion"] if "promotion" in facts else facts["cluster"])


def _alert_labels(facts: Mapping[str, Any]) -> dict[str, str]:
    """Return the labels that identify an alert: its end has to have the same."""
    if "promotion" in facts:
        name = "BellhopPromotionStalled"
        return {"alertname": name, "promotion": facts["promotion"], "stage": facts["stage"]}
    return {
        "alertname": "BellhopClusterUnhealthy",
        "cluster": facts["cluster"],
        "cluster_health_check": facts["clusterHealthCheck"],
    }


def _require(secret: Values, name: str) -> str:
    if not secret.get(name):
        raise InvalidError(f"cannot send a notice: its Secret has no {name}; put it in")
    return secret[name]


def _choice(secret: Values, name: str, choices: tuple[str, ...], default: str) -> str:
    value = secret.get(name) or default
    if value not in choices:
        raise InvalidError(
            f"cannot send a notice: its {name} is not supported; use one of {', '.join(choices)}"
        )
    return value
