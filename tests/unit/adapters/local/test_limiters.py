"""Which connection is closed where there are too many."""

from __future__ import annotations

from bellhop.adapters.local.protocol import ConnectionLimiter


class Client:
    """A connection that notes its end."""

    def __init__(self, peer: str) -> None:
        self.peer = peer
        self.dropped = False

    def drop(self) -> None:
        self.dropped = True


def entered(limiter: ConnectionLimiter, *peers: str) -> list[Client]:
    clients = [Client(peer) for peer in peers]
    for client in clients:
        limiter.enter(client)
    return clients


def test_closes_one_of_the_address_with_the_most_unauthenticated_clients() -> None:
    """Its oldest is closed; an authenticated one stays, though it came before."""
    limiter = ConnectionLimiter(most=4)
    known, one, other, last = entered(limiter, "a", "a", "a", "b")
    limiter.prove(known)
    entered(limiter, "c")

    assert [each.dropped for each in (known, one, other, last)] == [False, True, False, False]
    assert len(limiter.all()) == 4


def test_closes_the_longest_silent_where_all_are_authenticated() -> None:
    """The one that has just sent a request stays."""
    limiter = ConnectionLimiter(most=2)
    first, second = entered(limiter, "a", "b")
    for each in (first, second, first):
        limiter.prove(each)
    entered(limiter, "c")

    assert (first.dropped, second.dropped) == (False, True)
