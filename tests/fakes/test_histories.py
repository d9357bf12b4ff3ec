"""Histories played by hand are counted, and printed when they end wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fakes import histories, rig
from tests.fakes.overlaps import OVERLAPS, Overlap
from tests.fakes.world import World


def test_counts_what_it_plays() -> None:
    """As many histories of an overlap as asked for, about, and none ended wrong."""
    name, done, wrong = histories.overlaps(0, "", 16, seed=7)

    assert (name, wrong) == (OVERLAPS[0].name, [])
    assert 14 <= done <= 20


def test_prints_histories_that_end_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each failure is printed with what it takes to play it again, and the others are played."""
    broken = Overlap(
        "one of no use", OVERLAPS[0].declared, [], [], {"a": None, "u": [("no such",)]}
    )
    monkeypatch.setattr(histories, "OVERLAPS", [broken])

    _, done, wrong = histories.overlaps(0, "", 8, seed=7)

    assert done == 0
    assert wrong == [
        (
            "AttributeError: 'World' object has no attribute 'do_no such'\n"
            "    played: 'one of no use' with the moves ''"
        )
    ]


def test_worlds_are_drawn_from_a_seed() -> None:
    """A number of worlds is played, and all end well."""
    assert histories.worlds(3, seed=7) == ("a world", 3, [])


def test_a_clock_that_went_back_is_heeded_by_who_comes_after_a_death(tmp_path: Path) -> None:
    """A process that dies while it sets timers again leaves that to the next one, as in life."""
    world = World(tmp_path)
    world.do_clock(1)
    rig.tick(world.fleet)

    world.fate.doom(30)
    world.do_clock(0)

    assert world.deaths == 1
    assert rig.beyond_their_pause(world.fleet) == []
    world.fleet.close()


def test_plays_one_again(capsys: pytest.CaptureFixture[str]) -> None:
    """A failure's note is played once more; its status is that it ended well."""
    assert histories.main([f"'{OVERLAPS[0].name}' with the moves '3:b'"]) == 0
    assert capsys.readouterr().out == "ended well\n"
