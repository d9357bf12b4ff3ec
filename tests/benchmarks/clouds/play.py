"""The requests of events, resyncs and ticks to a cloud: played, and counted."""

from __future__ import annotations

import json
import time
from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing, suppress
from typing import Any

from bellhop.clusters.kubeconfig import sanitise
from bellhop.core.address_policy import LOCAL
from bellhop.core.gvk import ObjectKey
from bellhop.state.cluster import Cluster
from bellhop.state.delays import counting_timer, promotion_timer
from bellhop.state.messages import CollectGarbage, Resync
from infra.demo.user import User as Someone
from tests.benchmarks.clouds.bill import (
    CONFIGURATION_CHANGE,
    CONFIGURATION_RESYNC,
    PROMOTION_RELEASE,
    PROMOTION_STAGES,
    Count,
)
from tests.fakes.fleet import service
from tests.fakes.manifests import (
    FOR_EACH,
    INSTANTIATE,
    config,
    holder,
    join,
    profile,
    source,
    trigger,
)
from tests.functions.hub import Hub
from tests.functions.owner import Owner
from tests.unit.promotions.conftest import promotion

SOURCE = "origin"
INVOCATIONS, PROCESSOR = "invocations", "processor"
Spent = defaultdict[str, Counter[str]]
"""What each stage asked for, by `service:operation`, with its invocations and its microseconds."""

_LONGEST = 1200.0

_CHANGE_APPLIES = 4
"""Objects of a change in the configuration cluster for which it is waited: one that is deployed, a
summary, the status of the profile, and the list of what the cluster has."""


