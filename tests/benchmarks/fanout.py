"""One profile to many: `python -m tests.benchmarks.fanout [CLUSTERS] [ROUNDS]`.

From a change of what a ClusterProfile brings until it is `Provisioned` in all clusters, by
`bellhop serve`. All clusters are names of one real API server, each with
a client of its own and with objects of its own. The floor is the same applies made bare by 8
threads, with one warm client a cluster, in the process that also declares and waits: idle
connections have a bound in each process. Sweeps are over before, and rest: in a server that has the
objects of all names each one would look at all of them, which no real one has to.
"""

from __future__ import annotations

import itertools
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bellhop.adapters.kube.client import KubeClient
from bellhop.clusters.kubeconfig import sanitise
from bellhop.core.address_policy import LOCAL
from bellhop.deploy.features.resources.planning import decorate, desired
from bellhop.installation.installation import Installation
from bellhop.runtime.embedded.state import open_state
from bellhop.settings import Settings
from bellhop.state.record import Content
from infra.demo.stand import Stand
from infra.lab.control_plane import ControlPlane
from infra.lab.processes import Nursery
from tests.benchmarks.apply import THREADS, config_map, declare, register, seconds
from tests.benchmarks.figures import in_turns, lab, run, spread, table

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
    """Return what the profile brings in a round."""
    texts = [TEMPLATE.format(number=each, round=number) for each in range(OBJECTS)]
    return {**HOLDER, "data": {"objects.yaml": "---\n".join(texts)}}


def bare(kubes: list[KubeClient], number: int) -> float:
    """Return how long a round's applies take with nothing around them."""

    def apply(index: int) -> None:
        wanted = [config_map(each, f"bare-{index}") for each in range(OBJECTS)]
        for each in wanted:
            each["data"]["round"] = str(number)
        content = Content("ConfigMap default/bare", "objects.yaml", tuple(wanted))
        for manifest in desired([content], tier=100):
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
    """Wait until each cluster was swept, which follows its registration, and surveyed."""
    for name in names:
        while not (found := here.records.health.get(f"bench/{name}")) or not found.value.swept_at:
            time.sleep(0.05)
    sweeps = here.queues["sweep"]
    while (left := sweeps.backlog()).waiting or left.held:
        time.sleep(0.05)


def main(count: int = 200, rounds: int = 5, *, plane: ControlPlane | None = None) -> None:
    """Print clusters a second beside the floor's."""
    numbers = itertools.count(1)
    with ExitStack() as stack:
        [cluster] = stack.enter_context(lab(plane, "destination"))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        calm = {"BELLHOP_SWEEP_INTERVAL": str(6 * 3600)}
        stand = Stand(folder, stack.enter_context(Nursery()), settings=calm)
        stand.serve()
        opened = open_state(stand.state, Settings())
        stack.callback(opened.close)
        here = opened.installation
        names = [f"c{number:04}" for number in range(count)]
        for name in names:
            register(here, name, cluster.kubeconfig())
        declare(here, [PROFILE])
        settle(here, names)
        stored = sanitise(cluster.kubeconfig(), reach=LOCAL)
        kubes = [KubeClient(f"bench/{name}", stored, reach=LOCAL) for name in names]
        for kube in kubes:
            stack.callback(kube.close)
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
