"""Who may take a place of a process that is nearly full."""

from __future__ import annotations

from bellhop.adapters.gcp.fair_shares import FairShares

FLOOD, OTHER = ("inbox", "flood"), ("inbox", "other")


def test_a_share_takes_all_places_while_nobody_else_may_want_them() -> None:
    """A process that is not nearly full refuses nobody."""
    room = FairShares(8)

    assert [room.enter(FLOOD) for _ in range(6)] == [True] * 6
    assert room.full


def test_who_has_half_of_a_full_process_gives_way() -> None:
    """What is left of its places is there for other shares, and theirs to fill."""
    room = FairShares(8)
    for _ in range(6):
        room.enter(FLOOD)

    assert not room.enter(FLOOD)
    assert [room.enter(OTHER) for _ in range(4)] == [True] * 4
    assert not room.enter(OTHER)
    assert room.enter(("another", "flood"))


def test_a_place_that_was_left_is_free() -> None:
    """Who leaves makes room for the next of its share."""
    room = FairShares(8)
    for _ in range(6):
        room.enter(FLOOD)
    assert not room.free(FLOOD)
    room.leave(FLOOD)

    assert room.free(FLOOD)
    assert room.enter(FLOOD)


def test_the_smallest_process_serves() -> None:
    """One thread has room for one message at least."""
    room = FairShares(1)

    assert room.enter(FLOOD)


def test_a_line_is_forgotten_unless_somebody_came_meanwhile() -> None:
    """Who saw an empty line takes back no more than what it knew of."""
    room = FairShares(8)
    room.queue_up(FLOOD)
    seen = room.line(FLOOD)
    room.queue_up(FLOOD)
    room.forget(FLOOD, seen)
    assert room.line(FLOOD) == 2
    room.forget(FLOOD, 2)

    assert room.line(FLOOD) == 0
