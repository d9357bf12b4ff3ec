"""One profile to many: `python -m tests.benchmarks.fanout [CLUSTERS] [ROUNDS]`.

From a change of a ClusterProfile's objects until it is `Provisioned` in all clusters, by
`bellhop serve`. All clusters are names of one real API server, each with
a client of its own and with objects of its own. The floor is the same applies made bare by 8
threads, with one warm client a cluster, in the process that also declares and waits: idle
connections have a bound in each process. Resyncs are over before, and pause: in a server that has
the objects of all names each one would read all of them, which no real one has to.
"""

from __future__ import annotations

import itertools
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

from bellhop.adapters.kube.client import KubeClient
from bellhop.deploy.features.resources.planning import decorate, desired_objects
from bellhop.installation import Installation
from bellhop.state.content import Content
from infra.lab.control_plane import ControlPlane
from tests.benchmarks.apply import THREADS, config_map, declare, register, seconds
from tests.benchmarks.figures import bench, in_turns, run, spread, table

SMALLEST = (3, 1)
OBJECTS = 2
HOLDER = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {
        "name": "fan",
        "namespace": "default",
        "annotations": {"projectsveltos.io/template": "ok"},
    },
}
PROFILE = {
    "apiVersion": "config.projectsveltos.io/v1beta1",
    "kind": "ClusterProfile",
    "metadata": {"name": "fan"},
    "spec": {
        "clusterSelector": {"matchLabels": {"bench": "yes"}},
        "policyRefs": [{"kind": "ConfigMap", "namespace": "default", "name": "fan"}],
    },
}
TEMPLATE = """\
apiVersion: v1
kind: ConfigMap
metadata: {{name: '{{{{ .Cluster.metadata.name }}}}-{number}', namespace: default}}
data: {{round: '{round}', name: 'service-{number}'}}
"""


def holder(number: int) -> dict[str, Any]:
    """Return the objects that the profile deploys in a round."""
    texts = [TEMPLATE.format(number=each, round=number) for each in range(OBJECTS)]
    return {**HOLDER, "data": {"objects.yaml": "---\n".join(texts)}}


def bare(kubes: list[KubeClient], number: int) -> float:
    """Return how long a round's applies take with nothing around them."""

    def apply(index: int) -> None:
        desired = [config_map(each, f"bare-{index}") for each in range(OBJECTS)]
        for each in desired:
            each["data"]["round"] = str(number)
        content = Content("ConfigMap default/bare", "objects.yaml", tuple(desired))
        for manifest in desired_objects([content], tier=100):
            kubes[index].apply(decorate(manifest, "bare", 100))

    with ThreadPoolExecutor(THREADS) as threads:
        return seconds(lambda: list(threads.map(apply, range(len(kubes)))))


def through_bellhop(here: Installation, names: list[str], number: int) -> float:
    """Return how long it takes from declaring a round's contents to the last cluster's outcome."""
    begun, left = datetime.now(UTC), [*names]

    def everywhere() -> bool:
        while left:
            found = here.records.outcomes.get(f"bench/{left[-1]}", "fan")
            if not found or found.value.phase != "Provisioned" or found.value.at < begun:
                return False
            left.pop()
        return True

    return seconds(lambda: declare(here, [holder(number)]), everywhere)


def settle(here: Installation, names: list[str]) -> None:
    """Wait until each cluster had its resync, which follows registration, and its drift scan."""
    for name in names:
        while not (found := here.records.health.get(f"bench/{name}")) or not found.value.swept_at:
            time.sleep(0.05)
    resyncs = here.queues["sweep"]
    while (left := resyncs.backlog()).waiting or left.held:
        time.sleep(0.05)


def main(count: int = 200, rounds: int = 5, *, plane: ControlPlane | None = None) -> None:
    """Print clusters a second beside the floor's."""
    numbers = itertools.count(1)
    calm = {"BELLHOP_SWEEP_INTERVAL": str(6 * 3600)}
    with bench(plane, "destination", settings=calm) as made:
        made.stand.serve()
        here, [cluster] = made.open_state().installation, made.clusters
        names = [f"c{number:04}" for number in range(count)]
        for name in names:
            register(here, name, cluster.kubeconfig())
        declare(here, [PROFILE])
        settle(here, names)
        kubes = [made.client(cluster, f"bench/{name}") for name in names]
        first = through_bellhop(here, names, 0)
        bare(kubes, 0)  # Its connections.
        measured = in_turns(
            rounds,
            bare=lambda: [bare(kubes, next(numbers))],
            bellhop=lambda: [through_bellhop(here, names, next(numbers))],
        )
    times = {name: [each[0] for each in of] for name, of in measured.items()}
    ratios = [a / b for a, b in zip(times["bellhop"], times["bare"], strict=True)]
    rates = {name: spread([count / each for each in of], 0) for name, of in times.items()}
    table(
        f"{OBJECTS} objects to {count} clusters",
        {
            "bare, 8 threads": [rates["bare"]],
            "bellhop": [rates["bellhop"], spread(ratios, 2)],
            "bellhop, the first time": [f"{count / first:.0f}"],
        },
        "clusters/s",
        "times the floor",
    )


if __name__ == "__main__":
    run(main)
