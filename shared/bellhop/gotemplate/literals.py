"""Go's literals: reading quoted strings, characters and numbers, and writing quoted strings.

Go's strings are bytes. Ours are str; a byte that is not UTF-8 is held as a lone surrogate
(Python's surrogateescape), so nothing is lost on the way through a template.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_SIMPLE = {
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
    "\\": "\\",
}
_ESCAPES = {value: "\\" + key for key, value in _SIMPLE.items()}
_HEX = {"x": 2, "u": 4, "U": 8}
_INTEGER = re.compile(r"[+-]?(0[xX][0-9a-fA-F_]+|0[oO]?[0-7_]+|0[bB][01_]+|[0-9][0-9_]*)\Z")
_UNDERSCORES_OK = re.compile(r"[+-]?(?:0[xXoObB]_?|0_?)?[0-9a-fA-F]*(?:_[0-9a-fA-F]+)*\Z")
_DIGITS = r"[0-9]+(?:_[0-9]+)*"
_SEPARATED = re.compile(rf"[+-]?{_DIGITS}(?:\.(?:{_DIGITS})?)?(?:[eE][+-]?{_DIGITS})?\Z")
_HEX_FLOAT = re.compile(r"([+-]?)0[xX]([0-9a-fA-F_]*)\.?([0-9a-fA-F_]*)[pP]([+-]?[0-9]+)\Z")
_DECIMAL_FLOAT = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\Z")
_LONGEST_NUMBER = 4096
MIN_INT, MAX_INT, MAX_UINT = -(1 << 63), (1 << 63) - 1, (1 << 64) - 1
_BYTE, _LAST_RUNE, _SURROGATES = 0x80, 0x10FFFF, range(0xD800, 0xE000)


def to_bytes(text: str) -> bytes:
    """Return the bytes that Go would hold for this string."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogateescape")


def to_text(data: bytes) -> str:
    """Hold bytes as a string; those that are not UTF-8 become lone surrogates."""
    return data.decode("utf-8", "surrogateescape")


def quote(text: str) -> str:
    """Write a string as Go's strconv.Quote does."""
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return '"' + "".join(_escape(c, '"', ascii_only=False) for c in text) + '"'


def quote_ascii(text: str) -> str:
    """Write a string as Go's strconv.QuoteToASCII does."""
    return '"' + "".join(_escape(c, '"', ascii_only=True) for c in text) + '"'


def quote_rune(code: int, *, ascii_only: bool = False) -> str:
    """Write a code point as Go's strconv.QuoteRune does."""
    if not 0 <= code <= _LAST_RUNE or code in _SURROGATES:
        code = 0xFFFD
    return "'" + _escape(chr(code), "'", ascii_only=ascii_only) + "'"


def _escape(character: str, mark: str, *, ascii_only: bool) -> str:
    if character in (mark, "\\"):
        return "\\" + character
    code = ord(character)
    if code < _BYTE:
        if character.isprintable():
            return character
        return _ESCAPES.get(character) or f"\\x{code:02x}"
    if code in _SURROGATES:
        return f"\\x{code & 0xFF:02x}"
    if is_printable(character) and not ascii_only:
        return character
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"  # noqa: PLR2004 - the last of the basic plane


def is_printable(character: str) -> bool:
    """Return whether Go's unicode.IsPrint does."""
    return character.isprintable()


def unquote(literal: str) -> str:
    """Read a Go string literal, quoted or raw.

    Raises:
        ValueError: with Go's wording, where the literal is malformed.
    """
    if literal[0] == "`":
        return literal[1:-1].replace("\r", "")
    inner = literal[1:-1]
    if "\\" not in inner:
        return inner
    parts: list[str | bytes] = []
    position = 0
    while position < len(inner):
        escape = inner.find("\\", position)
        if escape < 0:
            parts.append(inner[position:])
            break
        parts.append(inner[position:escape])
        value, position = _unescape(inner, escape + 1, '"')
        parts.append(value)
    return to_text(b"".join(p if isinstance(p, bytes) else to_bytes(p) for p in parts))


def _unescape(text: str, position: int, mark: str) -> tuple[str | bytes, int]:
    """Read what follows a backslash; a byte comes back as bytes."""
    letter = text[position : position + 1]
    if letter in _SIMPLE and letter:
        return _SIMPLE[letter], position + 1
    if letter == mark:
        return mark, position + 1
    if letter in _HEX and letter:
        digits = text[position + 1 : position + 1 + _HEX[letter]]
        if not re.fullmatch(f"[0-9a-fA-F]{{{_HEX[letter]}}}", digits):
            raise ValueError("invalid syntax")
        code, end = int(digits, 16), position + 1 + _HEX[letter]
        if letter == "x":
            return bytes([code]), end
        if code > _LAST_RUNE or code in _SURROGATES:
            raise ValueError("invalid syntax")
        return chr(code), end
    digits = text[position : position + 3]
    if re.fullmatch("[0-3][0-7][0-7]", digits):
        return bytes([int(digits, 8)]), position + 3
    raise ValueError("invalid syntax")


