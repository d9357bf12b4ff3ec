"""Several actors of which exactly one has the turn: each call that they make decides the next one.

Actors are threads, but never two run at once. Before each call to a port the one that has the
turn asks; the answer is a move: go on, give the turn to another, give it to another after so much
time that every lease has run out (both then believe to hold it), or die. Only moves decide
a history: the same moves over the same actors are the same history, so that what failed can be
played again from one line such as `12:b 30:c+ 41:!`.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from tests.fakes.mortal import Killed

DIES = "!"
LATER = "+"

_PATIENCE = 60.0
"""Seconds without a step after which somebody is stuck; no call takes a hundredth of it."""

_LAST = 12
"""Steps that a failure shows."""

Moves = Mapping[int, str]
"""What differs from going on, by the number of the step."""


class Chooser(Protocol):
    """Decides the next move."""

    def choose(self, at: int, current: str, ready: Sequence[str]) -> str:
        """Return who has the turn at a step, maybe with LATER, or DIES for the current one."""
        ...


class GivenMoves:
    """Plays the given moves; where there is none, or none that can be made, all go on."""

    def __init__(self, moves: Moves) -> None:
        self._moves = moves

    def choose(self, at: int, current: str, ready: Sequence[str]) -> str:
        move = self._moves.get(at, current)
        possible = move == DIES or move.removesuffix(LATER) in ready
        return move if possible else current


class Drawn:
    """Draws moves from a seed: about one in `rare` steps is one; `kinds` says which there are."""

    def __init__(self, seed: int, *, rare: int, kinds: str = "", most: int = 6) -> None:
        self._random = random.Random(seed)
        self._rare = rare
        self._kinds = kinds
        self._left = most

    def choose(self, at: int, current: str, ready: Sequence[str]) -> str:  # noqa: ARG002
        if not self._left or self._random.randrange(self._rare):
            return current
        self._left -= 1
        others = [each for each in ready if each != current]
        options = [*others]
        if LATER in self._kinds:
            options += [each + LATER for each in others]
        if DIES in self._kinds:
            options.append(DIES)
        return self._random.choice(options) if options else current


def spelled(moves: Moves) -> str:
    """Return moves as one line."""
    return " ".join(f"{at}:{move}" for at, move in sorted(moves.items()))


def read(text: str) -> dict[int, str]:
    """Read moves from one line."""
    pairs = (each.partition(":") for each in text.split())
    return {int(at): move for at, _, move in pairs}


class _Stopped(BaseException):
    """The history is over before its actors are."""


class Turns:
    """One history of some actors.

    `later` makes time pass. After `run`, `moves` are the moves that were made, `steps` how many
    there could have been, and `died` who did.
    """

    def __init__(
        self,
        actors: Mapping[str, Callable[[], None]],
        chooser: Chooser,
        *,
        later: Callable[[], object],
        limit: int = 20_000,
    ) -> None:
        self.moves: dict[int, str] = {}
        self.steps = 0
        self.died: set[str] = set()
        self._chooser = chooser
        self._later = later
        self._limit = limit
        self._ready = list(actors)
        self._idle: set[str] = set()
        self._current = ""
        self._calls: list[str] = []
        self._stopped = False
        self._errors: list[BaseException] = []
        self._over = threading.Event()
        self._turns = {name: threading.Semaphore(0) for name in actors}
        self._names: dict[int, str] = {}
        self._threads = [
            threading.Thread(target=self._live, args=(name, act), name=name, daemon=True)
            for name, act in actors.items()
        ]

    def run(self) -> None:
        """Let the actors act until all have ended.

        Raises:
            AssertionError: they never end, or one waits for what another holds.
        """
        for thread in self._threads:
            thread.start()
        self._pass_on()
        seen = -1
        while not self._over.wait(_PATIENCE):
            if seen == self.steps:
                raise AssertionError(
                    f"'{self._current}' has the turn and waits for what another holds;"
                    f" {self._describe()}"
                )
            seen = self.steps
        for thread in self._threads:
            thread.join()
        if self._errors:
            raise self._errors[0]

    def acting(self) -> str:
        """Return which actor asks; "" for a thread that is none."""
        return self._names.get(threading.get_ident(), "")

    def step(self, call: Callable[[], str], *, quiet: bool = False) -> None:
        """Ask before a call, which `call` describes; return once the turn is the actor's.

        A quiet call is not asked about; the dead do not make it either.

        Raises:
            Killed: the actor dies here, or died before.
        """
        me = self.acting()
        if me in self.died:
            raise Killed
        if self._stopped:
            raise _Stopped
        if quiet:
            return
        self.steps += 1
        if self.steps > self._limit - _LAST:
            self._calls.append(f"{me}: {call()}")
        if self.steps > self._limit:
            self._stop(AssertionError(f"the actors never end; {self._describe()}"))
            raise _Stopped
        self._idle.discard(me)
        move = self._chooser.choose(self.steps, me, self._ready)
        if move == me:
            return
        self.moves[self.steps] = move
        if move == DIES:
            self.died.add(me)
            raise Killed
        if move.endswith(LATER):
            self._later()
        self._hand_over(me, move.removesuffix(LATER))

    def rest(self) -> bool:
        """Wait, with nothing to do, until another has done something; say False if none will."""
        me = self.acting()
        self._idle.add(me)
        busy = [each for each in self._ready if each not in self._idle]
        if not busy or self._stopped:
            return False
        self._hand_over(me, busy[0])
        return True

    def _live(self, name: str, act: Callable[[], None]) -> None:
        self._names[threading.get_ident()] = name
        self._turns[name].acquire()
        try:
            if not self._stopped:
                act()
        except (Killed, _Stopped):
            pass
        except BaseException as error:  # noqa: BLE001 - the history reports it
            self._stop(error)
        self._ready.remove(name)
        self._idle.discard(name)
        self._pass_on()

    def _pass_on(self) -> None:
        if not self._ready:
            self._over.set()
            return
        busy = [each for each in self._ready if each not in self._idle]
        self._current = (busy or self._ready)[0]
        self._turns[self._current].release()

    def _hand_over(self, me: str, other: str) -> None:
        if me == other:
            return
        # An interrupted actor comes back last: one move lets all others finish meanwhile.
        self._ready.remove(me)
        self._ready.append(me)
        self._current = other
        self._turns[other].release()
        self._turns[me].acquire()
        if self._stopped:
            raise _Stopped

    def _stop(self, error: BaseException) -> None:
        self._errors.append(error)
        self._stopped = True

    def _describe(self) -> str:
        return f"moves {spelled(self.moves) or 'none'}; at last {self._calls[-_LAST:]}"