class Play(ABC):
    """An installation whose clusters are names of one API server."""

    def __init__(self, owner: Owner, kubeconfig: Mapping[str, Any]) -> None:
        self.user = owner
        self._kubeconfig = kubeconfig
        self._batches = 0
        owner.register(SOURCE, kubeconfig, env="production")

    # Each cloud's own ---------------------------------------------------------------------------

    @abstractmethod
    def wake(self) -> None:
        """Start all functions cold."""

    @abstractmethod
    def send(self, body: Any) -> int:
        """Have the source's sender send something; return the status of the answer."""

    @abstractmethod
    def tick(self) -> None:
        """Have the schedule look."""

    @abstractmethod
    def feed(self, noting: Callable[[str, Callable[[], Any]], Any]) -> bool:
        """Feed each function with what waits for it; say if there may be more.

        Each invocation of a stage is called by `noting`.
        """

    @abstractmethod
    def asked(self) -> Counter[str]:
        """Count all requests until now, by `service:operation`."""

    @abstractmethod
    def units(self) -> Counter[str]:
        """Count what the cloud takes money for beside requests."""

    @abstractmethod
    def close(self) -> None:
        """Close the connections."""

    # What happens -------------------------------------------------------------------------------

    def register(self, *destinations: int) -> None:
        """Know as many clusters as the most of some numbers; labels say who is among which.

        Only their records are written: the other work of registering is not counted here.
        """
        here = self.user.here
        for number in range(max(destinations)):
            labels = {f"of-{many}": "yes" for many in destinations if number < many}
            cluster = Cluster(
                *("fleet", f"to-{number}", labels, "v1.20.2", ""),
                registered_at=here.records.clock.now(),
                credentials=sanitise(self._kubeconfig, reach=LOCAL).version,
            )
            here.secrets.put(f"kubeconfig/{cluster.key}", json.dumps(self._kubeconfig).encode())
            here.records.clusters.put(cluster)
        here.records.catalog.change("clusters")

    def destine(self, destinations: int) -> None:
        """Have events go to so many clusters; what follows from that is over."""
        more = f"destinationClusterSelector: {{matchLabels: {{of-{destinations}: 'yes'}}}}"
        content = holder("made", config(FOR_EACH), annotations=INSTANTIATE)
        # What an API server has of its own is not to match.
        matching = ", labelFilters: [{key: sveltos, operation: Equal, value: fv}]"
        self.user.apply(join(source(more=matching), trigger(more=more), content))
        self.drain()

    def send_event(self, stored: Mapping[str, Any]) -> None:
        """Send what is stored, through the function's URL."""
        batch = {"apiVersion": "bellhop.dev/v1", "kind": "Observations"}
        assert self.send({**batch, "items": [{"object": stored}]}) == 200

    def send_deletion(self, stored: Mapping[str, Any]) -> None:
        """Send that what was stored is there no more, as a forwarder does."""
        metadata = stored["metadata"]
        deleted = {"uid": metadata["uid"], "version": str(int(metadata["resourceVersion"]) + 1)}
        batch = {"apiVersion": "bellhop.dev/v1", "kind": "Observations"}
        items = [{"gone": {**deleted, "key": str(ObjectKey.of(stored))}}]
        assert self.send({**batch, "items": items}) == 200

    def resync(self) -> None:
        """Request a resync, as a timer does."""
        self.user.here.publisher.publish([Resync(f"fleet/{SOURCE}")])

    def keep(self) -> None:
        """Ask for the house to be kept, as a timer does each hour."""
        self.user.here.publisher.publish([CollectGarbage()])

    def drain(self) -> Spent:
        """Feed the functions until nothing waits; return what each asked for."""
        found: Spent = defaultdict(Counter)

        def noting(stage: str, invoke: Callable[[], Any]) -> Any:
            answers: list[Any] = []
            self._noting(found[stage], lambda: answers.append(invoke()))
            return answers[0]

        until = time.monotonic() + _LONGEST
        while self.feed(noting):
            assert time.monotonic() < until, "the messages never end"
        return found

    def count(self, stage: str, step: Callable[[], None], applied: int = 0) -> Count:
        """Count what a step asks for, an invocation of a stage, and all that follows from it."""
        units = self.units()
        begun: Counter[str] = Counter()
        self._noting(begun, step)
        found = self.drain()
        batches = sum(each[INVOCATIONS] for each in found.values())
        found[stage] += begun
        return self._sum(found, units, batches, applied)

    def count_following(self, applied: int) -> Count:
        """Count what functions do until nothing waits, after what a command has published."""
        units, found = self.units(), self.drain()
        batches = sum(each[INVOCATIONS] for each in found.values())
        return self._sum(found, units, batches, applied)

    def _sum(self, found: Spent, units: Counter[str], batches: int, applied: int) -> Count:
        asked = sum(found.values(), Counter[str]())
        used = self.units()
        return Count(
            asked={name: asked[name] for name in sorted(asked) if ":" in name},
            units={name: used[name] - units[name] for name in sorted(used)},
            invocations=asked[INVOCATIONS],
            batches=batches,
            stages={name: _by_service(each) for name, each in sorted(found.items())},
            applied=applied,
        )

    def _noting(self, found: Counter[str], step: Callable[[], None]) -> None:
        before, begun = self.asked(), time.process_time()
        step()
        found[PROCESSOR] += round((time.process_time() - begun) * 1_000_000)
        found[INVOCATIONS] += 1
        found.update(self.asked() - before)


def _by_service(found: Counter[str]) -> dict[str, float]:
    """Add up a stage's requests by service, and round its processor time to ms."""
    services: Counter[str] = Counter()
    for name, count in found.items():
        services[name.partition(":")[0]] += count
    return {**dict(sorted(services.items())), PROCESSOR: round(found[PROCESSOR] / 1000)}


