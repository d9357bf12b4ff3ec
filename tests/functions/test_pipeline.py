"""From an event of a cluster to an object in it, through every function and queue."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from bellhop import __version__
from bellhop.adapters.kube.client import KubeClient
from bellhop.clusters.kubeconfig import sanitise
from bellhop.core.address_policy import LOCAL
from bellhop.core.gvk import GVK, ObjectKey
from bellhop.state.record import WorkerHeartbeat
from infra.demo.user import User as Someone
from infra.lab.cluster import Cluster
from tests.fakes.fleet import service
from tests.fakes.manifests import (
    FOR_EACH,
    INSTANTIATE,
    config,
    feeding,
    holder,
    join,
    seed,
    source,
    trigger,
    watching,
)
from tests.functions.lab import Account, Context, Lambda, User, event

pytest_plugins = ["tests.kube_fixtures"]

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
EVENTS = ("evaluate", "deploy", "apply")
"""The inboxes that an event goes through: what the house does beside it is slower."""

BATCH = {"apiVersion": "bellhop.dev/v1", "kind": "Observations"}
CONFIG = GVK("", "v1", "ConfigMap")
RULES = join(source(), trigger(), holder("made", config(FOR_EACH), annotations=INSTANTIATE))


@pytest.fixture
def kube(source_cluster: Cluster) -> Iterator[KubeClient]:
    client = KubeClient(
        "fleet/east", sanitise(source_cluster.kubeconfig(), reach=LOCAL), reach=LOCAL
    )
    yield client
    client.close()


@pytest.fixture
def someone(source_cluster: Cluster) -> Iterator[Someone]:
    """Who works in the cluster."""
    one = Someone(source_cluster.kubeconfig())
    yield one
    one.close()


def made(kube: KubeClient) -> list[str]:
    found = [each["metadata"]["name"] for each in kube.list(CONFIG, namespace="default")]
    return [name for name in found if name.startswith("for-")]


def test_an_event_becomes_an_object_in_the_cluster(
    account: Account, source_cluster: Cluster, kube: KubeClient, someone: Someone
) -> None:
    """Ingest, SQS, evaluate, SQS, deploy: what was rung for is there, and withdrawn when gone.

    It takes seconds: two events go through queues of moto, which are polled, beside a first
    resync.
    """
    user = User(account)
    user.register("east", source_cluster.kubeconfig(), env="production")
    user.apply(RULES)
    functions = Lambda(account)
    web = service("web")
    del web["status"]
    stored = someone.create(web)

    answer = functions.send("east", {**BATCH, "items": [{"object": stored}]})
    assert (answer["statusCode"], json.loads(answer["body"])) == (200, {"taken": 1, "dropped": 0})
    functions.pump(until=lambda: "for-web" in made(kube))

    # The cluster's first sweep finds other Services beside it.
    told = {
        line["what"]: line
        for line in account.lines()
        if line.get("object") == str(ObjectKey.of(stored))
    }
    assert {"rang", "matched", "rendered", "applied"} <= set(told)
    applied = told["applied"]
    assert applied["message"] == "Applied a profile"
    assert {"severity", "cluster", "trigger", "profile", "object", "trace", "ms"} <= set(applied)
    assert applied["trace"] == told["rang"]["trace"]

    someone.delete(ObjectKey.of(stored))
    meta = stored["metadata"]
    gone = {
        "key": str(ObjectKey.of(stored)),
        "uid": meta["uid"],
        "version": int(meta["resourceVersion"]),
    }
    assert functions.send("east", {**BATCH, "items": [{"gone": gone}]})["statusCode"] == 200
    functions.pump(until=lambda: "for-web" not in made(kube))


def test_a_cloud_event_brings_an_object_and_another_takes_it_back(
    account: Account, source_cluster: Cluster, someone: Someone
) -> None:
    """By HTTP with the cluster's token, through every function and queue, into the real cluster.

    It takes seconds: two events go through queues of moto, which are polled.
    """
    user = User(account)
    user.register("east", source_cluster.kubeconfig(), env="production")
    user.apply((EXAMPLES / "cloud-events" / "builds.yaml").read_text())
    functions = Lambda(account)
    web = ObjectKey(CONFIG, "default", "build-web")

    def tell(number: int, what: str) -> tuple[int, Any]:
        about = {"specversion": "1.0", "id": str(number), "source": "ci.example/shop"}
        about |= {"type": f"example.image.{what}", "subject": "web"}
        headers = {f"ce-{name}": value for name, value in about.items()}
        answer = functions.send("east", {"image": f"web:{number}"}, headers=headers)
        return answer["statusCode"], json.loads(answer["body"])

    assert tell(1, "built") == (200, {"taken": 1, "dropped": 0})
    functions.pump(*EVENTS, until=lambda: someone.get(web))
    stored = someone.get(web)
    assert stored
    assert stored["data"] == {"image": "web:1", "event": "1"}

    assert tell(2, "removed") == (200, {"taken": 1, "dropped": 0})
    functions.pump(*EVENTS, until=lambda: someone.get(web) is None)


def test_what_feeds_itself_is_slowed_and_named(
    account: Account, source_cluster: Cluster, someone: Someone
) -> None:
    """A source that watches what its trigger applies: some sixteen turns, then a line of it.

    It takes long: sixteen turns of a loop go through queues of moto, which are polled.
    """
    user = User(account)
    user.register("east", source_cluster.kubeconfig(), env="production")
    user.apply(join(watching("watched", "seed"), feeding("grow", "watched", "one", "seed")))
    functions = Lambda(account)
    one = ObjectKey(CONFIG, "default", "one")
    sent = someone.create(seed("seed"))

    def slowed() -> list[dict[str, Any]]:
        return [line for line in account.lines() if line.get("what") == "slowed"]

    def ring() -> bool:
        """Send the object whenever it has changed, as the forwarder does for such a source."""
        nonlocal sent
        found = someone.get(one)
        if found and found["metadata"]["resourceVersion"] != sent["metadata"]["resourceVersion"]:
            sent = dict(found)
            functions.send("east", {**BATCH, "items": [{"object": sent, "own": True}]})
        return bool(slowed())

    functions.send("east", {**BATCH, "items": [{"object": sent, "own": True}]})
    functions.pump(*EVENTS, until=ring)
    stored = someone.get(one)
    assert stored
    # Minutes that all of it took are more turns.
    assert 16 <= int(stored["data"]["count"]) < 20
    (line,) = slowed()
    assert "trigger 'grow' feeds itself" in line["detail"]


def test_a_tick_publishes_what_is_due(account: Account) -> None:
    """The first tick asks for the house's own work, which the sweep function does.

    It takes seconds: the sweep function does the upkeep of an installation on moto, call by call.
    """
    functions = Lambda(account)

    assert functions.tick(event("scheduler"), Context()) == {"published": 1}
    assert functions.tick(event("scheduler"), Context()) == {"published": 0}
    assert functions.feed("sweep", functions.handlers["sweep"]) == []


def test_a_tick_tells_that_it_was(account: Account) -> None:
    """Since when it ticks, when last, and of which version; who was silent for long began anew."""
    functions, records = Lambda(account), account.open().records

    def tick() -> WorkerHeartbeat:
        functions.tick(event("scheduler"), Context())
        pulse = records.pulses.get()
        assert pulse is not None
        return pulse

    first, second = tick(), tick()
    assert (second.since, second.version) == (first.since, __version__)
    assert second.at > first.at
    records.pulses.put(replace(second, at=second.at - timedelta(hours=1)))
    assert tick().since > second.at
