"""The page of figures names what measures them, so that each can be measured again."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.benchmarks.figures import benchmarks

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "explanation" / "performance.md").read_text()


@pytest.mark.parametrize("name", benchmarks())
def test_every_benchmark_has_its_row(name: str) -> None:
    """What nobody reads of, nobody runs."""
    assert re.search(rf"^\| .* \| `{name}` \| ", PAGE, re.MULTILINE)


def test_every_command_names_a_benchmark() -> None:
    """A benchmark that was renamed leaves no command behind."""
    named = re.findall(r"tests\.benchmarks\.(\w+)", PAGE)

    assert named
    assert set(named) <= set(benchmarks())
