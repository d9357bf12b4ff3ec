"""What an installation costs that has nothing to do: `python -m tests.benchmarks.idle [SECONDS]`.

`bellhop serve` and a forwarder beside real API servers, after all has settled: processor time, and
how often their threads woke up, by /proc. The floor is a Python that only sleeps.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from infra.lab.control_plane import ControlPlane
from tests.benchmarks.figures import bench, run, table
from tests.benchmarks.latency import EXAMPLE

SMALLEST = (1,)
AIM = 1.0
"""Percent of a core, for each process."""

_SETTLE_SECONDS = 3.0
_SLEEP = "import time; time.sleep(3600)"


def used(pid: int) -> tuple[float, int]:
    """Return the ms of processor time that a process has used, and how often its threads woke."""
    nanoseconds = wakes = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        nanoseconds += int((task / "schedstat").read_text().split()[0])
        for line in (task / "status").read_text().splitlines():
            name, _, value = line.partition(":")
            wakes += int(value) if name == "voluntary_ctxt_switches" else 0
    return nanoseconds / 1e6, wakes


def family(pid: int) -> list[int]:
    """Return a process and those that it has started."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return [
        pid,
        *(int(child) for task in tasks for child in (task / "children").read_text().split()),
    ]


def main(seconds: int = 60, *, plane: ControlPlane | None = None) -> None:
    """Print a row a process, beside the floor."""
    with bench(plane, "source", "destination") as made:
        stand = made.stand
        made.serve_pair()
        stand.do("apply", "-f", str(EXAMPLE))
        stand.settle("bench/source")
        floor = made.nursery.start([sys.executable, "-c", _SLEEP], made.folder / "floor.log")
        processes = {**stand.processes, "floor": floor}
        time.sleep(_SETTLE_SECONDS)
        before = {name: used(process.pid) for name, process in processes.items()}
        begun = time.monotonic()
        time.sleep(seconds)
        after = {name: used(process.pid) for name, process in processes.items()}
        took = time.monotonic() - begun
    rows = {
        name: [
            f"{(after[name][0] - before[name][0]) / took / 10:.2f}",
            f"{(after[name][1] - before[name][1]) / took:.1f}",
            AIM if name != "floor" else "",
        ]
        for name in after
    }
    table(f"idle for {seconds} s", rows, "% of a core", "wakes a second", "aim %")


if __name__ == "__main__":
    run(main)
