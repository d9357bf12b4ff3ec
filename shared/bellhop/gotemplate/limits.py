"""The bounds a template runs in, and the meter that holds it to them.

A template is written by somebody else, so each render carries a budget. Work is paid for before
it is done: a function that would build a large value asks first, a loop pays per iteration. Code
in C cannot be interrupted, so every call is bounded by the size of its arguments.
"""

from __future__ import annotations

from sys import getsizeof
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple

from bellhop.gotemplate.errors import (
    DepthLimitError,
    OutputLimitError,
    StepLimitError,
    TimeLimitError,
)
from bellhop.gotemplate.values import Bytes, DictList, IntList, StringList, StringMap

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

MAX_NESTING = 100
"""How deeply control structures and parentheses may nest in a text."""

MAX_TOKENS = 100_000
"""How many pieces a text may be split into."""

MAX_DATA_DEPTH = 150
"""How deeply maps and lists may nest where all their items are visited."""

MAX_YAML_VALUES = 100_000
"""How many values, aliases counted once, one text of YAML may hold."""

SLOW = 1 << 20
"""Characters that one call may be given of a function that takes them one by one."""

SLOWER = 1 << 17
"""Characters that one call may be given of a function that toils over each of them."""

WRITTEN = 1 << 22
"""Characters that one call may be given to write as JSON, where one may become six."""

LONG = 1 << 12
"""Characters from which on a text is no number, and from which on a call looks at the clock."""

MOST_PRODUCT = 100_000_000
"""How large the product of two sizes may be where a call takes time in proportion to it."""

CUTTING = "the number of characters to cut off times the size of the text"
"""The name of the product that `multiply` bounds for functions which trim a text."""

_CALL = 64
_SIZED = frozenset((str, list, dict, StringList, StringMap, IntList, DictList, Bytes))
_HELD_PER_OUTPUT = 8
_CALLS_PER_LOOK = 128
_ITEMS_PER_LOOK = 512


class Limits(NamedTuple):
    """The limits of one render; the defaults are more than manifests need."""

    output: int = 2_000_000
    """Characters of the result, and of any single value on the way."""
    steps: int = 500_000
    """Iterations, template calls and items that functions make."""
    depth: int = 100
    """Template calls within template calls."""
    seconds: float = 5.0
    """Wall-clock time."""


class Budget:
    """The rest of the limits of one render; functions whose cost depends on input charge it."""

    __slots__ = (
        "calls",
        "context",
        "deadline",
        "deepest",
        "held",
        "limits",
        "most",
        "owned",
        "pieces",
        "seen",
        "steps",
        "taken",
        "walked",
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
        """The resources that functions of this render may read: those of `deploy_functions`."""
        self.pieces: list[str] = [] if pieces is None else pieces
        """The output so far."""
        self.owned = owned
        """The data may be written into: it is the render's own copy."""
        self.seen = self.written = 0
        self.steps = limits.steps
        self.held = limits.output * _HELD_PER_OUTPUT
        """Bytes of memory that the render's values may still take."""
        self.most = limits.output
        """Characters that the call under way may be given; `taken` are those that it was."""
        self.taken = self.walked = self.deepest = 0
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

    def begin_call(self, arguments: Sequence[Any], most: int) -> None:
        """Ask whether a call may be given these arguments, of which texts count by their length.

        A function that reads what lists and maps hold asks for that by `take`, or by `walk`.
        """
        self.most = most or self.limits.output
        self.taken = 0
        for argument in arguments:
            if argument.__class__ is str:
                self.taken += len(argument)
        if self.taken > LONG:
            self.take(0)
            self.look()

    def narrow(self, most: int) -> None:
        """Ask whether the call under way may do what takes no more than so many characters."""
        self.most = min(self.most, most)
        self.take(0)

    def take(self, characters: int) -> None:
        """Ask whether the call under way may be given so many characters more."""
        self.taken += characters
        if self.taken > self.most:
            raise OutputLimitError(f"a call is given more than {self.most} characters")

    def pay_call(self, result: Any, arguments: Sequence[Any]) -> None:
        """Pay for a call that has ended, and for the memory of what it made of its arguments."""
        self.calls -= 1
        self.held -= _CALL
        if self.calls < 0:
            self.look()
        if self.held < 0:
            self.charge(0)
        if (
            result.__class__ in _SIZED
            and len(result) > _CALL
            and not any(result is each for each in arguments)
        ):
            self.hold(result)

    def hold(self, value: str | list[Any] | dict[Any, Any]) -> None:
        """Pay for the memory of a text, a list or a map that was built."""
        self.reserve(len(value))
        self.charge(getsizeof(value))

    def charge(self, size: int) -> None:
        """Pay for so many bytes of memory."""
        self.held -= size
        if self.held < 0:
            most = self.limits.output * _HELD_PER_OUTPUT
            raise OutputLimitError(f"values of more than {most} bytes in all")
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

    def multiply(self, what: str, one: int, other: int) -> None:
        """Ask whether a call may take as many steps in C as the product of two sizes, `what`.

        They are `MOST_PRODUCT` at most, which take about a second.
        """
        if one * other > MOST_PRODUCT:
            raise OutputLimitError(
                f"{what} is {one} times {other}, which is more than {MOST_PRODUCT}"
            )
        self.look()

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

    def walk(self, value: dict[Any, Any] | list[Any], lead: int = 0) -> int:
        """Pay for each item of a nested value, so that shared parts cannot multiply unseen.

        Returns its characters, those of its keys included; of `lead` are those that each item
        takes for every level that it lies deep. A writer copies nested text again at each
        level, so that depth and size bound each other.
        """
        self.walked = self.deepest = 0
        self._walk(value, 0, lead)
        if self.deepest * self.walked > MOST_PRODUCT:
            self.multiply("the depth times the size of a value", self.deepest, self.walked)
        return self.walked

    def _walk(self, value: dict[Any, Any] | list[Any], depth: int, lead: int) -> None:
        if depth > MAX_DATA_DEPTH:
            raise DepthLimitError(f"data nested more than {MAX_DATA_DEPTH} deep")
        self.deepest = max(self.deepest, depth)
        count = len(value)
        self.spend(count)
        size = count * (1 + lead * depth)
        items: Iterable[Any] = value
        if isinstance(value, dict):
            size += sum(len(key) for key in value if key.__class__ is str)
            items = value.values()
        self.walked += size
        for item in items:
            if isinstance(item, str):
                self.walked += len(item)
            elif isinstance(item, dict | list):
                self._walk(item, depth + 1, lead)
        self.reserve(self.walked)
