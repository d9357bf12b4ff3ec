"""How long a stage takes to import, and what it weighs: `python -m tests.benchmarks.cold_start`.

Each stage is imported in processes of its own, with warm files; the floor is an empty Python.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
from pathlib import Path

RUNS = 9
STAGES = {
    "ingest": ("bellhop.stages.ingest", 150),
    "evaluate": ("bellhop.stages.evaluate", 200),
    "deploy": ("bellhop.stages.deploy, bellhop.adapters.kube.access", 500),
    "sweep": ("bellhop.stages.sweep, bellhop.adapters.kube.access", 500),
}
_PROBE = """
import time
begun = time.perf_counter()
import {modules}
took = (time.perf_counter() - begun) * 1000
memory = next(l for l in open('/proc/self/status') if l.startswith('VmRSS')).split()[1]
print(took, memory)
"""


def measure(modules: str) -> tuple[float, float]:
    """Return the median import time in ms and the resident memory in MB."""
    times, sizes = [], []
    for _ in range(RUNS):
        done = subprocess.run(
            [sys.executable, "-c", _PROBE.format(modules=modules)],
            capture_output=True,
            text=True,
            check=True,
            cwd=Path(__file__).parents[2],
        )
        took, memory = done.stdout.split()
        times.append(float(took))
        sizes.append(int(memory) / 1024)
    return statistics.median(times), statistics.median(sizes)


def main() -> None:
    """Print a row a stage, beside the floor and the aim."""
    floor_time, floor_size = measure("sys")
    print(f"{'stage':<10} {'import ms':>10} {'aim ms':>7} {'MB':>7} {'x floor MB':>11}")
    print(f"{'(python)':<10} {floor_time:>10.1f} {'':>7} {floor_size:>7.1f} {1:>11.1f}")
    for stage, (modules, aim) in STAGES.items():
        took, size = measure(modules)
        print(f"{stage:<10} {took:>10.1f} {aim:>7} {size:>7.1f} {size / floor_size:>11.1f}")


if __name__ == "__main__":
    main()
