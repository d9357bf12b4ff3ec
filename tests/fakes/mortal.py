"""A process that dies: at the n-th thing it does to store, queue or cluster, before or after it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from bellhop.ports.kube import Kube
from tests.fakes.fleet import FakeAccess


class Killed(BaseException):
    """SIGKILL, as far as one process can play it: no handler of ours may catch it."""


class Fate:
    """How many steps are left; once dead, every further step fails, also in `finally` blocks."""

    def __init__(self) -> None:
        self._left: int | None = None

    def doom(self, steps: int) -> None:
        """Let the process die at the given step from now."""
        self._left = steps

    def revive(self) -> None:
        """Begin a new process, which lives."""
        self._left = None

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


class Mortal:
    """A port of which every call takes two steps: one before its effect, one after it."""

    def __init__(self, port: Any, fate: Fate) -> None:
        self._port = port
        self._fate = fate

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._port, name)
        return self._stepping(found) if callable(found) else found

    def _stepping(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            self._fate.step()
            result = method(*args, **kwargs)
            if isinstance(result, Iterator):
                result = iter(list(result))
            self._fate.step()
            return result

        return call


class MortalAccess(FakeAccess):
    """Clients of which every call may be the last."""

    def __init__(self, fate: Fate) -> None:
        super().__init__()
        self._fate = fate

    def open(self, cluster: str, *, version: str = "") -> Kube:
        return Mortal(super().open(cluster, version=version), self._fate)
