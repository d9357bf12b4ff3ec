"""What an event asks of a cloud: `python -m tests.benchmarks.requests [DESTINATIONS]…`.

Events, resyncs, ticks and the house-keeping go through the real handlers: over a moto server, and
over Google's emulators. Clusters are names of one real API server. With the numbers that it has
without any, the counts and the tables of docs/explanation/costs.md are written again.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import asdict
from pathlib import Path

from infra.lab.control_plane import ControlPlane
from tests.benchmarks.clouds.aws import AwsBill
from tests.benchmarks.clouds.aws_play import AwsPlay
from tests.benchmarks.clouds.bill import COUNTS, PAGE, Bill, Count, fill, tables
from tests.benchmarks.clouds.gcp import GoogleBill
from tests.benchmarks.clouds.gcp_play import GooglePlay, google
from tests.benchmarks.clouds.play import Play, measure, measure_configuration, measure_promotion
from tests.benchmarks.figures import ROOT, lab, run
from tests.lab.moto import Moto

SMALLEST = (1,)
DESTINATIONS = (1, 10, 100)
BILLS: dict[str, Bill] = {"aws": AwsBill(), "gcp": GoogleBill()}


def main(*destinations: int, plane: ControlPlane | None = None) -> None:
    """Print the counts and what they cost; keep both where nothing else is asked for."""
    with ExitStack() as stack:
        [cluster] = stack.enter_context(lab(plane, "source"))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        moto = stack.enter_context(Moto(folder))
        emulators, storage = stack.enter_context(google(folder))
        kubeconfig = cluster.kubeconfig()
        plays: dict[str, Callable[[str], Play]] = {
            "aws": lambda _: AwsPlay(moto, kubeconfig),
            "gcp": lambda project: GooglePlay(
                json.dumps({"project": project, "emulators": emulators}), storage, kubeconfig
            ),
        }
        found: dict[str, dict[str, Count]] = {}
        for cloud, begin in plays.items():
            cluster.reset()  # The objects of one would be orphans in the next one's resyncs.
            with closing(begin("events")) as play:
                found[cloud] = measure(play, kubeconfig, *(destinations or DESTINATIONS))
            cluster.reset()
            with closing(begin("configuration")) as play:
                measure(play, kubeconfig, 1)
                found[cloud] |= measure_configuration(play, kubeconfig)
            cluster.reset()
            with closing(begin("promotion")) as play:
                found[cloud] |= measure_promotion(play, kubeconfig)
    written: dict[str, str] = {}
    for cloud, counts in found.items():
        written |= tables(BILLS[cloud], counts)
    for text in written.values():
        print(text, end="\n\n")
    if not destinations:
        data = {
            cloud: {name: asdict(count) for name, count in counts.items()}
            for cloud, counts in found.items()
        }
        COUNTS.write_text(json.dumps(data, indent=1) + "\n")
        PAGE.write_text(fill(PAGE.read_text(), written))
        print(f"written: {COUNTS.relative_to(ROOT)}, {PAGE.relative_to(ROOT)}")


if __name__ == "__main__":
    run(main)
