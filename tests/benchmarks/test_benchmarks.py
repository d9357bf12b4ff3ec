"""Benchmarks are run by hand: here each runs once at its smallest size, so that none rots.

That takes two minutes of a processor, so that a landing only loads each one.

What `requests` counts is counted by tests/functions/test_requests.py, too.
"""

from __future__ import annotations

import importlib
import inspect

import pytest

from infra.lab.control_plane import ControlPlane
from tests.benchmarks.figures import benchmarks, needs_clusters, percentile, spread


@pytest.mark.parametrize("name", benchmarks())
def test_can_be_started(name: str) -> None:
    """A benchmark loads, and its smallest sizes are as many as it takes."""
    module = importlib.import_module(f"tests.benchmarks.{name}")

    inspect.signature(module.main).bind_partial(*module.SMALLEST)


@pytest.mark.thorough
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", sorted({*benchmarks()} - {"requests"}))
def test_runs(
    name: str, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    """A benchmark prints figures; whether they are good is nobody's business here.

    It takes over a minute: each benchmark plays its load to the end, also at its smallest sizes.
    """
    module = importlib.import_module(f"tests.benchmarks.{name}")
    shared: dict[str, ControlPlane] = {}
    if needs_clusters(module.main):
        for cluster in ("source_cluster", "destination_cluster"):
            request.getfixturevalue(cluster)
        shared["plane"] = request.getfixturevalue("control_plane")

    module.main(*module.SMALLEST, **shared)

    assert any(character.isdigit() for character in capsys.readouterr().out)


@pytest.mark.parametrize(
    ("times", "share", "expected"),
    [
        pytest.param([3.0], 50, 3.0, id="one alone"),
        pytest.param([1.0, 2.0, 3.0], 50, 2.0, id="the middle"),
        pytest.param([*map(float, range(1, 201))], 99, 198.0, id="two of two hundred are above"),
        pytest.param([2.0, 1.0], 99, 2.0, id="the last of few"),
    ],
)
def test_percentiles_are_measured_values(times: list[float], share: int, expected: float) -> None:
    """A percentile is one of the times, also where there are few."""
    assert percentile(times, share) == expected


def test_a_median_is_printed_with_its_range() -> None:
    """A bare figure would hide how much it varies."""
    assert spread([3.0, 1.0, 2.0]) == "2.0 (1.0-3.0)"
