"""A template as its users see it: made once, rendered any number of times, from any thread."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from bellhop.gotemplate.compiler import Program
from bellhop.gotemplate.errors import DepthLimitError, LimitError, OutputLimitError, Place
from bellhop.gotemplate.frames import Frame
from bellhop.gotemplate.functions import FunctionSet, as_function_set
from bellhop.gotemplate.limits import Budget, Limits
from bellhop.gotemplate.origins import lines_of
from bellhop.gotemplate.values import NO_VALUE, copied

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from bellhop.gotemplate.functions import Function

MissingKey = Literal["error", "default", "invalid", "zero"]
_MISSING = {"error": "error", "default": "default", "invalid": "default", "zero": "zero"}
_CACHED_PROGRAMS = 1024
_DEFAULT_LIMITS = Limits()


class Template:
    """A parsed and compiled Go template.

    Args:
        text: the template.
        name: what errors call it.
        funcs: functions beside Go's own: a set such as `sprig_functions()`, or a mapping of names
            to `Function` or to plain callables, whose arguments may be anything.
        missingkey: what a missing map key is: an error, nothing, or its type's zero.
        limits: what a render may use.

    Raises:
        ParseError: where the text is not a template.
    """

    __slots__ = ("_functions", "_limits", "_missing", "_program")

    def __init__(
        self,
        text: str,
        *,
        name: str = "template",
        funcs: Mapping[str, Function | Callable[..., Any]] | None = None,
        missingkey: MissingKey = "error",
        limits: Limits | None = None,
    ) -> None:
        self._functions = as_function_set(funcs)
        self._limits = limits or _DEFAULT_LIMITS
        self._missing = _MISSING[missingkey]
        self._program = _program(text, name, self._missing, _Keyed(self._functions))

    @property
    def name(self) -> str:
        return self._program.name

    def render(self, data: Any, *, limits: Limits | None = None) -> str:
        """Render with the data as the cursor, which is never written to.

        Raises:
            ExecError: where template and data do not fit together.
            LimitError: where the render would use more than it may.
        """
        pieces, budget = self._run(self._program, data, limits or self._limits)
        return _joined(pieces, budget, self.name)

    def origins(self, data: Any, *, limits: Limits | None = None) -> list[int]:
        """Return the template's line for each line that `render` writes: to explain its output.

        Raises:
            ExecError: where template and data do not fit together.
            LimitError: where the render would use more than it may.
        """
        plain = self._program
        functions = FunctionSet({**_builtins(), **self._functions})
        marked = Program(plain.name, plain.text, functions, self._missing, marked=True)
        return lines_of(self._run(marked, data, limits or self._limits)[0])

    def _run(self, program: Program, data: Any, limits: Limits) -> tuple[list[str], Budget]:
        pieces: list[str] = []
        budget = Budget(limits, self._functions.context, pieces, owned=program.mutates)
        try:
            dot = NO_VALUE if data is None else copied(data) if program.mutates else data
            variables = [NO_VALUE] * program.bodies[program.name].slots
            variables[0] = dot
            program.run(Frame(pieces.append, variables, budget, 0), dot)
        except RecursionError as error:
            raise DepthLimitError("nested too deeply", _somewhere(program.name)) from error
        except LimitError as error:
            if not error.name:
                error.place = _somewhere(program.name)
            raise
        return pieces, budget


def _somewhere(name: str) -> Place:
    return Place(name, 0, 0, "")


def _joined(pieces: list[str], budget: Budget, name: str) -> str:
    if sum(map(len, pieces)) > budget.limits.output:
        message = f"more than {budget.limits.output} characters of output"
        raise OutputLimitError(message, _somewhere(name))
    text = "".join(pieces)
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return text


class _Keyed:
    """A function set that counts as equal to those of the same key, for the cache."""

    __slots__ = ("functions",)

    def __init__(self, functions: FunctionSet) -> None:
        self.functions = functions

    def __hash__(self) -> int:
        return hash(self.functions.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Keyed) and self.functions.key == other.functions.key


@lru_cache(maxsize=_CACHED_PROGRAMS)
def _program(text: str, name: str, missing: str, keyed: _Keyed) -> Program:
    return Program(name, text, FunctionSet({**_builtins(), **keyed.functions}), missing)


def _builtins() -> Mapping[str, Function]:
    from bellhop.gotemplate.funcs.builtins import FUNCTIONS  # noqa: PLC0415 - it imports this package

    return FUNCTIONS


def compile_template(
    text: str,
    *,
    name: str = "template",
    funcs: Mapping[str, Function | Callable[..., Any]] | None = None,
    missingkey: MissingKey = "error",
    limits: Limits | None = None,
) -> Template:
    """Return a template; a text seen before, with the same functions, is not compiled again."""
    return Template(text, name=name, funcs=funcs, missingkey=missingkey, limits=limits)
