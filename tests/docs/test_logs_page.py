"""The page about logs names what lines have, and its queries ask for nothing else."""

from __future__ import annotations

import re
from pathlib import Path

import bellhop
from bellhop.runtime.aws.metrics import DIMENSION, NAMESPACE, UNITS
from bellhop.runtime.cloud.event_log import SENTENCES
from bellhop.runtime.gcp.resources import LABELS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/how-to/read-the-logs.md").read_text()
QUERIES = [each for each in re.findall(r"```\n(.*?)```", PAGE, re.DOTALL) if "| " in each]
ROWS = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", PAGE.partition("## Queries")[0], re.MULTILINE)
FIELDS = {name for cells in ROWS for name in re.findall(r"`(\w+)`", cells)}
WORDS = frozenset(
    [
        "and",
        "as",
        "asc",
        "avg",
        "bin",
        "by",
        "count",
        "desc",
        "fields",
        "filter",
        "ispresent",
        "latest",
        "like",
        "limit",
        "max",
        "pct",
        "sort",
        "stats",
        "sum",
    ]
)
SOURCES = "".join(path.read_text() for path in Path(bellhop.__file__).parent.rglob("*.py"))


def asked(query: str) -> set[str]:
    """Name the fields that a query asks for: neither words of the language nor its own names."""
    plain = re.sub(r'"[^"]*"', "", query)
    own = set(re.findall(r"\bas (\w+)", plain))
    return set(re.findall(r"(?<![@\w])[a-z_]+\b", re.sub(r"\b\d+\w*", "", plain))) - WORDS - own


def test_the_queries_ask_for_fields_that_lines_have() -> None:
    """Each field is on the page, and somebody writes it."""
    assert len(QUERIES) >= 9
    for query in QUERIES:
        assert asked(query) <= FIELDS, query
    for name in FIELDS - {"severity", "message", "time"}:
        assert re.search(rf'["( ]{name}["=]', SOURCES), name


def test_the_queries_ask_for_words_that_lines_say() -> None:
    """What is compared with is something that happens, or a sentence that is logged."""
    for name, value in re.findall(r'(\w+) = "([^"]+)"', "".join(QUERIES)):
        known = {
            "what": lambda value: value in SENTENCES,
            "message": lambda value: f'"{value}"' in SOURCES,
            "severity": lambda value: f'"{value}"' in SOURCES,
            "cluster": lambda value: "/" in value,
        }

        assert known[name](value), f"{name} = {value}"


def test_the_page_names_what_can_happen() -> None:
    """Every word of `what`, and every metric with its unit."""
    assert f"`{NAMESPACE}`" in PAGE
    assert f"`{DIMENSION}`" in PAGE
    assert [each for each in SENTENCES if f"`{each}`" not in PAGE] == []
    assert [each for each, unit in UNITS.items() if f"| `{each}` | {unit} |" not in PAGE] == []


def test_the_page_about_cloud_logging_asks_for_labels_and_fields_that_lines_have() -> None:
    """Its filters find what functions on Google Cloud write, word for word."""
    page = (ROOT / "docs/how-to/view-events-in-cloud-logging.md").read_text()

    assert set(re.findall(r"(?<!resource\.)\blabels\.(\w+)", page)) == set(LABELS.values())
    assert set(re.findall(r"jsonPayload\.(\w+)", page)) <= FIELDS | {"address"}
    for what in re.findall(r'jsonPayload\.what="(\w+)"', page):
        assert what in SENTENCES
    for sentence in re.findall(r'jsonPayload\.message="([^"]+)"', page):
        assert f'"{sentence}"' in SOURCES
