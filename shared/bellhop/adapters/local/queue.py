"""One stage's inbox in a SQLite file: fair shares, groups in order, pauses, dead letters.

    shares                    groups                       messages
    ┌───────────────────┐     ┌─────────────────────┐      ┌────────────────────────────┐
    │ queue, name       │◄────│ queue, name, share  │◄─────│ group, body, available_at  │
    │ turn     (indexed)│     │ next_at   (indexed) │      │ attempt                    │
    │ next_at, width    │     │ held: how many are  │      │ held: 1 while in flight    │
    └───────────────────┘     └─────────────────────┘      └────────────────────────────┘

Shares take turns: the one that was served longest ago comes next, however much the others have
waiting. Within a share the group comes first that has been due for longest. Of a share `width`
groups may be in flight at once: few at first, twice as many whenever one is settled, up to
a limit, so that a share whose work does not end holds few workers.

A group's `next_at` says when it may be looked at: when its first message is available or, while
messages of it are in flight, when their time is up. A share's is the earliest of its
groups, or a time before that. So receiving looks at indexes, however many messages wait, and a
group that is held or waits for a retry costs nothing.

    publish ──► available ──receive──► held ──Done──► deleted
                    ▲                   │ ├──Again──► available after its pause
                    └── time is up ─────┘ └──GivenUp, last attempt──► dead ──replay──► available

A receipt is the message's id and attempt: each delivery has a new one, and ids are never reused.
All times are moments of the file's timeline, so a clock that is set delays and repeats nothing.
Only `died_at`, which people read, is one of the wall clock.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Collection, Sequence
from datetime import timedelta

from bellhop.adapters.local.clock import from_microseconds
from bellhop.adapters.local.database import Database, Place
from bellhop.adapters.local.queue_rows import NEXT_AT, PICK, READY, SCHEMA, QueueRows, parse_receipt
from bellhop.adapters.local.timeline import Timeline
from bellhop.ports.clock import Clock
from bellhop.ports.queue import (
    Backlog,
    DeadLetter,
    Delivery,
    Message,
    Result,
    encode,
    named,
    written,
)

_DOUBLINGS = 20


class SqliteQueue:
    """A named queue in a file, with its dead letters; several may share one file.

    Queues of one process should share one `Database` of it, too, which its maker closes: each
    connection has to read again what another one writes.
    Used by any number of threads and processes at once. A message published through the same
    `Database` wakes a waiting `receive` at once, any other within a tenth of a second. With
    `groups`, one `receive` takes from so many at most, all of one share: a worker that is stuck
    with it delays no other. Of one share at most `per_share` groups are in flight
    at once, and two before the first of them was settled; without it, any number.
    """

    def __init__(
        self,
        place: Place | Database,
        name: str,
        *,
        clock: Clock,
        visibility: timedelta = timedelta(seconds=60),
        attempts: int = 12,
        groups: int | None = None,
        per_share: int | None = None,
    ) -> None:
        self._database = place if isinstance(place, Database) else Database(place, SCHEMA)
        self._is_lent = self._database is place
        self._name = name
        # After a boot nothing is in flight, and no pause goes on.
        self._timeline = Timeline(self._database, clock, latest="SELECT max(next_at) FROM groups")
        self._visibility = max(visibility // timedelta(microseconds=1), 1)
        self._rows = QueueRows(
            name,
            self._timeline.now,
            clock=clock,
            visibility=self._visibility,
            attempts=attempts,
            groups=groups,
            per_share=per_share,
        )

    def publish(self, messages: Sequence[Message]) -> None:
        """Add messages, all or none."""
        rows = [(each.share, each.group, written(named(each))) for each in messages]
        now = self._now()
        with self._database.transaction() as execute:
            for row in rows:
                self._rows.append(execute, *row, now)
        self._database.notify()

    def receive(self, limit: int, *, wait: timedelta) -> Sequence[Delivery]:
        """Take up to `limit` messages, waiting for the first one up to `wait`.

        Shares take turns, and their groups come by how long the first message has been due; of
        each, as many in a row as are available. A message that was delivered before comes as the
        only one of its group: one that kills its workers does not use up the attempts of those
        behind it. `wait` is real time, whatever the clock says.
        """
        deadline = time.monotonic() + wait.total_seconds()
        while limit > 0:
            seen = self._database.seen()
            deliveries, due = self._take(limit)
            left = deadline - time.monotonic()
            if deliveries or left <= 0:
                return deliveries
            self._database.wait(left if due is None else min(left, due), seen)
        return []

    def ready(self, names: Collection[str]) -> tuple[Sequence[str], float | None]:
        """Name those of this file's queues from which something can be taken.

        Return in how many seconds more is due, too: None if nothing is.
        """
        now = self._now()
        rows = self._database.rows(READY, {"queues": encode(sorted(names)), "now": now})
        return [name for (name,) in rows], self._due_in(now, names)

    def settle(self, delivery: Delivery, result: Result) -> Result:
        return self.settle_all([(delivery, result)])[0]

    def settle_all(self, worked: Sequence[tuple[Delivery, Result]]) -> Sequence[Result]:
        """Settle a batch in one transaction; return what became of each, in the same order."""
        return self.exchange(worked, 0)[0]

    def exchange(
        self, worked: Sequence[tuple[Delivery, Result]], limit: int
    ) -> tuple[Sequence[Result], Sequence[Delivery]]:
        """Settle a batch, and take what comes next, in one transaction: it writes half of two.

        Return what `settle_all` does, and what `receive` takes without waiting.
        """
        with self._database.transaction() as execute:
            widths: Counter[int] = Counter()
            became = [self._rows.settle(execute, *each, widths) for each in worked]
            left = [
                self._rows.refresh(execute, share, wider=1 << min(each, _DOUBLINGS))
                for share, each in widths.items()
            ]
            taken = self._rows.take(execute, self._now(), limit)
        if any(left):
            self._database.notify()
        return became, taken

    def extend(self, delivery: Delivery) -> bool:
        number, attempt = parse_receipt(delivery.receipt)
        now = self._now()
        with self._database.transaction() as execute:
            # The share's own time may stay what it was: it is only ever too early.
            extended = execute(
                """UPDATE groups SET next_at = ? WHERE next_at > ? AND held > 0 AND id =
                       (SELECT group_id FROM messages WHERE id = ? AND attempt = ? AND held)""",
                (now + self._visibility, now, number, attempt),
            ).rowcount
        return bool(extended)

    def backlog(self) -> Backlog:
        asked = {"queue": self._name, "now": self._now()}
        [[waiting, held, since, delayed]] = self._database.rows(
            """SELECT count(*) FILTER (WHERE NOT m.held AND m.available_at <= :now),
                      count(*) FILTER (WHERE m.held),
                      min(m.available_at) FILTER (WHERE NOT m.held AND m.available_at <= :now),
                      count(*) FILTER (WHERE NOT m.held AND m.available_at > :now
                                         AND m.reason <> '')
               FROM groups g JOIN messages m ON m.group_id = g.id WHERE g.queue = :queue""",
            asked,
        )
        reasons = delayed and self._database.rows(
            """SELECT m.reason FROM groups g JOIN messages m ON m.group_id = g.id
               WHERE g.queue = :queue AND NOT m.held AND m.available_at > :now AND m.reason <> ''
               ORDER BY m.available_at LIMIT 1""",
            asked,
        )
        at = self._timeline.time(since) if since is not None else None
        return Backlog(waiting, held, at, delayed, reasons[0][0] if reasons else "")

    def count_dead(self) -> int:
        """Count the dead letters without reading them."""
        [[count]] = self._database.rows("SELECT count(*) FROM dead WHERE queue = ?", (self._name,))
        return int(count)

    def list(self, *, limit: int = 100) -> Sequence[DeadLetter]:
        rows = self._database.rows(
            """SELECT id, share, name, body, attempts, reason, died_at FROM dead
               WHERE queue = ? ORDER BY died_at, id LIMIT ?""",
            (self._name, max(limit, 0)),
        )
        return [
            DeadLetter(
                message=Message(json.loads(body), group, share),
                id=str(number),
                attempts=attempts,
                reason=reason,
                died_at=from_microseconds(died_at),
                context={"queue": self._name},
            )
            for number, share, group, body, attempts, reason, died_at in rows
        ]

    def replay(self, id: str) -> None:  # noqa: A002 - as the port has it
        with self._database.transaction() as execute:
            self._rows.append(execute, *self._rows.pop_dead(execute, id), self._now())
        self._database.notify()

    def drop(self, id: str) -> None:  # noqa: A002 - as `replay` has it
        with self._database.transaction() as execute:
            self._rows.pop_dead(execute, id)

    def release(self) -> None:
        """Release messages of workers that are known to be dead, before their time is up.

        The deliveries count as attempts. Receipts given out before are expired.
        """
        whose = {"queue": self._name, "now": self._now()}
        with self._database.transaction() as execute:
            execute(
                """UPDATE messages SET held = 0 WHERE held AND group_id IN
                       (SELECT id FROM groups WHERE queue = :queue AND held > 0)""",
                whose,
            )
            execute(
                "UPDATE groups SET held = 0, next_at = :now WHERE queue = :queue AND held > 0",
                whose,
            )
            execute(f"UPDATE shares SET next_at = {NEXT_AT} WHERE queue = ?", (self._name,))  # noqa: S608
        self._database.notify()

    def close(self) -> None:
        """Close the file, unless it is another's."""
        if not self._is_lent:
            self._database.close()

    def _take(self, limit: int) -> tuple[Sequence[Delivery], float | None]:
        """Return what could be taken or, if nothing, in how many seconds the next group may be."""
        now = self._now()
        if not self._database.rows(PICK, {"queue": self._name, "now": now}):
            # The usual case of a waiting worker: no lock is taken for it.
            return [], self._due_in(now, [self._name])
        with self._database.transaction() as execute:
            return self._rows.take(execute, now, limit), 0.0

    def _due_in(self, now: int, names: Collection[str]) -> float | None:
        later = self._database.rows(
            """SELECT min((SELECT min(next_at) FROM groups WHERE queue = q.value AND next_at > ?))
               FROM json_each(?) q""",
            (now, encode(sorted(names))),
        )[0][0]
        return None if later is None else (later - now) / 1_000_000

    def _now(self) -> int:
        return self._timeline.now()
