"""A process that dies, and processes that take turns: at the n-th call to store, queue or cluster.

A port is wrapped whatever its methods are called: every callable of it is a call.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from bellhop.ports.store import Item
from bellhop.state.messages import Publisher

if TYPE_CHECKING:
    from tests.fakes.turns import Turns


class Killed(BaseException):
    """SIGKILL, as far as one process can play it: no handler of ours may catch it."""


class Fate:
    """How many steps are left; once dead, every further step fails, also in `finally` blocks.

    While `turns` is set, its actors' calls are its steps, and only theirs.
    """

    def __init__(self) -> None:
        self.turns: Turns | None = None
        self._left: int | None = None

    def doom(self, steps: int) -> None:
        """Let the process die at the given step from now."""
        self._left = steps

    def revive(self) -> None:
        """Begin a new process, which lives."""
        self._left = None

    def before(self, call: Callable[[], str], *, quiet: bool = False) -> None:
        """Take the step before a call's effect; at a quiet one the turn is not given away.

        Raises:
            Killed: it was the last one.
        """
        if self.turns and self.turns.acting():
            self.turns.step(call, quiet=quiet)
        else:
            self.step()

    def after(self) -> None:
        """Take the step after a call's effect; for actors that is the one before their next.

        Raises:
            Killed: it was the last one.
        """
        if not (self.turns and self.turns.acting()):
            self.step()

    def step(self) -> None:
        """Take one step.

        Raises:
            Killed: it was the last one.
        """
        if self._left is None:
            return
        self._left = max(self._left - 1, 0)
        if not self._left:
            raise Killed


_WRITES = frozenset(
    {"put", "delete", "publish", "apply", "apply_status", "merge", "merge_status", "remove"}
)


class FateOf(Fate):
    """Takes steps only at writes that a function of a package makes, itself or through others.

    Whoever calls once it is dead dies, too.
    """

    def __init__(self, package: str) -> None:
        super().__init__()
        self._package = package
        self._counts = False
        self.steps: list[str] = []
        """The writes that were made since the fate was decided last, each before and after it."""

    def doom(self, steps: int) -> None:
        """Let the process die at the given step from now; at none, if it is 0."""
        self.steps = []
        self._left = steps or None

    def before(self, call: Callable[[], str], *, quiet: bool = False) -> None:
        """Take the step before a write."""
        if self._left == 0:
            raise Killed
        name = call()
        self._counts = not quiet and name.split()[1] in _WRITES and self._is_called()
        if self._counts:
            self.steps.append(f"before {name}")
            self.step()

    def after(self) -> None:
        """Take the step after a write."""
        if self._counts:
            self.steps.append(self.steps[-1].replace("before", "after", 1))
            self.step()

    def _is_called(self) -> bool:
        frame = sys._getframe()
        while frame := frame.f_back:  # type: ignore[assignment]
            if frame.f_globals.get("__name__", "").startswith(self._package):
                return True
        return False


class Mortal:
    """A port of which every call takes two steps: one before its effect, one after it."""

    def __init__(self, name: str, port: Any, fate: Fate) -> None:
        self._name = name
        self._port = port
        self._fate = fate

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._port, name)
        return self._stepping(name, found) if callable(found) else found

    def _stepping(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            self._fate.before(lambda: f"{self._name} {name} {_shown(args)}", quiet=_quiet(args))
            result = method(*args, **kwargs)
            if isinstance(result, Iterator):
                result = iter(list(result))
            self._fate.after()
            return result

        return call


def kill_before_publishing(
    publisher: Publisher, of: Callable[[Any], bool], act: Callable[[], object]
) -> None:
    """Act, and kill the process before it publishes a message of some; nothing else ends it."""
    publish = publisher.publish

    def dies(messages: Iterable[Any]) -> None:
        batch = list(messages)
        if any(map(of, batch)):
            raise Killed
        publish(batch)

    publisher.publish = dies  # type: ignore[method-assign]
    try:
        act()
    except Killed:
        return
    finally:
        publisher.publish = publish  # type: ignore[method-assign]
    raise AssertionError("no such message was published")


def _quiet(args: tuple[Any, ...]) -> bool:
    """The event log decides nothing: its lines are no place to be interrupted."""
    return _shown(args).startswith("ledger")


def _shown(args: tuple[Any, ...]) -> str:
    words = []
    for each in args:
        if isinstance(each, str):
            words.append(each)
        elif isinstance(each, Item):
            words += [each.partition, each.sort]
        else:
            words.append(type(each).__name__)
    return " ".join(words)
