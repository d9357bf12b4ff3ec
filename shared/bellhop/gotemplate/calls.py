"""Function calls compiled to closures, by their number of arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from bellhop.gotemplate.errors import FunctionError
from bellhop.gotemplate.frames import follow
from bellhop.gotemplate.limits import LONG
from bellhop.gotemplate.values import (
    ANY,
    NO_VALUE,
    Opaque,
    Struct,
    type_name,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bellhop.gotemplate.frames import Evaluate, Frame, Site
    from bellhop.gotemplate.functions import Function
    from bellhop.gotemplate.limits import Budget
    from bellhop.gotemplate.nodes import Node

Final = tuple["Evaluate", "Evaluate", "Evaluate"]
"""Code for the pipeline's value, and the check that takes it in the cursor's place."""


def decide(first: Any, *others: Any) -> NoReturn:
    """Stand for the built-in and, or, which the compiler writes out: they need not look at all."""
    raise AssertionError(first, others)


def call(name: str, value: Any, *arguments: Any) -> NoReturn:
    """Be the built-in call; the compiler passes the callee's name: data holds no functions."""
    del arguments
    if value is None or value is NO_VALUE:
        raise FunctionError("call of nil")
    raise FunctionError(f"non-function {name} of type {type_name(value)}")


def call_code(
    site: Site, node: Node, function: Function, codes: Sequence[Evaluate], final: Final | None
) -> Evaluate:
    """Return code that evaluates the arguments, calls, and pays for the result."""
    name = function.name

    def failed(error: Exception) -> NoReturn:
        site.fail_call(node, name, error)

    callee = _Callee(function.call, function.most, failed, budgeted=function.budgeted)
    if final is not None:
        return _finishing(callee, codes, final)
    if function.budgeted or function.most:
        return _general(callee, codes)
    if len(codes) == 1:
        return _unary(function.call, codes[0], failed)
    if len(codes) == 2:  # noqa: PLR2004 - small calls are unrolled
        return _binary(function.call, codes[0], codes[1], failed)
    return _general(callee, codes)


class _Callee(NamedTuple):
    """A function as it is called."""

    call: Callable[..., Any]
    most: int
    failed: Callable[[Exception], NoReturn]
    budgeted: bool

    def evaluate(self, budget: Budget, arguments: list[Any]) -> Any:
        """Ask, call, and pay for the result."""
        try:
            budget.begin_call(arguments, self.most)
            result = self.call(budget, *arguments) if self.budgeted else self.call(*arguments)
            budget.pay_call(result, arguments)
        except Exception as error:  # noqa: BLE001 - whatever a function raises is the template's error
            self.failed(error)
        return result


def _unary(
    call: Callable[..., Any], argument: Evaluate, failed: Callable[[Exception], NoReturn]
) -> Evaluate:
    def evaluate(frame: Frame, dot: Any) -> Any:
        value = argument(frame, dot)
        budget = frame.budget
        try:
            if value.__class__ is str and len(value) > LONG:
                budget.look()
            result = call(value)
            budget.pay_call(result, (value,))
        except Exception as error:  # noqa: BLE001 - whatever a function raises is the template's error
            failed(error)
        return result

    return evaluate


def _binary(
    call: Callable[..., Any],
    first: Evaluate,
    second: Evaluate,
    failed: Callable[[Exception], NoReturn],
) -> Evaluate:
    def evaluate(frame: Frame, dot: Any) -> Any:
        one = first(frame, dot)
        two = second(frame, dot)
        budget = frame.budget
        try:
            if two.__class__ is str and len(two) > LONG:
                budget.look()
            result = call(one, two)
            budget.pay_call(result, (one, two))
        except Exception as error:  # noqa: BLE001 - as above
            failed(error)
        return result

    return evaluate


def _general(callee: _Callee, codes: Sequence[Evaluate]) -> Evaluate:
    def evaluate(frame: Frame, dot: Any) -> Any:
        return callee.evaluate(frame.budget, [code(frame, dot) for code in codes])

    return evaluate


def _finishing(callee: _Callee, codes: Sequence[Evaluate], final: Final) -> Evaluate:
    before, _, check = final

    def evaluate(frame: Frame, dot: Any) -> Any:
        value = before(frame, dot)
        arguments = [code(frame, dot) for code in codes]
        arguments.append(check(frame, value))
        return callee.evaluate(frame.budget, arguments)

    return evaluate


def short_circuit(name: str, codes: Sequence[Evaluate], final: Evaluate | None) -> Evaluate:
    """Return code for the built-in and, or: the first argument that decides, or the last."""
    expected = name == "or"
    every = [*codes, final] if final is not None else list(codes)
    *deciding, last = every

    def evaluate(frame: Frame, dot: Any) -> Any:
        handed = final(frame, dot) if final is not None else None
        for code in deciding:
            value = code(frame, dot)
            if bool(value) is expected:
                return value
        return handed if final is not None else last(frame, dot)

    return evaluate


def method_code(
    site: Site,
    node: Node,
    receiver: Evaluate,
    names: tuple[str, ...],
    codes: Sequence[Evaluate],
) -> Evaluate:
    """Return code for a field that is given arguments."""

    def evaluate(frame: Frame, dot: Any) -> Any:
        budget = frame.budget
        value = follow(site, node, receiver(frame, dot), names[:-1], budget, element=False)
        name = names[-1]
        if isinstance(value, Opaque) and name in value.methods:
            arguments = [code(frame, dot) for code in codes]
            return _invoke(site, node, value, name, arguments, budget)
        if isinstance(value, Struct) and name in value:
            site.fail(node, f"{name} has arguments but cannot be invoked as function")
        if isinstance(value, dict) and not isinstance(value, Struct):
            site.fail(node, f"{name} is not a method but has arguments")
        return follow(site, node, value, (name,), budget, element=len(names) > 1)

    return evaluate


def _invoke(
    site: Site, node: Node, value: Opaque, name: str, arguments: list[Any], budget: Budget
) -> Any:
    method = value.methods[name]
    if len(arguments) != len(method.parameters):
        expected = len(method.parameters)
        message = f"wrong number of args for {name}: want {expected} got {len(arguments)}"
        site.fail(node, message)
    for argument, parameter_type in zip(arguments, method.parameters, strict=True):
        given = type_name(argument)
        if parameter_type not in (ANY, given):
            site.fail(node, f"wrong type for value; expected {parameter_type}; got {given}")
    try:
        budget.begin_call(arguments, method.most)
        result = method.call(value, *[None if a is NO_VALUE else a for a in arguments])
        budget.pay_call(result, arguments)
    except Exception as error:  # noqa: BLE001 - as above
        site.fail_call(node, name, error)
    return result