class Number(NamedTuple):
    """A constant under every type that can hold it, as Go's ideal constants."""

    integer: int | None = None
    unsigned: int | None = None
    floating: float | None = None
    imaginary: complex | None = None


def parse_character(literal: str) -> Number:
    """Read a character constant.

    Raises:
        ValueError: with Go's wording.
    """
    inner = literal[1:]
    if inner[0] == "'":
        raise ValueError("invalid syntax")
    if inner[0] == "\\":
        value, end = _unescape(inner, 1, "'")
    else:
        value, end = inner[0], 1
    if inner[end:] != "'":
        raise ValueError(f"malformed character constant: {literal}")
    code = value[0] if isinstance(value, bytes) else ord(value)
    return Number(integer=code, unsigned=code, floating=float(code))


def parse_number(literal: str) -> Number:
    """Read a number: decimal, hex, octal, binary, float or imaginary.

    Raises:
        ValueError: with Go's wording.
    """
    if literal.endswith("i"):
        floating = _float(literal[:-1])
        if floating is not None:
            return _simplify(complex(0, floating))
    whole = parse_integer(literal)
    if whole is not None and MIN_INT <= whole <= MAX_UINT:
        return _whole(literal, whole)
    floating = _float(literal)
    if floating is None:
        raise ValueError(f"illegal number syntax: {quote(literal)}")
    if not any(c in literal for c in ".eEpP"):
        raise ValueError(f"integer overflow: {quote(literal)}")
    return _from_float(floating)


def parse_complex(literal: str) -> Number:
    """Read a constant with a real and an imaginary part.

    Raises:
        ValueError: with Go's wording.
    """
    split = max(literal.rfind("+"), literal.rfind("-"))
    if literal[split - 1] in "eEpP":
        split = max(literal.rfind("+", 0, split), literal.rfind("-", 0, split))
    real, imaginary = _float(literal[:split]), _float(literal[split:-1])
    if real is None or imaginary is None:
        raise ValueError("syntax error scanning complex number")
    return _simplify(complex(real, imaginary))


def _whole(literal: str, whole: int) -> Number:
    unsigned = whole if whole >= 0 and literal[0] not in "+-" else None
    if whole == 0:
        unsigned = 0
    integer = whole if whole <= MAX_INT else None
    if integer is None and unsigned is None:
        return _from_float(float(whole))
    return Number(integer=integer, unsigned=unsigned, floating=float(whole))


def _from_float(floating: float) -> Number:
    whole = int(floating) if floating.is_integer() else None
    return Number(
        integer=whole if whole is not None and MIN_INT <= whole <= MAX_INT else None,
        unsigned=whole if whole is not None and 0 <= whole <= MAX_UINT else None,
        floating=floating,
    )


def _simplify(value: complex) -> Number:
    if value.imag != 0:
        return Number(imaginary=value)
    plain = _from_float(value.real)
    return Number(plain.integer, plain.unsigned, plain.floating, imaginary=value)


def parse_integer(literal: str) -> int | None:
    """Read an integer with Go's base prefixes, or return None."""
    if len(literal) > _LONGEST_NUMBER or _INTEGER.match(literal) is None:
        return None
    if "_" in literal and (not _UNDERSCORES_OK.match(literal) or literal[-1] == "_"):
        return None
    sign = -1 if literal[0] == "-" else 1
    digits = literal.lstrip("+-").replace("_", "").lower()
    try:
        if digits[0] == "0" and len(digits) > 1 and digits[1] not in "xob":
            return sign * int(digits, 8)
        return sign * int(digits, 0)
    except ValueError:
        return None


def _float(literal: str) -> float | None:
    """Read a float; None where it is none or beyond a float's range."""
    if len(literal) > _LONGEST_NUMBER:
        return None
    hexadecimal = _HEX_FLOAT.match(literal)
    if hexadecimal is not None:
        return _hex_float(literal)
    plain = literal.replace("_", "") if _SEPARATED.match(literal) else literal
    if _DECIMAL_FLOAT.match(plain) is None:
        return None
    value = float(plain)
    return value if abs(value) != float("inf") else None


def _hex_float(literal: str) -> float | None:
    try:
        return float.fromhex(literal.replace("_", ""))
    except (OverflowError, ValueError):
        return None
