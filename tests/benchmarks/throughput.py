"""Many changes at once: `python -m tests.benchmarks.throughput [EVENTS] [ROUNDS] [PROCESSES]`.

Eight threads create ConfigMaps in one cluster as fast as they can, and for each Bellhop applies one
in another. The floor is the same calls made bare by eight threads, in a pair of clusters that
Bellhop does not know, while it has nothing to do: created, read back, and another one applied.
With PROCESSES it is measured beside itself, served by so many instead of one, and single events in
a quiet moment as well: what is shared must not take longer.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from itertools import count
from pathlib import Path

from bellhop.adapters.kube.client import KubeClient
from bellhop.model.gvk import ObjectKey
from bellhop.model.kubeconfig import sanitise
from bellhop.model.reach import HERE
from infra.demo.arrivals import Arrivals
from infra.demo.stand import Stand
from infra.demo.user import User
from infra.lab.control_plane import ControlPlane
from infra.lab.processes import Nursery
from tests.benchmarks.figures import Rounds, in_turns, lab, percentile, run, spread, table
from tests.benchmarks.idle import family, used
from tests.benchmarks.isolation import CONFIG, PLACE, RULES, happen

SMALLEST = (16, 1, 2)
THREADS = 8
_CALM_SECONDS = 1.0
_SINGLE = 20
"""Events one after the other before each burst."""

_rounds = count()


def ringing(name: str) -> dict[str, object]:
    """Return a ConfigMap that the source watches for."""
    metadata = {"name": name, "namespace": "default", "labels": {"ring": "yes"}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


def by_threads(act: Callable[[str], float], names: list[str]) -> list[float]:
    """Do something for each name, by eight threads; return what each returned."""
    with ThreadPoolExecutor(THREADS) as threads:
        return list(threads.map(act, names))


def through_bellhop(source: User, arrivals: Arrivals, events: int) -> list[float]:
    """Return the ms from each write to its add-on, and last of all what it took as a whole."""
    number = next(_rounds)
    names = [f"many-{number}-{each}" for each in range(events)]
    begun = time.perf_counter()

    def write(name: str) -> float:
        at = time.perf_counter()
        source.create(ringing(name))
        return at

    written = by_threads(write, names)
    came = arrivals.of(f"for-{name}" for name in names)
    time.sleep(_CALM_SECONDS)
    took = [(b - a) * 1000 for a, b in zip(written, came, strict=True)]
    return [*took, (max(came) - begun) * 1000]


def bare(user: User, sink: KubeClient, events: int) -> list[float]:
    """Return the ms that the same calls take, and last of all what they took as a whole."""
    number = next(_rounds)
    begun = time.perf_counter()

    def act(name: str) -> float:
        at = time.perf_counter()
        user.create(ringing(name))
        user.get(ObjectKey(CONFIG, "default", name))
        metadata = {"name": f"for-{name}", "namespace": PLACE}
        sink.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
        return (time.perf_counter() - at) * 1000

    took = by_threads(act, [f"bare-{number}-{each}" for each in range(events)])
    whole = (time.perf_counter() - begun) * 1000
    time.sleep(_CALM_SECONDS)
    return [*took, whole]


class Bench:
    """An installation between two real clusters, served by one process or several."""

    def __init__(self, stand: Stand, source: User, destination: User, events: int) -> None:
        self._stand = stand
        self._source = source
        self._destination = destination
        self._arrivals = Arrivals(destination, CONFIG, PLACE)
        self._events = events
        self._processes = 1
        self.spent: dict[str, list[float]] = {}
        self.single: dict[str, list[float]] = {}
        self.memory: dict[str, list[float]] = {}

    def serve(self, processes: int) -> None:
        """Have so many processes serve."""
        if processes != self._processes:
            self._stand.stop("serve")
            self._stand.serve(processes)
            self._processes = processes
            time.sleep(_CALM_SECONDS)

    def block(self, processes: int) -> list[float]:
        """Measure a round; return the ms of each event and, last of all, of the whole."""
        self.serve(processes)
        name = _named(processes)
        quiet = happen(self._source, self._destination, _SINGLE)
        self.single.setdefault(name, []).append(percentile(quiet, 50))
        before = self._used()
        times = through_bellhop(self._source, self._arrivals, self._events)
        for each, ms in self._used().items():
            by = f"{each}, {name}" if each == "serve" else each
            self.spent.setdefault(by, []).append((ms - before[each]) / self._events)
        self.memory.setdefault(name, []).extend(map(_memory, self._family("serve")))
        return times

    def _used(self) -> dict[str, float]:
        return {
            name: sum(used(pid)[0] for pid in self._family(name)) for name in self._stand.processes
        }

    def _family(self, name: str) -> list[int]:
        return family(self._stand.processes[name].pid)


def _named(processes: int) -> str:
    return f"{processes} processes" if processes > 1 else "one process"


def _memory(pid: int) -> float:
    """Return the MiB that a process has for itself: what it shares with others is not counted."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Private_")) / 1024


def main(
    events: int = 2000, rounds: int = 3, processes: int = 1, *, plane: ControlPlane | None = None
) -> None:
    """Print events a second beside the floor's, how long each took, and what `serve` spent."""
    with ExitStack() as stack:
        near, far, silent = stack.enter_context(lab(plane, "source", "destination", "silent"))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        stand = Stand(folder, stack.enter_context(Nursery()))
        stack.callback(stand.close)
        source, destination, alone = (User(each.kubeconfig()) for each in (near, far, silent))
        for user in (source, destination, alone):
            stack.callback(user.close)
        for user in (destination, alone):
            user.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": PLACE}})
        sink = KubeClient("silent", sanitise(silent.kubeconfig(), reach=HERE), reach=HERE)
        stack.callback(sink.close)
        stand.serve()
        stand.register(near, namespace="bench", labels="env=production")
        stand.register(far, namespace="bench", labels="dep=eng", forward=False)
        stand.do("apply", "-f", "-", stdin=RULES)
        stand.settle("bench/source")
        bench = Bench(stand, source, destination, events)
        happen(source, destination, 5)
        bare(alone, sink, THREADS)
        blocks = {_named(each): partial(bench.block, each) for each in {1, processes}}
        measured = in_turns(rounds, **blocks, floor=lambda: bare(alone, sink, events))
    _print(events, measured)
    for name, each in bench.spent.items():
        print(f"processor time of {name}: {spread(each, 2)} ms an event")
    for name, each in bench.single.items():
        print(f"a single event, {name}: p50 {spread(each, 0)} ms")
        print(f"memory of a process, {name}: {spread(bench.memory[name], 0)} MiB")


def _print(events: int, measured: Rounds) -> None:
    rates = {name: [events / times[-1] * 1000 for times in of] for name, of in measured.items()}

    def beside(name: str, other: str) -> str:
        pairs = zip(rates[name], rates[other], strict=True)
        return spread([a / b for a, b in pairs], 2) if name != other else ""

    rows = {
        name: [
            spread(rates[name], 0),
            spread([percentile(times[:-1], 50) for times in of], 0),
            spread([percentile(times[:-1], 99) for times in of], 0),
            beside(name, "floor"),
            beside(name, _named(1)) if name != "floor" else "",
        ]
        for name, of in measured.items()
    }
    columns = ("events/s", "p50 ms", "p99 ms", "of the floor's rate", "of one's")
    table(f"{events} at once", rows, *columns)


if __name__ == "__main__":
    run(main)
