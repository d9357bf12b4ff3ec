"""Profiles of many objects: `python -m tests.benchmarks.apply [OBJECTS] [ROUNDS]`.

From a declared ClusterProfile to the outcome `Provisioned`, and from its deletion until nothing of
it is held, by the embedded mode against one real API server. The floor is the same objects, as
they lie in the cluster, applied and removed bare by 8 threads with one client; each round has a
block of either, one after the other, with nothing else at work.
"""

from __future__ import annotations

import io
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from bellhop.adapters.kube.client import KubeClient
from bellhop.embedded.serve import running
from bellhop.embedded.state import open_state
from bellhop.engine.planning import decorate, desired
from bellhop.fleet.installation import Installation
from bellhop.logs import Log
from bellhop.model.gvk import ObjectKey
from bellhop.model.kinds import parse_all, read_documents
from bellhop.model.kubeconfig import sanitise
from bellhop.model.reach import HERE
from bellhop.model.record import Cluster, Content
from bellhop.settings import Settings
from infra.lab.binaries import find
from infra.lab.control_plane import ControlPlane

THREADS = 8
DESTINATION = "bench/destination"


def config_map(number: int, prefix: str) -> dict[str, Any]:
    """Return one object of the profile."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": f"{prefix}-{number}", "namespace": "default"},
        "data": {"port": str(number), "name": f"service-{number}"},
    }


def declaration(count: int) -> list[dict[str, Any]]:
    """Return a ClusterProfile of so many objects, and what holds them."""
    texts = [yaml.safe_dump(config_map(number, "all")) for number in range(count)]
    part = 250
    holders = [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": f"objects-{start}", "namespace": "default"},
            "data": {"objects.yaml": "---\n".join(texts[start : start + part])},
        }
        for start in range(0, count, part)
    ]
    refs = [
        {"kind": "ConfigMap", "namespace": "default", "name": each["metadata"]["name"]}
        for each in holders
    ]
    profile = {
        "apiVersion": "config.projectsveltos.io/v1beta1",
        "kind": "ClusterProfile",
        "metadata": {"name": "many"},
        "spec": {"clusterSelector": {"matchLabels": {"bench": "yes"}}, "policyRefs": refs},
    }
    return [*holders, profile]


def declare(here: Installation, documents: Iterable[dict[str, Any]]) -> None:
    """Declare documents as `bellhop apply` does."""
    text = yaml.safe_dump_all(documents)
    here.declare.apply(parse_all(read_documents(text, source="bench.yaml")))


def register(here: Installation, name: str, kubeconfig: dict[str, Any]) -> None:
    """Register a cluster that rings nobody."""
    stored = sanitise(kubeconfig, reach=HERE)
    here.secrets.put(f"kubeconfig/bench/{name}", json.dumps(stored.to_dict()).encode())
    cluster = Cluster("bench", name, {"bench": "yes"}, "v1.20", "0" * 64, datetime.now(UTC))
    here.declare.register(cluster)


def seconds(work: Callable[[], object], until: Callable[[], bool] = lambda: True) -> float:
    """Return how long work takes until something is so."""
    begun = time.perf_counter()
    work()
    while not until():
        time.sleep(0.005)
    return time.perf_counter() - begun


def bare(kube: KubeClient, count: int) -> tuple[float, float]:
    """Return how long applying and removing the same objects takes with nothing around it."""
    content = Content(
        "ConfigMap default/bare",
        "objects.yaml",
        tuple(config_map(number, "bare") for number in range(count)),
    )
    manifests = [decorate(each, "bare", 100) for each in desired([content], tier=100)]
    with ThreadPoolExecutor(THREADS) as threads:
        list(threads.map(kube.resource, [ObjectKey.of(manifests[0]).gvk] * THREADS))
        applied: list[dict[str, Any]] = []
        up = seconds(lambda: applied.extend(threads.map(kube.apply, manifests)))
        removals = [(*ObjectKey.of(each), each["metadata"]["uid"]) for each in applied]

        def remove(row: tuple[Any, ...]) -> None:
            *key, uid = row
            kube.remove(*key, uid=uid)

        return up, seconds(lambda: list(threads.map(remove, removals)))


def through_bellhop(here: Installation, count: int) -> tuple[float, float]:
    """Return how long declaring and deleting a profile takes, until its objects are there, gone."""
    *holders, profile = declaration(count)
    declare(here, holders)

    def provisioned() -> bool:
        found = here.records.outcomes.get(DESTINATION, "many")
        return found is not None and found.value.phase == "Provisioned"

    def gone() -> bool:
        head = here.records.profiles.head("", "", "many")
        return head is None and here.records.outcomes.get(DESTINATION, "many") is None

    up = seconds(lambda: declare(here, [profile]), provisioned)
    key = ("ClusterProfile", "", "many")
    return up, seconds(lambda: here.declare.delete([key]), gone)


def machine() -> str:
    """Return what it is measured on, and how busy that is."""
    return f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.2f}, Python {sys.version.split()[0]}"


def line(name: str, count: int, times: list[float]) -> str:
    """Return objects a second: the median of the rounds and their range."""
    rates = sorted(count / each for each in times)
    return f"{name:<16} {statistics.median(rates):>7.0f} {rates[0]:>7.0f} … {rates[-1]:.0f}"


def main(count: int, rounds: int) -> None:
    """Print objects a second beside the floor's."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        lab = stack.enter_context(ControlPlane(find(), folder / "lab"))
        cluster = lab.start_cluster("destination")
        state = folder / "state"
        log = Log(io.StringIO())
        stack.enter_context(running(state, Settings(), log, "127.0.0.1", 0))
        opened = open_state(state, Settings())
        stack.callback(opened.close)
        register(opened.installation, "destination", cluster.kubeconfig())
        kube = KubeClient(DESTINATION, sanitise(cluster.kubeconfig(), reach=HERE), reach=HERE)
        stack.callback(kube.close)
        before = machine()
        floors, ours = [], []
        bare(kube, 50)
        through_bellhop(opened.installation, 50)  # Connections, discovery, the namespace.
        for _ in range(rounds):
            floors.append(bare(kube, count))
            ours.append(through_bellhop(opened.installation, count))
    print(before)
    print(f"{count} objects      objects/s   range of {rounds} rounds")
    for place, verb in enumerate(("apply", "remove")):
        print(line(f"{verb}, bare", count, [each[place] for each in floors]))
        print(line(f"{verb}, bellhop", count, [each[place] for each in ours]))
        ratios = [floor[place] / our[place] for floor, our in zip(floors, ours, strict=True)]
        lowest, highest = min(ratios), max(ratios)
        print(f"{'ratio':<16} {statistics.median(ratios):>7.2f} {lowest:>7.2f} … {highest:.2f}")


if __name__ == "__main__":
    given = [int(each) for each in sys.argv[1:]]
    main(given[0] if given else 1000, given[1] if len(given) > 1 else 5)
