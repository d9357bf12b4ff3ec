"""Go's fmt.Sprintf: verbs, flags, width, precision, argument indexes and its complaints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bellhop.gotemplate.limits import SLOW, Budget, Limits
from bellhop.gotemplate.values import type_name
from bellhop.gotemplate.verbs import Flags, Verb

if TYPE_CHECKING:
    from collections.abc import Sequence

_MOST = 1_000_000


def sprintf(template: str, arguments: Sequence[Any], budget: Budget) -> str:
    """Format as Go does; mistakes are written into the result, never raised."""
    items = 1
    for argument in arguments:
        if isinstance(argument, dict | list):
            before = budget.steps
            budget.take(budget.walk(argument))
            items = max(items, before - budget.steps)
    return _Printer(template, arguments, budget, items).run()


def brief(value: Any) -> str:
    """Write a value that goes into a message, where Go uses %v."""
    return sprintf("%v", (value,), Budget(Limits()))


class _Printer:
    """One format over its arguments."""

    def __init__(self, template: str, arguments: Sequence[Any], budget: Budget, items: int) -> None:
        self.items = items
        """How many values one argument has at most: each is as wide as its verb says."""
        self.size = 0
        self.template = template
        self.arguments = arguments
        self.budget = budget
        self.position = 0
        self.argument = 0
        self.reordered = False
        self.good_index = True
        self.pieces: list[str] = []

    def run(self) -> str:
        """Write text and verbs in turn, then complain about what is left."""
        template, end = self.template, len(self.template)
        while self.position < end:
            percent = template.find("%", self.position)
            if percent < 0:
                self._put(template[self.position :])
                break
            if percent > self.position:
                self._put(template[self.position : percent])
            self.position = percent + 1
            self.budget.spend(1)
            self._directive()
        if not self.reordered and self.argument < len(self.arguments):
            self._extra()
        return "".join(self.pieces)

    def _put(self, piece: str) -> None:
        self.size += len(piece)
        self.budget.reserve(self.size)
        self.pieces.append(piece)

    def _extra(self) -> None:
        before = "%!(EXTRA "
        for argument in self.arguments[self.argument :]:
            self._put(before)
            before = ", "
            if argument is None:
                self._put("<nil>")
            else:
                self._put(f"{type_name(argument)}={Verb(Flags()).show(argument)}")
        self._put(")")

    def _directive(self) -> None:
        """Read one directive after its percent sign, and write it."""
        flags = Flags()
        self.good_index = True
        template = self.template
        while self.position < len(template) and template[self.position] in "#0+- ":
            self._flag(flags, template[self.position])
            self.position += 1
        indexed = self._index()
        indexed = self._width(flags, indexed)
        indexed = self._precision(flags, indexed)
        if not indexed:
            self._index()
        if self.position >= len(template):
            self._put("%!(NOVERB)")
            return
        verb = template[self.position]
        self.position += 1
        self._write(flags, verb)

    def _flag(self, flags: Flags, sign: str) -> None:
        if sign == "#":
            flags.sharp = True
        elif sign == "0":
            flags.zero = True
        elif sign == "+":
            flags.plus = True
        elif sign == "-":
            flags.minus = True
        else:
            flags.space = True

    def _write(self, flags: Flags, verb: str) -> None:
        if verb == "%":
            self._put("%")
        elif not self.good_index:
            self._put(f"%!{verb}(BADINDEX)")
        elif self.argument >= len(self.arguments):
            self._put(f"%!{verb}(MISSING)")
        else:
            if verb in "vw":
                flags.sharp_v, flags.sharp = flags.sharp, False
                flags.plus_v, flags.plus = flags.plus, False
            if verb in "qxX" or flags.sharp_v:
                self.budget.narrow(SLOW)
            self.budget.reserve(((flags.width or 0) + (flags.precision or 0)) * self.items)
            self._put(Verb(flags).format(self.arguments[self.argument], verb))
            self.argument += 1

    # -- numbers in the directive

    def _integer(self) -> int | None:
        """Read a decimal number; None where there is none or it is too large."""
        start = self.position
        template = self.template
        while self.position < len(template) and "0" <= template[self.position] <= "9":
            self.position += 1
            if int(template[start : self.position - 1] or "0") > _MOST:
                self.position = len(template)
                return None
        return int(template[start : self.position]) if self.position > start else None

    def _index(self) -> bool:
        """Read `[n]`, which moves to another argument."""
        template = self.template
        if template[self.position : self.position + 1] != "[":
            return False
        self.reordered = True
        closing = template.find("]", self.position)
        if len(template) - self.position < len("[n]") or closing < 0:
            self.good_index = False
            self.position += 1
            return False
        digits = template[self.position + 1 : closing]
        self.position = closing + 1
        plain = digits.isascii() and digits.isdigit() and len(digits) <= len(str(_MOST))
        if plain and 1 <= int(digits) <= len(self.arguments):
            self.argument = int(digits) - 1
            return True
        self.good_index = False
        return plain

    def _star(self) -> int | None:
        """Take a width or a precision from the arguments."""
        if self.argument >= len(self.arguments):
            return None
        value = self.arguments[self.argument]
        self.argument += 1
        if not isinstance(value, int) or isinstance(value, bool) or abs(value) > _MOST:
            return None
        return int(value)

    def _width(self, flags: Flags, indexed: bool) -> bool:  # noqa: FBT001 - a state, not an option
        if self.template[self.position : self.position + 1] == "*":
            self.position += 1
            flags.width = self._star()
            if flags.width is None:
                self._put("%!(BADWIDTH)")
            elif flags.width < 0:
                flags.width = -flags.width
                flags.minus = True
                flags.zero = False
            return False
        flags.width = self._integer()
        if indexed and flags.width is not None:
            self.good_index = False
        return indexed

    def _precision(self, flags: Flags, indexed: bool) -> bool:  # noqa: FBT001 - a state, not an option
        template = self.template
        if self.position + 1 >= len(template) or template[self.position] != ".":
            return indexed
        self.position += 1
        if indexed:
            self.good_index = False
        indexed = self._index()
        if template[self.position : self.position + 1] != "*":
            flags.precision = self._integer() or 0
            return indexed
        self.position += 1
        flags.precision = self._star()
        if flags.precision is not None and flags.precision < 0:
            flags.precision = None
        if flags.precision is None:
            self._put("%!(BADPREC)")
        return False
