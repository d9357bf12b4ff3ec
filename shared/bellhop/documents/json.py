"""JSON of untrusted senders: values that every later step can carry.

Python's reader takes more than JSON, and more than other steps can write again: NaN and Infinity,
halves of characters, numbers of thousands of digits, and nesting up to the last stack frame.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any, NoReturn

from bellhop.core.digest import DEEPEST, exceeds_depth
from bellhop.errors import InvalidError

_DIGITS = 20
"""The longest integer, sign included: Kubernetes counts in 64 bits."""

_HALF = re.compile(rb"\\u[dD][89a-fA-F]")


def read_json(body: bytes) -> Mapping[str, Any]:
    """Read a JSON object.

    Raises:
        InvalidError: it is none, or holds what cannot be kept.
    """
    data = read_value(body)
    if not isinstance(data, Mapping):
        raise InvalidError("cannot read the request: the body is not a JSON object")
    return data


def read_value(body: bytes) -> Any:
    """Read any value of JSON.

    Raises:
        InvalidError: it is none, or holds what cannot be kept.
    """
    try:
        data = json.loads(
            body.decode("utf-8"),
            parse_constant=_constant,
            parse_float=_float,
            parse_int=_integer,
        )
    except (ValueError, RecursionError) as error:
        raise InvalidError("cannot read the request: the body is not JSON") from error
    if exceeds_depth(data, DEEPEST):
        raise InvalidError(f"cannot read the request: it is nested more than {DEEPEST} deep")
    if _HALF.search(body):
        _check_texts(data)
    return data


def _constant(_: str) -> NoReturn:
    raise ValueError("no number of JSON")


def _float(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("no number that can be kept")
    return number


def _integer(text: str) -> int:
    if len(text) > _DIGITS:
        raise ValueError("no number that can be kept")
    return int(text)


def _check_texts(data: Any) -> None:
    try:
        json.dumps(data, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise InvalidError("cannot read the request: it holds half a character") from error
