"""Upper bound of the cost of an evaluation, computed from the rule before it is run.

CEL has no unbounded loops, so a bound can be had: of every part of the rule the largest value
that it can give, in bytes and in nodes (a scalar, a key, a list or a map is one), and from these
the work and the memory of what is done with it. Each element of a list may be as large as the
whole list, but all of them together are no larger. Costs are polynomials without minus signs, and
such a sum is largest where one element has everything and the others nothing:

    cost of a loop  <=  cost of its body for the whole list + n * cost for an empty element

Without that, `resource.spec.ports.exists(p, p.name == 'web')` would look quadratic.

Numbers were measured with cel-expr-python 0.1.3 on a slow core, and rounded up. Work is in
nanoseconds, memory in bytes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import NamedTuple

from bellhop.celbox.limits import Limits
from bellhop.celbox.syntax import Call, Constant, Loop, Made, Name, Node, Select

_NESTED = 4
"""Loops within loops whose bound is worked out: its body is visited four times for each."""

_ROUNDS = 10_000.0
"""Rounds of all loops together, after which CEL's runtime ends them."""

_STEP = 500.0
_POINTER = 32.0
_FOREVER = math.inf

_LARGE_PATTERN = 256 * 1024
"""Bytes that a pattern may compile to in this process, which takes some 2 ms."""


class Amount(NamedTuple):
    """How large a value is at most."""

    size: float
    nodes: float

    def __add__(self, other: object) -> Amount:
        assert isinstance(other, Amount)
        return Amount(self.size + other.size, self.nodes + other.nodes)

    def times(self, factor: float) -> Amount:
        """Return so many of it."""
        return Amount(self.size * factor, self.nodes * factor)


class Cost(NamedTuple):
    """Nanoseconds, and bytes allocated."""

    work: float
    memory: float


class _Use(NamedTuple):
    """The bounds of a function's result, and the cost of computing it."""

    gives: Amount
    work: float = 0.0
    memory: float = 0.0


SCALAR = Amount(8.0, 1.0)


def bound(node: Node, given: Amount) -> Cost:
    """Return what a rule costs at most with an object of this size as `resource`."""
    meter = _Meter()
    meter.visit(node, {"resource": given})
    return Cost(meter.work, meter.memory)


_LARGEST = 40
"""The power of two up to which sizes of objects are tried."""


class Allowance:
    """The most that a rule may cost, and the size of object up to which no bound is computed."""

    def __init__(self, tree: Node, limits: Limits) -> None:
        self._tree = tree
        self._work = min(limits.seconds, limits.here) * 1e9
        self._memory = limits.memory
        self.harmless = self._largest_harmless()

    def allows(self, size: float, nodes: float) -> bool:
        """Return whether an object of so many bytes and nodes may be evaluated here."""
        cost = bound(self._tree, Amount(size, nodes))
        return cost.work <= self._work and cost.memory <= self._memory

    def _largest_harmless(self) -> int:
        """Return a power of two; an object cannot have more nodes than bytes."""
        low, high = 0, _LARGEST
        while low < high:
            middle = (low + high + 1) // 2
            if self.allows(2.0**middle, 2.0**middle):
                low = middle
            else:
                high = middle - 1
        return 1 << low if low else 0


class _Meter:
    def __init__(self) -> None:
        self.work = 0.0
        self.memory = 0.0
        self._depth = 0

    def visit(self, node: Node, scope: Mapping[str, Amount]) -> Amount:
        """Add what a node costs, and return the largest value that it can have."""
        self.work += _STEP
        match node:
            case Constant():
                return Amount(node.size, 1.0)
            case Name():
                return scope.get(node.name, SCALAR)
            case Select():
                return self.visit(node.operand, scope)
            case Made():
                items = [self.visit(each, scope) for each in node.items]
                self.memory += 2 * _POINTER * len(items)
                return sum(items, SCALAR)
            case Call():
                args = [self.visit(each, scope) for each in node.args]
                use = _use(node, args)
                self.work += use.work
                self.memory += use.memory
                return use.gives
            case Loop():
                return self._loop(node, scope)

    def _loop(self, loop: Loop, scope: Mapping[str, Amount]) -> Amount:
        over, start = self.visit(loop.over, scope), self.visit(loop.start, scope)
        if self._depth == _NESTED:
            self.work = self.memory = _FOREVER
            return start
        self._depth += 1
        # Each round adds something to the total: first what, with a total that costs nothing.
        gain, _ = self._rounds(loop, scope, over, SCALAR)
        total = start + gain
        _, cost = self._rounds(loop, scope, over, total)
        self._depth -= 1
        self.work += cost.work
        self.memory += cost.memory
        return self.visit(loop.end, {**scope, loop.total: total})

    def _rounds(
        self, loop: Loop, scope: Mapping[str, Amount], over: Amount, total: Amount
    ) -> tuple[Amount, Cost]:
        """Return what all rounds together add and cost, without noting it."""
        gains, work, memory = Amount(0, 0), 0.0, 0.0
        before = self.work, self.memory
        for element, times in ((over, 1.0), (SCALAR, min(over.nodes, _ROUNDS))):
            self.work = self.memory = 0.0
            inner = {**scope, **dict.fromkeys(loop.names, element), loop.total: total}
            self.visit(loop.condition, inner)
            gains += self.visit(loop.step, inner).times(times)
            work += self.work * times
            memory += self.memory * times
        self.work, self.memory = before
        return gains, Cost(work, memory)


