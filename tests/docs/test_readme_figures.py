"""The README's figures are those of the pages that it names."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def figures(page: str, pattern: str) -> tuple[str, ...]:
    """Return the groups of a pattern's first match in a page."""
    found = re.search(pattern, (ROOT / "docs" / "explanation" / page).read_text())
    assert found
    return found.groups()


@pytest.mark.parametrize(
    ("page", "pattern", "words"),
    [
        (
            "costs.md",
            r"\*\*together\*\* \| \*\*(\$[\d.]+)\*\* \| \*\*(\$[\d.]+)\*\* ",
            "[{}, and {} for each cluster]",
        ),
        ("costs.md", r"a small management cluster, with nothing on it \| (\$\d+) ", "[{}]"),
        (
            "performance.md",
            r"compared with the same calls made bare \| `latency` \| quiet: p50 (\d+ ms)",
            "[{}]",
        ),
        ("forwarder.md", r"\| memory \| (\d+ MiB) ", "(two pods of [{}]"),
        (
            "performance.md",
            r"that loops on 300 [^\n]*p50 (\d+ ms) later",
            "barely delays the others:** [{}]",
        ),
        (
            "performance.md",
            r"\| \| (\d+) \| (\d+) \| \d+ \| 0.2 of 1",
            "serves {} clusters with {} ev",
        ),
        (
            "../how-to/size-an-installation.md",
            r"\| 10 \| deploy 4[^|]* \| 10 \| ([\d.]+) s ",
            "[on AWS {} s]",
        ),
        ("costs.md", r"An event took ([\d.]+) seconds", "on Google Cloud [{} s]"),
        (
            "costs.md",
            r"a NAT gateway in one zone \| (\$[\d.]+) (?s:.*?)eks \| (\$[\d.]+) ",
            "with private API servers {} or {} more",
        ),
    ],
)
def test_is_what_the_page_says(page: str, pattern: str, words: str) -> None:
    """A figure that is measured again changes in both places."""
    assert words.format(*figures(page, pattern)) in README


def test_the_costs_of_a_fleet_are_their_sum() -> None:
    """Those of the installation, and of each of its clusters."""
    both = r"\*\*together\*\* \| \*\*\$([\d.]+)\*\* \| \*\*\$([\d.]+)\*\* "
    installation, cluster = map(float, figures("costs.md", both))

    assert f"${installation + 80 * cluster:.2f} for 80;" in README


def test_the_trigger_on_the_front_is_that_of_the_example() -> None:
    """It has twelve lines, and what is applied has the same fields."""
    [block] = re.findall(r"^```yaml\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    example = (ROOT / "docs/examples/welcome/welcome.yaml").read_text()
    triggers = [each for each in yaml.safe_load_all(example) if each["kind"] == "EventTrigger"]

    assert [yaml.safe_load(block)] == triggers
    assert len(block.splitlines()) == 12


def test_the_comparison_says_something_of_everybody() -> None:
    """A cell without content says that others lack what they do not need."""
    assert "not applicable" not in README
