"""From a manual edit to its repair: `python -m tests.benchmarks.drift [EDITS] [ROUNDS]`.

A real API server, a forwarder and `bellhop serve`, each a process. The floor is the same API calls
made bare, one after the other, in a cluster that Bellhop does not know, while Bellhop has nothing
to do: the edit, the object read back by the forwarder, looked at by deploy, and applied. Each edit
is of an object, and a profile, of its own: who edits one again and again is slowed.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from itertools import count, islice
from pathlib import Path
from typing import Any

from bellhop.adapters.kube.client import KubeClient
from bellhop.model.gvk import GVK, ObjectKey
from bellhop.model.kubeconfig import sanitise
from bellhop.model.reach import HERE
from infra.demo.arrivals import Arrivals
from infra.demo.stand import Stand
from infra.demo.user import User
from infra.lab.control_plane import ControlPlane
from infra.lab.processes import Nursery
from tests.benchmarks.figures import beside, in_turns, lab, run

SMALLEST = (2, 1)
CONFIG = GVK("", "v1", "ConfigMap")
WARM_UPS = 3
_CALM_SECONDS = 1.0


def profile(name: str) -> str:
    """Return a profile that holds one ConfigMap of its name, and watches it."""
    return f"""
apiVersion: config.projectsveltos.io/v1beta1
kind: ClusterProfile
metadata: {{name: {name}}}
spec:
  syncMode: ContinuousWithDriftDetection
  clusterSelector: {{matchLabels: {{env: production}}}}
  policyRefs: [{{kind: ConfigMap, namespace: default, name: {name}}}]
---
apiVersion: v1
kind: ConfigMap
metadata: {{name: {name}, namespace: default}}
data:
  main.yaml: |
    {held(name)}
"""


def held(name: str) -> dict[str, object]:
    """Return the ConfigMap that is held."""
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"v": "ours"}}


def ours(manifest: Mapping[str, Any]) -> bool:
    """Say whether an object is as it is held."""
    return manifest.get("data") == {"v": "ours"}


def version(manifest: Mapping[str, Any]) -> int:
    """Return an object's version, which is a number to API servers that keep it in etcd."""
    return int(manifest["metadata"]["resourceVersion"])


def through_bellhop(
    user: User, arrivals: Arrivals, names: Iterator[str], edits: int
) -> list[float]:
    """Return the ms from each edit until the object is seen as it was."""
    times = []
    for name in islice(names, edits):
        begun = time.perf_counter()
        edited = user.patch(ObjectKey(CONFIG, "default", name), {"data": {"v": "theirs"}})
        at = arrivals.wait(name, partial(_put_back, version(edited)))
        times.append((at - begun) * 1000)
    time.sleep(_CALM_SECONDS)
    return times


def _put_back(edited: int, manifest: Mapping[str, Any]) -> bool:
    return version(manifest) > edited and ours(manifest)


def bare(user: User, kube: KubeClient, edits: int, numbers: Iterator[int]) -> list[float]:
    """Return the ms that the same API calls take, made one after the other."""
    times = []
    for name in (f"bare-{number}" for number in islice(numbers, edits)):
        key = ObjectKey(CONFIG, "default", name)
        kube.apply(held(name))
        begun = time.perf_counter()
        user.patch(key, {"data": {"v": "theirs"}})
        kube.get(*key)
        kube.get(*key)
        kube.apply(held(name))
        times.append((time.perf_counter() - begun) * 1000)
    return times


def main(edits: int = 60, rounds: int = 3, *, plane: ControlPlane | None = None) -> None:
    """Print p50 and p99 of edits that are put back, beside the floor's."""
    each = max(1, edits // rounds)
    names = [f"held-{number}" for number in range(WARM_UPS + each * rounds)]
    with ExitStack() as stack:
        near, silent = stack.enter_context(lab(plane, "source", "silent"))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        stand = Stand(folder, stack.enter_context(Nursery()))
        stack.callback(stand.close)
        user, alone = (User(one.kubeconfig()) for one in (near, silent))
        for one in (user, alone):
            stack.callback(one.close)
        kube = KubeClient("silent", sanitise(silent.kubeconfig(), reach=HERE), reach=HERE)
        stack.callback(kube.close)
        stand.serve()
        stand.register(near, namespace="bench", labels="env=production")
        file = folder / "profiles.yaml"
        file.write_text("---".join(map(profile, names)))
        stand.do("apply", "-f", str(file))
        arrivals = Arrivals(user, CONFIG, "default")
        for name in names:
            arrivals.wait(name, ours)
        # API servers follow a change of their webhooks within seconds.
        time.sleep(3 * _CALM_SECONDS)
        left, numbers = iter(names), count()
        through_bellhop(user, arrivals, left, WARM_UPS)
        bare(alone, kube, WARM_UPS, numbers)
        measured = in_turns(
            rounds,
            bellhop=lambda: through_bellhop(user, arrivals, left, each),
            floor=lambda: bare(alone, kube, each, numbers),
        )
    beside(f"{rounds} rounds of {each} edits", measured)


if __name__ == "__main__":
    run(main)