def _use(call: Call, args: list[Amount]) -> _Use:
    if call.function == "_+_":
        return _sum(call, args)
    if call.function in _REGEX:
        return _matching(call, args)
    together = sum(args, Amount(0.0, 0.0))
    known = _FUNCTIONS.get(call.function)
    if known is not None:
        return known(args, together)
    # One of ours, in Python: it gets a copy of all, and makes at most another.
    work = 20_000 + 1_000 * together.nodes + 10 * together.size
    return _Use(together + SCALAR, work, 8 * together.size + 256 * together.nodes)


def _sum(call: Call, args: list[Amount]) -> _Use:
    together = sum(args, Amount(0.0, 0.0))
    if any(isinstance(each, Constant) and each.text is None for each in call.args):
        return _Use(SCALAR)
    copied = _POINTER * together.nodes
    if not any(isinstance(each, Made) for each in call.args):
        copied += together.size
    return _Use(together, 150 * together.nodes + together.size, copied)


def _matching(call: Call, args: list[Amount]) -> _Use:
    """Reckon with a pattern that is compiled each time, as it is, and is run state by state."""
    text, together = args[0], sum(args, Amount(0.0, 0.0))
    pattern = call.args[1] if len(call.args) > 1 else None
    if not isinstance(pattern, Constant) or pattern.text is None:
        return _Use(together, _FOREVER, _FOREVER)
    states = program_size(pattern.text)
    work = 20_000 + 1_000 * states + text.size * (10 + 2 * states)
    if call.function != "findAll":
        return _Use(Amount(text.size, 1.0), work, text.size)
    made = Amount(text.size, text.size + 1)
    return _Use(made, work + 15_000 * made.nodes, 256 * made.nodes)


@lru_cache(maxsize=1024)
def program_size(pattern: str) -> float:
    """Return into how many instructions a pattern compiles; 0 for one that does not.

    A large one is not compiled to its end, which takes up to 50 ms: it has no bound, and is tried
    apart. A bound is asked for some forty times, and a rule may have a thousand patterns.
    """
    import re2  # noqa: PLC0415 - 4 ms, of use only to rules with patterns

    options = re2.Options()
    options.log_errors = False
    options.max_mem = _LARGE_PATTERN
    try:
        return int(re2.compile(pattern, options).programsize)
    except re2.error as error:
        return _FOREVER if b"too large" in error.args[0] else 0


_REGEX = frozenset(("matches", "find", "findAll"))


def _verdict(work: float = 0.0) -> Callable[[list[Amount], Amount], _Use]:
    """Make the use of what looks at its arguments and gives a number or a bool."""
    return lambda _, all_: _Use(SCALAR, work + 300 * all_.nodes + 3 * all_.size)


def _rewritten(factor: float) -> Callable[[list[Amount], Amount], _Use]:
    """Make the use of what gives its first argument, so many times as long."""

    def use(args: list[Amount], _: Amount) -> _Use:
        size = factor * args[0].size + 32
        return _Use(Amount(size, 1.0), 20 * size, 2 * size)

    return use


def _searched(args: list[Amount], _: Amount) -> _Use:
    text, word = args[0].size, args[1].size
    return _Use(SCALAR, 10 * (text + word) + 0.05 * text * word, 8 * (text + word))


def _chosen(args: list[Amount], _: Amount) -> _Use:
    return _Use(args[0] if len(args) == 1 else _larger(args[-2], args[-1]))


def _larger(one: Amount, other: Amount) -> Amount:
    return Amount(max(one.size, other.size), max(one.nodes, other.nodes))


def _item(args: list[Amount], all_: Amount) -> _Use:
    return _Use(args[0], 3 * all_.size if len(args) > 1 and args[1].size > SCALAR.size else 0.0)


def _replaced(args: list[Amount], _: Amount) -> _Use:
    size = args[0].size + (args[0].size + 1) * args[2].size
    # Each place that is replaced costs more than a byte that is copied.
    work = 20 * (size + args[1].size) + 100 * args[0].size
    return _Use(Amount(size, 1.0), work, 2 * size)


def _joined(args: list[Amount], _: Amount) -> _Use:
    size = args[0].size + args[0].nodes * (args[1].size if len(args) > 1 else 0.0)
    return _Use(Amount(size, 1.0), 30 * (size + args[0].nodes), 2 * size)


def _parted(args: list[Amount], all_: Amount) -> _Use:
    made = Amount(args[0].size, args[0].size + 1)
    return _Use(made, 400 * all_.size, 64 * all_.size)


def _formatted(args: list[Amount], all_: Amount) -> _Use:
    size = 150 * args[0].size + 4 * all_.size + 64 * all_.nodes
    return _Use(Amount(size, 1.0), 20 * size, 2 * size)


_FUNCTIONS: dict[str, Callable[[list[Amount], Amount], _Use]] = {
    **dict.fromkeys(("_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_", "@in", "in"), _verdict()),
    **dict.fromkeys(("size", "startsWith", "endsWith"), _verdict()),
    **dict.fromkeys(("_&&_", "_||_", "!_", "@not_strictly_false"), lambda *_: _Use(SCALAR)),
    **dict.fromkeys(("-_", "_-_", "_*_", "_/_", "_%_"), lambda *_: _Use(SCALAR)),
    **dict.fromkeys(("int", "uint", "double", "bool", "duration", "timestamp"), _verdict(1_000)),
    **dict.fromkeys(("contains", "indexOf", "lastIndexOf"), _searched),
    **dict.fromkeys(("trim", "lowerAscii", "upperAscii", "substring", "charAt"), _rewritten(1)),
    **dict.fromkeys(("reverse", "string", "bytes"), _rewritten(1)),
    **dict.fromkeys(("quote", "strings.quote"), _rewritten(2)),
    "type": lambda *_: _Use(SCALAR),
    "dyn": _chosen,
    "_?_:_": _chosen,
    "_[_]": _item,
    "replace": _replaced,
    "join": _joined,
    "split": _parted,
    "format": _formatted,
}
