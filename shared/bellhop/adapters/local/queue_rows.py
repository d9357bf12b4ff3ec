"""Rows of one queue in its file: shares, groups and messages, changed within a transaction."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from bellhop.adapters.local import timeline
from bellhop.adapters.local.clock import to_microseconds
from bellhop.adapters.local.database import Schema
from bellhop.errors import InvalidError, MissingError
from bellhop.ports.clock import Clock
from bellhop.ports.queue import Again, Delivery, Done, GivenUp, Message, Result

SCHEMA = Schema(
    noun="queue",
    # Another one than that of the layout before, whose versions went up to 4.
    application=0x42454C52,
    migrations=(
        (
            """CREATE TABLE shares (
                id INTEGER PRIMARY KEY,
                queue TEXT NOT NULL,
                name TEXT NOT NULL,
                turn INTEGER NOT NULL,
                next_at INTEGER NOT NULL,
                width INTEGER NOT NULL,
                UNIQUE (queue, name)
            ) STRICT""",
            "CREATE INDEX shares_by_turn ON shares (queue, turn)",
            """CREATE TABLE groups (
                id INTEGER PRIMARY KEY,
                queue TEXT NOT NULL,
                name TEXT NOT NULL,
                share_id INTEGER NOT NULL,
                next_at INTEGER NOT NULL,
                held INTEGER NOT NULL DEFAULT 0,
                UNIQUE (queue, name)
            ) STRICT""",
            "CREATE INDEX groups_by_time ON groups (queue, next_at)",
            "CREATE INDEX groups_by_share ON groups (share_id, next_at)",
            "CREATE INDEX groups_in_hand ON groups (share_id) WHERE held > 0",
            """CREATE TABLE messages (
                id INTEGER PRIMARY KEY AUTOINCREMENT,
                group_id INTEGER NOT NULL,
                body TEXT NOT NULL,
                available_at INTEGER NOT NULL,
                attempt INTEGER NOT NULL DEFAULT 0,
                held INTEGER NOT NULL DEFAULT 0,
                reason TEXT NOT NULL DEFAULT ''
            ) STRICT""",
            "CREATE INDEX messages_by_group ON messages (group_id, id)",
            """CREATE TABLE dead (
                id INTEGER PRIMARY KEY,
                queue TEXT NOT NULL,
                share TEXT NOT NULL,
                name TEXT NOT NULL,
                body TEXT NOT NULL,
                attempts INTEGER NOT NULL,
                reason TEXT NOT NULL,
                died_at INTEGER NOT NULL
            ) STRICT""",
            "CREATE INDEX dead_by_time ON dead (queue, died_at, id)",
            timeline.TABLE,
        ),
    ),
)


_FIRST_WIDTH = 2
"""Groups of a share that are in flight before one of them was settled."""

_HAS_CAPACITY = """s.next_at <= :now AND s.width >
        (SELECT count(*) FROM groups g WHERE g.share_id = s.id AND g.held > 0 AND g.next_at > :now)
