"""Who has to go where too many came, and whose turn it is."""

from __future__ import annotations

from bellhop.adapters.local.crowd import AT_ONCE, Crowd, Turns


class Visitor:
    """A connection that notes its end."""

    def __init__(self, peer: str) -> None:
        self.peer = peer
        self.dropped = False

    def drop(self) -> None:
        self.dropped = True

    def stop(self) -> None:
        raise AssertionError(self.peer)


def entered(crowd: Crowd, *peers: str) -> list[Visitor]:
    visitors = [Visitor(peer) for peer in peers]
    for visitor in visitors:
        crowd.enter(visitor)
    return visitors


def test_a_full_house_lets_go_of_the_address_with_the_most_strangers() -> None:
    """Its oldest goes; who proved who it is stays, though it came before."""
    crowd = Crowd(most=4)
    known, one, other, alone = entered(crowd, "a", "a", "a", "b")
    crowd.proved(known)
    entered(crowd, "c")

    assert [each.dropped for each in (known, one, other, alone)] == [False, True, False, False]
    assert len(crowd) == 4


def test_where_all_are_known_the_longest_silent_goes() -> None:
    """Whoever has just spoken stays."""
    crowd = Crowd(most=2)
    first, second = entered(crowd, "a", "b")
    for each in (first, second, first):
        crowd.proved(each)
    entered(crowd, "c")

    assert (first.dropped, second.dropped) == (False, True)


def test_who_was_let_go_can_prove_nothing_any_more() -> None:
    """Its answer was under way when it was dropped."""
    crowd = Crowd()
    [gone] = entered(crowd, "a")
    crowd.leave(gone)
    crowd.proved(gone)

    assert len(crowd) == 0


def test_a_turn_that_is_given_up_goes_to_the_next() -> None:
    """Whoever left the line is not called, and nobody behind waits for it."""
    turns, called = Turns(), list[str]()
    first, second = (lambda: called.append("first")), (lambda: called.append("second"))
    assert all(turns.take("s") for _ in range(AT_ONCE))
    assert not turns.take("s", first)
    assert not turns.take("s", second)

    assert turns.give_up("s", first)
    turns.end("s")
    assert called == ["second"]
    # Its turn has come: it has to be ended, and cannot be given up.
    assert not turns.give_up("s", second)


def test_a_line_that_everybody_left_is_forgotten() -> None:
    """The turns that end afterwards are free for anybody."""
    turns = Turns()
    assert all(turns.take("s") for _ in range(AT_ONCE))
    assert not turns.take("s", print)
    assert turns.give_up("s", print)
    for _ in range(AT_ONCE):
        turns.end("s")

    assert all(turns.take("s") for _ in range(AT_ONCE))
    assert not turns.take("s")
