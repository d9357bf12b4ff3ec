"""The way of one event and of one chart: modules entered and store operations, by playing them.

An event is a new Service in a fleet of one cluster, with one EventTrigger (`oneForEvent`) and one
ConfigMap with a template; another Service went the same way before, so that what is loaded or read
once is there. A chart is the one chart of a ClusterProfile in a fleet of one cluster. Everything
runs in one thread over the embedded installation's files, with fake clusters and the fake Helm.

A module counts where a function of it is called, the product's own only. A store operation is a
get, put, delete or query; one for lines of the event log is one. What users apply counts for the
chart, and what the schedule looks for does for none.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any

from bellhop.adapters.local.store import SqliteStore
from bellhop.ports.store import ANY, Item
from tests.fakes.fleet import Fleet, service
from tests.house.concepts import tables

_TRIGGER = """
apiVersion: lib.projectsveltos.io/v1beta1
kind: EventSource
metadata: {name: services}
spec:
  collectResources: true
  resourceSelectors: [{group: "", version: v1, kind: Service}]
---
apiVersion: lib.projectsveltos.io/v1beta1
kind: EventTrigger
metadata: {name: made}
spec:
  sourceClusterSelector: {matchLabels: {env: production}}
  eventSourceName: services
  oneForEvent: true
  policyRefs: [{kind: ConfigMap, name: made, namespace: default}]
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: made
  namespace: default
  annotations: {projectsveltos.io/instantiate: ok}
data:
  main.yaml: |
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: "for-{{ .Resource.metadata.name }}", namespace: default}
"""

_CHART = """
apiVersion: config.projectsveltos.io/v1beta1
kind: ClusterProfile
metadata: {name: web}
spec:
  clusterSelector: {matchLabels: {env: production}}
  helmCharts:
  - repositoryURL: https://charts.example.com
    repositoryName: example
    chartName: example/web
    chartVersion: 1.0.0
    releaseName: web
    releaseNamespace: default
"""


class Trace:
    """What was counted while a part of the product ran."""

    def __init__(self) -> None:
        self.modules: set[str] = set()
        self.operations: list[str] = []
        self.steps: dict[str, int] = {}


def traces() -> dict[str, int]:
    """Play both, and return the figures."""
    event, install, removal = event_trace(), *chart_traces()
    steps = {f"store operations of {name}": count for name, count in event.steps.items()}
    return {
        "modules of an event": len(event.modules),
        "store operations of an event": len(event.operations),
        **steps,
        "modules of a chart's installation": len(install.modules),
        "store operations of a chart's installation": len(install.operations),
        "store operations of a chart's removal": len(removal.operations),
    }


def unlisted() -> set[str]:
    """Return the tables that the traces use, and the page of partitions lacks."""
    played = (event_trace(), *chart_traces())
    used = {each.partition(" ")[2].partition("/")[0] for one in played for each in one.operations}
    return used - tables()


def event_trace() -> Trace:
    """Return the trace of an event, from its arrival in ingest to the object in the cluster."""
    with _fleet() as fleet:
        fleet.apply(_TRIGGER)
        fleet.pump()
        for name in ("first", "second"):
            fleet.write("east", service(name))
            fleet.pump()
        stored = fleet.access.clusters["fleet/east"].put(service("third"))
        trace = Trace()
        with _watched(fleet, trace, "ingest"):
            assert fleet.send("east", {"object": stored}).status == 200
        _work(fleet, trace)
    return trace


def chart_traces() -> tuple[Trace, Trace]:
    """Return the traces of a chart's installation and of its removal, each from `bellhop apply`."""
    install, removal = Trace(), Trace()
    with _fleet() as fleet:
        fleet.repositories.put("web", "1.0.0")
        with _watched(fleet, install, "declare"):
            fleet.apply(_CHART)
        _work(fleet, install)
        with _watched(fleet, removal, "declare"):
            fleet.declare.delete([("ClusterProfile", "", "web")])
        _work(fleet, removal)
    return install, removal


class _Recording:
    """A store that notes each operation, and the partition that it is on."""

    def __init__(self, store: SqliteStore) -> None:
        self._store = store
        self.noted: list[str] = []

    def put(self, item: Item, *, expect: str | None = ANY) -> Item:
        # Sizes of the event log are written now and then, whatever is done meanwhile.
        if not item.partition.startswith("ledgers"):
            self.noted.append(f"put {item.partition}")
        return self._store.put(item, expect=expect)

    def __getattr__(self, name: str) -> Any:
        asked = getattr(self._store, name)
        if name not in {"get", "delete", "query"}:
            return asked

        def noting(partition: str, *arguments: Any, **options: Any) -> Any:
            self.noted.append(f"{name} {partition}")
            return asked(partition, *arguments, **options)

        return noting


def _work(fleet: Fleet, trace: Trace) -> None:
    """Work on messages until none is due, and count for the message that each is."""
    busy = True
    while busy:
        busy = False
        for name, queue in fleet.queues.items():
            for delivery in queue.receive(1, wait=timedelta(0)):
                busy = True
                with _watched(fleet, trace, str(delivery.message.body["do"])):
                    fleet.work(name, [delivery])


@contextmanager
def _fleet() -> Iterator[Fleet]:
    with TemporaryDirectory() as folder:
        fleet = Fleet(Path(folder))
        recording: Any = _Recording(fleet.store._store)
        fleet.store._store = recording
        fleet.register("east", env="production")
        fleet.pump()
        yield fleet
        fleet.close()


@contextmanager
def _watched(fleet: Fleet, trace: Trace, step: str) -> Iterator[None]:
    """Count modules and operations within the block."""
    recording: Any = fleet.store._store
    noted, was = recording.noted, sys.getprofile()
    before = len(noted)

    def enter(frame: FrameType, event: str, _: object) -> None:
        module = frame.f_globals.get("__name__", "")
        if event == "call" and module.startswith("bellhop."):
            trace.modules.add(module)

    # A finalizer of what another test left is no part of the way.
    gc.disable()
    sys.setprofile(enter)
    try:
        yield
    finally:
        sys.setprofile(was)
        gc.enable()
        trace.operations += noted[before:]
        trace.steps[step] = trace.steps.get(step, 0) + len(noted) - before
