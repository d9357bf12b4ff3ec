"""A trigger that matches many objects: `python -m tests.benchmarks.many [OBJECTS]`.

They exist before it is applied. Then its add-on for each is changed, and at last it is
deleted: deployed, changed and withdrawn as a whole, each with the progress that commands print,
and with the memory that it takes. It fails where anything was lost, or stayed. It is held by its
rows: the memory must not grow with the objects.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from infra.demo.stand import Stand
from infra.demo.user import User
from infra.lab.control_plane import ControlPlane
from tests.benchmarks.figures import run
from tests.benchmarks.isolation import CONFIG, PLACE, RULES
from tests.benchmarks.soak import counted, installed, of, show
from tests.benchmarks.throughput import THREADS, watched_object
from tests.fakes.manifests import FOR_EACH, INSTANTIATE, config, holder

SMALLEST = (12,)
_DESTINATION = "bench/destination"
_LOOK_SECONDS = 0.5
_ROWS = 4
_PATIENCE_SECONDS = 1800.0
CHANGED = holder(
    "made", config(FOR_EACH, 'now: "another"', namespace=PLACE), annotations=INSTANTIATE
)


class Many:
    """The objects of one trigger, and the progress that is printed of them."""

    def __init__(self, stand: Stand, destination: User) -> None:
        self._stand = stand
        self._destination = destination

    def there(self) -> int:
        """Count the deployed add-ons."""
        names = self._destination.names(CONFIG, PLACE)
        return sum(name.startswith("for-") for name in names)

    def changed(self) -> int:
        """Count the add-ons that are up to date."""
        found = self._destination.list(CONFIG, PLACE)
        return sum((each.get("data") or {}).get("now") == "another" for each in found)

    def follow(self, what: str, done: Callable[[], int], expected: int) -> None:
        """Wait until so many are done, and print it whenever a quarter more is."""
        begun, printed = time.monotonic(), 0
        first = done()
        with peak(self._stand.processes["serve"].pid) as memory:
            while (now := done()) != expected:
                assert time.monotonic() - begun < _PATIENCE_SECONDS, f"{what}: {now} of {expected}"
                share = abs(now - first) * _ROWS // max(abs(expected - first), 1)
                if share > printed:
                    printed = share
                    self._print(what, begun, now, memory)
                time.sleep(_LOOK_SECONDS)
            self._print(what, begun, now, memory)

    def end(self) -> None:
        """Fail where anything is still under way, is dead-lettered, or is remembered."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        state = self._stand.state
        while counted(state, "messages") and time.monotonic() < deadline:
            time.sleep(_LOOK_SECONDS)
        records = self._stand.records()
        assert not counted(state, "messages")
        assert not counted(state, "dead")
        assert not list(records.inventories.of(_DESTINATION))
        assert not list(records.outcomes.of(_DESTINATION))
        assert not list(records.profiles.heads("made"))

    def _print(self, what: str, begun: float, now: int, memory: list[float]) -> None:
        seconds = time.monotonic() - begun
        [row] = self._stand.do("get", "eventtriggers", "--no-headers").splitlines() or [""]
        status = json.loads(self._stand.do("status", "-o", "json"))
        waiting = sum(each["waiting"] for each in status["queues"].values())
        provisioned, profiles = row.split()[3].split("/") if row else ("-", "-")
        cells = (f"{seconds:.0f}", str(now), profiles, provisioned, str(waiting))
        show(what, *cells, f"{max(memory):.0f}")


@contextmanager
def peak(pid: int) -> Iterator[list[float]]:
    """Collect the MB of memory that a process has, once a second; the first is that before."""
    found, over = [of(pid)[0]], threading.Event()

    def look() -> None:
        while not over.wait(1):
            found.append(of(pid)[0])

    looking = threading.Thread(target=look, daemon=True)
    looking.start()
    try:
        yield found
    finally:
        over.set()
        looking.join()


def main(objects: int = 5000, *, plane: ControlPlane | None = None) -> None:
    """Print rows for each of the three ways; fail where something was lost, or stayed."""
    with installed(plane) as (stand, source, destination):
        with ThreadPoolExecutor(THREADS) as threads:
            names = [f"one-of-many-{number}" for number in range(objects)]
            list(threads.map(lambda name: source.create(watched_object(name)), names))
        many = Many(stand, destination)
        show("what", "seconds", "done", "profiles", "provisioned", "waiting", "serve MB")
        stand.do("apply", "-f", "-", stdin=RULES)
        many.follow("brought", many.there, objects)
        stand.do("apply", "-f", "-", stdin=CHANGED)
        many.follow("changed", many.changed, objects)
        stand.do("delete", "eventtrigger", "made", "--withdraw")
        many.follow("withdrawn", many.there, 0)
        many.end()
    print(f"{objects} objects: none lost, none left, no dead letter")


if __name__ == "__main__":
    run(main)
