"""Releases of charts: `python -m tests.benchmarks.charts [RELEASES] [ROUNDS]`.

From a change of the values of many ClusterProfiles, each of which has one chart, until all of them
are `Provisioned`, by `bellhop serve`. The floor is the same upgrades made bare by Helm's command
line, eight at a time. Beside it stands how much memory `serve` and its children took at most.
"""

from __future__ import annotations

import itertools
import json
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from bellhop.adapters.programs.layer import download
from bellhop.installation import Installation
from infra.lab.cluster import Cluster
from infra.lab.control_plane import ControlPlane
from tests.benchmarks.apply import THREADS, declare, register, seconds
from tests.benchmarks.fanout import settle
from tests.benchmarks.figures import bench, in_turns, run, spread, table
from tests.fakes.chart import packed
from tests.fakes.site import Site

SMALLEST = (2, 1)
AIM = 1.3
"""Times the floor."""

_PAUSE_SECONDS = 0.2


def profile(number: int, repository: str, value: int) -> dict[str, Any]:
    """Return a profile with one chart."""
    chart = {
        "repositoryURL": repository,
        "chartName": "demo",
        "chartVersion": "1.0.0",
        "releaseName": f"ours-{number}",
        "releaseNamespace": "ours",
        "values": f"greeting: '{value}'\n",
    }
    return {
        "apiVersion": "config.projectsveltos.io/v1beta1",
        "kind": "ClusterProfile",
        "metadata": {"name": f"p{number}"},
        "spec": {
            "clusterSelector": {"matchLabels": {"bench": "yes"}},
            "helmCharts": [chart],
        },
    }


@contextmanager
def repository(folder: Path) -> Iterator[tuple[str, Path]]:
    """Serve a repository of one chart; yield its address and the chart's archive."""
    archive = packed(folder)
    command = [download() / "helm", "repo", "index", folder]
    subprocess.run(command, env={"HOME": str(folder)}, check=True, capture_output=True)
    files = {f"/{each.name}": each.read_bytes() for each in folder.iterdir() if each.is_file()}
    with Site(files) as site:
        yield site.address, archive


def bare(cluster: Cluster, folder: Path, archive: Path, count: int, value: int) -> float:
    """Return how long bare Helm takes."""
    kubeconfig = folder / "kubeconfig"
    kubeconfig.write_text(json.dumps(cluster.kubeconfig()))
    environment = {"HOME": str(folder), "KUBECONFIG": str(kubeconfig)}

    def upgrade(number: int) -> None:
        command = [download() / "helm", "upgrade", "--install", f"bare-{number}", archive]
        command += ["--namespace", "bare", "--create-namespace", "--set", f"greeting={value}"]
        subprocess.run(command, env=environment, check=True, capture_output=True)

    with ThreadPoolExecutor(THREADS) as threads:
        return seconds(lambda: list(threads.map(upgrade, range(count))))


def through_bellhop(here: Installation, address: str, count: int, value: int) -> float:
    """Return how long it takes from declaring values to the last release's outcome."""
    begun, left = datetime.now(UTC), [f"p{number}" for number in range(count)]
    profiles = [profile(number, address, value) for number in range(count)]

    def everywhere() -> bool:
        while left:
            found = here.records.outcomes.get("bench/one", left[-1])
            if not found or found.value.phase != "Provisioned" or found.value.at < begun:
                return False
            left.pop()
        return True

    return seconds(lambda: declare(here, profiles), everywhere)


class Memory:
    """The most memory that a process and its children were seen to take, in MiB."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._stopping = threading.Event()
        self.most = 0.0
        self._thread = threading.Thread(target=self._look)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._stopping.wait(_PAUSE_SECONDS):
            self.most = max(self.most, sum(map(_resident, _with_children(self._pid))) / 1024)


def _with_children(pid: int) -> Iterator[int]:
    yield pid
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in _words(task):
            yield from _with_children(int(child))


def _resident(pid: int) -> int:
    lines = [each for each in _words(Path(f"/proc/{pid}/status"), "\n") if "VmRSS" in each]
    return int(lines[0].split()[1]) if lines else 0


def _words(path: Path, by: str | None = None) -> list[str]:
    try:
        return path.read_text().split(by)
    except OSError:
        return []  # It has ended meanwhile.


def main(count: int = 50, rounds: int = 3, *, plane: ControlPlane | None = None) -> None:
    """Print releases a second beside the floor's."""
    numbers = itertools.count(1)
    calm = {
        "BELLHOP_SWEEP_INTERVAL": str(6 * 3600),
        "BELLHOP_HELM": str(download() / "helm"),
    }
    with bench(plane, "destination", settings=calm) as made:
        [cluster], folder, stand = made.clusters, made.folder, made.stand
        (folder / "charts").mkdir()
        address, archive = made.enter_context(repository(folder / "charts"))
        stand.serve()
        here = made.open_state().installation
        register(here, "one", cluster.kubeconfig())
        settle(here, ["one"])
        memory = made.enter_context(Memory(stand.processes["serve"].pid))
        first = through_bellhop(here, address, count, 0)
        bare(cluster, folder, archive, count, 0)
        measured = in_turns(
            rounds,
            bare=lambda: [bare(cluster, folder, archive, count, next(numbers))],
            bellhop=lambda: [through_bellhop(here, address, count, next(numbers))],
        )
    times = {name: [each[0] for each in of] for name, of in measured.items()}
    ratios = [a / b for a, b in zip(times["bellhop"], times["bare"], strict=True)]
    table(
        f"{count} releases of a chart in one cluster",
        {
            f"bare, {THREADS} threads": [spread(times["bare"])],
            "bellhop": [spread(times["bellhop"]), spread(ratios, 2)],
            "bellhop, the first time": [f"{first:.1f}"],
            "memory of serve at most, in MiB": [f"{memory.most:.0f}"],
        },
        "seconds",
        f"times the floor; {AIM} is the aim",
    )


if __name__ == "__main__":
    run(main)
