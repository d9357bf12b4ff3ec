"""What a plain YAML scalar means to Kubernetes, which is YAML 1.1 as its Go library reads it.

The rules differ from PyYAML's: `y` and `n` are booleans, timestamps and sexagesimal numbers stay
strings, a leading zero and `0o` are octal, and integers have any size.
"""

from __future__ import annotations

import math
import re

_WORDS: dict[str, bool | None] = {
    **dict.fromkeys(["y", "Y", "yes", "Yes", "YES"], True),
    **dict.fromkeys(["true", "True", "TRUE"], True),
    **dict.fromkeys(["on", "On", "ON"], True),
    **dict.fromkeys(["n", "N", "no", "No", "NO"], False),
    **dict.fromkeys(["false", "False", "FALSE"], False),
    **dict.fromkeys(["off", "Off", "OFF"], False),
    **dict.fromkeys(["", "~", "null", "Null", "NULL"], None),
}
_NOT_JSON = frozenset(
    sign + word for word in (".inf", ".Inf", ".INF") for sign in ("", "+", "-")
) | {".nan", ".NaN", ".NAN"}
_MAY_MEAN_MORE = frozenset("yYnNtTfFoO~+-.0123456789")
_INTEGER = re.compile(
    r"([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]*))\Z"
)
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?\Z")
# Python neither reads nor writes integers of more than 4,300 decimal digits, lest a document costs
# quadratic time; so many hexadecimal digits are written in fewer.
_LONGEST_INTEGER = 3500

Scalar = str | int | float | bool | None


class NotJsonError(ValueError):
    """The scalar is an infinity or not a number, for which JSON has no spelling."""


def resolve_plain(text: str) -> Scalar:
    """Read a scalar that was written without quotes.

    Raises:
        NotJsonError: for `.inf` and `.nan`.
    """
    if text and text[0] not in _MAY_MEAN_MORE:
        return text
    if text in _WORDS:
        return _WORDS[text]
    if text in _NOT_JSON:
        raise NotJsonError(text)
    if text[0] in "yYnNtTfFoO~":
        return text
    digits = text if text[0] == "." else text.replace("_", "")
    if (integer := _INTEGER.match(digits)) and len(digits) <= _LONGEST_INTEGER:
        return _integer(integer)
    if _FLOAT.match(digits):
        number = float(digits)
        # Go answers "out of range" here, and then the text is a string like any other.
        return number if math.isfinite(number) else text
    return text


def _integer(match: re.Match[str]) -> int:
    sign, hexadecimal, binary, octal, decimal = match.groups()
    if hexadecimal:
        value = int(hexadecimal, 16)
    elif binary:
        value = int(binary, 2)
    elif octal:
        value = int(octal, 8)
    else:
        value = int(decimal)
    return -value if sign == "-" else value
