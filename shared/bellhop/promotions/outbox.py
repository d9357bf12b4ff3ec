"""Outbox of a promotion's notifications: events to be sent, and how far each receiver has got them.

    a step ─► written with its event, in one record ─► claimed for a minute ─► sent ─► recorded

The outbox is a part of the promotion's state. So a step that is written is sent, also if its worker
dies, and a step that is not written is not. A worker claims the next event of a receiver before it
sends it: a repeated message, or a second worker, sends nothing. If a worker dies after sending and
before recording, the event is sent again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime, timedelta
from typing import NamedTuple

from msgspec.structs import replace

from bellhop.state.promotion import Delivery, PromotionState, StageEvent

SENT = ("promoted", "approved", "stalled", "rolled back")
"""The steps that people are notified of."""

MOST_EVENTS = 20
"""Events that wait for a receiver; of more, the oldest are dropped."""

PAUSE = timedelta(minutes=1)
"""The time that a claim lasts, and the pause after the first failure; the next ones are longer."""

_LONGEST_PAUSE = timedelta(hours=1)
_LATEST = timedelta(days=1)
"""An event that cannot be sent for so long is dropped: nobody acts on it any more."""

_LONGEST_ERROR = 1000


class Claim(NamedTuple):
    """A state in which a worker has claimed an event, or the time at which it may claim one."""

    state: PromotionState
    event: StageEvent | None = None
    until: datetime | None = None


def add(state: PromotionState, steps: Iterable[StageEvent]) -> PromotionState:
    """Return a state with the events of some steps that are to be sent."""
    chosen = [each for each in steps if each.what in SENT]
    count = state.event_count + len(chosen)
    new = (
        replace(each, number=number) for number, each in enumerate(chosen, state.event_count + 1)
    )
    events = (*state.events, *new)[-MOST_EVENTS:]
    return replace(state, events=events, event_count=count)


def clear(state: PromotionState) -> PromotionState:
    """Return a state with nothing to send, as of a promotion that names no receiver."""
    return replace(state, events=(), deliveries=())


def claim(state: PromotionState, to: str, receivers: Collection[str], now: datetime) -> Claim:
    """Claim the next event of a receiver, one of all of them.

    A claim that lies further ahead than any is made by a clock that was ahead, and does not count.
    """
    delivery = _find_delivery(state, to)
    event = next((each for each in state.events if each.number > delivery.sent), None)
    if event is None:
        return Claim(state)
    if delivery.until and now < delivery.until <= now + _LONGEST_PAUSE:
        return Claim(state, until=delivery.until)
    until = now + min(PAUSE * 2 ** min(delivery.failures, 10), _LONGEST_PAUSE)
    return Claim(_with(state, replace(delivery, until=until), receivers), event, until)


def record_sent(
    state: PromotionState, to: str, event: StageEvent, receivers: Collection[str]
) -> PromotionState:
    """Return a state in which a receiver has got an event; one that all have got is dropped."""
    sent = max(event.number, _find_delivery(state, to).sent)
    return _drop(_with(state, Delivery(to, sent), receivers), receivers)


def record_failure(
    state: PromotionState,
    to: str,
    event: StageEvent,
    receivers: Collection[str],
    error: str,
    now: datetime,
) -> PromotionState:
    """Return a state in which an event could not be sent to a receiver, with the reason."""
    found = _find_delivery(state, to)
    failed = replace(found, failures=found.failures + 1, error=error[:_LONGEST_ERROR])
    if now - event.at > _LATEST:
        failed = replace(failed, sent=max(event.number, found.sent))
    return _drop(_with(state, failed, receivers), receivers)


def _find_delivery(state: PromotionState, to: str) -> Delivery:
    return next((each for each in state.deliveries if each.to == to), Delivery(to))


def _with(state: PromotionState, new: Delivery, receivers: Collection[str]) -> PromotionState:
    """Return a state with a delivery, and without those of former receivers."""
    others = (each for each in state.deliveries if each.to in receivers and each.to != new.to)
    return replace(state, deliveries=(*others, new))


def _drop(state: PromotionState, receivers: Collection[str]) -> PromotionState:
    """Return a state without the events that all receivers have got."""
    first = min(_find_delivery(state, each).sent for each in receivers)
    events = tuple(each for each in state.events if each.number > first)
    return replace(state, events=events, deliveries=state.deliveries if events else ())
