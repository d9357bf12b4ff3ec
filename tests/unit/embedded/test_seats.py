"""Seats: one thread of an inbox is left to whoever has none of them."""

from __future__ import annotations

import threading

from bellhop.embedded.seats import Seats
from bellhop.ports.queue import Delivery, Message


def of(*shares: str) -> list[Delivery]:
    """Make deliveries of shares."""
    return [Delivery(Message({}, "g", each), each, each, 1) for each in shares]


def elsewhere(seats: Seats, *shares: str) -> None:
    """Have another thread, whose number is its own for as long as it lives, take a seat."""
    seated = threading.Event()

    def sit() -> None:
        seats.take(of(*shares))
        seated.set()
        let_go.wait(30)

    threading.Thread(target=sit, daemon=True).start()
    assert seated.wait(30)


let_go = threading.Event()


def test_a_share_has_all_threads_but_one() -> None:
    """However many of its messages a thread has in hand, it counts once."""
    seats = Seats(3)
    elsewhere(seats, "flood", "flood", "other")
    assert list(seats.full()) == []
    elsewhere(seats, "flood", "third")
    assert list(seats.full()) == ["flood"]


def test_a_thread_goes_on_for_whom_it_works() -> None:
    """Its own seat keeps nothing from it; one that received nothing has none."""
    seats = Seats(2)
    seats.take(of("flood"))
    assert list(seats.full()) == []
    elsewhere(seats, "flood")
    assert list(seats.full()) == ["flood"]
    seats.leave()
    assert list(seats.full()) == ["flood"]


def test_what_is_full_for_all_counts_who_asks_as_well() -> None:
    """Whoever publishes has nobody woken for a share that no waiting thread may take from."""
    seats = Seats(2)
    assert list(seats.full_for_all()) == []
    seats.take(of("flood"))
    assert list(seats.full_for_all()) == ["flood"]
    seats.leave()
    assert list(seats.full_for_all()) == []


def test_who_is_alone_serves_everybody() -> None:
    """One thread cannot be kept free."""
    seats = Seats(1)
    elsewhere(seats, "flood")
    assert list(seats.full()) == []


def test_who_takes_something_else_makes_room_in_what_was_full() -> None:
    """Whoever waits was kept from it, and is told; where there was room, nobody is."""
    seats = Seats(3)
    elsewhere(seats, "flood")
    assert not seats.take(of("flood", "other"))
    assert not seats.take(of("flood"))
    assert seats.take(of("other"))
    assert not seats.take(of("third"))
