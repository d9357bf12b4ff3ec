"""There is one list of alarms, and each place that has alarms has those of the list."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from infra.alarms import ALARMS
from tests.benchmarks.clouds.module import AWS, GOOGLE, Module

DOCS = Path(__file__).parents[2] / "docs"
MONITOR = DOCS / "how-to/monitor.md"
CLOUDS = {"aws": AWS, "gcp": GOOGLE}


def of(cloud: str) -> set[str]:
    """Return the alarms that a cloud's module has to have."""
    return {each.name for each in ALARMS if each.name and getattr(each, cloud)}


def test_prometheus_has_the_rules_of_the_list() -> None:
    """Each once; a rule that nobody listed might have no alarm in a cloud."""
    text = (DOCS / "examples/monitoring/alerts.yaml").read_text()
    rules = [rule["alert"] for each in yaml.safe_load(text)["groups"] for rule in each["rules"]]

    assert sorted(rules) == sorted(each.rule for each in ALARMS if each.rule)


@pytest.mark.parametrize(("cloud", "module"), CLOUDS.items())
def test_a_module_has_the_alarms_of_the_list(cloud: str, module: Module) -> None:
    """In a cloud that lacks one, nobody is notified of what it watches."""
    assert module.alarms.keys() == of(cloud)


def test_an_exception_has_a_sentence() -> None:
    """An alarm that is missing somewhere is missing for a reason."""
    whole = [each for each in ALARMS if each.name and each.rule and each.aws and each.gcp]

    assert [each for each in whole if each.why] == []
    assert [each for each in ALARMS if each not in whole and not each.why.endswith(".")] == []


def test_the_page_about_monitoring_has_the_list() -> None:
    """Which runbook belongs to an alarm, and why a rule has none."""
    page = MONITOR.read_text().partition("## On AWS")[2]
    rows = re.findall(r"^\| `([\w-]+)` \| (.*) \|$", page, re.MULTILINE)

    expected = [
        (each.name, f"[{each.rule}](#{each.rule.lower()})" if each.rule else each.why)
        if each.name
        else (each.rule, each.why)
        for each in ALARMS
    ]
    assert rows == expected


@pytest.mark.parametrize("cloud", CLOUDS)
def test_the_page_about_a_cloud_has_its_alarms(cloud: str) -> None:
    """With their meaning, and what to check."""
    page = (DOCS / f"how-to/run-on-{cloud}.md").read_text()

    assert set(re.findall(r"^\| `NAME-([a-z-]+)` ", page, re.MULTILINE)) == of(cloud)


@pytest.mark.parametrize(
    ("cloud", "page", "fence"),
    [
        ("aws", "read-the-logs.md", ""),
        ("gcp", "view-events-in-cloud-logging.md", "filter"),
    ],
)
def test_saved_queries_are_those_of_the_page(cloud: str, page: str, fence: str) -> None:
    """A query that is improved on the page is improved where it is saved."""
    text = (DOCS / "how-to" / page).read_text()
    block = rf"^([A-Z][^\n]*):\n\n```{fence}\n(.*?)\n```$"
    shown = re.findall(block, text, re.MULTILINE | re.DOTALL)
    code = (CLOUDS[cloud].folder / "queries.tf").read_text()
    saved = [
        (title, re.sub(r"^      ", "", query, flags=re.MULTILINE))
        for title, query in re.findall(
            r'^    "(.*?)" += <<-EOT\n(.*?)\n    EOT$', code, re.MULTILINE | re.DOTALL
        )
    ]

    assert len(saved) > 5
    assert saved == shown
