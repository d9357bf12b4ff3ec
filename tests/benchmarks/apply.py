"""A profile of many objects: `python -m tests.benchmarks.apply [OBJECTS] [ROUNDS]`.

From a declared ClusterProfile to the outcome `Provisioned`, and from its deletion until nothing of
it is held, by the embedded mode against one real API server. The floor is the same objects, as
they lie in the cluster, applied and removed bare by 8 threads with one client. In between a label
of the cluster changes, for which all is made again and is as it was: that fails if anything is
written.
"""

from __future__ import annotations

import io
import json
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from datetime import UTC, datetime
from itertools import count as count_from
from pathlib import Path
from typing import Any

import yaml

from bellhop.adapters.kube.client import KubeClient
from bellhop.api.kinds import parse_all, read_documents
from bellhop.clusters.kubeconfig import sanitise
from bellhop.core.address_policy import LOCAL
from bellhop.core.gvk import GVK, ObjectKey
from bellhop.deploy.features.resources.planning import decorate, desired_objects
from bellhop.installation import Installation
from bellhop.logs import Log
from bellhop.runtime.embedded.serve import running
from bellhop.runtime.embedded.state import open_state
from bellhop.settings import Settings
from bellhop.state.cluster import Cluster
from bellhop.state.content import Content
from infra.lab.control_plane import ControlPlane
from tests.benchmarks.figures import in_turns, lab, run, spread, table
from tests.benchmarks.soak import counted

SMALLEST = (6, 1)
_PATIENCE_SECONDS = 120.0
THREADS = 8
DESTINATION = "bench/destination"
DEFAULTS = Settings()
CONFIG = GVK("", "v1", "ConfigMap")

_turns = count_from(1)


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
    """Register a cluster that has no forwarder."""
    stored = sanitise(kubeconfig, reach=LOCAL)
    here.secrets.put(f"kubeconfig/bench/{name}", json.dumps(stored.to_dict()).encode())
    with closing(KubeClient(f"bench/{name}", stored, reach=LOCAL)) as kube:
        # Another version than it reports would be an upgrade, after which all is applied again.
        version = kube.version()
    cluster = Cluster("bench", name, {"bench": "yes"}, version, "0" * 64, datetime.now(UTC))
    here.declare.register(cluster)


def seconds(work: Callable[[], object], until: Callable[[], bool] = lambda: True) -> float:
    """Return how long work takes until something is so."""
    begun = time.perf_counter()
    work()
    while not until():
        if time.perf_counter() - begun > _PATIENCE_SECONDS:
            raise TimeoutError
        time.sleep(0.005)
    return time.perf_counter() - begun


def bare(kube: KubeClient, count: int) -> list[float]:
    """Return how long applying and removing the same objects takes with nothing around it."""
    manifests = tuple(config_map(number, "bare") for number in range(count))
    content = Content("ConfigMap default/bare", "objects.yaml", manifests)
    desired = [decorate(each, "bare", 100) for each in desired_objects([content], tier=100)]
    applied: list[dict[str, Any]] = []

    def remove(there: dict[str, Any]) -> None:
        kube.remove(*ObjectKey.of(there), uid=there["metadata"]["uid"])

    with ThreadPoolExecutor(THREADS) as threads:
        return [
            seconds(lambda: applied.extend(threads.map(kube.apply, desired))),
            seconds(lambda: list(threads.map(remove, applied))),
        ]


def through_bellhop(
    here: Installation, kube: KubeClient, count: int, idle: Callable[[], bool]
) -> list[float]:
    """Return how long it takes to apply and to delete a profile, until its objects are deleted.

    And, last of all, how long it takes where nothing is to be changed.
    """
    *holders, profile = declaration(count)
    declare(here, holders)

    def provisioned() -> bool:
        found = here.records.outcomes.get(DESTINATION, "many")
        return found is not None and found.value.phase == "Provisioned"

    def is_deleted() -> bool:
        head = here.records.profiles.head("", "", "many")
        return head is None and here.records.outcomes.get(DESTINATION, "many") is None

    applied = seconds(lambda: declare(here, [profile]), provisioned)
    unchanged = again(here, kube, idle)
    removed = seconds(lambda: here.declare.delete([("ClusterProfile", "", "many")]), is_deleted)
    return [applied, removed, unchanged]


def again(here: Installation, kube: KubeClient, idle: Callable[[], bool]) -> float:
    """Have all be made again, which is as it was; return how long it takes until all is idle."""

    def versions() -> dict[str, str]:
        found = (each["metadata"] for each in kube.list(CONFIG, namespace="default"))
        return {each["name"]: each["resourceVersion"] for each in found}

    assert seconds(lambda: None, idle)
    there, label = versions(), {"turn": str(next(_turns))}
    took = seconds(lambda: here.declare.label(DESTINATION, label), idle)
    assert versions() == there
    return took


@contextmanager
def serving(folder: Path, settings: Settings = DEFAULTS) -> Iterator[Installation]:
    """Run the embedded mode, and give it as a command has it."""
    state = folder / "state"
    with running(state, settings, Log(io.StringIO()), "127.0.0.1", 0):
        opened = open_state(state, settings)
        try:
            yield opened.installation
        finally:
            opened.close()


def main(count: int = 1000, rounds: int = 5, plane: ControlPlane | None = None) -> None:
    """Print objects a second beside the floor's."""
    with ExitStack() as stack:
        [cluster] = stack.enter_context(lab(plane, "destination"))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        here = stack.enter_context(serving(folder))
        register(here, "destination", cluster.kubeconfig())
        kube = KubeClient(DESTINATION, sanitise(cluster.kubeconfig(), reach=LOCAL), reach=LOCAL)
        stack.callback(kube.close)

        def idle() -> bool:
            return counted(folder / "state", "messages") == 0

        first = [through_bellhop(here, kube, count, idle), bare(kube, count)]
        measured = in_turns(
            rounds,
            bare=lambda: bare(kube, count),
            bellhop=lambda: through_bellhop(here, kube, count, idle),
        )
    for place, verb in enumerate(("apply", "remove")):
        rates = {name: [count / each[place] for each in of] for name, of in measured.items()}
        ratios = [a / b for a, b in zip(rates["bellhop"], rates["bare"], strict=True)]
        table(
            f"{verb} {count} objects",
            {
                "bare, 8 threads": [spread(rates["bare"], 0)],
                "bellhop": [spread(rates["bellhop"], 0), spread(ratios, 2)],
                "bellhop, the first time": [f"{count / first[0][place]:.0f}"],
            },
            "objects/s",
            "of bare",
        )
    shares = [100 * again / applied for applied, _, again in measured["bellhop"]]
    milliseconds = [1000 * again for *_, again in measured["bellhop"]]
    rows = {"bellhop": [spread(milliseconds, 0), spread(shares)]}
    table(f"{count} objects again, no write", rows, "ms", "% of applying them")


if __name__ == "__main__":
    run(main)
