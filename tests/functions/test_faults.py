"""What may go wrong on AWS ends as docs/explanation/delivery.md promises: once, if late."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from bellhop.adapters.kube.client import KubeClient
from bellhop.clusters.kubeconfig import sanitise
from bellhop.core.address_policy import LOCAL
from bellhop.core.gvk import GVK
from bellhop.state.messages import INBOXES, Resync
from infra.demo.user import User as Someone
from infra.lab.cluster import Cluster
from tests.fakes.fleet import service
from tests.functions.lab import RULES, Account, Context, Lambda, User, event
from tests.lab.moto import Moto, pass_time
from tests.waiting import eventually

PATIENCE = 90.0


class Stand:
    """An installation with one cluster, whose objects deploy one object each."""

    def __init__(self, account: Account, cluster: Cluster) -> None:
        self.account = account
        kubeconfig = cluster.kubeconfig()
        user = User(account)
        user.register("east", kubeconfig, env="production")
        user.apply(RULES)
        self.kube = KubeClient("fleet/east", sanitise(kubeconfig, reach=LOCAL), reach=LOCAL)
        self.someone = Someone(kubeconfig)
        self.functions = Lambda(account)
        self.pump(lambda: self.waiting() == 0)

    def ring(self, name: str) -> None:
        """Make an object, and have its forwarder send it until it is taken."""
        web = service(name)
        del web["status"]
        item = {"object": self.someone.create(web)}
        batch = {"apiVersion": "bellhop.dev/v1", "kind": "Observations", "items": [item]}
        eventually(
            "it is taken",
            lambda: self.functions.send("east", batch)["statusCode"] == 200,
            patience=PATIENCE,
        )

    def pump(self, until: Callable[[], object], **wrapped: Any) -> None:
        """Feed the functions, each by what is given for its stage, until something is so."""

        def step() -> object:
            done = until()
            if not done:
                for inbox, stage in INBOXES.items():
                    handler = self.functions.handlers[stage]
                    self.functions.feed(inbox, wrapped.get("by", lambda one: one)(handler))
            return done

        eventually("the functions are done", step, patience=PATIENCE, pause=0)

    def made(self) -> dict[str, str]:
        """Return the deployed objects, each with its uid and last change."""
        found = self.kube.list(GVK("", "v1", "ConfigMap"), namespace="default")
        about = [each["metadata"] for each in found if each["metadata"]["name"].startswith("for-")]
        return {each["name"]: f"{each['uid']} {each['resourceVersion']}" for each in about}

    def waiting(self) -> int:
        """Count the messages that there are."""
        sqs, found = self.account.services.client("sqs"), 0
        names = [f"ApproximateNumberOfMessages{kind}" for kind in ("", "NotVisible", "Delayed")]
        for queue in self.account.open().queues.values():
            attributes = sqs.get_queue_attributes(QueueUrl=queue._url, AttributeNames=names)
            found += sum(map(int, attributes["Attributes"].values()))
        return found

    def ended_well(self, *names: str) -> None:
        """See that all is applied and held for certain, and that nobody gave anything up."""
        assert self.made().keys() == {f"for-{name}" for name in names}
        here = self.account.open()
        assert [letters for queue in here.queues.values() for letters in queue.list()] == []
        for inventory in here.records.inventories.of("fleet/east"):
            assert not inventory.worker
            assert all(held.digest and held.uid for held in inventory.held.values())

    def close(self) -> None:
        self.kube.close()
        self.someone.close()


@pytest.fixture
def stand(moto: Moto, source_cluster: Cluster) -> Iterator[Stand]:
    account = Account(moto, attempts=12, retry_first=1, retry_longest=1)
    one = Stand(account, source_cluster)
    yield one
    one.close()
    account.close()


@pytest.mark.parametrize(
    ("operation", "fault", "times"),
    [
        pytest.param(
            "dynamodb:PutItem", {"code": "ThrottlingException", "status": 400}, 20, id="throttled"
        ),
        pytest.param(
            "dynamodb:GetItem",
            {"code": "ProvisionedThroughputExceededException", "status": 400},
            20,
            id="reads throttled",
        ),
        pytest.param(
            "sqs:SendMessageBatch", {"code": "RequestThrottled", "status": 400}, 12, id="SQS full"
        ),
        pytest.param(
            "dynamodb:GetItem",
            {"code": "ExpiredTokenException", "status": 400},
            6,
            id="an expired credential",
        ),
        pytest.param("dynamodb:PutItem", {"served": True}, 8, id="answers that are lost"),
    ],
)
def test_what_aws_refuses_for_a_while_is_done_later(
    stand: Stand, operation: str, fault: dict[str, Any], times: int
) -> None:
    """Messages and hints come again until it passes; nothing ends with the dead letters."""
    stand.ring("before")
    stand.account.moto.fail(operation, times=times, **fault)
    stand.ring("after")
    stand.pump(lambda: stand.made().keys() >= {"for-before", "for-after"})
    stand.pump(lambda: stand.waiting() == 0)

    stand.ended_well("before", "after")


def test_batches_that_come_again_change_nothing(stand: Stand) -> None:
    """All that was handed over is handed over once more, and in the other order."""
    batches: list[tuple[Any, Any]] = []

    def by(handler: Any) -> Any:
        def noted(given: Any, context: Any) -> Any:
            batches.append((handler, copy.deepcopy(given)))
            return handler(given, context)

        return noted

    stand.ring("web")
    stand.pump(lambda: stand.made() and stand.waiting() == 0, by=by)
    before = stand.made()
    for handler, given in reversed(batches):
        for record in given["Records"]:
            record["attributes"]["ApproximateReceiveCount"] = "2"
        handler(given, Context())
    stand.pump(lambda: stand.waiting() == 0)

    assert stand.made() == before
    stand.ended_well("web")


def test_workers_who_get_one_message_at_once_end_as_one(stand: Stand) -> None:
    """Overlapping environments write on conditions: one wins, the others look again.

    What they publish again comes to one of them: else each loser would make as many losers more.
    It waits for the lease of the one that won, whose time passes here.
    """
    many = 5
    others = [Lambda(stand.account) for _ in range(many - 1)]
    stages = {id(stand.functions.handlers[stage]): stage for stage in stand.functions.handlers}

    with ThreadPoolExecutor(many) as threads:

        def by(handler: Any) -> Any:
            stage = stages[id(handler)]

            def at_once(given: Any, context: Any) -> Any:
                again = any("attempt" in each["messageAttributes"] for each in given["Records"])
                more = [] if again else [other.handlers[stage] for other in others]
                handlers = [handler, *more]
                given = [copy.deepcopy(given) for _ in handlers]
                answers = list(threads.map(lambda one, batch: one(batch, context), handlers, given))
                # Lambda reports each answer to SQS; a message that one has done is deleted.
                failed = [
                    {each["itemIdentifier"] for each in answer["batchItemFailures"]}
                    for answer in answers
                ]
                left = set.intersection(*failed)
                return {"batchItemFailures": [{"itemIdentifier": each} for each in left]}

            return at_once

        def done() -> bool:
            pass_time(stand.account.moto.url, 5)
            return bool(stand.made()) and stand.waiting() == 0

        stand.ring("web")
        stand.pump(done, by=by)

    stand.ended_well("web")


def test_the_next_tick_catches_up_a_lost_one(account: Account) -> None:
    """What was due stays due; two ticks at once publish it twice at worst, and then it is done."""
    here, functions = account.open(), Lambda(account)
    functions.tick(event("scheduler"), Context())
    here.records.timers.set("late", here.records.clock.now(), Resync("fleet/east").message().body)
    others = [functions, Lambda(account)]
    with ThreadPoolExecutor(2) as threads:
        answers = list(threads.map(lambda one: one.tick(event("scheduler"), Context()), others))

    assert 1 <= sum(each["published"] for each in answers) <= 2
    assert functions.tick(event("scheduler"), Context()) == {"published": 0}
    assert here.records.timers.get("late") is None
