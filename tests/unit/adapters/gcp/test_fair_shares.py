"""Who may take a place of a process that is nearly full."""

from __future__ import annotations

from bellhop.adapters.gcp.fair_shares import FairShares

FLOOD, OTHER = ("inbox", "flood"), ("inbox", "other")


def test_a_share_takes_all_places_while_no_other_needs_them() -> None:
    """A process that is not nearly full refuses nobody."""
    shares = FairShares(8)

    assert [shares.enter(FLOOD) for _ in range(6)] == [True] * 6
    assert shares.full


def test_who_has_half_of_a_full_process_gives_way() -> None:
    """What is left of its places is there for other shares, and theirs to fill."""
    shares = FairShares(8)
    for _ in range(6):
        shares.enter(FLOOD)

    assert not shares.enter(FLOOD)
    assert [shares.enter(OTHER) for _ in range(4)] == [True] * 4
    assert not shares.enter(OTHER)
    assert shares.enter(("another", "flood"))


def test_a_place_that_was_left_is_free() -> None:
    """Who leaves makes space for the next of its share."""
    shares = FairShares(8)
    for _ in range(6):
        shares.enter(FLOOD)
    assert not shares.free(FLOOD)
    shares.leave(FLOOD)

    assert shares.free(FLOOD)
    assert shares.enter(FLOOD)


def test_the_smallest_process_serves() -> None:
    """One thread can take at least one message."""
    shares = FairShares(1)

    assert shares.enter(FLOOD)


def test_a_line_is_forgotten_unless_somebody_came_meanwhile() -> None:
    """Who saw an empty line takes back no more than what it knew of."""
    shares = FairShares(8)
    shares.queue_up(FLOOD)
    seen = shares.line(FLOOD)
    shares.queue_up(FLOOD)
    shares.forget(FLOOD, seen)
    assert shares.line(FLOOD) == 2
    shares.forget(FLOOD, 2)

    assert shares.line(FLOOD) == 0
