"""Requests to incident managers: PagerDuty, Opsgenie and Alertmanager, by their public formats.

Each opens an incident while a cluster is unhealthy and closes it when the cluster recovers, both by
the same key, so that a notification that is sent twice opens one incident. Only text is cut to the
length that a service takes: it refuses the whole request otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from urllib.parse import quote

from bellhop.errors import InvalidError

Values = Mapping[str, str]

_SEVERITIES = ("critical", "error", "warning", "info")
_PRIORITIES = ("P1", "P2", "P3", "P4", "P5")
_LONGEST_SUMMARY = 1024
_LONGEST_MESSAGE = 130
_LONGEST_VALUE = 255


class Request(NamedTuple):
    """A POST request with a JSON body."""

    url: str
    body: Any
    headers: dict[str, str]


def pagerduty(secret: Values, facts: Mapping[str, Any], endpoint: str) -> Request:
    """Return an event of the Events API v2: `trigger`, or `resolve` of the same key."""
    event = {
        "routing_key": _required(secret, "PAGERDUTY_ROUTING_KEY"),
        "event_action": "resolve" if facts["healthy"] else "trigger",
        "dedup_key": facts["incident"],
    }
    if not facts["healthy"]:
        event["client"] = "Bellhop"
        event["payload"] = {
            "summary": facts["subject"][:_LONGEST_SUMMARY],
            "source": facts["cluster"],
            "severity": _choice(secret, "PAGERDUTY_SEVERITY", _SEVERITIES, "error"),
            "timestamp": facts["since"],
            "component": facts["clusterHealthCheck"],
            "custom_details": {"text": facts["text"]},
        }
    return Request(secret.get("PAGERDUTY_URL") or endpoint, event, {})


def opsgenie(secret: Values, facts: Mapping[str, Any], endpoint: str) -> Request:
    """Return a request of the Alert API: create an alert, or close it by its alias."""
    url = f"{(secret.get('OPSGENIE_URL') or endpoint).rstrip('/')}/v2/alerts"
    headers = {"Authorization": f"GenieKey {_required(secret, 'OPSGENIE_API_KEY')}"}
    alias = facts["incident"]
    if facts["healthy"]:
        url += f"/{quote(alias, safe='')}/close?identifierType=alias"
        return Request(url, {"source": "Bellhop", "note": facts["text"]}, headers)
    alert = {
        "message": facts["subject"][:_LONGEST_MESSAGE],
        "alias": alias,
        "description": facts["text"],
        "entity": facts["cluster"],
        "source": "Bellhop",
        "priority": _choice(secret, "OPSGENIE_PRIORITY", _PRIORITIES, "P3"),
        "details": {name: facts[name] for name in ("cluster", "clusterHealthCheck", "since")},
    }
    return Request(url, alert, headers)


def alertmanager(secret: Values, facts: Mapping[str, Any], _: str) -> Request:
    """Return an alert of the API v2; it ends by its `endsAt`, or if it is not sent again in time.

    An alert that fires has no times: a clock that is wrong here cannot end it there.
    """
    headers = {}
    if token := secret.get("ALERTMANAGER_TOKEN"):
        headers["Authorization"] = f"Bearer {token}"
    alert: dict[str, Any] = {
        "labels": {
            "alertname": "BellhopClusterUnhealthy",
            "cluster": facts["cluster"],
            "cluster_health_check": facts["clusterHealthCheck"],
            "severity": (secret.get("ALERTMANAGER_SEVERITY") or "warning")[:_LONGEST_VALUE],
        },
        "annotations": {
            "summary": facts["subject"],
            "description": facts["text"],
        },
    }
    if facts["healthy"]:
        alert["endsAt"] = facts["since"]
    url = f"{_required(secret, 'ALERTMANAGER_URL').rstrip('/')}/api/v2/alerts"
    return Request(url, [alert], headers)


FORMATS: Mapping[str, Callable[[Values, Mapping[str, Any], str], Request]] = {
    "PagerDuty": pagerduty,
    "Opsgenie": opsgenie,
    "Alertmanager": alertmanager,
}
"""The request of each incident manager, by the type of a notification."""


def _required(secret: Values, name: str) -> str:
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
