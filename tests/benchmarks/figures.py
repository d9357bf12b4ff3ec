"""What the benchmarks share: blocks in turns, medians with their range, and where it was measured.

A figure says something beside a floor alone: the same work with nothing of ours. Both are measured
in blocks that take turns, with nothing else at work meanwhile, so that both meet the same weather.
The first uses are figures of their own, and in no median.
"""

from __future__ import annotations

import inspect
import os
import platform
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from infra.lab.binaries import find
from infra.lab.cluster import Cluster
from infra.lab.control_plane import ControlPlane

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]
_NONE = ("__", "figures", "test_")

Rounds = Mapping[str, Sequence[Sequence[float]]]
"""What was measured, by name: a list a round."""


def benchmarks() -> list[str]:
    """Name the benchmarks: every other file of this folder is one.

    Each has `main`, whose numbers are its sizes, and `SMALLEST`, the least of them. One that takes
    a `plane` needs real clusters.
    """
    return sorted(path.stem for path in FOLDER.glob("*.py") if not path.stem.startswith(_NONE))


def run(main: Callable[..., int | None]) -> None:
    """Run a benchmark with the sizes of the command line, below a line that says where."""
    print(where(), flush=True)
    sys.exit(main(*map(int, sys.argv[1:])))


def where() -> str:
    """Describe the machine, and how busy it is."""
    cores = len(os.sched_getaffinity(0))
    load = " ".join(f"{each:.1f}" for each in os.getloadavg())
    return f"{_processor()}, {cores} cores, load {load}, Python {platform.python_version()}"


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.machine()


def in_turns(rounds: int, **blocks: Callable[[], list[float]]) -> dict[str, list[list[float]]]:
    """Measure blocks in turns, in the other order each second round."""
    measured: dict[str, list[list[float]]] = {name: [] for name in blocks}
    for number in range(rounds):
        for name in list(blocks)[:: -1 if number % 2 else 1]:
            measured[name].append(blocks[name]())
    return measured


def percentile(times: Sequence[float], share: int) -> float:
    """Return the smallest of the times that so many of a hundred do not exceed."""
    ordered = sorted(times)
    return ordered[-(-len(ordered) * share // 100) - 1]


def spread(values: Sequence[float], digits: int = 1) -> str:
    """Write a median with the range of what it is the median of."""
    median, low, high = (f"{f(values):.{digits}f}" for f in (statistics.median, min, max))
    return f"{median} ({low}-{high})"


def table(head: str, rows: Mapping[str, Sequence[object]], *columns: str) -> None:
    """Print rows below their columns."""
    lines = {head: columns, **rows}
    first = max(map(len, lines)) + 2
    width = max(len(str(cell)) for cells in lines.values() for cell in cells) + 2
    for name, cells in lines.items():
        print(f"{name:<{first}}" + "".join(f"{cell!s:>{width}}" for cell in cells), flush=True)


def beside(head: str, measured: Rounds, floor: str = "floor") -> None:
    """Print p50 and p99 of each round's ms, and how many times the floor's of its round."""
    rows: dict[str, list[str]] = {}
    for name, rounds in measured.items():
        cells, ratios = [], []
        for share in (50, 99):
            of = [percentile(times, share) for times in rounds]
            under = [percentile(times, share) for times in measured[floor]]
            cells.append(spread(of, 2))
            ratios.append(spread([a / b for a, b in zip(of, under, strict=True)], 2))
        rows[name] = cells + ratios * (name != floor)
    table(head, rows, "p50 ms", "p99 ms", "p50 ratio", "p99 ratio")


@contextmanager
def lab(plane: ControlPlane | None, *names: str) -> Iterator[list[Cluster]]:
    """Give clusters as after boot: those of a given control plane, or of one of its own.

    What it adds to a given one rests afterwards.
    """
    with ExitStack() as stack:
        if plane is None:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            plane = stack.enter_context(ControlPlane(find(), Path(folder) / "lab"))
        added = [name for name in names if name not in plane.clusters]
        if added:
            for cluster in plane.start_clusters(*added):
                stack.callback(cluster.stop)
        clusters = [plane.clusters[name] for name in names]
        for cluster in clusters:
            cluster.start()
            cluster.reset()
        yield clusters


def wants_clusters(main: Callable[..., Any]) -> bool:
    """Say whether a benchmark needs real clusters."""
    return "plane" in inspect.signature(main).parameters
