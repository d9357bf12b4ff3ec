"""Capacity of an installation by its size: `python -m tests.benchmarks.capacity [ROW]…`.

The simulations of `fleet` and `fleet_gcp` play a fleet at several rates, with the functions and
queues that the Terraform modules have for a `concurrency` on AWS and for `instances` on Google
Cloud. Without rows by number all are played. The results are written to `capacity.json`, and as a
table into docs/how-to/size-an-installation.md.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from infra.generated_blocks import fill
from infra.generated_blocks import table as markdown
from tests.benchmarks import fleet, fleet_gcp
from tests.benchmarks.clouds.sizes import aws_sizes, google_sizes
from tests.benchmarks.figures import FOLDER, ROOT, percentile, run

SMALLEST = (-1,)
"""Plays a load of a few events, and writes nothing."""

RESULTS = FOLDER / "capacity.json"
PAGE = ROOT / "docs" / "how-to" / "size-an-installation.md"

CLUSTERS, SOURCES = 100, 20
LOADS = (
    *(("aws", 10, 10, 60), ("aws", 10, 20, 60), ("aws", 10, 30, 60)),
    *(("aws", 100, 100, 30), ("aws", 100, 200, 20), ("aws", 1000, 300, 12)),
    *(
        ("gcp", 10, 20, 40),
        ("gcp", 10, 50, 40),
        ("gcp", 10, 100, 30),
        ("gcp", 20, 100, 30),
        ("gcp", 100, 200, 15),
    ),
)
"""What is played: the cloud, its `concurrency` or `instances`, events a second, and seconds."""

_TINY = ("aws", 10, 1, 8)


def read_limits(cloud: str, size: int) -> Mapping[str, int]:
    """Return how much the functions may work on at a time, by queue or by function."""
    if cloud == "aws":
        return {queue: each.most for queue, each in aws_sizes(size).feeds.items()}
    sizes = google_sizes(size)
    return {name: each["concurrency"] * each["instances"] for name, each in sizes.items()}


def play(cloud: str, size: int, rate: int, seconds: int) -> dict[str, Any]:
    """Play a load; return how long events took, and what was refused."""
    played: fleet.Fleet | fleet_gcp.Fleet
    if cloud == "aws":
        played = fleet.Fleet(CLUSTERS, SOURCES, aws_sizes(size))
        meters = played.aws.meters
    else:
        played = fleet_gcp.Fleet(CLUSTERS, SOURCES, google_sizes(size))
        meters = played.google.meters
    played.play(rate, seconds)
    return {
        "at_once": dict(read_limits(cloud, size)),
        "p50": round(percentile(played.latencies, 50), 2),
        "p99": round(percentile(played.latencies, 99), 2),
        "falls_behind": played.falls_behind(seconds),
        "events": played.events,
        "lost": played.lost,
        "refused": dict(sorted(meters.refused.items())),
    }


def table(cloud: str, found: Mapping[str, Mapping[str, Any]]) -> str:
    """Return a cloud's results in Markdown."""
    variable = "`concurrency`" if cloud == "aws" else "`instances`"
    rows = [
        (
            f"{size:,}",
            _words(found[name(cloud, size, rate)]["at_once"]),
            str(rate),
            *_times(found[name(cloud, size, rate)]),
        )
        for each, size, rate, _ in LOADS
        if each == cloud
    ]
    heads = (variable, "At a time, at most", "Events a second", "p50", "p99", "Sent again")
    return markdown(heads, rows)


def blocks(found: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Return the generated blocks of the page."""
    return {f"capacity of {cloud}": table(cloud, found) for cloud in ("aws", "gcp")}


def stored() -> dict[str, dict[str, Any]]:
    """Return the results of earlier runs, by load."""
    found: dict[str, dict[str, Any]] = json.loads(RESULTS.read_text())
    return found


def _words(limits: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {most}" for name, most in limits.items() if name != "schedule")


def _times(result: Mapping[str, Any]) -> tuple[str, str, str]:
    again = sum(count for name, count in result["refused"].items() if name.startswith("ingest"))
    share = f"{again / result['events']:.1%}"
    if result["falls_behind"]:
        return "falls behind", "", share
    return f"{result['p50']} s", f"{result['p99']} s", share


def name(cloud: str, size: int, rate: int) -> str:
    """Return by which name the result of a load is stored."""
    return f"{cloud}, {size}, {rate}/s"


def main(*rows: int) -> None:
    """Play loads, print each result, and write the results, and the page if none is missing."""
    if min(rows, default=0) < 0:
        print(play(*_TINY))
        return
    for number in rows or range(len(LOADS)):
        cloud, size, rate, seconds = LOADS[number]
        result = play(cloud, size, rate, seconds)
        print(f"{name(cloud, size, rate)}: {result}", flush=True)
        found = (stored() if RESULTS.exists() else {}) | {name(cloud, size, rate): result}
        RESULTS.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")
    if stored().keys() >= {name(*load[:3]) for load in LOADS}:
        PAGE.write_text(fill(PAGE.read_text(), blocks(stored())))
        print(f"written: {RESULTS.relative_to(ROOT)}, {PAGE.relative_to(ROOT)}")


if __name__ == "__main__":
    run(main)
