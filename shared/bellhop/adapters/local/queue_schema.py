"""The tables of the queue's file, and how they came to be what they are."""

from __future__ import annotations

from bellhop.adapters.local import timeline
from bellhop.adapters.local.database import Schema

SCHEMA = Schema(
    noun="queue",
    application=0x42454C51,
    migrations=(
        (
            """CREATE TABLE groups (
                id INTEGER PRIMARY KEY,
                queue TEXT NOT NULL,
                name TEXT NOT NULL,
                next_at INTEGER NOT NULL,
                held INTEGER NOT NULL DEFAULT 0,
                UNIQUE (queue, name)
            ) STRICT""",
            "CREATE INDEX groups_by_time ON groups (queue, next_at)",
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
                name TEXT NOT NULL,
                body TEXT NOT NULL,
                attempts INTEGER NOT NULL,
                reason TEXT NOT NULL,
                died_at INTEGER NOT NULL
            ) STRICT""",
            "CREATE INDEX dead_by_time ON dead (queue, died_at, id)",
        ),
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
            "ALTER TABLE groups ADD COLUMN share_id INTEGER NOT NULL DEFAULT 0",
            "ALTER TABLE dead ADD COLUMN share TEXT NOT NULL DEFAULT ''",
            """INSERT INTO shares (queue, name, turn, next_at, width)
               SELECT queue, '', 0, min(next_at), 1 FROM groups GROUP BY queue""",
            "UPDATE groups SET share_id = (SELECT id FROM shares WHERE queue = groups.queue)",
            "CREATE INDEX groups_by_share ON groups (share_id, next_at)",
            "CREATE INDEX groups_in_hand ON groups (share_id) WHERE held > 0",
        ),
        ("ALTER TABLE groups ADD COLUMN holder TEXT NOT NULL DEFAULT ''",),
        # Moments were those of the wall clock, at which the timeline begins.
        (timeline.TABLE,),
    ),
)
