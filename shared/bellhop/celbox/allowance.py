"""Which objects a rule may be given in this process, as far as its bound goes."""

from __future__ import annotations

from bellhop.celbox.bound import Amount, bound
from bellhop.celbox.limits import Limits
from bellhop.celbox.syntax import Node

_LARGEST = 40


class Allowance:
    """What a rule may cost here, and up to what size of object that need not be reckoned."""

    def __init__(self, tree: Node, limits: Limits) -> None:
        self._tree = tree
        self._work = min(limits.seconds, limits.here) * 1e9
        self._memory = limits.memory
        self.harmless = self._largest_harmless()

    def allows(self, size: float, nodes: float) -> bool:
        """Tell whether an object of so many bytes and nodes may be judged here."""
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
