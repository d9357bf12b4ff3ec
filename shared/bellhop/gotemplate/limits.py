"""The bounds a template runs in, and the meter that holds it to them.

A template is written by somebody else, so each render carries a budget. Work is paid for before
it is done: a function that would build a large value asks first, a loop pays per iteration.
"""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple

from bellhop.gotemplate.errors import (
    DepthLimitError,
    OutputLimitError,
    StepLimitError,
    TimeLimitError,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_NESTING = 100
"""How deeply control structures and parentheses may nest in a text."""

MAX_TOKENS = 100_000
"""How many pieces a text may be split into."""

MAX_DATA_DEPTH = 150
"""How deeply maps and lists may nest where they are walked."""

MAX_YAML_VALUES = 100_000
"""How many values, aliases counted once, one text of YAML may hold."""

_HELD_PER_OUTPUT = 8
_CALLS_PER_LOOK = 128
_ITEMS_PER_LOOK = 512


class Limits(NamedTuple):
    """What one render may use; the defaults suit manifests with room to spare."""

    output: int = 2_000_000
    """Characters of the result, and of any single value on the way."""
    steps: int = 500_000
    """Iterations, template calls and items that functions make."""
    depth: int = 100
    """Template calls within template calls."""
    seconds: float = 5.0
    """Wall-clock time."""


class Budget:
    """What is left of the limits of one render; functions that can be made to toil ask it."""

    __slots__ = (
        "calls",
        "context",
        "deadline",
        "held",
        "limits",
        "owned",
        "pieces",
        "seen",
        "steps",
        "written",
    )

    def __init__(
        self,
        limits: Limits,
        context: Any = None,
        pieces: list[str] | None = None,
        *,
        owned: bool = False,
    ) -> None:
        self.limits = limits
        self.context = context
        """What the functions of this render may read: the resources of `deploy_functions`."""
        self.pieces: list[str] = [] if pieces is None else pieces
        """What was written so far."""
        self.owned = owned
        """The data may be written into: it is the render's own copy."""
        self.seen = self.written = 0
        self.steps = limits.steps
        self.held = limits.output * _HELD_PER_OUTPUT
        self.calls = _CALLS_PER_LOOK
        self.deadline = monotonic() + limits.seconds

    def spend(self, steps: int) -> None:
        """Pay for a number of steps at once."""
        self.steps -= steps
        if self.steps < 0:
            raise StepLimitError(f"more than {self.limits.steps} steps")
        self.calls -= steps
        if self.calls < 0:
            self.look()

    def reserve(self, characters: int) -> None:
        """Ask whether a value of this many characters may be built, before building it."""
        if characters > self.limits.output:
            raise OutputLimitError(f"a value of more than {self.limits.output} characters")

    def charge(self, characters: int) -> None:
        """Pay for a value that was built."""
        self.reserve(characters)
        self.held -= characters
        if self.held < 0:
            most = self.limits.output * _HELD_PER_OUTPUT
            raise OutputLimitError(f"values of more than {most} characters in all")
        self.look()

    def look(self) -> None:
        """Look at the clock and at what was written."""
        self.calls = _CALLS_PER_LOOK
        pieces, seen = self.pieces, self.seen
        if len(pieces) > seen:
            self.written += sum(map(len, pieces[seen:]))
            self.seen = len(pieces)
            if self.written > self.limits.output:
                raise OutputLimitError(f"more than {self.limits.output} characters of output")
        if monotonic() > self.deadline:
            raise TimeLimitError(f"took longer than {self.limits.seconds:g} seconds")

    def begin(self, seconds: float) -> None:
        """Ask whether a call may begin that nothing can stop and that often takes so long.

        Where a render has little time as a whole, half of it must be left.
        """
        self.look()
        if monotonic() + min(seconds, self.limits.seconds / 2) > self.deadline:
            raise TimeLimitError(
                f"has too little left of its {self.limits.seconds:g} seconds for this function"
            )

    def metered(self, items: Any) -> Iterator[Any]:
        """Iterate, looking at the clock now and then; the caller has paid for the steps."""
        left = _ITEMS_PER_LOOK
        for item in items:
            left -= 1
            if left < 0:
                left = _ITEMS_PER_LOOK
                self.look()
            yield item

    def walk(self, value: dict[Any, Any] | list[Any], depth: int = 0) -> None:
        """Pay for each item of a nested value, so that shared parts cannot multiply unseen."""
        if depth > MAX_DATA_DEPTH:
            raise DepthLimitError(f"data nested more than {MAX_DATA_DEPTH} deep")
        self.spend(len(value))
        for item in value.values() if isinstance(value, dict) else value:
            if isinstance(item, str):
                self.held -= len(item)
            elif isinstance(item, dict | list):
                self.walk(item, depth + 1)
        if self.held < 0:
            self.charge(0)
