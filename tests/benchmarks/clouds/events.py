"""A fleet whose clusters have events, in whichever cloud: what the simulations share.

One event in ten is of one busy cluster; half of them are new objects, the rest change one of
before; a cluster that has more than forty deletes its oldest instead. Clusters are fakes. An
invocation is played whole when it begins, so that two which overlap meet each other's limits, and
not each other's half-written records: the histories in `tests/fakes` are for those.
"""

from __future__ import annotations

import hashlib
import heapq
import io
import itertools
import random
from abc import ABC, abstractmethod
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable, Mapping
from typing import Any

from bellhop.adapters.kube import access as kube_access
from bellhop.adapters.metrics import Prometheus
from bellhop.api.kinds import parse_all, read_documents
from bellhop.catalog.cache import Catalogs
from bellhop.core.gvk import GVK, ObjectKey
from bellhop.declarations.apply import ManifestWriter
from bellhop.deploy.reconciler import ProfileReconciler
from bellhop.ports.kube import Kube
from bellhop.ports.store import Secrets
from bellhop.runtime.cloud import resources as cloud
from bellhop.runtime.handlers import Handlers
from bellhop.runtime.handlers.deploy import make_deploy_table
from bellhop.runtime.handlers.sweep import make_resync_table
from bellhop.settings import Settings
from bellhop.state.cluster import Cluster
from tests.benchmarks.clouds.bill import CALL, CALLS
from tests.benchmarks.figures import percentile
from tests.benchmarks.growth import rules
from tests.fakes.aws import SimulatedClock
from tests.fakes.fleet import service
from tests.fakes.kube import FakeKube

SERVICE = GVK("", "v1", "Service")

BUSY = 0.1
NEW = 0.5
TICK = 60.0
_KEEPS = 40
"""Objects of a cluster, above which the oldest is deleted."""

_BEHIND = 0.05
"""Seconds by which latency grows a second, above which a fleet is falling behind."""


class Nowhere(io.StringIO):
    """Where the functions' logs go: hours of them would take all memory."""

    def write(self, text: str) -> int:
        return len(text)


class Clusters:
    """What opens clusters for one environment: it reads a secret for each that it does not know."""

    def __init__(self, fleet: Events, secrets: Secrets) -> None:
        self._fleet = fleet
        self._secrets = secrets
        self._known: OrderedDict[str, None] = OrderedDict()

    def open(self, cluster: str, *, version: str = "", account: str = "") -> Kube:
        del version, account
        if cluster not in self._known:
            self._secrets.read(f"kubeconfig/{cluster}")
            self._known[cluster] = None
            if len(self._known) > kube_access._KEPT:
                self._known.popitem(last=False)
        return self._fleet.kubes[cluster]


class TimedKube(FakeKube):
    """A cluster whose calls take time, and that says when an object was applied."""

    def __init__(self, cluster: str, fleet: Events) -> None:
        super().__init__(cluster)
        self._fleet = fleet

    def apply(self, *arguments: Any, **options: Any) -> Any:
        self._fleet.clock.rest(CALLS * CALL / 1000)
        done = super().apply(*arguments, **options)
        self.calls.clear()
        self._fleet.applied(self.cluster, arguments[0]["metadata"]["name"])
        return done


