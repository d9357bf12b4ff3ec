"""What an event asks of AWS: `python -m tests.benchmarks.requests [DESTINATIONS]…`.

Events, sweeps and ticks go through the real handlers and a moto server, which counts their
requests; clusters are names of one real API server. What DynamoDB would charge is reckoned from
the sizes of the items. With the numbers that it has without any, the counts and the tables of
docs/explanation/costs.md are written anew.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bellhop.adapters.aws.services import RefusedError, Services
from bellhop.messages import INBOXES, Sweep
from bellhop.model.kubeconfig import sanitise
from bellhop.model.reach import HERE
from bellhop.model.record import Cluster
from infra.demo.user import User as Someone
from infra.lab.control_plane import ControlPlane
from infra.lab.moto import ACCESS_KEY, REGION, SECRET_KEY, Moto
from tests.benchmarks.figures import ROOT, lab, run
from tests.benchmarks.figures_costs import COUNTS, PAGE, Count, fill, read, tables
from tests.fakes.fleet import service
from tests.fakes.manifests import FOR_EACH, INSTANTIATE, config, holder, join, source, trigger
from tests.functions.lab import Account, Context, Lambda, User, event

SMALLEST = (1,)
DESTINATIONS = (1, 10, 100)

_SOURCE = "origin"
_READ, _WRITTEN = 4096, 1024
_LONGEST = 300.0


class Weighed(Services):
    """Services that note each request, and what DynamoDB would charge for it."""

    def __init__(self, moto: Moto) -> None:
        super().__init__(region=REGION, endpoint=moto.url, keys=(ACCESS_KEY, SECRET_KEY))
        self.reads = self.writes = 0.0

    def call(self, service: str, operation: str, request: Any, **how: Any) -> dict[str, Any]:
        asked: list[Mapping[str, Any]] = []

        def noted() -> Mapping[str, Any]:
            asked.append(request() if callable(request) else request)
            return asked[-1]

        told: Mapping[str, Any] = {}
        try:
            told = super().call(service, operation, noted, **how)
        except RefusedError as refused:
            told = refused.told
            raise
        finally:
            if service == "dynamodb":
                self._weigh(operation, asked, told)
        return dict(told)

    def _weigh(
        self, operation: str, asked: list[Mapping[str, Any]], told: Mapping[str, Any]
    ) -> None:
        match operation:
            case "get_item":
                self.reads += _units(told.get("Item", {}), _READ)
            case "query":
                size = sum(_size(each) for each in told.get("Items", ()))
                self.reads += max(1, -(-size // _READ))
            case "put_item":
                self.writes += sum(_units(each["Item"], _WRITTEN) for each in asked)
            case "delete_item":
                self.writes += _units(told.get("Attributes", told.get("Item", {})), _WRITTEN)


def _units(item: Mapping[str, Any], unit: int) -> int:
    return max(1, -(-_size(item) // unit))


def _size(item: Mapping[str, Any]) -> int:
    """Return about how many bytes DynamoDB takes an item for: names and values."""
    return sum(len(name) + len(str(*value.values())) for name, value in item.items())


class Play:
    """An installation whose clusters are names of one API server."""

    def __init__(self, moto: Moto, kubeconfig: Mapping[str, Any]) -> None:
        self._moto = moto
        self._kubeconfig = kubeconfig
        self.account = Account(moto)
        self.account.services = self._services = Weighed(moto)
        self.user = User(self.account)
        self.user.register(_SOURCE, kubeconfig, env="production")
        self.functions = Lambda(self.account)
        self._urls = json.loads(self.account.environment["BELLHOP_QUEUES"])

    def wake(self) -> None:
        """Have all functions begin anew, as after a cold start."""
        self.functions = Lambda(self.account)

    def register(self, *destinations: int) -> None:
        """Know as many clusters as the most of some numbers; labels say who is among which.

        Their records alone are written: what registering does beside is not counted here.
        """
        here = self.user.here
        for number in range(max(destinations)):
            labels = {f"of-{many}": "yes" for many in destinations if number < many}
            cluster = Cluster(
                *("fleet", f"to-{number}", labels, "v1.20.2", ""),
                registered_at=here.records.clock.now(),
                credentials=sanitise(self._kubeconfig, reach=HERE).version,
            )
            here.secrets.put(f"kubeconfig/{cluster.key}", json.dumps(self._kubeconfig).encode())
            here.records.clusters.put(cluster)
        here.records.catalog.change("clusters")

    def destine(self, destinations: int) -> None:
        """Have events go to so many clusters; what follows from that is over."""
        more = f"destinationClusterSelector: {{matchLabels: {{of-{destinations}: 'yes'}}}}"
        brought = holder("made", config(FOR_EACH), annotations=INSTANTIATE)
        # What an API server has of its own is not to match.
        matching = ", labelFilters: [{key: sveltos, operation: Equal, value: fv}]"
        self.user.apply(join(source(more=matching), trigger(more=more), brought))
        self.drain()

    def ring(self, stored: Mapping[str, Any]) -> None:
        """Send what is stored, through the function's URL."""
        batch = {"apiVersion": "bellhop.dev/v1", "kind": "Observations"}
        answer = self.functions.send(_SOURCE, {**batch, "items": [{"object": stored}]})
        assert answer["statusCode"] == 200, answer

    def tick(self) -> None:
        """Have the schedule look."""
        self.functions.tick(event("scheduler"), Context())

    def sweep(self) -> None:
        """Ask for a sweep, as a timer does."""
        self.user.here.publisher.publish([Sweep(f"fleet/{_SOURCE}")])

    def drain(self) -> Counter[str]:
        """Feed the functions until nothing waits; count their batches, and what they asked."""
        found: Counter[str] = Counter()
        until = time.monotonic() + _LONGEST
        while self._waiting():
            assert time.monotonic() < until, "the messages never end"
            for inbox, stage in INBOXES.items():
                handler = self.functions.handlers[stage]
                self.functions.feed(inbox, lambda *given, to=handler: self._fed(found, to, given))
        return found

    def count(self, *steps: Callable[[], None], applied: int = 0) -> Count:
        """Count what steps ask for, each an invocation, and all that follows from them."""
        reads, writes = self._services.reads, self._services.writes
        found: Counter[str] = Counter()
        for step in steps:
            self._noting(found, step)
        found += self.drain()
        batches = found.pop("batches", 0)
        processor = found.pop("processor", 0) / 1000
        return Count(
            asked=dict(sorted(found.items())),
            reads=self._services.reads - reads,
            writes=self._services.writes - writes,
            invocations=batches + len(steps),
            batches=batches,
            processor=round(processor),
            applied=applied,
        )

    def _fed(self, found: Counter[str], handler: Any, given: Any) -> Any:
        found["batches"] += 1
        answers: list[Any] = []
        self._noting(found, lambda: answers.append(handler(*given)))
        return answers[0]

    def _noting(self, found: Counter[str], step: Callable[[], None]) -> None:
        before, begun = Counter(self._moto.requests()), time.process_time()
        step()
        found["processor"] += round((time.process_time() - begun) * 1_000_000)
        found.update(Counter(self._moto.requests()) - before)

    def _waiting(self) -> int:
        """Say how many messages there are, in hand or not."""
        sqs, kinds = self._services.client("sqs"), ("", "NotVisible")
        names = [f"ApproximateNumberOfMessages{kind}" for kind in kinds]
        return sum(
            int(each)
            for url in self._urls.values()
            for each in sqs.get_queue_attributes(QueueUrl=url, AttributeNames=names)[
                "Attributes"
            ].values()
        )

    def close(self) -> None:
        """Let go of what it holds."""
        self.account.close()


