"""From an event of a cluster to an object in it, through every function and queue."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from bellhop import __version__
from bellhop.adapters.kube.client import KubeClient
from bellhop.clusters.kubeconfig import sanitise
from bellhop.core.address_policy import LOCAL
from bellhop.core.gvk import GVK, ObjectKey
from bellhop.state.heartbeats import WorkerHeartbeat
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
    """Ingest, SQS, evaluate, SQS, deploy: an event's add-on comes, and goes with its source."""
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

    # The cluster's first resync finds other Services beside it.
    lines = {
        line["what"]: line
        for line in account.lines()
        if line.get("object") == str(ObjectKey.of(stored))
    }
    assert {"rang", "matched", "rendered", "applied"} <= set(lines)
    applied = lines["applied"]
    assert applied["message"] == "Applied a profile"
    assert {"severity", "cluster", "trigger", "profile", "object", "trace", "ms"} <= set(applied)
    assert applied["trace"] == lines["rang"]["trace"]

    someone.delete(ObjectKey.of(stored))
    meta = stored["metadata"]
    deleted = {
        "key": str(ObjectKey.of(stored)),
        "uid": meta["uid"],
        "version": int(meta["resourceVersion"]),
    }
    assert functions.send("east", {**BATCH, "items": [{"gone": deleted}]})["statusCode"] == 200
    functions.pump(until=lambda: "for-web" not in made(kube))


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
    """The first tick asks for the house's own work, which the resync function does."""
    functions = Lambda(account)

    assert functions.tick(event("scheduler"), Context()) == {"published": 1}
    assert functions.tick(event("scheduler"), Context()) == {"published": 0}
    assert functions.feed("sweep", functions.handlers["sweep"]) == []


def test_a_tick_records_its_heartbeat(account: Account) -> None:
    """Since when it ticks, when last, and of which version; who was silent for long began again."""
    functions, records = Lambda(account), account.open().records

    def tick() -> WorkerHeartbeat:
        functions.tick(event("scheduler"), Context())
        heartbeat = records.pulses.get()
        assert heartbeat is not None
        return heartbeat

    first, second = tick(), tick()
    assert (second.since, second.version) == (first.since, __version__)
    assert second.at > first.at
    records.pulses.put(replace(second, at=second.at - timedelta(hours=1)))
    assert tick().since > second.at
