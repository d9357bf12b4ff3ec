"""One stage's inbox on Pub/Sub: a topic whose subscription pushes to the stage's function.

    publish ──► topic ──push──► in flight ─Done─► acknowledged
                 ▲  ▲            │ │ └──Again──► waited out, if it is soon
                 │  └─── a tick ─┼─┼─── or rests in the store, acknowledged
                 │               │ └──GivenUp, last attempt──► a dead letter in the store
                 │               └─ no answer, again and again: Pub/Sub ──► dead topic
                 │                                                            │ a tick
                 └──────────── replay ──────────── a dead letter, too ◄───────┘

A pushed message is acknowledged with any result, once that is recorded: after a refusal Pub/Sub
pushes fewer messages of all shares. Attempts travel with the message; Pub/Sub's own count is of
deliveries for which nobody answered. A share that fills a process gives way to others
(fair_shares.py).

Pub/Sub repeats, reorders, and pushes to two at once: none of it matters to what reads records and
writes on condition (docs/adr/0004, docs/adr/0015).
"""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from itertools import islice
from typing import Any
from urllib.parse import urlencode

from msgspec.structs import replace

from bellhop.adapters.gcp import delayed_messages
from bellhop.adapters.gcp.delayed_messages import DelayedMessage, DelayedMessages, at_once
from bellhop.adapters.gcp.fair_shares import FairShares, Key
from bellhop.adapters.gcp.pubsub_messages import (
    CALLS,
    attributes_of,
    batches,
    of_burial,
    of_push,
    to_publish,
)
from bellhop.adapters.gcp.services import Services
from bellhop.errors import BellhopError, InvalidError, MissingError
from bellhop.ports.clock import Clock
from bellhop.ports.queue import (
    Again,
    Backlog,
    DeadLetter,
    Delivery,
    GivenUp,
    Message,
    Result,
    named,
)
from bellhop.ports.store import Item, Store

DEAD = "-dead"
"""Ends the name of the topic, and of its subscription, of Pub/Sub's own dead letters."""

_AT_ONCE = 100
"""Delayed messages that are read at once, or dead letters of Pub/Sub in one request."""

_SPELL = 6.0
"""For so many seconds a tick goes on with all inboxes; what is left is due at the next."""

_CALLED = 4
"""How many of a line that nobody calls a tick does; they call the others."""

_WAITS = Again(timedelta(0), "others of its share are in flight")
_LATELY = timedelta(minutes=10)
"""Cloud Monitoring learns each minute how much waits, and some minutes late."""

_METRIC = "pubsub.googleapis.com/subscription"
_REASON = 2_048
_SILENT = "its function gave no answer, each time: it was killed, ran out of time or did not start"

_Raw = Mapping[str, Any]
Work = Callable[[Delivery], Result]


