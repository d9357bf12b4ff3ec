"""That whose turn it is decides a history, and nothing else does."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from tests.fakes import turns as module
from tests.fakes.mortal import Fate, Mortal
from tests.fakes.turns import Drawn, GivenMoves, Turns, read, spelled


class Diary:
    """A port that writes down who called."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.time = 0

    def write(self, who: str) -> None:
        self.lines.append(who)

    def later(self) -> None:
        self.time += 1


class Play:
    """Two actors that write three lines each."""

    def __init__(self) -> None:
        self.fate = Fate()
        self.diary = Diary()
        self.port = Mortal("diary", self.diary, self.fate)

    def act(self, who: str) -> Callable[[], None]:
        def write() -> None:
            for _ in range(3):
                self.port.write(who)

        return write

    def run(self, chooser: module.Chooser) -> Turns:
        actors = {"a": self.act("a"), "b": self.act("b")}
        self.fate.turns = Turns(actors, chooser, later=self.diary.later, limit=50)
        self.fate.turns.run()
        return self.fate.turns


@pytest.mark.parametrize(
    ("moves", "lines", "died"),
    [
        pytest.param("", "aaabbb", "", id="nobody is interrupted"),
        pytest.param("2:b", "abbbaa", "", id="one is"),
        pytest.param("2:b 4:a", "abaabb", "", id="both are"),
        pytest.param("2:b+", "abbbaa", "", id="one is for long"),
        pytest.param("3:!", "aabbb", "a", id="one dies before a call"),
        pytest.param("2:b 5:!", "abbaa", "b", id="one dies meanwhile"),
        pytest.param("2:nobody", "aaabbb", "", id="a move that cannot be made"),
    ],
)
def test_moves_decide(moves: str, lines: str, died: str) -> None:
    """Each step is that of the actor which the moves named."""
    play = Play()

    turns = play.run(GivenMoves(read(moves)))

    assert "".join(play.diary.lines) == lines
    assert turns.died == set(died)
    assert play.diary.time == moves.count("+")


def test_the_dead_call_nothing() -> None:
    """A dead actor makes no further call, also in its clean-up."""
    play = Play()

    def act() -> None:
        try:
            play.port.write("a")
            play.port.write("b")
        finally:
            play.port.write("c")

    play.fate.turns = Turns({"one": act}, GivenMoves({2: "!"}), later=play.diary.later)
    play.fate.turns.run()

    assert play.diary.lines == ["a"]


def test_drawn_moves_can_be_played_again() -> None:
    """The printed moves of a seed are the same history; other seeds are others."""
    histories = set()
    for seed in range(40):
        drawn, replayed = Play(), Play()
        turns = drawn.run(Drawn(seed, rare=3, kinds="!+"))
        again = replayed.run(GivenMoves(read(spelled(turns.moves))))

        assert replayed.diary.lines == drawn.diary.lines
        assert (again.moves, again.died) == (turns.moves, turns.died)
        histories.add("".join(drawn.diary.lines))

    assert len(histories) > 10


def test_one_with_nothing_to_do_waits_for_the_others() -> None:
    """A rest ends when another has had its turn, and is refused once all others rest or ended."""
    play = Play()

    def watch() -> None:
        while play.fate.turns and play.fate.turns.rest():
            play.port.write("watched")

    actors = {"watch": watch, "b": play.act("b")}
    play.fate.turns = Turns(actors, GivenMoves({2: "watch"}), later=play.diary.later)
    play.fate.turns.run()

    assert play.diary.lines == ["b", "watched", "b", "b", "watched"]


def test_names_the_actor_that_never_ends() -> None:
    """Actors that keep each other busy fail with what they did at last."""
    play = Play()

    def for_ever() -> None:
        while True:
            play.port.write("again")

    play.fate.turns = Turns({"a": for_ever}, GivenMoves({}), later=play.diary.later, limit=50)

    with pytest.raises(AssertionError, match=r"never end; moves none; at last .*a: diary write"):
        play.fate.turns.run()


def test_names_the_actor_that_waits_for_a_held_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lock held by somebody without the turn is a failure, not a test that hangs."""
    monkeypatch.setattr(module, "_PATIENCE", 0.2)
    play = Play()
    lock = threading.Lock()

    def hold() -> None:
        with lock:
            play.port.write("held")

    play.fate.turns = Turns({"a": hold, "b": hold}, GivenMoves({1: "b"}), later=play.diary.later)

    with pytest.raises(AssertionError, match="'b' has the turn and waits for what another holds"):
        play.fate.turns.run()


def test_an_actors_error_is_the_historys() -> None:
    """What an actor raises ends the history, and is raised by it."""
    play = Play()

    def fail() -> None:
        message = "not so"
        raise LookupError(message)

    play.fate.turns = Turns({"a": fail, "b": play.act("b")}, GivenMoves({}), later=play.diary.later)

    with pytest.raises(LookupError, match="not so"):
        play.fate.turns.run()
    assert play.diary.lines == []
