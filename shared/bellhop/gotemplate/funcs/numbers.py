"""Sprig's arithmetic: integers wrap at 64 bits, and the float functions count in decimals."""

from __future__ import annotations

import math
import secrets
from typing import TYPE_CHECKING, Any

from bellhop.gotemplate.errors import FunctionError
from bellhop.gotemplate.funcs.casting import to_float, to_int64
from bellhop.gotemplate.functions import Table
from bellhop.gotemplate.literals import MAX_INT, MIN_INT
from bellhop.gotemplate.values import ANY, Int, IntList, make_int, to_string, wrap

if TYPE_CHECKING:
    from collections.abc import Callable
    from decimal import Decimal

    from bellhop.gotemplate.limits import Budget

FUNCTIONS = Table()
_add = FUNCTIONS.add

_ONE_PARAMETER, _TWO_PARAMETERS, _THREE_PARAMETERS = 1, 2, 3
_DIVISION_DIGITS = 16


@_add("int", ANY)
def int_(value: Any) -> int:
    return make_int(to_int64(value))


@_add("int64", ANY)
def int64(value: Any) -> int:
    return int(to_int64(value))


@_add("float64", ANY)
def float64(value: Any) -> float:
    return to_float(value)


@_add("atoi", "string")
def atoi(text: str) -> int:
    """Read decimal digits; 0 where there is anything else."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not (digits.isascii() and digits.isdigit()):
        return make_int(0)
    if len(digits) > len(str(MAX_INT)) + 1:
        return Int(MIN_INT if text[0] == "-" else MAX_INT)
    return Int(max(MIN_INT, min(MAX_INT, int(text))))


@_add("toDecimal", ANY, budgeted=True)
def to_decimal(budget: Budget, value: Any) -> int:
    """Read octal digits."""
    text = to_string(value, budget)
    try:
        number = int(text, 8) if "_" not in text and text[:2].lower() != "0o" else 0
    except ValueError:
        return 0
    return number if MIN_INT <= number <= MAX_INT else 0


# -- integers


@_add("add", f"...{ANY}")
def add(*values: Any) -> int:
    return wrap(sum(map(to_int64, values)))


@_add("add1", ANY)
def add1(value: Any) -> int:
    return wrap(to_int64(value) + 1)


@_add("sub", ANY, ANY)
def sub(first: Any, second: Any) -> int:
    return wrap(to_int64(first) - to_int64(second))


@_add("mul", ANY, f"...{ANY}")
def mul(first: Any, *others: Any) -> int:
    product = to_int64(first)
    for other in others:
        product = wrap(product * to_int64(other))
    return product


@_add("div", ANY, ANY)
def div(first: Any, second: Any) -> int:
    """Divide integers, cutting towards zero."""
    dividend, divisor = to_int64(first), to_int64(second)
    if divisor == 0:
        raise FunctionError("runtime error: integer divide by zero")
    quotient = abs(dividend) // abs(divisor)
    return wrap(quotient if (dividend < 0) == (divisor < 0) else -quotient)


@_add("mod", ANY, ANY)
def mod(first: Any, second: Any) -> int:
    """Return what integer division leaves; it has the dividend's sign."""
    dividend, divisor = to_int64(first), to_int64(second)
    if divisor == 0:
        raise FunctionError("runtime error: integer divide by zero")
    rest = abs(dividend) % abs(divisor)
    return -rest if dividend < 0 else rest


@_add("max biggest", ANY, f"...{ANY}")
def max_(first: Any, *others: Any) -> int:
    return max(map(to_int64, (first, *others)))


@_add("min", ANY, f"...{ANY}")
def min_(first: Any, *others: Any) -> int:
    return min(map(to_int64, (first, *others)))


@_add("randInt", "int", "int")
def rand_int(low: int, high: int) -> int:
    """Return a random integer from low up to, but not including, high."""
    if high <= low:
        raise FunctionError("invalid argument to Intn")
    return Int(low + secrets.randbelow(high - low))


# -- floats


@_add("maxf", ANY, f"...{ANY}")
def maxf(first: Any, *others: Any) -> float:
    return _extreme(max, first, others)


@_add("minf", ANY, f"...{ANY}")
def minf(first: Any, *others: Any) -> float:
    return _extreme(min, first, others)


def _extreme(choose: Callable[..., float], first: Any, others: tuple[Any, ...]) -> float:
    numbers = [to_float(value) for value in (first, *others)]
    return math.nan if any(map(math.isnan, numbers)) else choose(numbers)


