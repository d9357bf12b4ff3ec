"""What functions read from their environment in any cloud, and what they say where it is wrong."""

from __future__ import annotations

import base64
import ipaddress
import json

import pytest

from bellhop.core.address_policy import LOCAL, PUBLIC, AddressPolicy
from bellhop.errors import InvalidError
from bellhop.runtime.cloud.resources import by_inbox, decoded, given, ranges, reach_where, sealer
from bellhop.state.messages import INBOXES
from bellhop.state.sealer import Sealer

KEY = bytes(range(32))
INGEST_KEY = bytes(range(32, 64))


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(KEY, id="as it is"),
        pytest.param(base64.b64encode(KEY), id="in base64"),
        pytest.param(b"x" * 32, id="that looks like base64"),
    ],
)
def test_a_key_is_32_bytes_however_they_are_written(content: bytes) -> None:
    """Terraform writes them in base64, and who makes them by hand may not."""
    read = sealer({"key": content}.__getitem__, "key", "")

    assert read.open(Sealer(content if len(content) == 32 else KEY).seal(1, "a b"), "a b") == 1


@pytest.mark.parametrize("content", [b"", b"short", base64.b64encode(KEY[:31]), KEY + b"x"])
def test_what_is_no_key_is_refused_without_being_shown(content: bytes) -> None:
    """By its length only: it may be the key of something else."""
    with pytest.raises(InvalidError, match=f"'key' as sealing key: it has {len(content)} bytes"):
        sealer(lambda _: content, "key", "")


def test_all_but_ingest_have_its_key_too() -> None:
    """They open what it has sealed."""
    both = sealer({"key": KEY, "ingest-key": INGEST_KEY}.__getitem__, "key", "ingest-key")

    for name, key in {"observation/a b": INGEST_KEY, "profile a": KEY}.items():
        assert both.open(Sealer(key).seal(1, name), name) == 1


def test_what_is_no_base64_is_nothing() -> None:
    """Nobody guesses."""
    assert decoded("not base64!") == b""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("", "NAME is not set; apply Terraform again", id="nothing"),
        pytest.param("{", "NAME is not a JSON object of inboxes and topics", id="no JSON"),
        pytest.param("[1]", "NAME is not a JSON object of inboxes and topics", id="a list"),
        pytest.param(json.dumps({"apply": "a"}), "NAME has no topic for confirm, deploy", id="few"),
    ],
)
def test_each_inbox_has_its_own(text: str, expected: str) -> None:
    """One that is left out is named, before anything is published."""
    with pytest.raises(InvalidError, match=expected):
        by_inbox({"NAME": text}, "NAME", "topic")


def test_what_no_inbox_is_called_is_passed_over() -> None:
    """A newer Terraform may set more."""
    topics = dict.fromkeys([*INBOXES, "another"], "t")

    assert by_inbox({"NAME": json.dumps(topics)}, "NAME", "topic") == dict.fromkeys(INBOXES, "t")


def test_ranges_are_read_with_commas_between() -> None:
    """None where nothing is said; what is no range is refused."""
    found = ranges({"NAME": " 203.0.113.0/24, 2001:db8::/32,"}, "NAME")

    assert found == (
        ipaddress.ip_network("203.0.113.0/24"),
        ipaddress.ip_network("2001:db8::/32"),
    )
    assert ranges({}, "NAME") == ()
    with pytest.raises(InvalidError, match="NAME has something that is not a range"):
        ranges({"NAME": "203.0.113.7/8"}, "NAME")


def test_a_variable_that_must_be_there_is_named() -> None:
    """With what to do."""
    with pytest.raises(InvalidError, match="the variable NAME is not set; apply Terraform again"):
        given({"NAME": ""}, "NAME")


@pytest.mark.parametrize(
    ("endpoint", "expected"),
    [
        ("", PUBLIC),
        ("//", PUBLIC),
        ("//127.0.0.1:8080", LOCAL),
        ("http://127.0.0.1:8080", LOCAL),
        ("https://firestore.googleapis.com", PUBLIC),
    ],
)
def test_clusters_are_where_the_cloud_is(endpoint: str, expected: AddressPolicy) -> None:
    """On loopback for a lab, and nowhere near it otherwise."""
    assert reach_where(endpoint) is expected
