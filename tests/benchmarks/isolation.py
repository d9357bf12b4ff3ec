"""What bad neighbours cost a good cluster: `python -m tests.benchmarks.isolation [WAITING EVENTS]`.

Events of a good pair of clusters, each from its write to the add-on in the destination, by
themselves and in bad company: while ten clusters turn out to hang (five only take connections, five
shake hands) with WAITING profiles for them, while those wait, while another sender floods ingest
with objects that never were, while resyncs have these evaluated five times over, and while another
source's script loops for ever on three hundred objects of the same cluster.
"""

from __future__ import annotations

import json
import ssl
import time
from collections.abc import Callable
from itertools import count

import urllib3

from bellhop.core.gvk import GVK, ObjectKey
from bellhop.runtime.embedded.state import Embedded
from bellhop.state.ingest_policy import WatchedKind
from bellhop.state.messages import Evaluate
from infra.demo.stand import Stand
from infra.demo.user import User
from infra.lab.control_plane import ControlPlane
from tests.benchmarks.figures import bench, percentile, run, table
from tests.fakes.manifests import FOR_EACH, INSTANTIATE, config, holder, join, profile, trigger
from tests.fakes.silent import Silent, enrol

SMALLEST = (20, 2, 20)
CLUSTERS = 10
WARM_UPS = 5
AIM_MS = 100
"""By how much the median event of a good cluster may be delayed."""

CONFIG = GVK("", "v1", "ConfigMap")
PLACE = "made"
_SENDER = "flood/sender"
_BATCH = 500
_PATIENCE_SECONDS = 60.0
_PAUSE_SECONDS = 0.1

_numbers = count()

RULES = join(
    """
apiVersion: lib.projectsveltos.io/v1beta1
kind: EventSource
metadata: {name: watched}
spec:
  collectResources: true
  resourceSelectors:
  - {group: "", version: v1, kind: ConfigMap, labelFilters: [{key: ring, operation: Has}]}
""",
    trigger(more="destinationClusterSelector: {matchLabels: {dep: eng}}"),
    holder("made", config(FOR_EACH, namespace=PLACE), annotations=INSTANTIATE),
)


LOOPING = join(
    """
apiVersion: lib.projectsveltos.io/v1beta1
kind: EventSource
metadata: {name: loops}
spec:
  collectResources: true
  resourceSelectors:
  - group: ""
    version: v1
    kind: ConfigMap
    labelFilters: [{key: loop, operation: Has}]
    evaluate: "function evaluate() while true do end end"
""",
    trigger("looped", origin="loops"),
    holder("looped", config("looped")),
)


def loop(stand: Stand, source: User, count: int) -> None:
    """Declare a source whose script never ends, and create objects for it."""
    stand.do("apply", "-f", "-", stdin=LOOPING)
    for number in range(count):
        metadata = {"name": f"loop-{next(_numbers)}-{number}", "namespace": "default"}
        metadata |= {"labels": {"loop": "yes"}}  # type: ignore[dict-item]
        source.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})


def happen(source: User, destination: User, events: int) -> list[float]:
    """Return the ms of events, one after the other, from the write to the add-on."""
    times = []
    for name in (f"web-{next(_numbers)}" for _ in range(events)):
        time.sleep(_PAUSE_SECONDS)
        begun = time.perf_counter()
        metadata = {"name": name, "namespace": "default", "labels": {"ring": "yes"}}
        source.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
        key = ObjectKey(CONFIG, PLACE, f"for-{name}")
        while destination.get(key) is None:
            if time.perf_counter() - begun > _PATIENCE_SECONDS:
                raise TimeoutError(name)
            time.sleep(0.001)
        times.append((time.perf_counter() - begun) * 1000)
    return times


def hang(opened: Embedded) -> list[Silent]:
    """Register clusters that hang, each in one of two ways."""
    silent = [Silent(tls=number % 2 == 0) for number in range(CLUSTERS)]
    for number, each in enumerate(silent):
        enrol(opened, f"hung/c{number}", each, {"hung": "yes"})
    return silent