def measure(play: Play, kubeconfig: Mapping[str, Any], *destinations: int) -> dict[str, Count]:
    """Count the requests of events to so many clusters, a resync, a tick and the house-keeping."""
    found: dict[str, Count] = {}
    with ExitStack() as stack:
        someone = Someone(kubeconfig)
        stack.callback(someone.close)

        def changed(name: str) -> Mapping[str, Any]:
            web = service(name)
            del web["status"]
            # An object left in a cluster would be part of another one's resync.
            stack.callback(vanish, web)
            return someone.create(web)

        def vanish(web: Mapping[str, Any]) -> None:
            with suppress(LookupError):
                someone.delete(ObjectKey.of(web))

        # Each cluster more is a read more of the house-keeping.
        kept = _again(play, play.keep)
        play.register(*destinations)
        for many in destinations:
            play.destine(many)
            for name in ("warm", "event"):
                # The first one makes everything warm.
                stored = changed(f"{name}-{many}")
                counted = play.count("ingest", lambda at=stored: play.send_event(at), applied=many)
            found[f"an event, {many} destination{'s' * (many > 1)}"] = counted
            if many == destinations[0]:
                play.wake()
                stored = changed("cold")
                found["the same, all functions cold"] = play.count(
                    "ingest", lambda at=stored: play.send_event(at), applied=many
                )
        found["a resync"] = _again(play, play.resync)
        found["a tick"] = _again(play, play.tick)
        found["an hour's house-keeping"] = kept
        play.destine(1)
        going = changed("going")
        play.count("ingest", lambda: play.send_event(going))
        vanish(going)
        found["an object goes, 1 destination"] = play.count(
            "ingest", lambda: play.send_deletion(going), applied=1
        )
    return found


def measure_configuration(play: Play, kubeconfig: Mapping[str, Any]) -> dict[str, Count]:
    """Count a resync and a change of a configuration cluster; 1 destination is measured before."""
    hub = Hub(kubeconfig, play.user, lambda _, body: play.send(body), SOURCE, env="production")
    with closing(hub):
        resync = _again(play, play.resync)
        hub.apply(profile("clusterSelector: {matchLabels: {of-1: 'yes'}}"))
        for number in range(2):
            # The first one makes everything warm.
            text = holder("own", config("configured", f"number: '{number}'"))
            change = play.count(
                "ingest", lambda text=text: hub.apply(text), applied=_CHANGE_APPLIES
            )
    return {CONFIGURATION_RESYNC: resync, CONFIGURATION_CHANGE: change}


def measure_promotion(play: Play, kubeconfig: Mapping[str, Any]) -> dict[str, Count]:
    """Count a release through all stages; see that one that waits for an approval has no timer."""
    for number in range(PROMOTION_STAGES):
        play.user.register(f"stage-{number}", kubeconfig, env=f"s{number}")
    play.user.apply(_promotion("1"))
    play.drain()
    play.user.apply(_promotion("2"))
    released = play.count_following(applied=PROMOTION_STAGES)
    records = play.user.here.records
    kept = records.promotions.get("agent")
    assert kept
    assert [each.passed for each in kept.value.stages] == [2] * PROMOTION_STAGES

    play.user.apply(_promotion("3", trigger={"manual": {}}))
    play.drain()
    kept = records.promotions.get("agent")
    assert kept
    assert kept.value.stages[0].phase == "AwaitingApproval"
    assert [records.timers.get(of("agent")) for of in (promotion_timer, counting_timer)] == [
        None
    ] * 2
    return {PROMOTION_RELEASE: released}


def _promotion(version: str, **first: Any) -> str:
    """Return a promotion of a ConfigMap, named by its cluster: all are names of one API server."""
    stages: list[dict[str, Any]] = [{"name": f"s{each}"} for each in range(PROMOTION_STAGES)]
    stages[0] |= first
    content = config("agent-{{ .Cluster.metadata.name }}", f"version: '{version}'")
    held = holder("agent", content, annotations="projectsveltos.io/template: ok")
    return join(promotion(*stages), held)


def _again(play: Play, step: Callable[[], None]) -> Count:
    """Count what is done for the second time: the first one has to begin."""
    play.count("schedule", step)
    return play.count("schedule", step)
