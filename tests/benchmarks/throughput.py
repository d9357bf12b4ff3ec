"""Many changes at once: `python -m tests.benchmarks.throughput [EVENTS] [ROUNDS]`.

Eight threads create ConfigMaps in one cluster as fast as they can, and for each Bellhop applies one
in another. The floor is the same calls made bare by eight threads, in a pair of clusters that
Bellhop does not know, while it has nothing to do: created, read back, and another one applied.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path

from bellhop.adapters.kube.client import KubeClient
from bellhop.core.gvk import ObjectKey
from infra.demo.arrivals import Arrivals
from infra.demo.stand import Stand
from infra.demo.user import User
from infra.lab.control_plane import ControlPlane
from tests.benchmarks.figures import Rounds, bench, in_turns, percentile, run, spread, table
from tests.benchmarks.idle import used
from tests.benchmarks.isolation import CONFIG, PLACE, RULES, happen

SMALLEST = (16, 1)
THREADS = 8
_CALM_SECONDS = 1.0
_SINGLE = 20
"""Events one after the other before each burst."""

_rounds = count()


def watched_object(name: str) -> dict[str, object]:
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
        source.create(watched_object(name))
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
        user.create(watched_object(name))
        user.get(ObjectKey(CONFIG, "default", name))
        metadata = {"name": f"for-{name}", "namespace": PLACE}
        sink.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
        return (time.perf_counter() - at) * 1000

    took = by_threads(act, [f"bare-{number}-{each}" for each in range(events)])
    whole = (time.perf_counter() - begun) * 1000
    time.sleep(_CALM_SECONDS)
    return [*took, whole]


class Pair:
    """An installation between two real clusters."""

    def __init__(self, stand: Stand, source: User, destination: User, events: int) -> None:
        self._stand = stand
        self._source = source
        self._destination = destination
        self._arrivals = Arrivals(destination, CONFIG, PLACE)
        self._events = events
        self.spent: dict[str, list[float]] = {}
        self.single: list[float] = []
        self.memory: list[float] = []

    def block(self) -> list[float]:
        """Measure a round; return the ms of each event and, last of all, of the whole."""
        quiet = happen(self._source, self._destination, _SINGLE)
        self.single.append(percentile(quiet, 50))
        before = self._used()
        times = through_bellhop(self._source, self._arrivals, self._events)
        for each, ms in self._used().items():
            self.spent.setdefault(each, []).append((ms - before[each]) / self._events)
        self.memory.append(_memory(self._stand.processes["serve"].pid))
        return times

    def _used(self) -> dict[str, float]:
        return {name: used(each.pid)[0] for name, each in self._stand.processes.items()}


def _memory(pid: int) -> float:
    """Return the MiB that a process has for itself: what it shares with others is not counted."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Private_")) / 1024


def main(events: int = 2000, rounds: int = 3, *, plane: ControlPlane | None = None) -> None:
    """Print events a second beside the floor's, how long each took, and what `serve` spent."""
    with bench(plane, "source", "destination", "silent") as made:
        stand, (source, destination, quiet) = made.stand, made.users()
        for user in (destination, quiet):
            user.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": PLACE}})
        sink = made.client(made.clusters[2], "silent")
        made.serve_pair()
        stand.do("apply", "-f", "-", stdin=RULES)
        stand.settle("bench/source")
        pair = Pair(stand, source, destination, events)
        happen(source, destination, 5)
        bare(quiet, sink, THREADS)
        measured = in_turns(rounds, serve=pair.block, floor=lambda: bare(quiet, sink, events))
    _print(events, measured)
    for name, each in pair.spent.items():
        print(f"processor time of {name}: {spread(each, 2)} ms an event")
    print(f"a single event: p50 {spread(pair.single, 0)} ms")
    print(f"memory of serve: {spread(pair.memory, 0)} MiB")


def _print(events: int, measured: Rounds) -> None:
    rates = {name: [events / times[-1] * 1000 for times in of] for name, of in measured.items()}
    pairs = zip(rates["serve"], rates["floor"], strict=True)
    beside = spread([ours / floor for ours, floor in pairs], 2)
    rows = {
        name: [
            spread(rates[name], 0),
            spread([percentile(times[:-1], 50) for times in of], 0),
            spread([percentile(times[:-1], 99) for times in of], 0),
            beside if name == "serve" else "",
        ]
        for name, of in measured.items()
    }
    table(f"{events} at once", rows, "events/s", "p50 ms", "p99 ms", "of the floor's rate")


if __name__ == "__main__":
    run(main)
