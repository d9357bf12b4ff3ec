"""The README's figures are those of the pages that it names."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

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
        ("forwarder.md", r"\| memory \| (\d+ MiB) ", "a forwarder ({} of memory),"),
    ],
)
def test_is_what_the_page_says(page: str, pattern: str, words: str) -> None:
    """A figure that is measured again changes in both places."""
    assert words.format(*figures(page, pattern)) in README
