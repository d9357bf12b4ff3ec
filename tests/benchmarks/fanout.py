"""One profile to many clusters: `python -m tests.benchmarks.fanout [CLUSTERS] [ROUNDS]`.

From a change of what a ClusterProfile brings until it is `Provisioned` in all clusters, by the
embedded mode. All clusters are names of one real API server, each with a client of its own and
with objects of its own. The floor is the same applies made bare by 8 threads, with one warm client
a cluster; each round has a block of either, with nothing else at work.
"""

from __future__ import annotations

import io
import statistics
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bellhop.adapters.kube.client import KubeClient
from bellhop.embedded.serve import running
from bellhop.embedded.state import open_state
from bellhop.engine.planning import decorate, desired
from bellhop.fleet.installation import Installation
from bellhop.logs import Log
from bellhop.model.kubeconfig import sanitise
from bellhop.model.reach import HERE
from bellhop.model.record import Content
from bellhop.settings import Settings
from infra.lab.binaries import find
from infra.lab.control_plane import ControlPlane
from tests.benchmarks.apply import THREADS, config_map, declare, line, machine, register, seconds

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
    """Wait until each cluster was swept, which follows its registration."""
    for name in names:
        while not (found := here.records.health.get(f"bench/{name}")) or not found.value.swept_at:
            time.sleep(0.05)


def main(count: int, rounds: int) -> None:
    """Print clusters a second beside the floor's."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        lab = stack.enter_context(ControlPlane(find(), folder / "lab"))
        kubeconfig = lab.start_cluster("destination").kubeconfig()
        state, log = folder / "state", Log(io.StringIO())
        stack.enter_context(running(state, Settings(), log, "127.0.0.1", 0))
        opened = open_state(state, Settings())
        stack.callback(opened.close)
        here, names = opened.installation, [f"c{number:04}" for number in range(count)]
        for name in names:
            register(here, name, kubeconfig)
        declare(here, [PROFILE])
        settle(here, names)
        stored = sanitise(kubeconfig, reach=HERE)
        kubes = [KubeClient(f"bench/{name}", stored, reach=HERE) for name in names]
        cold = seconds(lambda: through_bellhop(here, names, 0))
        bare(kubes, 0)  # Connections and discovery.
        before = machine()
        floors, ours = [], []
        for number in range(1, rounds + 1):
            floors.append(bare(kubes, number))
            ours.append(through_bellhop(here, names, number))
        for kube in kubes:
            kube.close()
    print(before)
    print(
        f"{count} clusters     clusters/s   range of {rounds} rounds; the first took {cold:.1f} s"
    )
    print(line("bare", count, floors))
    print(line("bellhop", count, ours))
    ratios = [ours[each] / floors[each] for each in range(rounds)]
    lowest, highest = min(ratios), max(ratios)
    print(
        f"{'times the floor':<16} {statistics.median(ratios):>7.2f} {lowest:>7.2f} … {highest:.2f}"
    )


if __name__ == "__main__":
    given = [int(each) for each in sys.argv[1:]]
    main(given[0] if given else 200, given[1] if len(given) > 1 else 5)
