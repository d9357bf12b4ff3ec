"""Schemas of values: a reference to itself is accepted, one to another document is not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bellhop.adapters.sources.charts.archive import find_schema_problem

TAKEN: list[Any] = [
    {},
    True,
    {"$schema": "http://json-schema.org/draft-07/schema#"},
    {"$schema": "https://json-schema.org/draft/2020-12/schema", "$ref": "#/$defs/a"},
    {"$id": "https://example.com/values.json", "$ref": "#/$defs/a", "$defs": {"a": {}}},
    {"allOf": [{"$ref": "#anchor"}, {"$dynamicRef": "#"}]},
    # A value may have these names.
    {"properties": {"$ref": {"type": "string"}, "$schema": {"type": "string"}}},
    {"description": "see http://example.com/"},
]
REFUSED: list[Any] = [
    {"$ref": "http://example.com/a"},
    {"$ref": "file:///etc/passwd"},
    {"$ref": "other.json#/a"},
    {"$ref": ""},
    {"$ref": "//example.com/a"},
    {"$id": "http://example.com/", "$ref": "a"},
    {"$dynamicRef": "http://example.com/a"},
    {"$recursiveRef": "http://example.com/a"},
    {"$schema": "http://example.com/a"},
    {"$schema": "http://json-schema.org/draft-03/schema#"},
    {"$schema": "http://json-schema.org.example.com/draft-07/schema#"},
    {"properties": {"a": {"$schema": "http://example.com/a"}}},
    # Another reference may lead to what is no schema by itself.
    {"$ref": "#/enum/0", "enum": [{"$ref": "http://example.com/a"}]},
]
ODD = [
    b'{"\\u0024ref": "http://example.com/a"}',
    b'{"$ref": "http://example.com/a", "$ref": "#"}',
    b'\xef\xbb\xbf{"$ref": "http://example.com/a"}',
    b"",
    b"$ref: http://example.com/a",
    b"[" * 100_000,
    b"\xff",
]


@pytest.mark.parametrize("schema", TAKEN)
def test_what_refers_to_itself_is_taken(schema: Any) -> None:
    assert find_schema_problem(json.dumps(schema).encode()) == ""


@pytest.mark.parametrize("schema", REFUSED)
def test_references_to_other_addresses_are_refused(schema: Any) -> None:
    assert find_schema_problem(json.dumps(schema).encode()).startswith("refers by '$")


@pytest.mark.parametrize("schema", ODD)
def test_no_spelling_hides_it(schema: bytes) -> None:
    assert find_schema_problem(schema)


def test_the_problem_names_the_reference() -> None:
    said = find_schema_problem(b'{"a": {"$ref": "http://example.com/a"}}')
    assert said == "refers by '$ref' to 'http://example.com/a'"
