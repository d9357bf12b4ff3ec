"""How a template function is declared, and the sets they come in.

A declaration says what Go's signature says: the parameters' types, which the compiler holds the
arguments to, with Go's own complaints. `Budget` is handed to functions that can be made to toil.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, TypeVar

from bellhop.gotemplate.values import ANY

VALUE = "reflect.Value"
"""A parameter that takes a value as it is, even none."""

_Callable = TypeVar("_Callable", bound=Callable[..., Any])


class Function(NamedTuple):
    """A template function: its name, what it takes, and what does it."""

    name: str
    call: Callable[..., Any]
    parameters: tuple[str, ...] = ()
    variadic: str | None = None
    """The type of each further argument."""
    budgeted: bool = False
    """The budget of the render comes first."""
    mutates: bool = False
    """Writes into its arguments, so a render must own its data."""
    most: int = 0
    """Characters that one call may be given; 0 for what a value may have."""

    @property
    def least(self) -> int:
        """Return how many arguments are needed."""
        return len(self.parameters)


class FunctionSet(Mapping[str, Function]):
    """Functions by name, immutable, and what those that read a context read."""

    __slots__ = ("_functions", "context", "key")

    def __init__(
        self, functions: Mapping[str, Function], context: Any = None, key: object = None
    ) -> None:
        self._functions = dict(functions)
        self.context = context
        self.key: object = self if key is None else key
        """Equal keys compile a text to the same program, whatever the context."""

    def __getitem__(self, name: str) -> Function:
        return self._functions[name]

    def __contains__(self, name: object) -> bool:
        return name in self._functions

    def __iter__(self) -> Iterator[str]:
        return iter(self._functions)

    def __len__(self) -> int:
        return len(self._functions)

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other

    def with_context(self, context: Any) -> FunctionSet:
        """Return the same functions over another context."""
        return FunctionSet(self._functions, context, self.key)


class Table(dict[str, Function]):
    """Collects one module's functions as they are defined."""

    def add(
        self,
        names: str,
        *parameters: str,
        budgeted: bool = False,
        mutates: bool = False,
        most: int = 0,
    ) -> Callable[[_Callable], _Callable]:
        """Register under the space-separated names; a parameter `...T` is variadic."""
        fixed, variadic = parameters, None
        if parameters and parameters[-1].startswith("..."):
            fixed, variadic = parameters[:-1], parameters[-1].removeprefix("...")

        def register(call: _Callable) -> _Callable:
            for name in names.split():
                self[name] = Function(name, call, fixed, variadic, budgeted, mutates, most)
            return call

        return register


def as_function(name: str, value: Function | Callable[..., Any]) -> Function:
    """Declare a plain callable: its positional parameters take anything."""
    if isinstance(value, Function):
        return value
    import inspect  # noqa: PLC0415 - dear, and only for callables without a declaration

    fixed: list[str] = []
    variadic = None
    for parameter in inspect.signature(value).parameters.values():
        if parameter.kind is parameter.VAR_POSITIONAL:
            variadic = ANY
        elif parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            if parameter.default is parameter.empty:
                fixed.append(ANY)
            else:
                variadic = ANY
    return Function(name, value, tuple(fixed), variadic)


def as_function_set(functions: Mapping[str, Any] | None) -> FunctionSet:
    """Return a set of declared functions; one that is a set already stays itself."""
    if isinstance(functions, FunctionSet):
        return functions
    if not functions:
        return NO_FUNCTIONS
    return FunctionSet({name: as_function(name, value) for name, value in functions.items()})


NO_FUNCTIONS = FunctionSet({})
