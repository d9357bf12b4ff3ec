"""What reading the catalog costs: `python -m tests.benchmarks.catalog [RULES] [CLUSTERS] [ROUNDS]`.

RULES sources, as many triggers, and CLUSTERS clusters. The floor is decoding the same bytes as
JSON, in the same run; store operations are counted, since in a cloud each takes milliseconds.
"""

from __future__ import annotations

import gc
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bellhop.api.kinds import of
from bellhop.core.gvk import GVK
from bellhop.state.cluster import Cluster
from tests.benchmarks.figures import run, spread, table
from tests.fakes.fleet import Fleet

SERVICE = GVK("", "v1", "Service")
LUA = "function evaluate()\n  return {matching=true}\nend\n" * 3
LIB = "lib.projectsveltos.io/v1beta1"
FLOOR = "json.loads"
SMALLEST = (2, 3, 1)


def rules(number: int) -> list[dict[str, Any]]:
    """Return a source and the trigger that names it, by the cluster's label."""
    selector = {"group": "", "version": "v1", "kind": "Service", "evaluate": LUA}
    source = {"collectResources": True, "resourceSelectors": [selector]}
    trigger = {
        "sourceClusterSelector": {"matchLabels": {"env": "prod"}},
        "eventSourceName": f"s{number}",
        "oneForEvent": True,
        "policyRefs": [{"kind": "ConfigMap", "name": f"c{number}", "namespace": "default"}],
    }
    return [
        {"apiVersion": LIB, "kind": kind, "metadata": {"name": name}, "spec": spec}
        for kind, name, spec in (
            ("EventSource", f"s{number}", source),
            ("EventTrigger", f"t{number}", trigger),
        )
    ]


def settled(folder: Path, count: int, clusters: int) -> Fleet:
    """Return a fleet in which all is declared, and nobody has read it yet."""
    fleet = Fleet(folder)
    fleet.publisher.publish = _unheard  # type: ignore[method-assign]
    for number in range(clusters):
        labels = {"env": "prod", "region": "eu", "number": str(number)}
        digest = f"{number:064}"
        fleet.records.clusters.put(
            Cluster("fleet", f"c{number}", labels, "v1.34.2", digest, fleet.clock.now())
        )
    fleet.declare.apply([of(each) for number in range(count) for each in rules(number)])
    return fleet


def _unheard(_messages: object) -> None:
    """Publish nothing: this is about reading."""


def timed(fleet: Fleet, act: Callable[[], Any]) -> tuple[float, int]:
    """Return the ms that something takes, and how often it asks the store."""
    gc.collect()
    fleet.store.counts.clear()
    begun = time.perf_counter()
    act()
    took = (time.perf_counter() - begun) * 1000
    asked = sum(count for kind, count in fleet.store.counts.items() if kind != "item")
    return took, asked


def floor(fleet: Fleet, count: int) -> float:
    """Return the ms that decoding what the catalog is made of takes."""
    texts = [json.dumps(each) for number in range(count) for each in rules(number)]
    texts += [json.dumps(dict(item.value)) for item in fleet.store.query("cluster")]
    return timed(fleet, lambda: [json.loads(text) for text in texts])[0]


def main(count: int = 200, clusters: int = 2000, rounds: int = 5) -> None:
    """Print what each question takes beside the floor."""
    found: dict[str, list[tuple[float, int]]] = {FLOOR: []}

    with tempfile.TemporaryDirectory() as folder:
        fleet = settled(Path(folder), count, clusters)

        def note(name: str, act: Callable[[], Any]) -> None:
            found.setdefault(name, []).append(timed(fleet, act))

        for turn in range(rounds):
            found[FLOOR].append((floor(fleet, count), 0))
            fleet.reread()
            fleet.publisher.publish = _unheard  # type: ignore[method-assign]
            note("cold start", fleet.catalogs.current)
            catalog = fleet.catalogs.current()
            note("a first question", lambda found=catalog: found.sources_for("fleet/c0", SERVICE))
            for key in catalog.clusters:
                catalog.kinds_in(key)
            other = Fleet(Path(folder))
            other.publisher.publish = _unheard  # type: ignore[method-assign]
            other.declare.label("fleet/c1", {"turn": str(turn)})
            note("again after a label", fleet.catalogs.current)
            after = fleet.catalogs.current()
            note("all answers then", lambda found=after: [*map(found.kinds_in, found.clusters)])
            other.declare.apply([of(rules(count)[0] | {"metadata": {"name": f"more{turn}"}})])
            note("again after a source", fleet.catalogs.current)
            other.close()
        fleet.close()
    rows = {}
    for name, measured in found.items():
        ratios = [took / under[0] for (took, _), under in zip(measured, found[FLOOR], strict=True)]
        asked = max(each for _, each in measured)
        rows[name] = [spread([took for took, _ in measured]), spread(ratios), asked]
    head = f"{count} sources and triggers, {clusters} clusters"
    table(head, rows, "ms", "ratio", "store")


if __name__ == "__main__":
    run(main)
