"""Custom resources: `python -m tests.benchmarks.configuration [WRITES] [MANY] [ROUNDS]`.

Real API servers, a forwarder and `bellhop serve`, each a process; the contents of all profiles are
applied beforehand. In a round some of WRITES ClusterProfiles are written one after the other to the
cluster that holds the configuration. The floor is `bellhop apply` of such a profile and one write
of another object to that cluster. Then MANY profiles are written by 8 threads; the floor is one
`bellhop apply` of as many. Nothing is deleted: no profile has the name of another.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import yaml

from bellhop.core.gvk import GVK
from infra.demo.arrivals import Arrivals
from infra.demo.stand import Stand
from infra.demo.user import User
from infra.lab.control_plane import ControlPlane
from tests.benchmarks.figures import bench, beside, in_turns, percentile, run, spread, table

SMALLEST = (1, 2, 1)
AIM_RATIO, AIM_SECONDS = 1.5, 60
HUB = "bench/source"
CONFIG = GVK("", "v1", "ConfigMap")
_THREADS = 8
_CALM_SECONDS = 1.0

_numbers = count()


def config(name: str, **data: str) -> dict[str, Any]:
    """Return a ConfigMap."""
    about = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": about, "data": data}


def profile(name: str) -> dict[str, Any]:
    """Return a ClusterProfile that deploys one ConfigMap of its own name."""
    ref = {"kind": "ConfigMap", "namespace": "default", "name": f"content-{name}"}
    return {
        "apiVersion": "config.projectsveltos.io/v1beta1",
        "kind": "ClusterProfile",
        "metadata": {"name": name},
        "spec": {"clusterSelector": {"matchLabels": {"dep": "eng"}}, "policyRefs": [ref]},
    }


class Fleet:
    """A cluster that holds the configuration, and one that gets what profiles deploy."""

    def __init__(self, stand: Stand, hub: User, arrivals: Arrivals) -> None:
        self._stand = stand
        self._hub = hub
        self._arrivals = arrivals

    def prepare(self, number: int) -> list[str]:
        """Apply the contents of new profiles; return their names, once nothing is in flight."""
        names = [f"bench-{next(_numbers)}" for _ in range(number)]
        made = [config(f"content-{name}", made=yaml.safe_dump(config(name))) for name in names]
        self._apply_files(made)
        time.sleep(_CALM_SECONDS)
        return names

    def write_each(self, number: int) -> list[float]:
        """Return the ms from writing each profile to its object in the other cluster."""
        return [self._time(partial(self._write, name), [name]) for name in self.prepare(number)]

    def apply_each(self, number: int) -> list[float]:
        """Return the ms of the same by `bellhop apply`, and of one write to the first cluster."""
        times = []
        for name in self.prepare(number):
            begun = time.perf_counter()
            self._hub.apply(config(f"other-{name}"))
            write = (time.perf_counter() - begun) * 1000
            times.append(write + self._time(partial(self._apply_files, [profile(name)]), [name]))
        return times

    def write_all(self, number: int) -> list[float]:
        """Return the ms from writing many profiles to the last of their objects."""
        names = self.prepare(number)

        def write() -> None:
            with ThreadPoolExecutor(_THREADS) as pool:
                list(pool.map(self._write, names))

        return [self._time(write, names)]

    def apply_all(self, number: int) -> list[float]:
        """Return the ms of the same by one `bellhop apply`."""
        names = self.prepare(number)
        made = [profile(name) for name in names]
        return [self._time(partial(self._apply_files, made), names)]

    def _time(self, act: Callable[[], object], names: Sequence[str]) -> float:
        begun = time.perf_counter()
        act()
        return (max(self._arrivals.of(names)) - begun) * 1000

    def _write(self, name: str) -> None:
        self._hub.apply(profile(name))

    def _apply_files(self, manifests: Sequence[dict[str, Any]]) -> None:
        path = Path(self._stand.folder) / "applied.yaml"
        path.write_text(yaml.safe_dump_all(manifests))
        self._stand.do("apply", "-f", str(path))


def main(
    writes: int = 100, many: int = 1000, rounds: int = 5, *, plane: ControlPlane | None = None
) -> int:
    """Print what one profile and many take, beside their floors; return 1 if an aim is missed."""
    with bench(plane, "source", "destination") as made:
        stand, (source, destination) = made.stand, made.users()
        arrivals = Arrivals(destination, CONFIG, "default")
        made.serve_pair()
        stand.do("install", "crds", HUB)
        stand.do("set", "configuration-cluster", HUB)
        stand.settle(HUB)
        fleet = Fleet(stand, source, arrivals)
        first = fleet.write_each(1)
        fleet.apply_each(1)
        each = max(1, writes // rounds)
        one = in_turns(
            rounds,
            written=partial(fleet.write_each, each),
            floor=partial(fleet.apply_each, each),
        )
        all_of = in_turns(
            1, written=partial(fleet.write_all, many), floor=partial(fleet.apply_all, many)
        )
    beside(f"{rounds} rounds of {each} profiles", one)
    print(f"the first profile, ms: {first[0]:.0f}")
    took, under = (all_of[name][0][0] / 1000 for name in ("written", "floor"))
    rows = {"written": [spread([took]), spread([took / under], 2)], "floor": [spread([under]), ""]}
    table(f"{many} profiles at once", rows, "s", "ratio")
    p50, floor = (percentile([ms for block in one[n] for ms in block], 50) for n in one)
    return int(p50 > AIM_RATIO * floor or took > AIM_SECONDS)


if __name__ == "__main__":
    run(main)
