"""A rule: compiled once, and asked of any number of objects."""

from __future__ import annotations

import marshal
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from bellhop.celbox.errors import CelLimitError
from bellhop.celbox.limits import Limits


class Rule:
    """One expression that says of an object whether it holds.

    Several threads may ask the same rule at the same time.

    Raises:
        CelSyntaxError: the text is no CEL, or what it gives is no bool.
        CelLimitError: it is longer than the limit.
        CelMissingError: CEL's runtime is not installed.
    """

    def __init__(self, text: str, *, name: str = "rule", limits: Limits | None = None) -> None:
        self.text = text
        self.name = name
        self.limits = limits or Limits()
        if len(text.encode("utf-8", "replace")) > self.limits.size:
            wording = f"it is longer than {self.limits.size} bytes"
            raise CelLimitError(wording, kind="size", name=name)
        # Not at the top: who has no rules must not pay for these.
        from bellhop.celbox import bound, reach, runtime, syntax  # noqa: PLC0415

        self._runtime: ModuleType = runtime
        self._compiled = runtime.compiled(text, name)
        self._tree = syntax.tree(self._compiled.serialize())
        self._reach = reach.reach(self._tree)
        self._within = reach.within
        self._allowance = bound.Allowance(self._tree, self.limits)

    def holds(self, obj: dict[str, Any]) -> bool:
        """Return whether the rule holds for an object.

        Raises:
            CelRuntimeError: the rule fails on it, or gives something that is no bool.
            CelLimitError: the rule, or what it looks at, goes beyond a limit.
            TypeError: the object is no JSON.
        """
        if self._reach is not None:
            obj = self._within(obj, self._reach)
        written = self._write(obj)
        if len(written) <= self._allowance.harmless or self._allows(obj, len(written)):
            given = self._runtime.activation(obj, written)
            verdict: bool = self._runtime.verdict(self._compiled, given, self.name)
            return verdict
        # Not at the top: few rules need it, and it loads what starts processes.
        from bellhop.celbox import cell  # noqa: PLC0415

        return cell.ask(self.text, self.name, written, self.limits)

    def harmless(self, obj: dict[str, Any]) -> bool:
        """Return whether the rule may be evaluated on an object in this process."""
        obj = obj if self._reach is None else self._within(obj, self._reach)
        return self._allows(obj, len(self._write(obj)))

    def _allows(self, obj: dict[str, Any], size: int) -> bool:
        return self._allowance.allows(size, sum(1 for _ in _depths(obj)))

    def _write(self, obj: dict[str, Any]) -> bytes:
        """Return an object in bytes: for its size, and for a process of its own."""
        try:
            # Of all that could write it this is by far the quickest; version 2 shares nothing.
            written = marshal.dumps(obj, 2)
        except ValueError as error:
            if "unmarshallable" in str(error):
                raise TypeError("a value of the object has no place in JSON") from None
            raise self._too_deep() from None
        # A level takes five bytes or more, one of them a mark: with few of them it is not looked.
        most = self.limits.depth
        marked = len(written) > 5 * most and written.count(b"{") + written.count(b"[") > most
        if marked and max(_depths(obj)) > most:
            raise self._too_deep()
        return written

    def _too_deep(self) -> CelLimitError:
        wording = f"the object is nested more than {self.limits.depth} levels deep"
        return CelLimitError(wording, kind="depth", name=self.name)


def _depths(obj: Any) -> Iterator[int]:
    """Yield the depth of every key and value, without recursion."""
    waiting = [(1, obj)]
    while waiting:
        depth, value = waiting.pop()
        yield depth
        if isinstance(value, dict):
            yield from (depth for _ in value)
            waiting += [(depth + 1, each) for each in value.values()]
        elif isinstance(value, list):
            waiting += [(depth + 1, each) for each in value]