"""

PICK = f"""
    SELECT s.id, s.name FROM shares s WHERE s.queue = :queue AND {_HAS_CAPACITY}
    ORDER BY s.turn LIMIT 1"""  # noqa: S608 - of constants of this module

READY = f"""
    SELECT q.value FROM json_each(:queues) q
    WHERE EXISTS (SELECT 1 FROM shares s WHERE s.queue = q.value AND {_HAS_CAPACITY})"""  # noqa: S608

_LAST_TURN = "(SELECT coalesce(max(turn), 0) FROM shares WHERE queue = :queue)"

NEXT_AT = "coalesce((SELECT min(next_at) FROM groups WHERE share_id = shares.id), -1)"

_ALL = 1_000_000

_DIGITS = 18

Execute = Callable[..., Any]


class QueueRows:
    """The rows of a queue; each method runs within a transaction of the caller.

    The times are microseconds of the file's timeline, which `now` returns. `visibility` is in
    microseconds; `groups` and `per_share` are those of the queue.
    """

    def __init__(
        self,
        name: str,
        now: Callable[[], int],
        *,
        clock: Clock,
        visibility: int,
        attempts: int,
        groups: int | None,
        per_share: int | None,
    ) -> None:
        self._name = name
        self._now = now
        self._clock = clock
        self._visibility = visibility
        self._attempts = attempts
        self._groups = groups
        self._per_share = _ALL if per_share is None else per_share
        self._first_width = _ALL if per_share is None else min(_FIRST_WIDTH, per_share)

    def append(
        self, execute: Execute, share: str, group: str, body: str, available_at: int
    ) -> None:
        """Add a message; its share becomes that of its whole group."""
        found = execute(
            """SELECT g.id, s.name, s.id, g.next_at FROM groups g JOIN shares s ON s.id = g.share_id
               WHERE g.queue = ? AND g.name = ?""",
            (self._name, group),
        ).fetchone()
        if found is None:
            # The first of its group: the group is due when it is.
            number = execute(
                "INSERT INTO groups (queue, name, next_at, share_id) VALUES (?, ?, ?, ?)",
                (self._name, group, available_at, self._add_share(execute, share, available_at)),
            ).lastrowid
        else:
            number, before, left, next_at = found
            if before != share:
                # A group takes the share of its newest message.
                entered = self._add_share(execute, share, next_at)
                execute("UPDATE groups SET share_id = ? WHERE id = ?", (entered, number))
                self.refresh(execute, left)
        execute(
            "INSERT INTO messages (group_id, body, available_at) VALUES (?, ?, ?)",
            (number, body, available_at),
        )

    def _add_share(self, execute: Execute, share: str, next_at: int) -> int:
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

    def refresh(self, execute: Execute, share: int, *, wider: int = 1) -> bool:
        """Have a share come by its earliest group, so many times as wide; forget an empty one.

        Return whether anything is left of it.
        """
        [next_at] = execute(
            f"""UPDATE shares SET next_at = {NEXT_AT}, width = min(? * width, ?) WHERE id = ?
                RETURNING next_at""",  # noqa: S608
            (wider, self._per_share, share),
        ).fetchone()
        if next_at == -1:
            execute("DELETE FROM shares WHERE id = ?", (share,))
        return bool(next_at != -1)

    def take(self, execute: Execute, now: int, limit: int) -> Sequence[Delivery]:
        """Take from one share after the other; of several groups none waits for another share's."""
        deliveries: list[Delivery] = []
        groups, served = 0, None
        while len(deliveries) < limit and groups != self._groups:
            share = execute(PICK, {"queue": self._name, "now": now}).fetchone()
            if share is None or (self._groups and served not in {None, share}):
                break
            taken = self._serve(execute, now, limit - len(deliveries), *share)
            if taken:
                groups, served = groups + 1, share
            deliveries += taken
        return deliveries

    def _serve(
        self, execute: Execute, now: int, limit: int, share: int, name: str
    ) -> Sequence[Delivery]:
        """Take from a share's first group; then it is the others' turn."""
        group = execute(
            """SELECT id, name, held FROM groups WHERE share_id = ? AND next_at <= ?
               ORDER BY next_at LIMIT 1""",
            (share, now),
        ).fetchone()
        taken = self._take_from(execute, now, limit, name, *group) if group else []
        execute(
            f"UPDATE shares SET turn = {_LAST_TURN} + 1, next_at = {NEXT_AT} WHERE id = :share",  # noqa: S608
            {"queue": self._name, "share": share},
        )
        if not taken:
            execute("DELETE FROM shares WHERE id = ? AND next_at = -1", (share,))
        return taken

    def _take_from(
        self, execute: Execute, now: int, limit: int, share: str, group: int, name: str, held: int
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
            self._schedule(execute, group)
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

    def _count_settled(self, execute: Execute, number: int, attempt: int) -> int | None:
        """Count one message fewer in flight; return its group, None if the receipt expired."""
        found = execute(
            """UPDATE groups SET held = held - 1 WHERE next_at > ? AND id =
                   (SELECT group_id FROM messages WHERE id = ? AND attempt = ? AND held)
               RETURNING id""",
            (self._now(), number, attempt),
        ).fetchone()
        return None if found is None else int(found[0])

    def settle(
        self, execute: Execute, delivery: Delivery, result: Result, widths: Counter[int]
    ) -> Result:
        """Settle one message, and count the group for its share where none of it is held now."""
        number, attempt = parse_receipt(delivery.receipt)
        if isinstance(result, Again) and attempt >= self._attempts:
            result = GivenUp(result.reason)
        group = self._count_settled(execute, number, attempt)
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
        share = self._schedule(execute, group)
        if share is not None:
            widths[share] += 1
        return result

    def _schedule(self, execute: Execute, group: int) -> int | None:
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

    def _bury(self, execute: Execute, number: int, reason: str) -> None:
        execute(
            """INSERT INTO dead (id, queue, share, name, body, attempts, reason, died_at)
               SELECT m.id, g.queue, s.name, g.name, m.body, m.attempt, ?, ?
               FROM messages m JOIN groups g ON g.id = m.group_id JOIN shares s ON s.id = g.share_id
               WHERE m.id = ?""",
            (reason, to_microseconds(self._clock.now()), number),
        )
        execute("DELETE FROM messages WHERE id = ?", (number,))

    def pop_dead(self, execute: Execute, number: str) -> tuple[str, str, str]:
        found = execute(
            "DELETE FROM dead WHERE queue = ? AND id = ? RETURNING share, name, body",
            (self._name, _number(number)),
        ).fetchone()
        if found is None:
            raise MissingError(f"the queue {self._name!r} has no dead letter {number!r}")
        return found[0], found[1], found[2]


def parse_receipt(receipt: str) -> tuple[int, int]:
    number, attempt = map(_number, receipt.partition(".")[::2])
    if min(number, attempt) < 0:
        raise InvalidError(f"the receipt {receipt!r} is not one of this queue's")
    return number, attempt


def _number(text: str) -> int:
    """Read what SQLite takes as an integer; -1, which names nothing, where it is none."""
    plain = text.isascii() and text.isdecimal() and len(text) <= _DIGITS
    return int(text) if plain else -1