class PubsubQueue:
    """An inbox by the name of its topic, with its dead letters; shared between threads.

    `attempts` end a message with its reason. The subscription's own dead-letter policy must allow
    more, about twice as many: it takes only those that no worker reports on.
    """

    patience = timedelta(seconds=5)
    """So long after it was pushed a message is tried again where it is; Pub/Sub waits longer."""

    def __init__(
        self,
        services: Services,
        topic: str,
        *,
        store: Store,
        clock: Clock,
        attempts: int = 12,
        shares: FairShares | None = None,
    ) -> None:
        self._services = services
        self.name = topic.rpartition("/")[2]
        self._store = store
        self._clock = clock
        self._attempts = attempts
        self._shares = shares
        self._resting = DelayedMessages(store, self.name, clock)
        self._letters = f"letter/{self.name}"

    # Publishing ---------------------------------------------------------------------------------

    def publish(self, messages: Sequence[Message]) -> None:
        """Publish messages in few requests; after an error the first ones may be published."""
        self._send([to_publish(named(message)) for message in messages])

    def _send(self, entries: Sequence[_Raw]) -> None:
        for batch in batches(entries):
            request = {"topic": self._path("topics"), "messages": batch}
            self._call("publisher", "publish", "publish to", request)

    # Working ------------------------------------------------------------------------------------

    def pushed(self, body: _Raw, work: Work) -> Result:
        """Have a pushed message worked on; it is to be acknowledged with whatever this returns.

        It is worked on again here if its pause is short. One of a share that fills the process is
        put behind the others of it, which call it when they end.

        Raises:
            InvalidError: it is no push of Pub/Sub's.
            BellhopError: what came of it cannot be written down: Pub/Sub is to push it again.
        """
        delivery, calls = of_push(body), bool(attributes_of(body["message"]).get(CALLS))
        if self._shares is None:
            return self._work_on(delivery, work)
        key = self.name, delivery.message.share
        if not self._shares.enter(key):
            self._add_to_line(delivery, key, self._shares)
            return _WAITS
        try:
            result = self._work_on(delivery, work)
        finally:
            self._shares.leave(key)
        if calls or self._shares.line(key):
            self._call_next(key, self._shares)
        return result

    def settle(self, delivery: Delivery, result: Result) -> Result:
        """Record the result of a message, so that it can be acknowledged.

        Return the result that counts: `Again` becomes `GivenUp` after the last attempt.
        """
        if isinstance(result, Again) and delivery.attempt >= self._attempts:
            result = GivenUp(result.reason)
        if isinstance(result, Again):
            self._resting.until(delivery, self._clock.now() + result.after)
        if isinstance(result, GivenUp):
            # By the message's id: who dies before it is acknowledged buries it again, as one.
            self._bury(delivery, result.reason)
        return result

    def _work_on(self, delivery: Delivery, work: Work) -> Result:
        """Work on a message, again after a short pause, and settle it."""
        until = time.monotonic() + self.patience.total_seconds()
        while True:
            result = work(delivery)
            if not isinstance(result, Again) or delivery.attempt >= self._attempts:
                return self.settle(delivery, result)
            again_at = time.monotonic() + result.after.total_seconds()
            # In a process that is nearly full, working messages have the places.
            if again_at > until or (self._shares and self._shares.full):
                return self.settle(delivery, result)
            time.sleep(result.after.total_seconds())
            delivery = replace(delivery, attempt=delivery.attempt + 1)

    def _add_to_line(self, delivery: Delivery, key: Key, shares: FairShares) -> None:
        self._resting.behind(delivery)
        shares.queue_up(key)
        if shares.free(key):
            # Those who would have called it may have ended before it stood there.
            self._call_next(key, shares)

    def _call_next(self, key: Key, shares: FairShares) -> None:
        """Publish one of those behind, who calls the next in turn; two while there are places.

        So a share gets as many messages in flight as all processes together have places for.
        """
        # What is left standing by a failure is called by a tick.
        with suppress(BellhopError):
            seen = shares.line(key)
            rested = self._resting.next_of(key[1], min(max(shares.places, 1), 2))
            self._publish_delayed(rested, **{CALLS: "1"})
            if not rested:
                shares.forget(key, seen)

    def _bury(self, delivery: Delivery, reason: str) -> None:
        letter = delayed_messages.written(delivery.message) | {
            "attempts": delivery.attempt,
            "reason": reason[:_REASON],
            "died": self._clock.now().isoformat(),
        }
        self._store.put(Item(self._letters, delivery.id, letter))

    # What a tick does ---------------------------------------------------------------------------

    def wake(self) -> int:
        """Do what is due in this inbox; return how many messages that were."""
        return wake([self])

    def turns(self) -> Iterator[int]:
        """Publish delayed messages, then store Pub/Sub's dead letters; yield how many.

        Each step sends a request or two for each of some messages.
        """
        if self._resting.any():
            stalled = self._resting.stalled(_CALLED)
            while several := list(islice(stalled, _AT_ONCE)):
                self._publish_delayed(several, **{CALLS: "1"})
                yield len(several)
            while due := list(self._resting.due(_AT_ONCE)):
                self._publish_delayed(due)
                yield len(due)
        while fetched := self._fetch():
            self._take_over(fetched)
            yield len(fetched)

    def _publish_delayed(self, several: Sequence[DelayedMessage], **more: str) -> None:
        """Publish delayed messages, and delete them after that."""
        self._send(
            [to_publish(each.message, attempts=str(each.attempts), **more) for each in several]
        )
        self._resting.delete(several)

    def _take_over(self, fetched: Sequence[_Raw]) -> None:
        """Store Pub/Sub's own dead letters as ours, and acknowledge them there."""
        at_once(lambda each: self._bury(of_burial(each["message"]), _SILENT), fetched)
        acknowledged = {
            "subscription": self._path("subscriptions", DEAD),
            "ack_ids": [each["ack_id"] for each in fetched],
        }
        self._call("subscriber", "acknowledge", "take dead letters off", acknowledged)

    def _fetch(self) -> Sequence[_Raw]:
        request = {
            "subscription": self._path("subscriptions", DEAD),
            "max_messages": _AT_ONCE,
            # Else an empty one is waited for, and paid: whatever it leaves comes a minute later.
            "return_immediately": True,
        }
        answer = self._call("subscriber", "pull", "fetch dead letters of", request)
        return [
            {
                "ack_id": each.ack_id,
                "message": {
                    "messageId": each.message.message_id,
                    "attributes": dict(each.message.attributes),
                    "data": each.message.data,
                },
            }
            for each in answer.received_messages
        ]

    # Watching -----------------------------------------------------------------------------------

    def backlog(self) -> Backlog:
        """Count as Cloud Monitoring did some minutes ago, without delayed messages in the store."""
        undone = self._measure("num_undelivered_messages")
        held = min(self._measure("num_outstanding_messages"), undone)
        waiting = undone - held
        return Backlog(waiting, held, self._since() if waiting else None)

    def _since(self) -> datetime | None:
        age = self._measure("oldest_unacked_message_age")
        return self._clock.now() - timedelta(seconds=age) if age else None

    def _measure(self, metric: str) -> int:
        """Return what was measured last; 0 for a subscription on which nothing was yet."""
        now = self._clock.now()
        asked = {
            "filter": f'metric.type = "{_METRIC}/{metric}"'
            f' AND resource.labels.subscription_id = "{self.name}"',
            "interval.startTime": _zulu(now - _LATELY),
            "interval.endTime": _zulu(now),
            "view": "FULL",
        }
        project = f"https://monitoring.googleapis.com/v3/projects/{self._services.project}"
        doing = f"ask how much waits in the queue '{self.name}'"
        answer = self._services.ask("GET", f"{project}/timeSeries?{urlencode(asked)}", doing=doing)
        series = json.loads(answer).get("timeSeries", ())
        points = [point for each in series for point in each.get("points", ())]
        last = max(points, key=lambda each: str(each["interval"]["endTime"]), default=None)
        return int(last["value"]["int64Value"]) if last else 0

    # Dead letters -------------------------------------------------------------------------------

    def list(self, *, limit: int = 100) -> Sequence[DeadLetter]:
        """Return dead letters, oldest first; those of Pub/Sub's own queue appear at the next tick.

        Nothing is written: fetching those needs rights that a reader does not have.
        """
        letters = [_letter(item, self.name) for item in self._store.query(self._letters)]
        return sorted(letters, key=lambda each: (each.died_at, each.id))[: max(limit, 0)]

    def replay(self, id: str) -> None:  # noqa: A002 - as the port has it
        found = None
        with suppress(InvalidError):  # What somebody typed may be no key at all.
            found = self._store.get(self._letters, id)
        if found is None:
            raise self._missing_error(id)
        # Killed in between, it is dead and published: it can be replayed once more.
        self.publish([delayed_messages.read(found.value)])
        self._store.delete(self._letters, id)

    def drop(self, id: str) -> None:  # noqa: A002 - as `replay` has it
        dropped = False
        with suppress(InvalidError):  # What somebody typed may be no key at all.
            dropped = self._store.delete(self._letters, id)
        if not dropped:
            raise self._missing_error(id)

    def _missing_error(self, number: str) -> MissingError:
        return MissingError(f"the queue '{self.name}' has no dead letter '{number}'")

    # Calling ------------------------------------------------------------------------------------

    def _path(self, kind: str, ending: str = "") -> str:
        return f"projects/{self._services.project}/{kind}/{self.name}{ending}"

    def _call(self, service: str, operation: str, doing: str, request: _Raw) -> Any:
        return self._services.call(
            service, operation, request, doing=f"{doing} the queue '{self.name}'"
        )


def wake(queues: Iterable[PubsubQueue], seconds: float = _SPELL) -> int:
    """Do what is due in all inboxes, in turns, for so many seconds; return how many messages.

    One that fails keeps no other from it, nor does one with much to do.

    Raises:
        Exception: one failed, the first of them.
    """
    count, until = 0, time.monotonic() + seconds
    failed: list[Exception] = []
    waiting = deque(queue.turns() for queue in queues)
    while waiting and time.monotonic() < until:
        turns = waiting.popleft()
        try:
            count += next(turns)
        except StopIteration:
            continue
        except Exception as error:  # noqa: BLE001 - the other inboxes go on
            failed.append(error)
            continue
        waiting.append(turns)
    if failed:
        raise failed[0]
    return count


def _letter(item: Item, queue: str) -> DeadLetter:
    return DeadLetter(
        message=delayed_messages.read(item.value),
        id=item.sort,
        attempts=item.value["attempts"],
        reason=item.value["reason"],
        died_at=datetime.fromisoformat(item.value["died"]),
        context={"queue": queue},
    )


def _zulu(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