def measure(moto: Moto, kubeconfig: Mapping[str, Any], *destinations: int) -> dict[str, Count]:
    """Count what events to so many clusters, a sweep and a tick ask for."""
    found: dict[str, Count] = {}
    with ExitStack() as stack:
        someone = Someone(kubeconfig)
        stack.callback(someone.close)
        play = Play(moto, kubeconfig)
        stack.callback(play.close)

        def changed(name: str) -> Mapping[str, Any]:
            web = service(name)
            del web["status"]
            return someone.create(web)

        play.register(*destinations)
        for many in destinations:
            play.destine(many)
            for name in ("warm", "event"):
                # The first one makes everything warm.
                stored = changed(f"{name}-{many}")
                counted = play.count(lambda at=stored: play.ring(at), applied=many)
            found[f"an event, {many} destination{'s' * (many > 1)}"] = counted
            if many == destinations[0]:
                play.wake()
                stored = changed("cold")
                found["the same, all functions cold"] = play.count(
                    lambda at=stored: play.ring(at), applied=many
                )
        play.count(play.sweep)
        found["a sweep"] = play.count(play.sweep)
        play.count(play.tick)
        found["a tick"] = play.count(play.tick)
    return found


def main(*destinations: int, plane: ControlPlane | None = None) -> None:
    """Print the counts and what they cost; keep both where nothing else is asked for."""
    with ExitStack() as stack:
        [cluster] = stack.enter_context(lab(plane, "source"))
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        moto = stack.enter_context(Moto(Path(folder)))
        found = measure(moto, cluster.kubeconfig(), *(destinations or DESTINATIONS))
    written = tables(read({name: asdict(count) for name, count in found.items()}))
    for name in ("requests", "million", "idle"):
        print(written[name], end="\n\n")
    if not destinations:
        data = {name: asdict(count) for name, count in found.items()}
        COUNTS.write_text(json.dumps(data, indent=1) + "\n")
        PAGE.write_text(fill(PAGE.read_text(), written))
        print(f"written: {COUNTS.relative_to(ROOT)}, {PAGE.relative_to(ROOT)}")


if __name__ == "__main__":
    run(main)
