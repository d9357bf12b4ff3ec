"""Two profiles that fight over one object: `python -m tests.benchmarks.contest [SECONDS]`.

Two people change the object that two profiles deploy under one name, again and again,
and the tiers change sides as soon as they are followed. A watch sees every version that there ever
was of the object. It fails where one is not whole of one profile, or where another one has it than
the tiers say: each change of theirs moves the object once.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from itertools import groupby
from typing import Any

from bellhop.core.gvk import GVK
from bellhop.core.sveltos_annotations import OWNER
from infra.demo.arrivals import Arrivals
from infra.demo.stand import Stand
from infra.lab.control_plane import ControlPlane
from tests.benchmarks.figures import bench, run, table

SMALLEST = (4,)
CONFIG = GVK("", "v1", "ConfigMap")
NAME = "contested"
LEFT, RIGHT = "left", "right"


def make_manifest(name: str, number: int) -> str:
    """Return the ConfigMap by which a profile deploys the object, in one form of many."""
    return f"""
apiVersion: v1
kind: ConfigMap
metadata: {{name: {name}, namespace: default}}
data:
  main.yaml: |
    apiVersion: v1
    kind: ConfigMap
    metadata: {{name: {NAME}, namespace: default}}
    data: {{by: {name}, number: "{number}"}}
"""


def profiles(winner: str) -> str:
    """Return both profiles: the lower tier has the object."""
    return "---".join(
        f"""
apiVersion: config.projectsveltos.io/v1beta1
kind: ClusterProfile
metadata: {{name: {name}}}
spec:
  tier: {10 if name == winner else 20}
  clusterSelector: {{matchLabels: {{env: production}}}}
  policyRefs: [{{kind: ConfigMap, namespace: default, name: {name}}}]
"""
        for name in (LEFT, RIGHT)
    )


def owner(manifest: dict[str, Any]) -> str:
    """Say whose a version of the object is; fail where it is not whole of one profile."""
    by, marked = manifest["data"]["by"], manifest["metadata"]["annotations"][OWNER]
    assert by == marked, f"{marked} owns what {by} wrote"
    return str(by)


class Contest:
    """Two who change their desired state, and the owner of the object."""

    def __init__(self, stand: Stand, arrivals: Arrivals) -> None:
        self._stand = stand
        self._arrivals = arrivals
        self._over = threading.Event()
        self.written = {LEFT: 0, RIGHT: 0}
        self.winners: list[str] = []

    def hold(self, seconds: float) -> None:
        """Have them fight for so long; the tiers change sides whenever they were followed."""
        writers = [threading.Thread(target=self._write, args=(name,)) for name in self.written]
        ends = time.monotonic() + seconds
        for writer in writers:
            writer.start()
        try:
            while time.monotonic() < ends:
                self.turn()
        finally:
            self._over.set()
            for writer in writers:
                writer.join()

    def turn(self) -> None:
        """Give the other one the lower tier, and wait until the object is its own."""
        winner = RIGHT if self.winners and self.winners[-1] == LEFT else LEFT
        known = len(self._arrivals.versions(NAME))
        self._stand.do("apply", "-f", "-", stdin=profiles(winner))
        self.winners.append(winner)
        self._arrivals.wait(NAME, lambda it: owner(it) == winner, after=known)

    def end(self) -> None:
        """Wait until what the winner wrote last is there."""
        winner = self.winners[-1]
        last = {"by": winner, "number": str(self.written[winner])}
        self._arrivals.wait(NAME, lambda it: it["data"] == last)

    def _write(self, name: str) -> None:
        while not self._over.is_set():
            number = self.written[name] + 1
            self._stand.do("apply", "-f", "-", stdin=make_manifest(name, number))
            self.written[name] = number


def check_owners(versions: Sequence[dict[str, Any]], winners: Sequence[str]) -> list[str]:
    """Name the owners one after the other; fail where they are not those of the tiers."""
    owners = [each for each, _ in groupby(map(owner, versions))]
    assert owners == list(winners), f"{owners} had it, and not {winners}"
    return owners


def main(seconds: int = 60, *, plane: ControlPlane | None = None) -> None:
    """Print how often it was written, and moved; fail where it was not one profile's own."""
    with bench(plane, "source") as made:
        stand, [user] = made.stand, made.users()
        stand.serve()
        stand.register(made.clusters[0], namespace="bench", labels="env=production", forward=False)
        for name in (LEFT, RIGHT):
            stand.do("apply", "-f", "-", stdin=make_manifest(name, 0))
        arrivals = Arrivals(user, CONFIG, "default")
        contest = Contest(stand, arrivals)
        contest.turn()
        # Who was quicker may have had it until the other one, of the lower tier, was there.
        settled = len(arrivals.versions(NAME)) - 1
        contest.hold(seconds)
        contest.end()
        versions = arrivals.versions(NAME)[settled:]
        moves = len(check_owners(versions, contest.winners)) - 1
        dead = stand.do("dead-letters", "list")
        assert not dead, dead
    rows = {f"{seconds} s": [sum(contest.written.values()), len(versions), moves, "one, always"]}
    table("fight", rows, "changes asked for", "writes", "moves", "owner")


if __name__ == "__main__":
    run(main)
