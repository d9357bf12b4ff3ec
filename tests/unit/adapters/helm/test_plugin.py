"""The plugin that changes what a chart writes: all that it does not change stays what it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from bellhop.adapters.helm.plugin import apply_changes, changes_of
from bellhop.documents.document import read_documents
from bellhop.errors import InvalidError
from bellhop.ports.charts import DesiredRelease

LABELLED = changes_of(DesiredRelease("web", "apps", Path("web.tgz"), labels={"team": "a"}))
CONFIG = """
apiVersion: v1
kind: ConfigMap
metadata: {name: a}
"""


@pytest.mark.parametrize(
    "value", ['"1e3"', '"y"', '"0o17"', '"0b11"', '"null"', '"2024-01-01"', "'='", "'a\\nb'"]
)
def test_a_text_stays_a_text(value: str) -> None:
    made = apply_changes(f"{CONFIG}data: {{value: {value}}}", LABELLED)
    (before,), (after,) = (read_documents(text, source="") for text in (f"value: {value}", made))
    assert after.data["data"] == before.data
    assert after.data["metadata"]["labels"] == {"team": "a"}


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("12:30:45", "12:30:45"),
        ("2024-01-01", "2024-01-01"),
        ("=", "="),
        ("1e3", 1000),
        ("y", True),
    ],
)
def test_what_is_written_without_quotes_is_what_an_api_server_reads(
    written: str, meant: object
) -> None:
    made = apply_changes(f"{CONFIG}spec: {{value: {written}}}", LABELLED)
    (document,) = read_documents(made, source="")
    assert document.data["spec"] == {"value": meant}


def test_a_key_that_stands_twice_counts_as_in_helm() -> None:
    made = apply_changes(f"{CONFIG}data: {{a: one}}\ndata: {{a: two}}", LABELLED)
    (document,) = read_documents(made, source="")
    assert document.data["data"] == {"a": "two"}


def test_text_that_is_no_yaml_is_an_error() -> None:
    with pytest.raises(InvalidError, match="this is not YAML"):
        apply_changes("a: [", LABELLED)
