"""From an event of a cluster to an object in it, through every function and queue."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest

from bellhop import __version__
from bellhop.adapters.kube.client import KubeClient
from bellhop.model.gvk import GVK, ObjectKey
from bellhop.model.kubeconfig import sanitise
from bellhop.model.reach import HERE
from bellhop.model.record import Pulse
from infra.demo.user import User as Someone
from infra.lab.cluster import Cluster
from tests.fakes.fleet import service
from tests.fakes.manifests import (
    FOR_EACH,
    INSTANTIATE,
    config,
    holder,
    join,
    source,
    trigger,
)
from tests.functions.lab import Account, Context, Lambda, User, event

pytest_plugins = ["tests.kube_fixtures"]

CONFIG = GVK("", "v1", "ConfigMap")
RULES = join(source(), trigger(), holder("made", config(FOR_EACH), annotations=INSTANTIATE))


@pytest.fixture
def kube(source_cluster: Cluster) -> Iterator[KubeClient]:
    client = KubeClient("fleet/east", sanitise(source_cluster.kubeconfig(), reach=HERE), reach=HERE)
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
    """Ingest, SQS, evaluate, SQS, deploy: what was rung for is there, and withdrawn when gone."""
    user = User(account)
    user.register("east", source_cluster.kubeconfig(), env="production")
    user.apply(RULES)
    functions = Lambda(account)
    web = service("web")
    del web["status"]
    stored = someone.create(web)
    batch = {"apiVersion": "bellhop.dev/v1", "kind": "Observations"}

    answer = functions.send("east", {**batch, "items": [{"object": stored}]})
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
    assert functions.send("east", {**batch, "items": [{"gone": gone}]})["statusCode"] == 200
    functions.pump(until=lambda: "for-web" not in made(kube))


def test_a_tick_publishes_what_is_due(account: Account) -> None:
    """The first tick asks for the house's own work, which the sweep function does."""
    functions = Lambda(account)

    assert functions.tick(event("scheduler"), Context()) == {"published": 1}
    assert functions.tick(event("scheduler"), Context()) == {"published": 0}
    assert functions.feed("sweep", functions.handlers["sweep"]) == []


def test_a_tick_tells_that_it_was(account: Account) -> None:
    """Since when it ticks, when last, and of which version; who was silent for long began anew."""
    functions, records = Lambda(account), account.open().records

    def tick() -> Pulse:
        functions.tick(event("scheduler"), Context())
        pulse = records.pulses.get()
        assert pulse is not None
        return pulse

    first, second = tick(), tick()
    assert (second.since, second.version) == (first.since, __version__)
    assert second.at > first.at
    records.pulses.put(replace(second, at=second.at - timedelta(hours=1)))
    assert tick().since > second.at
