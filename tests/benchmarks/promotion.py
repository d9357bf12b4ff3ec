"""A promotion through its stages: `python -m tests.benchmarks.promotion [CLUSTERS] [ROUNDS]`.

From a change of a ConfigMap until the last of five stages is provisioned, each of so many clusters
and without a delay, by `bellhop serve`. The floor is five ClusterProfiles of the same content and
clusters: each is changed once all clusters of the one before are provisioned. All clusters are
names of one real API server. What a promotion costs while it waits, and what a release of many
charts costs clusters that have it, are counts, which `tests/unit/promotions/test_costs.py` holds.
"""

from __future__ import annotations

import itertools
import time
from typing import Any

from bellhop.installation import Installation
from infra.lab.control_plane import ControlPlane
from tests.benchmarks.apply import declare, register, seconds
from tests.benchmarks.fanout import TEMPLATE, settle
from tests.benchmarks.figures import bench, in_turns, run, spread, table

SMALLEST = (2, 1)
STAGES = 5
AIM = 1.15


def holder(name: str, number: int) -> dict[str, Any]:
    """Return the ConfigMap of a round, whose object is each cluster's own."""
    text = TEMPLATE.format(number=name, round=number)
    annotations = {"projectsveltos.io/template": "ok"}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default", "annotations": annotations},
        "data": {"objects.yaml": text},
    }


def _selector(stage: int) -> dict[str, Any]:
    return {"matchLabels": {"stage": str(stage)}}


def _refs(name: str) -> list[dict[str, str]]:
    return [{"kind": "ConfigMap", "namespace": "default", "name": name}]


def promotion() -> dict[str, Any]:
    """Return the promotion."""
    stages = [{"name": f"s{stage}", "clusterSelector": _selector(stage)} for stage in range(STAGES)]
    spec = {"profileSpec": {"policyRefs": _refs("promoted")}, "stages": stages}
    return {
        "apiVersion": "config.projectsveltos.io/v1beta1",
        "kind": "ClusterPromotion",
        "metadata": {"name": "bench"},
        "spec": spec,
    }


def profile(stage: int) -> dict[str, Any]:
    """Return the ClusterProfile that stands for a stage."""
    spec = {"clusterSelector": _selector(stage), "policyRefs": _refs(f"own{stage}")}
    return {
        "apiVersion": "config.projectsveltos.io/v1beta1",
        "kind": "ClusterProfile",
        "metadata": {"name": f"own{stage}"},
        "spec": spec,
    }


def promoted(here: Installation, number: int) -> float:
    """Return how long a release takes through all stages."""
    kept = here.records.promotions.get("bench")
    before = kept.value.latest if kept else 0

    def is_through() -> bool:
        found = here.records.promotions.get("bench")
        last = found.value.stages[-1] if found and found.value.stages else None
        return last is not None and last.passed > before

    return seconds(lambda: declare(here, [holder("promoted", number)]), is_through)


def one_by_one(here: Installation, names: list[list[str]], number: int) -> float:
    """Return how long five profiles take, each changed after the one before."""
    begun = time.perf_counter()
    for stage, clusters in enumerate(names):
        changed = time.time()
        left = [*clusters]

        def everywhere(stage: int = stage, left: list[str] = left, at: float = changed) -> bool:
            while left:
                found = here.records.outcomes.get(f"bench/{left[-1]}", f"own{stage}")
                if not found or found.value.phase != "Provisioned":
                    return False
                if found.value.at.timestamp() < at:
                    return False
                left.pop()
            return True

        seconds(lambda: declare(here, [holder(f"own{stage}", number)]), everywhere)  # noqa: B023
    return time.perf_counter() - begun


def main(count: int = 100, rounds: int = 3, *, plane: ControlPlane | None = None) -> None:
    """Print the time of a release beside the floor's."""
    numbers = itertools.count(1)
    calm = {"BELLHOP_SWEEP_INTERVAL": str(6 * 3600)}
    with bench(plane, "destination", settings=calm) as made:
        made.stand.serve()
        here, [cluster] = made.open_state().installation, made.clusters
        names = [[f"s{stage}-{each:03}" for each in range(count)] for stage in range(STAGES)]
        for stage, clusters in enumerate(names):
            for name in clusters:
                register(here, name, cluster.kubeconfig())
                here.declare.label(f"bench/{name}", {"stage": str(stage)})
        settle(here, [name for clusters in names for name in clusters])
        declare(here, [promotion(), *map(profile, range(STAGES))])
        promoted(here, 0)
        one_by_one(here, names, 0)
        measured = in_turns(
            rounds,
            floor=lambda: [one_by_one(here, names, next(numbers))],
            promotion=lambda: [promoted(here, next(numbers))],
        )
    times = {name: [each[0] for each in of] for name, of in measured.items()}
    ratios = [a / b for a, b in zip(times["promotion"], times["floor"], strict=True)]
    table(
        f"{STAGES} stages of {count} clusters",
        {
            "profiles one by one": [spread(times["floor"], 2)],
            "promotion": [spread(times["promotion"], 2), spread(ratios, 2), AIM],
        },
        "seconds",
        "ratio",
        "aim",
    )


if __name__ == "__main__":
    run(main)
