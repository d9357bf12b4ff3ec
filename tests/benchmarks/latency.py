"""From an event to the add-ons: `python -m tests.benchmarks.latency [EVENTS] [ROUNDS]`.

Real API servers, a forwarder and `bellhop serve`, each a process. The floor is the same API calls
made bare, one after the other, in a cluster that Bellhop does not know, while Bellhop has nothing
to do: a Service's status written, the Service read back, and two objects applied.
"""

from __future__ import annotations

import time
from itertools import count

from bellhop.adapters.kube.client import KubeClient
from bellhop.core.gvk import GVK, ObjectKey
from infra.demo.arrivals import Arrivals
from infra.demo.stand import Stand
from infra.demo.user import User
from infra.lab.control_plane import ControlPlane
from tests.benchmarks.figures import ROOT, bench, beside, in_turns, percentile, run, spread, table

SMALLEST = (2, 1)
EXAMPLE = ROOT / "docs" / "examples" / "service-discovery"
SERVICE = GVK("", "v1", "Service")
ENDPOINTS = GVK("", "v1", "Endpoints")
WARM_UPS = 5
_SETTLE_SECONDS = 0.02
_CALM_SECONDS = 1.0
_PATIENCE_SECONDS = 60.0

_numbers = count()


def balanced(name: str) -> dict[str, object]:
    """Return a Service that waits for its address."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "type": "LoadBalancer",
            "selector": {"app": name},
            "ports": [{"port": 80, "targetPort": 80}],
        },
    }


def addons(name: str) -> list[dict[str, object]]:
    """Return the objects that the example makes of a Service."""
    meta = {"name": name, "namespace": "external"}
    ports = [{"port": 80, "protocol": "TCP", "targetPort": 80}]
    subset = {"addresses": [{"ip": "203.0.113.7"}], "ports": [{"port": 80}]}
    return [
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": meta,
            "spec": {"clusterIP": "None", "ports": ports},
        },
        {"apiVersion": "v1", "kind": "Endpoints", "metadata": meta, "subsets": [subset]},
    ]


def through_bellhop(
    source: User, destination: User, arrivals: Arrivals, events: int
) -> list[float]:
    """Return the ms from writing an address to seeing the Endpoints in the destination."""
    times = []
    for name in (f"web-{next(_numbers)}" for _ in range(events)):
        source.create(balanced(name))
        time.sleep(_SETTLE_SECONDS)
        begun = time.perf_counter()
        source.give_address(ObjectKey(SERVICE, "default", name), "203.0.113.7")
        times.append((arrivals.wait(f"external-{name}") - begun) * 1000)
    clear(source, destination)
    return times


def bare(user: User, sink: KubeClient, events: int) -> list[float]:
    """Return the ms that the same API calls take, made one after the other."""
    times = []
    for name in (f"bare-{next(_numbers)}" for _ in range(events)):
        user.create(balanced(name))
        time.sleep(_SETTLE_SECONDS)
        key = ObjectKey(SERVICE, "default", name)
        begun = time.perf_counter()
        user.give_address(key, "203.0.113.7")
        user.get(key)
        for manifest in addons(name):
            sink.apply(manifest)
        times.append((time.perf_counter() - begun) * 1000)
    clear(user)
    return times


def clear(source: User, destination: User | None = None) -> None:
    """Delete all that was made; wait until add-ons are deleted too, and until no worker is busy."""
    for name in source.names(SERVICE, "default"):
        if name != "kubernetes":
            source.delete(ObjectKey(SERVICE, "default", name))
    begun = time.perf_counter()
    while destination and destination.names(ENDPOINTS, "external"):
        if time.perf_counter() - begun > _PATIENCE_SECONDS:
            raise TimeoutError("add-ons stay")
        time.sleep(0.05)
    time.sleep(_CALM_SECONDS)


def after_start(stand: Stand, source: User, destination: User, arrivals: Arrivals) -> float:
    """Return the ms of the first event of a `serve` that began a second ago."""
    stand.stop("serve")
    stand.serve()
    time.sleep(_CALM_SECONDS)
    return through_bellhop(source, destination, arrivals, 1)[0]


def main(events: int = 200, rounds: int = 5, *, plane: ControlPlane | None = None) -> None:
    """Print p50 and p99 beside the floor's, and what the first events take."""
    with bench(plane, "source", "destination", "silent") as made:
        stand, (source, destination, quiet) = made.stand, made.users()
        for user in (destination, quiet):
            user.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "external"}})
        sink = made.client(made.clusters[2], "silent")
        arrivals = Arrivals(destination, ENDPOINTS, "external")
        # Deleting all that matches at once is held by the deletion guard otherwise.
        stand.environment["BELLHOP_HOLD_SHARE"] = "0"
        made.serve_pair()
        stand.do("apply", "-f", str(EXAMPLE))
        stand.settle("bench/source")
        time.sleep(_CALM_SECONDS)
        early = through_bellhop(source, destination, arrivals, WARM_UPS)
        bare(quiet, sink, WARM_UPS)
        each = max(1, events // rounds)
        measured = in_turns(
            rounds,
            bellhop=lambda: through_bellhop(source, destination, arrivals, each),
            floor=lambda: bare(quiet, sink, each),
        )
        late = [after_start(stand, source, destination, arrivals) for _ in range(rounds)]
    beside(f"{rounds} rounds of {each} events", measured)
    warm = percentile([took for times in measured["bellhop"] for took in times], 50)
    firsts = {"after registration": early[:1], "after a start": late}
    rows = {
        name: [spread(times), spread([took / warm for took in times], 2)]
        for name, times in firsts.items()
    }
    table("the first event", rows, "ms", "x a warm one")
    print("the five after registration, ms:", " ".join(f"{took:.0f}" for took in early))


if __name__ == "__main__":
    run(main)
