"""JSON of unauthenticated clients: accepted and refused."""

from __future__ import annotations

import pytest

from bellhop.core.digest import DEEPEST as DEPTH
from bellhop.documents.json import read_json
from bellhop.errors import InvalidError


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b'{"a": NaN}', id="NaN"),
        pytest.param(b'{"a": Infinity}', id="Infinity"),
        pytest.param(b'{"a": -Infinity}', id="less than everything"),
        pytest.param(b'{"a": 1e400}', id="Infinity in digits"),
        pytest.param(b'{"a": ' + b"9" * 5000 + b"}", id="digits without end"),
        pytest.param(b'{"a": ' + b"9" * 21 + b"}", id="more than 64 bits"),
        pytest.param(b'{"a": "\\ud800"}', id="half a character"),
        pytest.param(b'{"\\udfff": 1}', id="half a character in a key"),
        pytest.param(b'{"a": "\xed\xa0\x80"}', id="half a character in UTF-8"),
        pytest.param('{"a": 1}'.encode("utf-16"), id="UTF-16"),
        pytest.param(b'\xef\xbb\xbf{"a": 1}', id="a mark of byte order"),
        pytest.param(b'{"a": ' + b"[" * DEPTH + b"]" * DEPTH + b"}", id="too deep"),
        pytest.param(b'{"a": ' + b"[" * 900 + b"]" * 900 + b"}", id="almost no stack left"),
        pytest.param(b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", id="no stack left"),
        pytest.param(b'{"a":' * 990 + b"1" + b"}" * 990, id="deep mappings"),
        pytest.param(b"[]", id="a list"),
        pytest.param(b"", id="nothing"),
    ],
)
def test_refuses_what_no_later_step_could_carry(body: bytes) -> None:
    """It is a mistake of the sender's, and never ours."""
    with pytest.raises(InvalidError, match="cannot read the request"):
        read_json(body)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param(b'{"a": 18446744073709551615}', {"a": 2**64 - 1}, id="64 bits"),
        pytest.param(b'{"a": -9223372036854775808}', {"a": -(2**63)}, id="64 bits with a sign"),
        pytest.param(b'{"a": 1e300}', {"a": 1e300}, id="a large number"),
        pytest.param(b'{"a": 1, "a": 2}', {"a": 2}, id="the last of two counts"),
        pytest.param(b'{"a": "\\ud83d\\ude00"}', {"a": "\U0001f600"}, id="two halves of one"),
        pytest.param(b'{"a": "\\u0000"}', {"a": "\x00"}, id="a character that is nothing"),
    ],
)
def test_takes_the_rest(body: bytes, expected: object) -> None:
    """Numbers of 64 bits and every whole character."""
    assert read_json(body) == expected


def test_takes_what_is_just_not_too_deep() -> None:
    """The request itself counts as one."""
    inner = DEPTH - 1

    assert read_json(b'{"a": ' + b"[" * inner + b"]" * inner + b"}")["a"] is not None
