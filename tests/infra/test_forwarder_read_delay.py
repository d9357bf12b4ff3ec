"""How long after a hint the first look comes."""

from __future__ import annotations

import io
import random
from pathlib import Path

import pytest

from bellhop.core.gvk import GVK, ObjectKey
from bellhop.forwarder.pending import Journal, Known
from bellhop.forwarder.workqueue import BEGIN, LONGEST, SHORTEST, DelayingQueue, ReadDelay
from bellhop.ingest.admission import Hint
from bellhop.logs import Log


@pytest.mark.parametrize("typical", [0.002, 0.004, 0.012])
def test_about_one_look_of_ten_is_made_in_vain(typical: float) -> None:
    """Whatever the API server takes, the wait settles where few looks come too early."""
    delay, draws = ReadDelay(), random.Random(1)
    early = 0
    for turn in range(2_000):
        looks = int(draws.gauss(typical, typical / 5) > delay.seconds)
        early += looks if turn >= 1_000 else 0
        delay.found(looks)

    assert typical < delay.seconds < 2 * typical
    assert 50 < early < 150


def test_the_wait_has_bounds() -> None:
    """A server that is always, or never, in time moves it no further than that."""
    fast, slow = ReadDelay(), ReadDelay()
    for _ in range(1_000):
        fast.found(0)
        slow.found(1)

    assert (fast.seconds, slow.seconds) == (SHORTEST, LONGEST)


def test_what_was_found_late_says_nothing() -> None:
    """It waited for another webhook, or was put off by another call for it."""
    delay = ReadDelay()
    delay.found(4)

    assert delay.seconds == BEGIN


def test_the_queue_follows_its_readers(tmp_path: Path) -> None:
    """After looks in vain an object is given out later than the first one was."""
    spool = Journal(tmp_path)
    now = [100.0]
    queue = DelayingQueue(spool, Log(io.StringIO()), clock=lambda: now[0])
    for number in range(20):
        key = ObjectKey(GVK("", "v1", "ConfigMap"), "default", f"a{number}")
        queue.add(Hint(key, "u", 1), "2026-01-01T00:00:00+00:00")
        now[0] += LONGEST
        turn = queue.take()
        assert turn
        turn.looks = 1
        queue.absorb(turn, Known("u", 2))
        queue.finish(turn)
    queue.add(Hint(ObjectKey(GVK("", "v1", "ConfigMap"), "default", "b"), "u", 1), "")

    assert (queue._seconds_until_due() or 0) > LONGEST / 2
    spool.close()
