"""Recorder of cluster heartbeats, which writes so seldom that an event costs no write.

Each process writes at most once a minute for a cluster, and at once if its forwarder reports a
change of itself. A heartbeat is shown to people, and decides nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

from msgspec.structs import replace

from bellhop.errors import BellhopError, InvalidError
from bellhop.state.cluster import Heartbeat
from bellhop.state.records import Records

_EVERY = timedelta(minutes=1)
_VERSION, _SENTENCE = 64, 512
"""Characters that are kept of them."""


class HeartbeatRecorder:
    """Heartbeats that one process recorded lately; shared between threads."""

    def __init__(self, records: Records) -> None:
        self._records = records
        self._lock = threading.Lock()
        self._written: dict[str, Heartbeat] = {}

    def note(self, cluster: str, heartbeat: Heartbeat) -> None:
        """Record a heartbeat; fields that are not given keep their values."""
        # No request fails for it; the next one records the heartbeat again.
        with suppress(BellhopError):
            # A new process, as a function starts for every few requests, reads first.
            last = self._written.get(cluster) or self._records.hearings.get(cluster)
            if last and not heartbeat.version:
                heartbeat = replace(last, at=heartbeat.at, ahead=heartbeat.ahead)
            # A clock that was set back must not silence this.
            known = (
                last and abs(heartbeat.at - last.at) < _EVERY and _said(heartbeat) == _said(last)
            )
            with self._lock:
                was = self._written.get(cluster)
                self._written[cluster] = last if last and known else heartbeat
            if not known and was in (None, last):
                self._records.hearings.put(cluster, heartbeat)


def read_refused(data: Mapping[str, Any]) -> Mapping[str, str]:
    """Return which kinds a forwarder cannot read back, each with the reason.

    Raises:
        InvalidError: it is not written as forwarders write it.
    """
    refused = data.get("refused") or {}
    if not isinstance(refused, Mapping) or not all(
        isinstance(why, str) for why in refused.values()
    ):
        raise InvalidError("cannot read which kinds a forwarder cannot read: send reasons by kind")
    return refused


def read_alive(
    data: Mapping[str, Any], heartbeat: Heartbeat, unasked: Collection[str] = ()
) -> Heartbeat:
    """Read what a forwarder says of itself; that it cannot read `unasked` kinds is no problem.

    Raises:
        InvalidError: it is not written as forwarders write it.
    """
    refused = read_refused(data)
    problem = next((why for kind, why in refused.items() if kind not in unasked), "")
    try:
        since = str(data.get("since") or "")
        return replace(
            heartbeat,
            owed=max(0, int(data.get("owed") or 0)),
            since=datetime.fromisoformat(since).astimezone(heartbeat.at.tzinfo) if since else None,
            version=str(data.get("version") or "")[:_VERSION],
            problem=problem[:_SENTENCE],
            messaging=str(data.get("messaging") or "")[:_SENTENCE],
        )
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidError("cannot read what a forwarder says of itself: send its words") from error


def _said(heartbeat: Heartbeat) -> tuple[str, str, str, bool]:
    return heartbeat.version, heartbeat.problem, heartbeat.messaging, heartbeat.owed > 0
