"""Conditions of an object as kstatus reads them: Ready, Reconciling and Stalled.

as desired                       Ready
work in flight                   Ready unknown, Reconciling
failed, and tried again          Ready false, Reconciling
failed until an input changes    Ready false, Stalled
waits for another object         Ready false
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal, NamedTuple

from bellhop.configuration.objects import Condition

LONGEST_MESSAGE = 4000
"""Characters of a message: with the longest ones a status has room for many clusters."""

Truth = Literal["True", "False", "Unknown"]


class State(NamedTuple):
    """The state of an object, of which its conditions are made."""

    ready: Truth
    reason: str
    message: str = ""
    reconciling: bool = False
    stalled: bool = False
    since: datetime | None = None
    """The beginning of the state, as far as it is known."""


def succeed(reason: str, message: str, since: datetime | None = None) -> State:
    """Return the state of an object that is as desired."""
    return State("True", reason, message, since=since)


def progress(reason: str, message: str, since: datetime | None = None) -> State:
    """Return the state of an object of which work is in flight."""
    return State("Unknown", reason, message, reconciling=True, since=since)


def retry(reason: str, message: str, since: datetime | None = None) -> State:
    """Return the state of an object that failed and is tried again."""
    return State("False", reason, message, reconciling=True, since=since)


def stall(reason: str, message: str, since: datetime | None = None) -> State:
    """Return the state of an object that fails until one of its inputs changes."""
    return State("False", reason, message, stalled=True, since=since)


def wait(reason: str, message: str) -> State:
    """Return the state of an object that waits for another one."""
    return State("False", reason, message)


def make_conditions(
    state: State, generation: int, previous: Mapping[str, Any], now: datetime
) -> tuple[Condition, ...]:
    """Return the conditions of a state; the times of those that `previous` has alike are kept.

    `previous` is the status that was written last, and may be anything that an API server stores.
    """
    truths: dict[str, Truth] = {
        "Ready": state.ready,
        "Reconciling": "True" if state.reconciling else "False",
        "Stalled": "True" if state.stalled else "False",
    }
    known = _read_times(previous)
    begun = to_seconds(state.since or now)
    return tuple(
        Condition(
            type=name,
            status=truth,
            reason=state.reason or "Unknown",
            message=shorten(state.message),
            last_transition_time=known.get((name, truth), begun),
            observed_generation=generation,
        )
        for name, truth in truths.items()
    )


def shorten(message: str) -> str:
    """Return a message of at most 4,000 characters."""
    return message if len(message) <= LONGEST_MESSAGE else message[: LONGEST_MESSAGE - 1] + "…"


def to_seconds(at: datetime) -> datetime:
    """Return a time as the objects of Kubernetes have it."""
    return at.replace(microsecond=0)


def _read_times(previous: Mapping[str, Any]) -> dict[tuple[str, str], datetime]:
    found = {}
    conditions = previous.get("conditions")
    for each in conditions if isinstance(conditions, list) else ():
        if not isinstance(each, Mapping):
            continue
        try:
            at = datetime.fromisoformat(str(each.get("lastTransitionTime")))
        except ValueError:
            continue
        if at.tzinfo is not None:
            found[str(each.get("type")), str(each.get("status"))] = at
    return found