class Events(ABC):
    """A fleet's clusters, and what happens in them and when, in whichever cloud."""

    def __init__(self, clock: SimulatedClock) -> None:
        self.clock = clock
        self.settings = Settings()
        self.kubes: dict[str, TimedKube] = {}
        self.latencies: list[float] = []
        self.began: list[float] = []
        """When the event of each latency was."""
        self.events = 0
        self.ages: dict[str, list[float]] = defaultdict(list)
        self.invocations: Counter[str] = Counter()
        self.lost = 0
        self.dice = random.Random(7)
        self._rang: dict[tuple[str, str], float] = {}
        self._agenda: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._written: dict[str, list[dict[str, Any]]] = defaultdict(list)

    # Each cloud's own ---------------------------------------------------------------------------

    @abstractmethod
    def open(self) -> cloud.Resources:
        """Open the installation, as an environment does with its first event."""

    @abstractmethod
    def secrets(self, here: Any) -> Secrets:
        """Make the secret store of an installation."""

    @abstractmethod
    def send(self, cluster: str, item: Mapping[str, Any]) -> None:
        """Have a cluster's forwarder send something, again until it is taken."""

    @abstractmethod
    def tick(self) -> None:
        """Have the schedule look."""

    @abstractmethod
    def rest(self) -> None:
        """Have all messages worked on at once, until none is left."""

    # What is there ------------------------------------------------------------------------------

    def deploy(self, here: cloud.Resources) -> Handlers:
        """Make a deploy stage that opens this fleet's clusters."""
        rest = here.publisher, here.settings
        catalogs = Catalogs(here.records)
        clusters = Clusters(self, self.secrets(here))
        reconciler = ProfileReconciler(
            catalogs, clusters, *rest, here.log, metrics=Prometheus(here.reach)
        )
        table = make_deploy_table(here.records, catalogs, *rest, reconciler)
        return Handlers("deploy", table)

    def sweep(self, here: cloud.Resources) -> Handlers:
        """Make a resync stage that does."""
        catalogs, access = Catalogs(here.records), Clusters(self, self.secrets(here))
        rest = here.publisher, here.settings, here.log
        return Handlers("sweep", make_resync_table(here.records, catalogs, access, *rest))

    def settle(self, clusters: int, sources: int) -> None:
        """Register clusters and declare sources, and have all done that follows at once."""
        here = self.open()
        declare = ManifestWriter(
            here.records, Catalogs(here.records), here.publisher, self.settings
        )
        texts = [rules(number) for number in range(sources)]
        declare.apply(
            parse_all(each for text in texts for each in read_documents(text, source="rules.yaml"))
        )
        secrets = self.secrets(here)
        interval = self.settings.sweep_interval.total_seconds()
        for number in range(clusters):
            # One after the other, so that their resyncs are due in turn from the beginning on.
            self.clock.seconds = interval * (number / clusters - 1)
            kube = TimedKube(f"fleet/c{number}", self)
            cluster = Cluster(
                *("fleet", f"c{number}", {"env": "production"}, kube.version()),
                token_digest=hashlib.sha256(b"token").hexdigest(),
                registered_at=self.clock.now(),
            )
            declare.register(cluster)
            self.kubes[cluster.key] = kube
            secrets.put(f"kubeconfig/{cluster.key}", b"{}")
        self.clock.seconds = 0.0
        self.rest()

    # What happens -------------------------------------------------------------------------------

    def play(self, rate: float, seconds: float) -> None:
        """Play so many seconds of events, and what follows from them."""
        self.at(0.5, self._tick, seconds)
        moment = 0.0
        while (moment := moment + self.dice.expovariate(rate)) < seconds:
            self.at(moment, self._change_object)
        self.go_on()

    def go_on(self) -> None:
        """Play what is to happen, until nothing is."""
        while self._agenda:
            moment, _, step = heapq.heappop(self._agenda)
            self.clock.seconds = moment
            step()
        self.lost = len(self._rang)

    def at(self, moment: float, step: Callable[..., None], *arguments: Any) -> None:
        """Have something happen at a time."""
        heapq.heappush(self._agenda, (moment, next(self._order), lambda: step(*arguments)))

    def applied(self, cluster: str, name: str) -> None:
        """Note that the add-on of an event is in its cluster."""
        begun = self._rang.pop((cluster, name), None)
        if begun is not None:
            self.latencies.append(self.clock.seconds - begun)
            self.began.append(begun)

    def falls_behind(self, seconds: float) -> bool:
        """Say whether the events of so many seconds took longer and longer.

        The second and the last quarter are compared: in the first one the cloud begins to poll.
        """
        quarters: list[list[float]] = [[], [], [], []]
        for began, took in zip(self.began, self.latencies, strict=True):
            quarters[min(3, int(4 * began / seconds))].append(took)
        middle, last = (percentile(quarters[each], 50) for each in (1, 3))
        return self.lost > 0 or last - middle > _BEHIND * seconds / 2

    def _tick(self, until: float) -> None:
        self.tick()
        if self.clock.seconds + TICK < until:
            self.at(self.clock.seconds + TICK, self._tick, until)

    def _change_object(self) -> None:
        """Have an object of some cluster be new, or change, and its forwarder send it."""
        self.events += 1
        names = list(self.kubes)
        busy = self.dice.random() < BUSY
        cluster = names[0] if busy else names[self.dice.randrange(len(names))]
        self.send(cluster, self._changed(cluster, self.kubes[cluster], self._written[cluster]))

    def _changed(
        self, cluster: str, kube: TimedKube, written: list[dict[str, Any]]
    ) -> Mapping[str, Any]:
        """Create, change or delete an object of a cluster; return its forwarder's batch."""
        if len(written) > _KEEPS:
            about = written.pop(0)["metadata"]
            kube.drop(SERVICE, about["namespace"], about["name"])
            key = str(ObjectKey(SERVICE, about["namespace"], about["name"]))
            return {"gone": {"key": key, "uid": about["uid"], "version": about["resourceVersion"]}}
        if written and self.dice.random() > NEW:
            changed = self.dice.choice(written)
            # The trigger's add-on bears this name: another object is deleted, and this one created.
            changed["metadata"]["labels"]["turn"] = str(next(self._order))
            changed.update(kube.put(changed))
            return {"object": changed}
        manifest = service(f"web-{next(self._order)}")
        self._rang[cluster, f"front-{manifest['metadata']['name']}"] = self.clock.seconds
        written.append(kube.put(manifest))
        return {"object": written[-1]}
