"""One stage's inbox in a SQLite file: fair shares, groups in order, pauses, dead letters.

    shares                    groups                       messages
    ┌───────────────────┐     ┌─────────────────────┐      ┌────────────────────────────┐
    │ queue, name       │◄────│ queue, name, share  │◄─────│ group, body, available_at  │
    │ turn     (indexed)│     │ next_at   (indexed) │      │ attempt                    │
    │ next_at, width    │     │ held: how many are  │      │ held: 1 while in hands     │
    └───────────────────┘     └─────────────────────┘      └────────────────────────────┘

Shares take turns: the one that was served longest ago comes next, however much the others have
waiting. Within a share the group comes first that has been due for longest. Of a share `width`
groups may be in workers' hands at once: few at first, twice as many whenever one is settled, up to
a limit, so that a share whose work does not come back holds few workers.

A group's `next_at` says when it may be looked at: when its first message is available or, while
messages of it are in a worker's hands, when their time is up. A share's is the earliest of its
groups, or a time before that. So receiving looks at indexes, however many messages wait, and a
group that is held or waits for a retry costs nobody anything.

    publish ──► available ──receive──► held ──Done──► gone
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
from collections.abc import Callable, Collection, Sequence
from datetime import timedelta
from typing import Any

from bellhop.adapters.local.clock import from_microseconds, to_microseconds
from bellhop.adapters.local.database import Database, Place
from bellhop.adapters.local.queue_schema import SCHEMA
from bellhop.adapters.local.timeline import Timeline
from bellhop.errors import InvalidError, MissingError
from bellhop.ports.clock import Clock
from bellhop.ports.queue import (
    Again,
    Backlog,
    DeadLetter,
    Delivery,
    Done,
    GivenUp,
    Message,
    Result,
    encode,
    named,
    written,
)

_FIRST_WIDTH = 2
"""Groups of a share that are in hand before one of them was settled."""

_HAS_ROOM = """s.next_at <= :now AND s.width >
        (SELECT count(*) FROM groups g WHERE g.share_id = s.id AND g.held > 0 AND g.next_at > :now)
