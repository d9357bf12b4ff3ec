"""Resyncs, at start, of clusters whose events nobody keeps while `serve` does not run.

A forwarder keeps events on disk and asks for a resync itself. An API server that calls ingest, or
sends its audit log there, drops what nobody takes.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from bellhop.registration.forwarder_manifests import is_audited, is_direct
from bellhop.state.delays import sweep_timer
from bellhop.state.messages import Resync
from bellhop.state.records import Records

STEP = timedelta(milliseconds=50)
LONGEST = timedelta(minutes=1)
"""Between two of those resyncs, and until the last of a large fleet."""


def resync_unbuffered(records: Records) -> int:
    """Pull the resync timers of clusters without a forwarder's buffer to now; return how many.

    Ingest must listen already, so that nothing falls between the resync and what it takes.
    """
    clusters = [each.key for each in records.clusters.all() if _is_unbuffered(each.forwarder)]
    now, step = records.clock.now(), min(STEP, LONGEST / max(1, len(clusters)))
    for number, cluster in enumerate(clusters):
        message = Resync(cluster).message().body
        records.timers.set_by(sweep_timer(cluster), now + number * step, message, now=now)
    return len(clusters)


def _is_unbuffered(forwarder: Mapping[str, str]) -> bool:
    return is_direct(forwarder) or is_audited(forwarder)
