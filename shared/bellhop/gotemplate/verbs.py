"""One argument of a format under one verb: what Go's fmt writes for it."""

from __future__ import annotations

from typing import Any

from bellhop.gotemplate.floats import format_float
from bellhop.gotemplate.literals import (
    MAX_UINT,
    is_printable,
    quote,
    quote_ascii,
    quote_rune,
    to_bytes,
    to_text,
)
from bellhop.gotemplate.values import (
    Bytes,
    NoValue,
    Opaque,
    Struct,
    Uint8,
    sorted_items,
    type_name,
)

_MAX_RUNE = 0x10FFFF


class Flags:
    """The state of one verb."""

    __slots__ = (
        "minus",
        "plus",
        "plus_v",
        "precision",
        "sharp",
        "sharp_v",
        "space",
        "width",
        "zero",
    )

    def __init__(self) -> None:
        self.minus = self.plus = self.sharp = self.space = self.zero = False
        self.plus_v = self.sharp_v = False
        self.width: int | None = None
        self.precision: int | None = None

    def pad(self, text: str, *, zero: bool | None = None) -> str:
        if not self.width or len(text) >= self.width:
            return text
        if self.minus:
            return text.ljust(self.width)
        return text.rjust(self.width, "0" if (self.zero if zero is None else zero) else " ")


