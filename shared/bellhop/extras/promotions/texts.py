"""Texts and facts of a promotion's notifications."""

from __future__ import annotations

from typing import Any

from bellhop.api.promotion import ClusterPromotion
from bellhop.core.digest import digest
from bellhop.state.promotion import StageEvent

INCIDENT_MANAGERS = frozenset({"PagerDuty", "Opsgenie", "Alertmanager"})

_LONGEST_TEXT = 4000
"""Characters that every chat takes."""

_LONGEST_MESSAGE = 1024
"""Bytes that Kubernetes takes in the message of an Event."""

_LONGEST_NAME = 200

_SUBJECTS = {
    "promoted": "Release {release} of promotion {promotion} has passed stage '{stage}'",
    "approved": "Release {release} of promotion {promotion} was approved at stage '{stage}'",
    "stalled": "Release {release} of promotion {promotion} is stopped at stage '{stage}'",
    "rolled back": "Stage '{stage}' of promotion {promotion} has release {release} again",
}


def write_subject(promotion: str, event: StageEvent) -> str:
    """Return the line that says what happened."""
    return _SUBJECTS[event.what].format(
        release=event.release, promotion=promotion, stage=event.stage
    )


def write_text(promotion: str, event: StageEvent) -> str:
    """Return the whole text, which begins with the subject."""
    at = f"{event.at:%Y-%m-%d %H:%M} UTC"
    lines = (write_subject(promotion, event), event.reason, f"At {at}.")
    return "\n".join(filter(None, lines))[:_LONGEST_TEXT]


def fails(event: StageEvent) -> bool:
    """Return whether a release stopped by itself, and needs a user."""
    by_user = event.reason.startswith("by ")
    return event.what == "stalled" or (event.what == "rolled back" and not by_user)


def concerns_incidents(event: StageEvent) -> bool:
    """Return whether an event opens an incident of its stage, or closes it."""
    return event.what == "promoted" or fails(event)


def list_facts(promotion: str, event: StageEvent) -> dict[str, Any]:
    """Return an event for programs; a stage that stops and passes later is one incident."""
    return {
        "id": _identify(promotion, event),
        "incident": digest(["promotion", promotion, event.stage])[:16],
        "promotion": promotion,
        "stage": event.stage,
        "release": event.release,
        "event": event.what,
        "healthy": not fails(event),
        "message": event.reason,
        "since": _write_time(event),
    }


def make_event(promotion: ClusterPromotion, event: StageEvent) -> dict[str, Any]:
    """Return the Kubernetes Event of a step; two of the same step are one object."""
    text = write_text(promotion.name, event)
    name = promotion.name[:_LONGEST_NAME].rstrip(".-")
    at = _write_time(event)
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {
            "name": f"{name}.{_identify(promotion.name, event)}",
            "namespace": "default",
        },
        "involvedObject": {
            "apiVersion": promotion.api_version,
            "kind": promotion.kind,
            "name": promotion.name,
        },
        "type": "Warning" if fails(event) else "Normal",
        "reason": "ClusterPromotion",
        "message": text.encode()[:_LONGEST_MESSAGE].decode("utf-8", "ignore"),
        "source": {"component": "bellhop"},
        "firstTimestamp": at,
        "lastTimestamp": at,
        "count": 1,
    }


def _identify(promotion: str, event: StageEvent) -> str:
    what = [event.what, event.stage, event.release, event.at.isoformat()]
    return digest([promotion, *what])[:16]


def _write_time(event: StageEvent) -> str:
    return f"{event.at:%Y-%m-%dT%H:%M:%SZ}"
