"""Indexes of chart repositories: real ones, large ones, and what is none."""

from __future__ import annotations

import json
import tracemalloc

import pytest

from bellhop.adapters.sources.charts.repository import Entry, entries_of
from bellhop.errors import InvalidError, TooLargeError

INDEX = b"""apiVersion: v1
generated: "2026-01-01T00:00:00Z"
entries:
  other:
  - {version: 9.9.9, urls: [other-9.9.9.tgz]}
  demo:
  - apiVersion: v2
    version: 1.10
    created: 2026-01-01T00:00:00Z
    dependencies: [{name: a, condition: a.enabled}]
    maintainers:
    - {name: Ada, email: ada@example.com}
    urls:
    - https://charts.example.com/demo-1.10.tgz
    - demo-1.10.tgz
    digest: sha256:abc
  - version: "1.0.0"
    urls: [demo-1.0.0.tgz]
  after: []
"""
DEMO = (
    Entry("1.10", ("https://charts.example.com/demo-1.10.tgz", "demo-1.10.tgz"), "abc"),
    Entry("1.0.0", ("demo-1.0.0.tgz",)),
)


def test_finds_the_versions_of_a_chart() -> None:
    """A version stays what was written: 1.10 is no number."""
    assert entries_of(INDEX, "demo") == DEMO
    assert entries_of(INDEX, "after") == ()
    assert entries_of(INDEX, "none") == ()


def test_json_is_an_index_too() -> None:
    written = {"apiVersion": "v1", "entries": {"demo": [{"version": "1.0.0", "urls": ["a.tgz"]}]}}
    assert entries_of(json.dumps(written).encode(), "demo") == (Entry("1.0.0", ("a.tgz",)),)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"text",
        b"[]",
        b"entries: text",
        b"entries: []",
        b"entries: {demo: text}",
        b"entries: {demo: {a: b}}",
        b"entries: {demo: [",
        b"<html><body>Not found</body></html>",
        b"\xff\xfe\x00",
        b"? [a]\n: b\n",
        b"a: " + b"[" * 5000,
    ],
)
def test_what_is_no_index_is_refused(text: bytes) -> None:
    with pytest.raises(InvalidError, match="no index of a chart repository"):
        entries_of(text, "demo")


def test_odd_entries_are_passed_over() -> None:
    odd = b"text, {version: [1], urls: text}, {urls: {a: b}}, &a {version: 1.0.0}, *a"
    text = b"entries: {demo: [" + odd + b"]}"
    assert [each.version for each in entries_of(text, "demo")] == ["", "", "1.0.0"]


@pytest.mark.rest
def test_a_large_index_takes_little_memory() -> None:
    one = '{version: "1.0.%d", urls: [a.tgz], description: "%s", keywords: [a, b, c]}'
    others = "\n".join(
        f"  chart-{n}: [{', '.join(one % (v, 'x' * 200) for v in range(20))}]" for n in range(1000)
    )
    text = f"entries:\n{others}\n  demo: [{one % (1, 'y')}]\n".encode()
    tracemalloc.start()
    try:
        assert len(entries_of(text, "demo")) == 1
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(text) > 5 << 20
    assert most < 8 << 20


@pytest.mark.parametrize(
    "text",
    [
        b"entries: {demo: [" + b"{a}," * (1 << 18) + b"]}",
        b"entries: {demo: [{" + b"a: {b}," * (1 << 17) + b"}]}",
        b"entries: {demo: [{urls: [" + b"a," * (1 << 18) + b"]}]}",
    ],
    ids=["versions", "fields of a version", "addresses of a version"],
)
def test_a_hostile_index_takes_little_memory(text: bytes) -> None:
    """Text that gzip packs into kilobytes does not become objects of megabytes."""
    tracemalloc.start()
    try:
        assert len(entries_of(text, "demo")) <= 20_000
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 8 * len(text)


def test_an_index_without_end_is_refused() -> None:
    """What another chart has is read up to a number of values, too."""
    with pytest.raises(TooLargeError, match="5,000,000 values"):
        entries_of(b"entries: {other: [" + b"{}," * 2_500_001 + b"]}", "demo")
