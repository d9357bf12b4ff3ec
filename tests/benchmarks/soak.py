"""Hours of steady work: `python -m tests.benchmarks.soak [SECONDS EVENTS SAMPLES]`.

Objects are created in one cluster and deleted again when they are five minutes old, with names
that come back; for each Bellhop applies one in another cluster, and removes it. Every now and then
a row says what the processes and files have grown to, how much waits, and how long the creations
since the row before took to arrive. At the end the destination must hold what it should, and no
more. It is held by its rows: the last are to be like those after the first minutes.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import urllib3

from bellhop.core.gvk import ObjectKey
from infra.demo.stand import Stand
from infra.demo.user import User
from infra.lab.control_plane import ControlPlane
from tests.benchmarks.figures import bench, percentile, run
from tests.benchmarks.idle import used
from tests.benchmarks.isolation import CONFIG, PLACE, RULES
from tests.benchmarks.throughput import watched_object

SMALLEST = (6, 10, 2)
_LIFE_SECONDS = 300
_PATIENCE_SECONDS = 120.0
_COLUMNS = (
    *("serve MB", "files", "threads", "forwarder MB", "store MB", "queue MB"),
    *("waiting", "dead", "ms an event", "p50 ms", "p99 ms"),
)


class Arrivals:
    """How long creations took until the add-on came, by a watch."""

    def __init__(self, user: User) -> None:
        self.created: dict[str, float] = {}
        self._took: deque[float] = deque()
        self._user = user
        threading.Thread(target=self._look, daemon=True).start()

    def taken(self) -> list[float]:
        """Return the ms of what has come since the last question."""
        return [self._took.popleft() for _ in range(len(self._took))]

    def _look(self) -> None:
        # It breaks off with the cluster.
        with suppress(urllib3.exceptions.HTTPError):
            while True:
                # An API server ends a watch after half an hour, or an hour.
                for manifest in self._user.watch(CONFIG, PLACE):
                    begun = self.created.pop(manifest["metadata"]["name"], None)
                    if begun is not None:
                        self._took.append((time.perf_counter() - begun) * 1000)


def steps(names: int) -> Iterator[tuple[str, str]]:
    """Yield what to create and what to delete, one after the other, for ever."""
    number = 0
    while True:
        yield f"soak-{number % (2 * names)}", f"soak-{(number - names) % (2 * names)}"
        number += 1


def of(pid: int) -> tuple[float, int, int]:
    """Return the MB of memory of a process, its open files and its threads."""
    status = Path(f"/proc/{pid}/status").read_text().splitlines()
    values = {name: value.split() for name, _, value in (each.partition(":") for each in status)}
    files = len(list(Path(f"/proc/{pid}/fd").iterdir()))
    return int(values["VmRSS"][0]) / 1024, files, int(values["Threads"][0])


def megabytes(state: Path, name: str) -> float:
    """Return how large a file of the state is, with what was written beside it."""
    paths = (state / f"{name}{end}" for end in ("", "-wal"))
    return sum(path.stat().st_size for path in paths if path.exists()) / 1e6


def counted(state: Path, table: str) -> int:
    """Return how many messages there are."""
    with closing(sqlite3.connect(f"file:{state / 'queue.db'}?mode=ro", uri=True)) as queue:
        return int(queue.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


class Soak:
    """Work that goes on, and its figures."""

    def __init__(self, stand: Stand, source: User, destination: User) -> None:
        self._stand = stand
        self._source = source
        self._destination = destination
        self._arrivals = Arrivals(destination)
        self._alive: set[str] = set()
        self._events = 0
        self._used = self._now_used()

    def turn(self, created: str, deleted: str) -> None:
        """Create one object, and delete another if it was created."""
        self._arrivals.created[f"for-{created}"] = time.perf_counter()
        self._source.create(watched_object(created))
        self._alive.add(created)
        self._events += 1
        if deleted in self._alive:
            self._source.delete(ObjectKey(CONFIG, "default", deleted))
            self._alive.discard(deleted)
            self._events += 1

    def row(self) -> list[str]:
        """Measure, and reset the counts."""
        state, processes = self._stand.state, self._stand.processes
        memory, files, threads = of(processes["serve"].pid)
        took = self._arrivals.taken() or [0.0]
        spent = (self._now_used() - self._used) / max(self._events, 1)
        self._used, self._events = self._now_used(), 0
        return [
            *(f"{memory:.0f}", str(files), str(threads)),
            f"{of(processes['forwarder-source'].pid)[0]:.0f}",
            *(f"{megabytes(state, name):.1f}" for name in ("store.db", "queue.db")),
            *(str(counted(state, name)) for name in ("messages", "dead")),
            f"{spent:.1f}",
            *(f"{percentile(took, share):.0f}" for share in (50, 99)),
        ]

    def end(self) -> None:
        """Wait until nothing is under way; fail where something was lost, or stayed."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        expected = {f"for-{name}" for name in self._alive}
        while (there := self._there()) != expected and time.monotonic() < deadline:
            time.sleep(0.2)
        print(f"{len(expected - there)} lost, {len(there - expected)} left, of {len(expected)}")
        assert there == expected

    def _now_used(self) -> float:
        return used(self._stand.processes["serve"].pid)[0]

    def _there(self) -> set[str]:
        names = self._destination.names(CONFIG, PLACE)
        return {name for name in names if name.startswith("for-")}


def show(*cells: str) -> None:
    """Print one row."""
    print("".join(f"{cell:>13}" for cell in cells), flush=True)


def work(soak: Soak, seconds: int, rate: int, samples: int) -> None:
    """Keep it at so many events a second, and print so many rows."""
    show("after", *_COLUMNS)
    pause = 2 / rate
    begun, sample = time.monotonic(), 1
    names = max(1, int(min(_LIFE_SECONDS, seconds / 2) / pause))
    for turn, (created, deleted) in enumerate(steps(names)):
        time.sleep(max(0.0, begun + turn * pause - time.monotonic()))
        while sample <= samples and time.monotonic() - begun >= sample * seconds / samples:
            show(f"{sample * seconds // samples} s", *soak.row())
            sample += 1
        if sample > samples:
            return
        soak.turn(created, deleted)


@contextmanager
def installed(plane: ControlPlane | None) -> Iterator[tuple[Stand, User, User]]:
    """Serve, with a cluster where things happen and one that they deploy objects to.

    Yield the installation, and somebody who works in each of the two.
    """
    with bench(plane, "source", "destination") as made:
        source, destination = made.users()
        destination.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": PLACE}})
        made.serve_pair()
        yield made.stand, source, destination


def main(
    seconds: int = 60, rate: int = 20, samples: int = 6, *, plane: ControlPlane | None = None
) -> None:
    """Print a row a sample, and fail where something was lost, or stayed."""
    with installed(plane) as (stand, source, destination):
        stand.do("apply", "-f", "-", stdin=RULES)
        stand.settle("bench/source")
        soak = Soak(stand, source, destination)
        work(soak, seconds, rate, samples)
        soak.end()


if __name__ == "__main__":
    run(main)
