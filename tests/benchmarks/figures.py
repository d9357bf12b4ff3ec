"""What the benchmarks share: blocks in turns, medians with their range, and where it was measured.

A figure means something only beside a floor: the same work with nothing of ours. Both are measured
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

from bellhop.adapters.kube.client import KubeClient
from bellhop.clusters.kubeconfig import sanitise
from bellhop.core.address_policy import LOCAL
from bellhop.runtime.embedded.state import Embedded, open_state
from bellhop.settings import Settings
from infra.demo.stand import Stand
from infra.demo.user import User
from infra.lab.binaries import find
from infra.lab.cluster import Cluster
from infra.lab.control_plane import ControlPlane
from infra.lab.processes import Nursery

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


class Bench(ExitStack):
    """Real clusters and an installation beside them; all that is opened is closed with it."""

    clusters: list[Cluster]
    folder: Path
    nursery: Nursery
    stand: Stand

    def start(
        self, plane: ControlPlane | None, *names: str, settings: Mapping[str, str] | None = None
    ) -> None:
        """Start clusters; the installation has its own folder, and does not serve yet."""
        self.clusters = self.enter_context(lab(plane, *names))
        self.folder = Path(self.enter_context(tempfile.TemporaryDirectory()))
        self.nursery = self.enter_context(Nursery())
        self.stand = Stand(self.folder / "stand", self.nursery, settings=settings)
        self.callback(self.stand.close)

    def users(self) -> list[User]:
        """Return a user of each cluster."""
        users = [User(each.kubeconfig()) for each in self.clusters]
        for each in users:
            self.callback(each.close)
        return users

    def client(self, cluster: Cluster, name: str) -> KubeClient:
        """Return a client as Bellhop has one."""
        stored = sanitise(cluster.kubeconfig(), reach=LOCAL)
        client = KubeClient(name, stored, reach=LOCAL)
        self.callback(client.close)
        return client

    def serve_pair(self) -> None:
        """Serve a first cluster, which sends events, and a second one, which gets add-ons."""
        near, far = self.clusters[:2]
        self.stand.serve()
        self.stand.register(near, namespace="bench", labels="env=production")
        self.stand.register(far, namespace="bench", labels="dep=eng", forward=False)

    def open_state(self) -> Embedded:
        """Open the installation's state beside `serve`."""
        opened = open_state(self.stand.state, Settings())
        self.callback(opened.close)
        return opened


@contextmanager
def bench(
    plane: ControlPlane | None, *names: str, settings: Mapping[str, str] | None = None
) -> Iterator[Bench]:
    """Start clusters, and yield them with an installation that does not serve yet."""
    with Bench() as made:
        made.start(plane, *names, settings=settings)
        yield made


def needs_clusters(main: Callable[..., Any]) -> bool:
    """Say whether a benchmark needs real clusters."""
    return "plane" in inspect.signature(main).parameters
