"""What hints add up to, and what a look at their object means."""

from __future__ import annotations

from typing import Any

import pytest

from bellhop.core.gvk import GVK, ObjectKey
from bellhop.forwarder.pending import Known, PendingObject, ReadBackResult
from bellhop.ingest.admission import Hint

EARLY, LATE = "2026-01-01T00:00:00+00:00", "2026-01-01T00:00:01+00:00"


def key(name: str = "a") -> ObjectKey:
    return ObjectKey(GVK("", "v1", "ConfigMap"), "default", name)


def hint(uid: str = "u", before: int = 0, name: str = "a") -> Hint:
    return Hint(key(name), uid, before)


def owed(*hints: Hint) -> PendingObject:
    """Merge hints in the order in which they came."""
    found = PendingObject.of(hints[0], EARLY, 1)
    for number, each in enumerate(hints[1:], 2):
        found = found.merge(PendingObject.of(each, LATE, number))
    return found


def state(uid: str, version: int) -> dict[str, Any]:
    return {"metadata": {"uid": uid, "resourceVersion": str(version)}}


NOT_YET, SEND, DELETED, NOTHING = (
    ReadBackResult.NOT_YET,
    ReadBackResult.SEND,
    ReadBackResult.DELETED,
    ReadBackResult.NOTHING,
)


@pytest.mark.parametrize(
    ("pending", "seen", "now", "in_the_end"),
    [
        pytest.param(owed(hint()), None, NOT_YET, NOTHING, id="create, absent"),
        pytest.param(owed(hint()), state("u", 5), SEND, SEND, id="create, there"),
        pytest.param(owed(hint()), state("v", 5), NOT_YET, NOTHING, id="create, another there"),
        pytest.param(owed(hint("u", 5)), state("u", 5), NOT_YET, NOTHING, id="update, the same"),
        pytest.param(owed(hint("u", 5)), state("u", 6), SEND, SEND, id="update, newer"),
        pytest.param(owed(hint("u", 5)), state("v", 9), SEND, SEND, id="update, replaced"),
        pytest.param(owed(hint("u", 5)), None, DELETED, DELETED, id="update or deletion, absent"),
        pytest.param(owed(hint("", 0)), state("u", 5), SEND, SEND, id="unknown, there"),
        pytest.param(owed(hint("", 0)), None, NOT_YET, NOTHING, id="unknown, absent"),
        pytest.param(
            owed(hint("u", 5), hint("u", 6)), state("u", 6), NOT_YET, SEND, id="second denied"
        ),
        pytest.param(
            owed(hint("u", 5), hint("u", 5)), state("u", 5), NOT_YET, NOTHING, id="denied twice"
        ),
        pytest.param(
            owed(hint("u", 5), hint("v", 0)), None, NOT_YET, DELETED, id="deleted, create denied"
        ),
        pytest.param(
            owed(hint("u", 5), hint("v", 0)), state("u", 5), NOT_YET, SEND, id="both denied, unsure"
        ),
        pytest.param(
            owed(hint("u", 5), hint("v", 0)), state("v", 7), SEND, SEND, id="deleted, then created"
        ),
        pytest.param(
            owed(hint("u", 6), hint("u", 5)), state("u", 6), NOT_YET, SEND, id="hints overtook"
        ),
        pytest.param(owed(hint("u", 0), hint("w", 0)), None, NOT_YET, NOTHING, id="creates denied"),
    ],
)
def test_evaluates_a_read(
    pending: PendingObject,
    seen: dict[str, Any] | None,
    now: ReadBackResult,
    in_the_end: ReadBackResult,
) -> None:
    """While the write may be on its way, and once it can no longer be."""
    assert (pending.evaluate(seen), pending.conclude(seen)) == (now, in_the_end)


def test_keeps_the_first_hint_and_the_last_known_object() -> None:
    """Merged, hints are as old as the first, and as far as the last."""
    merged = owed(hint("u", 5), hint("u", 7), hint("v", 0))

    assert (merged.reported_at, merged.serial, merged.known) == (EARLY, 3, Known("u", 7))


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        pytest.param(Known("u", 6), True, id="a later version"),
        pytest.param(Known("u", 5), False, id="the version before"),
        pytest.param(Known("u", 4), False, id="an earlier version"),
        pytest.param(Known("v", 9), False, id="another object"),
    ],
)
def test_knows_whether_a_read_already_shows_a_write(seen: Known, expected: bool) -> None:  # noqa: FBT001
    """A hint whose version has passed when the object was looked at needs no look of its own."""
    assert owed(hint("u", 5)).is_settled_by(seen) is expected
