"""Idle connections are bounded over all clients, by number and by age; those in use are left."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from bellhop.adapters.egress.client import HttpClient, Idle
from bellhop.adapters.egress.dialer import Dialer
from bellhop.core.address_policy import LOCAL
from tests.fakes.clock import Hand
from tests.unit.adapters.kube.conftest import Answer, ScriptedApi


@dataclass(eq=False)
class Line:
    """A connection that only knows whether it is open."""

    open: bool = True

    def close(self) -> None:
        self.open = False


def test_the_least_recently_used_goes_first() -> None:
    """Of three that may be two, the one that was laid down longest ago is closed."""
    idle, lines = Idle(2), [Line(), Line(), Line()]
    idle.lay_down(lines[0])
    idle.lay_down(lines[1])
    idle.take_up(lines[0])
    idle.lay_down(lines[0])

    idle.lay_down(lines[2])

    assert [each.open for each in lines] == [True, False, True]


def test_what_lay_too_long_is_closed() -> None:
    """The next one that is laid down a minute after its last use closes it."""
    hand, old, young, last = Hand(), Line(), Line(), Line()
    idle = Idle(10, clock=hand)
    idle.lay_down(old)
    hand.at += 40
    idle.lay_down(young)
    hand.at += 40

    idle.lay_down(last)

    assert (old.open, young.open, last.open) == (False, True, True)


def test_who_is_in_use_is_not_closed() -> None:
    """However many others are laid down, and however long it takes."""
    hand, busy = Hand(), Line()
    idle = Idle(1, clock=hand)
    idle.lay_down(busy)
    idle.take_up(busy)
    hand.at += 1000

    for _ in range(5):
        idle.lay_down(Line())

    assert busy.open


@pytest.mark.parametrize(("most", "connections"), [(8, 3), (2, 6)], ids=["enough", "too few"])
def test_clients_share_the_bound(api: ScriptedApi, most: int, connections: int) -> None:
    """Three clients in turn, twice: each keeps its connection, or each finds it closed."""
    idle = Idle(most)
    api.script = [Answer() for _ in range(6)]
    clients = [HttpClient(api.url, dialer=Dialer(LOCAL), threads=4, idle=idle) for _ in range(3)]

    for client in [*clients, *clients]:
        assert client.request("GET", "/x", headers={}, timeout=5).status == 200

    assert api.open == connections