def _decimals(value: Any) -> Decimal:
    from decimal import Decimal  # noqa: PLC0415 - few templates count in floats

    number = to_float(value)
    if not math.isfinite(number):
        raise FunctionError(f"Cannot create a Decimal from {_infinite(number)}")
    return Decimal(repr(number))


def _infinite(number: float) -> str:
    return "NaN" if math.isnan(number) else "+Inf" if number > 0 else "-Inf"


def _fold(
    first: Any, others: tuple[Any, ...], operation: Callable[[Decimal, Decimal], Decimal]
) -> float:
    from decimal import Context, localcontext  # noqa: PLC0415 - as above

    with localcontext(Context(prec=800, Emax=10**6, Emin=-(10**6))):
        result = _decimals(first)
        for other in others:
            result = operation(result, _decimals(other))
        return float(result)


@_add("add1f", ANY)
def add1f(value: Any) -> float:
    return _fold(value, (1,), lambda one, other: one + other)


@_add("addf", f"...{ANY}")
def addf(*values: Any) -> float:
    return _fold(0.0, values, lambda one, other: one + other)


@_add("subf", ANY, f"...{ANY}")
def subf(first: Any, *others: Any) -> float:
    return _fold(first, others, lambda one, other: one - other)


@_add("mulf", ANY, f"...{ANY}")
def mulf(first: Any, *others: Any) -> float:
    return _fold(first, others, lambda one, other: one * other)


@_add("divf", ANY, f"...{ANY}")
def divf(first: Any, *others: Any) -> float:
    """Divide the first float by the others, to sixteen decimals."""
    return _fold(first, others, _divide)


def _divide(one: Decimal, other: Decimal) -> Decimal:
    from decimal import ROUND_HALF_UP, Decimal  # noqa: PLC0415 - as above

    if not other:
        raise FunctionError("decimal division by 0")
    return (one / other).quantize(Decimal(1).scaleb(-_DIVISION_DIGITS), rounding=ROUND_HALF_UP)


@_add("ceil", ANY)
def ceil(value: Any) -> float:
    number = to_float(value)
    return float(math.ceil(number)) if math.isfinite(number) else number


@_add("floor", ANY)
def floor(value: Any) -> float:
    number = to_float(value)
    return float(math.floor(number)) if math.isfinite(number) else number


@_add("round", ANY, "int", "...float64")
def round_(value: Any, places: int, *options: float) -> float:
    """Round to decimal places; an option is the fraction from which it goes up."""
    number, threshold = to_float(value), options[0] if options else 0.5
    try:
        power = math.pow(10, places)
    except OverflowError:
        power = math.inf
    digits = power * number
    if not power:
        return math.nan
    if not math.isfinite(digits):
        return digits / power
    fraction = math.modf(digits)[0]
    whole = math.ceil(digits) if fraction >= threshold else math.floor(digits)
    return whole / power


# -- sequences


def _steps(budget: Budget, start: int, stop: int, step: int) -> range:
    found = range(0)
    if (stop < start and step < 0) or (stop >= start and step > 0):
        found = range(start, stop, step)
    budget.spend(_count(found))
    return found


def _count(found: range) -> int:
    """Count a range's items, which may be more than len can say."""
    return max(0, -(-(found.stop - found.start) // found.step))


@_add("untilStep", "int", "int", "int", budgeted=True)
def until_step(budget: Budget, start: int, stop: int, step: int) -> IntList:
    """List the integers from start to before stop, by steps."""
    return IntList(map(make_int, _steps(budget, start, stop, step)))


@_add("until", "int", budgeted=True)
def until(budget: Budget, count: int) -> IntList:
    """List the integers from 0 to before count."""
    return until_step(budget, 0, count, -1 if count < 0 else 1)


@_add("seq", "...int", budgeted=True)
def seq(budget: Budget, *parameters: int) -> str:
    """Write a sequence as the Unix command does: end; start and end; start, step and end."""
    if len(parameters) == _ONE_PARAMETER:
        start, step, end = 1, 0, parameters[0]
    elif len(parameters) == _TWO_PARAMETERS:
        start, step, end = parameters[0], 0, parameters[1]
    elif len(parameters) == _THREE_PARAMETERS:
        start, step, end = parameters
        if end < start and step > 0:
            return ""
    else:
        return ""
    direction = -1 if end < start else 1
    if len(parameters) != _THREE_PARAMETERS:
        step = direction
    return " ".join(map(str, _steps(budget, start, end + direction, step)))
