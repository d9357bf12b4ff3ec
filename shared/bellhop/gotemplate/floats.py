"""Floats as Go writes them (strconv.FormatFloat)."""

from __future__ import annotations

import math

_SMALLEST_PLAIN, _LARGEST_PLAIN = -4, 6
_HEX_DIGITS = 13


def format_float(value: float, verb: str = "g", precision: int = -1) -> str:
    """Write a float with one of Go's verbs; precision -1 is the fewest digits that read back."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("+Inf" if value > 0 else "-Inf")
    if verb in "eE":
        text = _exponent(value, precision)
    elif verb == "f":
        text = _plain(value, precision)
    elif verb in "gG":
        text = _general(value, precision)
    elif verb == "b":
        text = _binary(value)
    else:
        text = _hexadecimal(value, precision)
    return text.upper() if verb in "EGX" else text


def _digits(value: float) -> tuple[str, str, int]:
    """Return sign, shortest digits and the place of the decimal point after the first."""
    mantissa, _, exponent = f"{value!r}".partition("e")
    sign = "-" if mantissa.startswith("-") else ""
    whole, _, fraction = mantissa.lstrip("-").partition(".")
    point = len(whole) + int(exponent or 0)
    digits = (whole + fraction).lstrip("0")
    point -= len(whole + fraction) - len(digits)
    digits = digits.rstrip("0")
    return (sign, digits, point - 1) if digits else (sign, "0", 0)


def _exponent(value: float, precision: int) -> str:
    if precision >= 0:
        return f"{value:.{precision}e}"
    sign, digits, exponent = _digits(value)
    fraction = f".{digits[1:]}" if len(digits) > 1 else ""
    mark = "-" if exponent < 0 else "+"
    return f"{sign}{digits[0]}{fraction}e{mark}{abs(exponent):02d}"


def _plain(value: float, precision: int) -> str:
    if precision >= 0:
        return f"{value:.{precision}f}"
    sign, digits, exponent = _digits(value)
    if exponent < 0:
        return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
    whole = digits[: exponent + 1].ljust(exponent + 1, "0")
    fraction = digits[exponent + 1 :]
    return f"{sign}{whole}.{fraction}" if fraction else sign + whole


def _general(value: float, precision: int) -> str:
    if precision >= 0:
        return f"{value:.{precision or 1}g}"
    exponent = _digits(value)[2]
    if exponent < _SMALLEST_PLAIN or exponent >= _LARGEST_PLAIN:
        return _exponent(value, -1)
    return _plain(value, -1)


def _binary(value: float) -> str:
    mantissa, exponent = math.frexp(abs(value))
    sign = "-" if math.copysign(1, value) < 0 else ""
    if value == 0:
        return f"{sign}0p-1074"
    exponent -= 53
    whole = int(mantissa * (1 << 53))
    if exponent < -1074:  # noqa: PLR2004 - the exponent of the smallest float
        whole >>= -1074 - exponent
        exponent = -1074
    return f"{sign}{whole}p{'+' if exponent >= 0 else '-'}{abs(exponent)}"


def _hexadecimal(value: float, precision: int) -> str:
    sign = "-" if math.copysign(1, value) < 0 else ""
    if value == 0:
        fraction = f".{'0' * precision}" if precision > 0 else ""
        return f"{sign}0x0{fraction}p+00"
    mantissa, exponent = math.frexp(abs(value))
    exponent -= 1
    bits = int(mantissa * (1 << 53))
    if 0 <= precision < _HEX_DIGITS:
        bits = _round_bits(bits, 52 - 4 * precision)
        if bits >> 53:
            bits >>= 1
            exponent += 1
        digits = f"{bits & ((1 << 52) - 1):013x}"[:precision]
    else:
        digits = f"{bits & ((1 << 52) - 1):013x}"
        digits = digits.rstrip("0") if precision < 0 else digits.ljust(precision, "0")
    fraction = f".{digits}" if digits else ""
    return f"{sign}0x1{fraction}p{'+' if exponent >= 0 else '-'}{abs(exponent):02d}"


def _round_bits(bits: int, dropped: int) -> int:
    """Round to even at the given number of low bits, keeping them as zeros."""
    rest = bits & ((1 << dropped) - 1)
    bits -= rest
    half = 1 << (dropped - 1)
    if rest > half or (rest == half and bits >> dropped & 1):
        bits += 1 << dropped
    return bits
