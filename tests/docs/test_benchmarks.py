"""Benchmarks are run by hand: that each can still be started is held here."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HERE = sorted(path.stem for path in (ROOT / "tests" / "benchmarks").glob("[!_]*.py"))


@pytest.mark.parametrize("name", HERE)
def test_can_be_started(name: str) -> None:
    """What a benchmark leans on is still there."""
    module = importlib.import_module(f"tests.benchmarks.{name}")

    assert callable(module.main)


def test_make_bench_runs_all_of_them() -> None:
    """A benchmark nobody runs says nothing."""
    run = re.findall(r"tests\.benchmarks\.(\w+)", (ROOT / "Makefile").read_text())

    assert sorted(run) == HERE