"""
_PICK = f"""
    SELECT s.id, s.name FROM shares s WHERE s.queue = :queue AND {_HAS_ROOM}
    ORDER BY s.turn LIMIT 1"""  # noqa: S608 - of constants of this module
_READY = f"""
    SELECT q.value FROM json_each(:queues) q
    WHERE EXISTS (SELECT 1 FROM shares s WHERE s.queue = q.value AND {_HAS_ROOM})"""  # noqa: S608
_LAST_TURN = "(SELECT coalesce(max(turn), 0) FROM shares WHERE queue = :queue)"
_NEXT_AT = "coalesce((SELECT min(next_at) FROM groups WHERE share_id = shares.id), -1)"

_ALL = 1_000_000
_DOUBLINGS = 20

_DIGITS = 18
_Execute = Callable[..., Any]


class SqliteQueue:
    """A named queue in a file, with its dead letters; several may share one file.

    Those of one process had better share one `Database` of it, too, which whoever made it closes:
    what another connection writes, each has to read again.
    Used by any number of threads and processes at once. A message published through the same
    `Database` wakes a waiting `receive` at once, any other within a tenth of a second. With
    `groups`, one `receive` takes from so many at most, all of one share: a worker that is stuck
    with it keeps no other waiting. Of one share at most `per_share` groups are in workers' hands
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
        self._clock = clock
        # After a boot nobody has anything in hand, and no pause goes on.
        self._timeline = Timeline(self._database, clock, latest="SELECT max(next_at) FROM groups")
        self._visibility = max(visibility // timedelta(microseconds=1), 1)
        self._attempts = attempts
        self._groups = groups
        self._per_share = _ALL if per_share is None else per_share
        self._first_width = _ALL if per_share is None else min(_FIRST_WIDTH, per_share)

    def publish(self, messages: Sequence[Message]) -> None:
        """Add messages, here all or none.

        Raises:
            TooLargeError: a body exceeds MESSAGE_LIMIT.
            InvalidError: a body is not JSON, or a group's name cannot be used.
        """
        rows = [(each.share, each.group, written(named(each))) for each in messages]
        now = self._now()
        with self._database.transaction() as execute:
            for row in rows:
                self._append(execute, *row, now)
        self._database.notify()

    def receive(self, limit: int, *, wait: timedelta) -> Sequence[Delivery]:
        """Take up to `limit` messages, waiting for the first one up to `wait`.

        Shares take turns, and their groups come by how long the first message has been due; of
        each, as many in a row as are available. A message that was delivered before comes alone
        of its group: one that kills its workers does not use up the attempts of those behind it.
        `wait` is real time, whatever the clock says.
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
        rows = self._database.rows(_READY, {"queues": encode(sorted(names)), "now": now})
        return [name for (name,) in rows], self._due_in(now, names)

    def settle(self, delivery: Delivery, result: Result) -> Result:
        """Do with a message what came of it; a receipt that has expired is ignored.

        Return what became of it: `Again` turns to `GivenUp` where its attempts are used up.
        """
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
            became = [self._settle(execute, *each, widths) for each in worked]
            left = [
                self._refresh(execute, share, wider=1 << min(each, _DOUBLINGS))
                for share, each in widths.items()
            ]
            taken = self._take_picked(execute, self._now(), limit)
        if any(left):
            self._database.notify()
        return became, taken

    def extend(self, delivery: Delivery) -> bool:
        """Hold a message, and its group, for another visibility timeout from now.

        Return False if it was too late: its time had run out.
        """
        number, attempt = _parse(delivery.receipt)
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
        """Count what is due, what is in workers' hands, and what failed and is tried again."""
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
        """Return the dead letters, oldest first."""
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
        """Publish a dead letter again, behind its group, with its attempts forgotten.

        Raises:
            MissingError: there is no such dead letter.
        """
        with self._database.transaction() as execute:
            self._append(execute, *self._exhume(execute, id), self._now())
        self._database.notify()

    def drop(self, id: str) -> None:  # noqa: A002 - as `replay` has it
        """Forget a dead letter for good.

        Raises:
            MissingError: there is no such dead letter.
        """
        with self._database.transaction() as execute:
            self._exhume(execute, id)

    def release(self) -> None:
        """Give back all that workers hold, who are known to be dead: its time need not run out.

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
            execute(f"UPDATE shares SET next_at = {_NEXT_AT} WHERE queue = ?", (self._name,))  # noqa: S608
        self._database.notify()

    def close(self) -> None:
        """Close the file, unless it is another's."""
        if not self._is_lent:
            self._database.close()

    def _append(
        self, execute: _Execute, share: str, group: str, body: str, available_at: int
    ) -> None:
        found = execute(
            """SELECT g.id, s.name, s.id, g.next_at FROM groups g JOIN shares s ON s.id = g.share_id
               WHERE g.queue = ? AND g.name = ?""",
            (self._name, group),
        ).fetchone()
        if found is None:
            # The first of its group: the group is due when it is.
            number = execute(
                "INSERT INTO groups (queue, name, next_at, share_id) VALUES (?, ?, ?, ?)",
                (self._name, group, available_at, self._enter(execute, share, available_at)),
            ).lastrowid
        else:
            number, before, left, next_at = found
            if before != share:
                # A group goes with its newest message: what rings takes along what was swept.
                entered = self._enter(execute, share, next_at)
                execute("UPDATE groups SET share_id = ? WHERE id = ?", (entered, number))
                self._refresh(execute, left)
        execute(
            "INSERT INTO messages (group_id, body, available_at) VALUES (?, ?, ?)",
            (number, body, available_at),
        )

    def _enter(self, execute: _Execute, share: str, next_at: int) -> int:
        """Have a share come at a time; a new one comes after those that wait."""
        found = execute(
            f"""INSERT INTO shares (queue, name, turn, next_at, width)
                VALUES (:queue, :name, {_LAST_TURN} + 1, :next_at, :width)
                ON CONFLICT (queue, name) DO UPDATE SET next_at = min(next_at, excluded.next_at)
                RETURNING id""",  # noqa: S608
            {
                "queue": self._name,
                "name": share,
                "next_at": next_at,
                "width": self._first_width,
            },
        ).fetchone()
        return int(found[0])

    def _refresh(self, execute: _Execute, share: int, *, wider: int = 1) -> bool:
        """Have a share come by its earliest group, so many times as wide; forget an empty one.

        Return whether anything is left of it.
        """
        [next_at] = execute(
            f"""UPDATE shares SET next_at = {_NEXT_AT}, width = min(? * width, ?) WHERE id = ?
                RETURNING next_at""",  # noqa: S608
            (wider, self._per_share, share),
        ).fetchone()
        if next_at == -1:
            execute("DELETE FROM shares WHERE id = ?", (share,))
        return bool(next_at != -1)

    def _take(self, limit: int) -> tuple[Sequence[Delivery], float | None]:
        """Return what could be taken or, if nothing, in how many seconds the next group may be."""
        now = self._now()
        if not self._database.rows(_PICK, {"queue": self._name, "now": now}):
            # The usual case of a waiting worker: no lock is taken for it.
            return [], self._due_in(now, [self._name])
        with self._database.transaction() as execute:
            return self._take_picked(execute, now, limit), 0.0

    def _due_in(self, now: int, names: Collection[str]) -> float | None:
        later = self._database.rows(
            """SELECT min((SELECT min(next_at) FROM groups WHERE queue = q.value AND next_at > ?))
               FROM json_each(?) q""",
            (now, encode(sorted(names))),
        )[0][0]
        return None if later is None else (later - now) / 1_000_000

    def _take_picked(self, execute: _Execute, now: int, limit: int) -> Sequence[Delivery]:
        """Take from one share after the other; of several groups none waits for another share's."""
        deliveries: list[Delivery] = []
        groups, served = 0, None
        while len(deliveries) < limit and groups != self._groups:
            share = execute(_PICK, {"queue": self._name, "now": now}).fetchone()
            if share is None or (self._groups and served not in {None, share}):
                break
            taken = self._serve(execute, now, limit - len(deliveries), *share)
            if taken:
                groups, served = groups + 1, share
            deliveries += taken
        return deliveries

    def _serve(
        self, execute: _Execute, now: int, limit: int, share: int, name: str
    ) -> Sequence[Delivery]:
        """Take from a share's first group; then it is the others' turn."""
        group = execute(
            """SELECT id, name, held FROM groups WHERE share_id = ? AND next_at <= ?
               ORDER BY next_at LIMIT 1""",
            (share, now),
        ).fetchone()
        taken = self._take_from(execute, now, limit, name, *group) if group else []
        execute(
            f"UPDATE shares SET turn = {_LAST_TURN} + 1, next_at = {_NEXT_AT} WHERE id = :share",  # noqa: S608
            {"queue": self._name, "share": share},
        )
        if not taken:
            execute("DELETE FROM shares WHERE id = ? AND next_at = -1", (share,))
        return taken

    def _take_from(
        self, execute: _Execute, now: int, limit: int, share: str, group: int, name: str, held: int
    ) -> Sequence[Delivery]:
        if held:
            execute("UPDATE messages SET held = 0 WHERE group_id = ? AND held", (group,))
            execute("UPDATE groups SET held = 0 WHERE id = ?", (group,))
        taken: list[tuple[int, str, int]] = []
        rows = execute(
            """SELECT id, body, available_at, attempt, reason FROM messages
               WHERE group_id = ? ORDER BY id LIMIT ?""",
            (group, limit),
        ).fetchall()
        for number, body, available_at, attempt, reason in rows:
            if available_at > now or (taken and (attempt or taken[0][2] > 1)):
                break
            if attempt >= self._attempts:
                self._bury(execute, number, reason or "its workers never said that it was done")
                continue
            taken.append((number, body, attempt + 1))
        if not taken:
            self._go_on(execute, group)
            return []
        execute(
            """UPDATE messages SET held = 1, attempt = attempt + 1
               WHERE group_id = ? AND id BETWEEN ? AND ?""",
            (group, taken[0][0], taken[-1][0]),
        )
        execute(
            "UPDATE groups SET held = ?, next_at = ? WHERE id = ?",
            (len(taken), now + self._visibility, group),
        )
        return [
            Delivery(
                Message(json.loads(body), name, share), str(number), f"{number}.{attempt}", attempt
            )
            for number, body, attempt in taken
        ]

    def _let_go(self, execute: _Execute, number: int, attempt: int) -> int | None:
        """Count one fewer in the worker's hands; return the group, None if the receipt expired."""
        found = execute(
            """UPDATE groups SET held = held - 1 WHERE next_at > ? AND id =
                   (SELECT group_id FROM messages WHERE id = ? AND attempt = ? AND held)
               RETURNING id""",
            (self._now(), number, attempt),
        ).fetchone()
        return None if found is None else int(found[0])

    def _settle(
        self, execute: _Execute, delivery: Delivery, result: Result, widths: Counter[int]
    ) -> Result:
        """Settle one message, and count the group for its share where none of it is held now."""
        number, attempt = _parse(delivery.receipt)
        if isinstance(result, Again) and attempt >= self._attempts:
            result = GivenUp(result.reason)
        group = self._let_go(execute, number, attempt)
        if group is None:
            return Done()
        if isinstance(result, Again):
            available_at = self._now() + result.after // timedelta(microseconds=1)
            execute(
                "UPDATE messages SET held = 0, available_at = ?, reason = ? WHERE id = ?",
                (available_at, result.reason, number),
            )
        elif isinstance(result, GivenUp):
            self._bury(execute, number, result.reason)
        else:
            execute("DELETE FROM messages WHERE id = ?", (number,))
        share = self._go_on(execute, group)
        if share is not None:
            widths[share] += 1
        return result

    def _go_on(self, execute: _Execute, group: int) -> int | None:
        """Make a group due by its first message once none of it is held; forget an empty one.

        Return its share, which is to be refreshed, or None where some of it is held.
        """
        settled = execute(
            """UPDATE groups SET next_at = coalesce(
                   (SELECT available_at FROM messages WHERE group_id = groups.id
                    ORDER BY id LIMIT 1), -1)
               WHERE id = ? AND held = 0 RETURNING share_id, next_at""",
            (group,),
        ).fetchone()
        if settled is None:
            return None
        share, next_at = settled
        if next_at == -1:
            execute("DELETE FROM groups WHERE id = ?", (group,))
        return int(share)

    def _bury(self, execute: _Execute, number: int, reason: str) -> None:
        execute(
            """INSERT INTO dead (id, queue, share, name, body, attempts, reason, died_at)
               SELECT m.id, g.queue, s.name, g.name, m.body, m.attempt, ?, ?
               FROM messages m JOIN groups g ON g.id = m.group_id JOIN shares s ON s.id = g.share_id
               WHERE m.id = ?""",
            (reason, to_microseconds(self._clock.now()), number),
        )
        execute("DELETE FROM messages WHERE id = ?", (number,))

    def _exhume(self, execute: _Execute, number: str) -> tuple[str, str, str]:
        found = execute(
            "DELETE FROM dead WHERE queue = ? AND id = ? RETURNING share, name, body",
            (self._name, _number(number)),
        ).fetchone()
        if found is None:
            raise MissingError(f"the queue {self._name!r} has no dead letter {number!r}")
        return found[0], found[1], found[2]

    def _now(self) -> int:
        return self._timeline.now()


def _parse(receipt: str) -> tuple[int, int]:
    number, attempt = map(_number, receipt.partition(".")[::2])
    if min(number, attempt) < 0:
        raise InvalidError(f"the receipt {receipt!r} is not one of this queue's")
    return number, attempt


def _number(text: str) -> int:
    """Read what SQLite takes as an integer; -1, which names nothing, where it is none."""
    plain = text.isascii() and text.isdecimal() and len(text) <= _DIGITS
    return int(text) if plain else -1
