"""The tables of the queue's file."""

from __future__ import annotations

from bellhop.adapters.local import timeline
from bellhop.adapters.local.database import Schema

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