class Verb:
    """One argument under one verb and its flags."""

    __slots__ = ("flags",)

    def __init__(self, flags: Flags) -> None:
        self.flags = flags

    def show(self, value: Any) -> str:
        """Write a value as %v does."""
        return self.format(value, "v")

    def format(self, value: Any, verb: str) -> str:
        if value is None or isinstance(value, NoValue):
            return self.flags.pad("<nil>") if verb in "Tv" else self._bad(None, verb)
        if verb == "T":
            return self._text(type_name(value), "s")
        if verb == "p":
            return self._bad(value, verb)
        if verb == "w":
            return self._bad(value, verb)
        return self._value(value, verb, 0)

    def _bad(self, value: Any, verb: str) -> str:
        if value is None:
            return f"%!{verb}(<nil>)"
        return f"%!{verb}({type_name(value)}={self._value(value, 'v', 0)})"

    def _value(self, value: Any, verb: str, depth: int) -> str:
        if isinstance(value, str):
            return self._text(value, verb)
        if isinstance(value, bool):
            if verb in "tv":
                return self.flags.pad("true" if value else "false")
            return self._bad(value, verb)
        if isinstance(value, Opaque):
            return self._opaque(value, verb)
        if isinstance(value, int):
            return self._integer(value, verb)
        if isinstance(value, float):
            return self._float(value, verb)
        if value is None or isinstance(value, NoValue):
            if self.flags.sharp_v:
                return "interface {}(nil)"
            return "<nil>" if verb == "v" else ("<nil>" if depth else self._bad(None, verb))
        if isinstance(value, complex):
            return self._complex(value, verb)
        return self._composite(value, verb, depth)

    # -- composites

    def _composite(self, value: Any, verb: str, depth: int) -> str:
        if isinstance(value, Bytes) and verb in "sqxXvd":
            return self._bytes(value, verb)
        sharp = self.flags.sharp_v
        joint = ", " if sharp else " "
        name = type_name(value) if sharp else ""
        if isinstance(value, Struct):
            named = sharp or self.flags.plus_v
            inner = joint.join(
                (f"{key}:" if named else "") + self._value(item, verb, depth + 1)
                for key, item in value.items()
            )
            return f"{name}{{{inner}}}"
        if isinstance(value, dict):
            inner = joint.join(
                f"{self._value(key, verb, depth + 1)}:{self._value(item, verb, depth + 1)}"
                for key, item in sorted_items(value)
            )
            return f"{name}{{{inner}}}" if sharp else f"map[{inner}]"
        inner = joint.join(self._value(item, verb, depth + 1) for item in value)
        return f"{name}{{{inner}}}" if sharp else f"[{inner}]"

    def _bytes(self, value: Bytes, verb: str) -> str:
        if verb in "vd":
            if self.flags.sharp_v:
                return f"[]byte{{{', '.join(f'0x{byte:x}' for byte in value)}}}"
            return f"[{' '.join(self._integer(Uint8(byte), verb) for byte in value)}]"
        return self._text(to_text(bytes(value)), verb)

    def _opaque(self, value: Opaque, verb: str) -> str:
        if verb in "vsxXq":
            return self._text(value.go_string(), "s" if verb == "v" else verb)
        if isinstance(value, int):
            return self._integer(int(value), verb)
        return self._bad(value, verb)

    # -- text

    def _text(self, text: str, verb: str) -> str:
        flags = self.flags
        if verb == "v":
            verb = "q" if flags.sharp_v else "s"
        if verb in "sq" and flags.precision is not None:
            text = text[: flags.precision]
        if verb == "s":
            return flags.pad(text)
        if verb == "q":
            if flags.sharp and _can_backquote(text):
                return flags.pad(f"`{text}`")
            return flags.pad(quote_ascii(text) if flags.plus else quote(text))
        if verb in "xX":
            return self._hex_text(text, verb)
        return self._bad(text, verb)

    def _hex_text(self, text: str, verb: str) -> str:
        flags = self.flags
        data = to_bytes(text)
        if flags.precision is not None:
            data = data[: flags.precision]
        if not data:
            return flags.pad("")
        mark = f"0{verb}" if flags.sharp else ""
        digits = data.hex(" ") if flags.space else data.hex()
        if verb == "X":
            digits = digits.upper()
        if flags.space:
            digits = digits.replace(" ", " " + mark)
        return flags.pad(mark + digits)

    # -- numbers

    def _integer(self, value: int, verb: str) -> str:
        flags = self.flags
        if verb == "v" and flags.sharp_v and isinstance(value, Uint8):
            return f"0x{int(value):x}"
        if verb in "vd":
            return self._digits(value, "d")
        if verb in "boOxX":
            return self._digits(value, verb)
        if verb == "c":
            return flags.pad(_rune(value))
        if verb == "q":
            code = value if 0 <= value <= _MAX_RUNE else 0xFFFD
            return flags.pad(quote_rune(code, ascii_only=flags.plus))
        if verb == "U":
            return self._unicode(value)
        return self._bad(value, verb)

    def _digits(self, value: int, verb: str) -> str:
        flags = self.flags
        if flags.precision == 0 and value == 0:
            return " " * (flags.width or 0)
        digits = format(abs(value), "o" if verb == "O" else verb)
        least = flags.precision
        if least is None and flags.zero and not flags.minus and flags.width:
            least = flags.width - (value < 0 or flags.plus or flags.space)
        digits = digits.rjust(least or 0, "0")
        if flags.sharp:
            prefix = {"b": "0b", "x": "0x", "X": "0X"}.get(verb, "")
            if verb in "oO" and not digits.startswith("0"):
                prefix = "0"
            digits = prefix + digits
        if verb == "O":
            digits = "0o" + digits
        sign = "-" if value < 0 else "+" if flags.plus else " " if flags.space else ""
        return flags.pad(sign + digits, zero=False)

    def _unicode(self, value: int) -> str:
        flags = self.flags
        code = value & MAX_UINT
        least = max(flags.precision or 0, 4)
        text = f"U+{format(code, 'X').rjust(least, '0')}"
        if flags.sharp and code <= _MAX_RUNE and is_printable(chr(code)):
            text += f" '{chr(code)}'"
        return flags.pad(text, zero=False)

    def _float(self, value: float, verb: str) -> str:
        shapes = {"v": ("g", -1), "F": ("f", 6), "f": ("f", 6), "e": ("e", 6), "E": ("E", 6)}
        if verb in shapes:
            shape, precision = shapes[verb]
        elif verb in "bgGxX":
            shape, precision = verb, -1
        else:
            return self._bad(value, verb)
        if self.flags.precision is not None:
            precision = self.flags.precision
        return self._float_text(format_float(value, shape, precision), verb, precision)

    def _float_text(self, text: str, verb: str, precision: int) -> str:
        flags = self.flags
        sign = text[0] if text[0] in "+-" else "+"
        body = text.lstrip("+-")
        if flags.space and sign == "+" and not flags.plus:
            sign = " "
        if body in ("Inf", "NaN"):
            bare = body == "NaN" and not flags.space and not flags.plus
            shown = flags.plus or sign != "+" or text[0] == "+"
            if body == "Inf" and not shown:
                return flags.pad(body, zero=False)
            return flags.pad(body if bare else sign + body, zero=False)
        if flags.sharp and verb != "b":
            body = _sharpen(body, verb, precision)
        if flags.plus or sign != "+":
            if flags.zero and not flags.minus and flags.width and flags.width > len(body) + 1:
                return sign + body.rjust(flags.width - 1, "0")
            return flags.pad(sign + body)
        return flags.pad(body)

    def _complex(self, value: complex, verb: str) -> str:
        if verb not in "vbgGxXfFeE":
            return self._bad(value, verb)
        plus = self.flags.plus
        real = self._float(value.real, verb)
        self.flags.plus = True
        imaginary = self._float(value.imag, verb)
        self.flags.plus = plus
        return f"({real}{imaginary}i)"


def _rune(code: int) -> str:
    return chr(code) if 0 <= code <= _MAX_RUNE and not 0xD800 <= code < 0xE000 else "\ufffd"  # noqa: PLR2004 - the surrogates


def _can_backquote(text: str) -> bool:
    return all(c == "\t" or (c.isprintable() and c not in "`\ufeff\x7f") for c in text)


def _sharpen(body: str, verb: str, precision: int) -> str:
    """Keep the decimal point and, for %g, the trailing zeros."""
    digits = 0
    if verb in "vgGx":
        digits = 6 if precision == -1 else precision
    cut = next((i for i, c in enumerate(body) if c in "pP" or (c in "eE" and verb not in "xX")), -1)
    body, tail = (body, "") if cut < 0 else (body[:cut], body[cut:])
    seen = False
    for character in body:
        if character == ".":
            continue
        seen = seen or character != "0"
        digits -= seen
    if "." not in body:
        if body == "0":
            digits -= 1
        body += "."
    return body + "0" * max(digits, 0) + tail