def profiles(waiting: int) -> str:
    """Write profiles for the clusters that hang, so that so many wait."""
    names = [f"hung-{number}" for number in range(max(1, waiting // CLUSTERS))]
    selected = "clusterSelector: {matchLabels: {hung: 'yes'}}"
    return join(*(join(profile(selected, name=each), holder(each, config(each))) for each in names))


def sender(opened: Embedded) -> Silent:
    """Register a cluster that sends what it likes, and cannot be called."""
    silent = Silent(tls=False)
    cluster = enrol(opened, _SENDER, silent, {"env": "production"})
    kinds = [WatchedKind(CONFIG, "configmaps")]
    opened.installation.records.gates.put(_SENDER, cluster.gate(kinds, 1))
    return silent


def flood(stand: Stand, count: int) -> None:
    """Send objects that never were; they match, and go where the good cluster's go."""
    address = json.loads((stand.state / "address.json").read_text())
    context = ssl.create_default_context(cadata=address["ca"])
    headers = {"Authorization": f"Bearer {_SENDER}", "Content-Type": "application/json"}
    with urllib3.PoolManager(ssl_context=context) as pool:
        for first in range(0, count, _BATCH):
            items = [{"object": _invented(n)} for n in range(first, min(first + _BATCH, count))]
            body = {"apiVersion": "bellhop.dev/v1", "kind": "Observations", "items": items}
            url = f"{address['url']}/clusters/{_SENDER}"
            answer = pool.request("POST", url, body=json.dumps(body), headers=headers)
            assert answer.status == 200, answer.data


def _invented(number: int) -> dict[str, object]:
    metadata = {"name": f"invented-{number}", "namespace": "default", "labels": {"ring": "yes"}}
    metadata |= {"uid": f"u{number}", "resourceVersion": "7"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


def main(
    waiting: int = 1000,
    events: int = 40,
    invented: int = 2000,
    *,
    plane: ControlPlane | None = None,
) -> None:
    """Print p50 and the slowest of each case, and how much later that is than in isolation."""
    with bench(plane, "source", "destination") as made:
        stand, (source, destination) = made.stand, made.users()
        made.serve_pair()
        stand.do("apply", "-f", "-", stdin=RULES)
        stand.settle("bench/source")
        opened = made.open_state()
        happen(source, destination, WARM_UPS)
        measured: dict[str, list[float]] = {}

        def note(name: str, act: Callable[[], object] = lambda: None) -> None:
            act()
            measured[name] = happen(source, destination, events)

        note("alone")
        for each in hang(opened):
            made.callback(each.close)
        note("clusters hang", lambda: stand.do("apply", "-f", "-", stdin=profiles(waiting)))
        note("they wait")
        begun = time.perf_counter()
        stand.settle("bench/source")
        resynced = (time.perf_counter() - begun) * 1000
        made.callback(sender(opened).close)
        stand.settle("bench/source")
        note("a flood", lambda: flood(stand, invented))
        keys = [str(ObjectKey(CONFIG, "default", f"invented-{n}")) for n in range(invented)]
        queue = opened.queues["review"]
        again = [Evaluate(_SENDER, key).message() for key in keys * 5]
        note("sweeps", lambda: queue.publish(again))
        note("a script loops", lambda: loop(stand, source, invented * 3 // 20))
    baseline = percentile(measured["alone"], 50)
    rows = {
        name: [
            f"{percentile(times, 50):.1f}",
            f"{max(times):.1f}",
            f"{percentile(times, 50) - baseline:+.1f}",
            AIM_MS,
        ]
        for name, times in measured.items()
    }
    table(f"{events} events", rows, "p50 ms", "slowest", "p50 later by", "aim")
    print(f"a good cluster's sweep meanwhile: {resynced:.0f} ms")


if __name__ == "__main__":
    run(main)
