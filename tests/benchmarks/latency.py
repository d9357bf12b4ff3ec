"""From an event to the add-ons in the destination: `python -m tests.benchmarks.latency [EVENTS]`.

Two real API servers, a forwarder and `bellhop serve`, each a process. The floor is the same API
calls made bare, one after the other, in the same run: the Service's status written in the
source, the Service read back, and the two objects applied to the destination.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from bellhop.adapters.kube.client import KubeClient
from bellhop.model.gvk import GVK, ObjectKey
from bellhop.model.kubeconfig import sanitise
from bellhop.model.reach import HERE
from infra.demo.stand import Stand
from infra.demo.user import User
from infra.lab.binaries import find
from infra.lab.control_plane import ControlPlane
from infra.lab.processes import Nursery

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
SERVICE = GVK("", "v1", "Service")
ENDPOINTS = GVK("", "v1", "Endpoints")


def balanced(name: str, port: int) -> dict[str, object]:
    """Return a Service that waits for its address."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "type": "LoadBalancer",
            "selector": {"app": name},
            "ports": [{"port": port, "targetPort": 80}],
        },
    }


def through_bellhop(source: User, destination: User, count: int) -> list[float]:
    """Return the ms from writing an address to reading the Endpoints in the destination."""
    times = []
    for number in range(count):
        name = f"web-{number}"
        source.create(balanced(name, 80))
        time.sleep(0.02)
        begun = time.perf_counter()
        source.give_address(ObjectKey(SERVICE, "default", name), "203.0.113.7")
        key = ObjectKey(ENDPOINTS, "external", f"external-{name}")
        while destination.get(key) is None:
            if time.perf_counter() - begun > 30:
                raise TimeoutError(name)
            time.sleep(0.001)
        times.append((time.perf_counter() - begun) * 1000)
    return times


def bare(source: User, sink: KubeClient, count: int) -> list[float]:
    """Return the ms that the same API calls take, made one after the other."""
    times = []
    for number in range(count):
        name = f"bare-{number}"
        source.create(balanced(name, 80))
        time.sleep(0.02)
        begun = time.perf_counter()
        key = ObjectKey(SERVICE, "default", name)
        source.give_address(key, "203.0.113.7")
        source.get(key)
        meta = {"name": f"bare-{name}", "namespace": "external"}
        sink.apply(
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": meta,
                "spec": {
                    "clusterIP": "None",
                    "ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}],
                },
            }
        )
        subset = {"addresses": [{"ip": "203.0.113.7"}], "ports": [{"port": 80}]}
        sink.apply({"apiVersion": "v1", "kind": "Endpoints", "metadata": meta, "subsets": [subset]})
        times.append((time.perf_counter() - begun) * 1000)
    return times


def clear(source: User, destination: User) -> None:
    """Delete all that was made, and wait until it is gone from the destination too."""
    for name in source.names(SERVICE, "default"):
        if name != "kubernetes":
            source.delete(ObjectKey(SERVICE, "default", name))
    while destination.names(ENDPOINTS, "external"):
        time.sleep(0.05)


def percentile(times: list[float], share: int) -> float:
    """Return a percentile of at least two measurements."""
    return statistics.quantiles(times, n=100)[share - 1]


def main(count: int) -> None:
    """Print p50 and p99 beside the floor's."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        nursery = stack.enter_context(Nursery())
        lab = stack.enter_context(ControlPlane(find(), folder / "lab"))
        near, far = lab.start_clusters("source", "destination")
        stand = Stand(folder / "stand", nursery)
        stack.callback(stand.close)
        stand.serve()
        stand.register(near, namespace="bench", labels="env=production")
        stand.register(far, namespace="bench", labels="dep=eng", forward=False)
        stand.do("apply", "-f", str(EXAMPLES / "service-discovery"))
        stand.settle("bench/source")
        source, destination = User(near.kubeconfig()), User(far.kubeconfig())
        sink = KubeClient("bench/destination", sanitise(far.kubeconfig(), reach=HERE), reach=HERE)
        through_bellhop(source, destination, 5)  # Connections, discovery, the namespace.
        clear(source, destination)
        bellhop = through_bellhop(source, destination, count)
        clear(source, destination)
        floor = bare(source, sink, count)
    print(f"{count} events   p50 ms   p99 ms")
    for name, times in (("bellhop", bellhop), ("floor", floor)):
        print(f"{name:<12} {percentile(times, 50):>8.1f} {percentile(times, 99):>8.1f}")
    ratios = [percentile(bellhop, share) / percentile(floor, share) for share in (50, 99)]
    print(f"{'ratio':<12} {ratios[0]:>8.1f} {ratios[1]:>8.1f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
