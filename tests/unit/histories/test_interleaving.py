"""Two or three at once, interrupted anywhere: it ends as if one had come after the other.

`make fuzz` plays thousands; here it is one of each overlap, the same each time.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from bellhop.diagnosis import held_deletions
from tests.fakes.declared import EACH, EACH_TEXT, WATCHED
from tests.fakes.known import played
from tests.fakes.overlaps import OVERLAPS, SORTS, Overlap, again, play, read_note
from tests.fakes.turns import Drawn, GivenMoves, read, spelled
from tests.fakes.world import World


@pytest.mark.parametrize(
    ("overlap", "seed"),
    [
        pytest.param(each, seed, id=each.name, marks=[pytest.mark.rest] * bool(seed % 4))
        for seed, each in enumerate(OVERLAPS)
    ],
)
def test_ends_as_if_one_came_after_the_other(overlap: Overlap, seed: int) -> None:
    """Wherever a worker is interrupted, the model and all records agree once all have ended."""
    kinds = "".join(sort for sort in SORTS if played(overlap.name, sort))
    play(overlap, Drawn(seed, rare=8, kinds=kinds))


def test_a_failure_shows_how_to_replay_it() -> None:
    """A failure names the overlap and the moves that led to it."""
    overlap = OVERLAPS[0]
    broken = Overlap(overlap.name, overlap.declared, [("no such step",)], [], overlap.acts)
    with pytest.raises(AttributeError, match="no such step"):
        play(broken, GivenMoves({}))

    failing = Overlap(overlap.name, overlap.declared, [], [], {"a": None, "u": [("no such step",)]})
    with pytest.raises(AttributeError) as caught:
        play(failing, GivenMoves({2: "u"}))

    assert caught.value.__notes__ == [f"played: '{overlap.name}' with the moves '2:u'"]


def test_every_history_is_found_by_its_note() -> None:
    """Also one with an apostrophe in its name."""
    for each in OVERLAPS:
        assert read_note(f"played: '{each.name}' with the moves '6:b+ 9:u'")[0] is each


def test_replays_what_a_failure_showed() -> None:
    """A failure's note is enough to play its history once more; anything else is refused."""
    played = next(each for each in OVERLAPS if {"a", "b"} <= each.acts.keys())
    turns = again(f"played: '{played.name}' with the moves '2:b 9:a 20:!'")

    assert spelled(turns.moves) == "2:b 9:a 20:!"
    with pytest.raises(LookupError, match="cannot find what was played in 'no note'"):
        again("no note")


@pytest.mark.parametrize(
    ("name", "moves"),
    [
        pytest.param(name, "122:b+ 143:u+", id=f"{name}, and a turn ends before its first match")
        for name in (
            "a source goes while an object is judged",
            "a trigger goes while it is instantiated",
        )
    ]
    + [
        pytest.param(
            "a backup is restored while it is worked on",
            "50:b 62:!",
            id="a backup is restored, and who made an object anew dies before it can tell",
        ),
        pytest.param(
            "a cluster is left and chosen again while what it reads changes",
            "28:!",
            id="who dies half-way through striking out what was read leaves it for noted",
        ),
        pytest.param(
            "another object is read from now on, and both change",
            "37:b+ 82:b+",
            id="two who strike out what is read leave nothing behind",
        ),
    ]
    # Which part of the catalog's number is read is drawn: most draws ended wrong.
    + [
        pytest.param(
            "a cluster's health is asked for no more, and again, while a resource is judged",
            "6:b+ 10:a+ 17:u 32:a 33:u+ 34:a+",
            id=f"a source that comes back as it was is evaluated again, {number}",
        )
        for number in range(4)
    ],
)
def test_ends_well_where_it_once_did_not(name: str, moves: str) -> None:
    """Histories that long draws found: each was a defect, or looked like one."""
    [overlap] = [each for each in OVERLAPS if each.name == name]

    play(overlap, GivenMoves(read(moves)))


def test_holds_in_the_histories_that_are_about_it(tmp_path: Path) -> None:
    """In a guarded world one of two objects that ends stays until it is released."""
    world = World(tmp_path, ("east",), guarded=True)
    world.begin({WATCHED: 0, EACH: 0, EACH_TEXT: 0})
    for name in "ab":
        world.do_put("east", "Service", name, "yes", 0, "sent")
    world.fleet.pump()
    world.do_drop("east", "Service", "a", "sent")
    world.fleet.pump()
    assert [
        each.number for each in held_deletions.list_held_reports(world.fleet.installation())
    ] == [1]
    assert len(world.made("east")) == 2

    world.do_release()
    world.fleet.pump()
    assert len(world.made("east")) == 1
    world.fleet.close()
