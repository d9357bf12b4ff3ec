"""Records as JSON: every type a field may have, and versions that are a field apart."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, Literal

import pytest
from msgspec import Struct

from bellhop.core.gvk import GVK, ObjectKey
from bellhop.errors import TemporaryError
from bellhop.state.table import decode, encode
from tests.unit.state.rig import ROLE, SERVICE


class Inner(Struct, frozen=True):
    name: str
    at: datetime | None = None


class Everything(Struct, frozen=True):
    text: str
    number: int
    share: float
    on: bool
    word: Literal["a", "b"]
    at: datetime
    pause: timedelta
    gvk: GVK
    key: ObjectKey
    inner: Inner
    maybe: Inner | None
    rows: tuple[tuple[str, int], ...]
    inners: tuple[Inner, ...]
    by_name: Mapping[str, Inner]
    labels: Mapping[str, str]
    anything: Mapping[str, Any]
    later: str = "default"
    more: tuple[str, ...] = ()
    extra: Mapping[str, str] = {}


NOW = datetime(2026, 1, 1, 12, 0, 0, 5, tzinfo=UTC)
ONE = Everything(
    text="ü\u2028",
    number=-5,
    share=0.5,
    on=True,
    word="b",
    at=NOW.astimezone(timezone(timedelta(hours=2))),
    pause=timedelta(seconds=1.5),
    gvk=SERVICE,
    key=ROLE,
    inner=Inner("x", NOW),
    maybe=None,
    rows=(("a", 1), ("b", 2)),
    inners=(Inner("y"),),
    by_name={"web": Inner("z")},
    labels={"a": "b"},
    anything={"deep": [{"er": None}]},
)


def test_every_type_comes_back_through_json() -> None:
    """As it was, with its type."""
    text = json.dumps(encode(ONE))

    assert decode(Everything, json.loads(text)) == ONE


def test_what_the_key_tells_is_not_written() -> None:
    """It is given back by whoever reads the key, and wins over what is written."""
    value = encode(ONE, omit=("text", "key"))

    assert {"text", "key"}.isdisjoint(value)
    assert decode(Everything, value, text=ONE.text, key=ONE.key) == ONE
    assert decode(Everything, encode(ONE), text="mine").text == "mine"


def test_versions_that_are_a_field_apart_read_each_other() -> None:
    """What is not known is ignored, what is missing takes its default."""
    value = encode(ONE)
    del value["later"], value["more"]

    assert decode(Everything, {**value, "unheard": 1}) == ONE


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"at": "yesterday"}, id="no time"),
        pytest.param({"key": "x"}, id="no key"),
        pytest.param({"rows": [["a"]]}, id="a short row"),
        pytest.param({"inner": {}}, id="a field missing within"),
        pytest.param({"labels": 3}, id="no mapping"),
    ],
)
def test_what_is_of_another_type_is_said_to_be_of_another_version(change: dict[str, Any]) -> None:
    """The sentence names the kind of record, and nothing that is in it."""
    with pytest.raises(TemporaryError, match="another version of Bellhop"):
        decode(Everything, {**encode(ONE), **change})
