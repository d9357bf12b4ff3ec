"""Chains of invocations longer than Lambda allows: they go on only where the function may."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bellhop.adapters.kube.client import KubeClient
from bellhop.clusters.kubeconfig import sanitise
from bellhop.core.address_policy import LOCAL
from bellhop.core.gvk import GVK
from bellhop.ports.queue import Message
from infra.lab.cluster import Cluster
from tests.fakes.manifests import config, holder, join, profile, source, trigger
from tests.functions.lab import Account, Lambda, User
from tests.lab.lineages import ALLOW, MOST, TERMINATE, counted
from tests.lab.moto import Moto, pass_time

CONFIG = GVK("", "v1", "ConfigMap")
MANY = 20
MADE = [f"turn-{number:02}" for number in range(MANY)]
KINDS = [
    "ConfigMap",
    "Endpoints",
    "Event",
    "LimitRange",
    "Pod",
    "Secret",
    "Service",
    "ServiceAccount",
]
ONE_TURN_EACH = 1e-6
"""Seconds of a turn: no second object, and no second page, is begun."""

RULES = join(
    source(*KINDS, more=", labelFilters: [{key: none, operation: Has}]"), trigger(ref="many")
)


def test_counts_a_function_s_invocations_along_a_chain() -> None:
    """By the longest chain of a batch; other functions in it are counted beside it."""
    header, times = counted("deploy", [])
    assert times == 1
    other, _ = counted("evaluate", [header])
    header, times = counted("deploy", ["", other, header])
    assert times == 2
    assert counted("evaluate", [other])[1] == 2
    assert counted("deploy", ["Root=1-a;Sampled=0"])[1] == 1


@pytest.fixture(params=[ALLOW, TERMINATE])
def recursion(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def work(functions: Lambda, moto: Moto, until: Callable[[], object], *inboxes: str) -> None:
    """Feed the functions until something is so, or one is refused a batch; pauses pass at once."""

    def step() -> object:
        pass_time(moto.url, 2)
        return functions.refused or until()

    functions.pump(*inboxes, until=step)


def test_a_message_is_tried_as_often_as_is_set(moto: Moto, recursion: str) -> None:
    """Twenty attempts are twenty invocations of one chain, each by a message of its own."""
    account = Account(moto, attempts=MANY, retry_first=1, retry_longest=1)
    functions, queue = Lambda(account, recursion=recursion), account.open().queues["probe"]
    queue.publish([Message({"do": "of-a-later-version", "schema": 9}, "later", "")])

    work(functions, moto, queue.list, "probe")

    if recursion == ALLOW:
        assert [each.attempts for each in queue.list()] == [MANY]
    else:
        assert functions.refused == [("sweep", MOST + 1)]
        assert queue.list() == []
    account.close()


def test_long_work_goes_on_from_turn_to_turn(
    moto: Moto, source_cluster: Cluster, recursion: str
) -> None:
    """A resync and a profile of twenty objects, of which each turn does one step."""
    account = Account(moto, turn=ONE_TURN_EACH, workers=1)
    user, functions = User(account), Lambda(account, recursion=recursion)
    user.register("east", source_cluster.kubeconfig(), env="production", dep="eng")
    kubeconfig = sanitise(source_cluster.kubeconfig(), reach=LOCAL)
    kube, records = KubeClient("fleet/east", kubeconfig, reach=LOCAL), account.open().records

    def made() -> list[str]:
        found = [each["metadata"]["name"] for each in kube.list(CONFIG, namespace="default")]
        return [name for name in found if name.startswith("turn-")]

    user.apply(join(RULES, profile(name="many"), holder("many", *map(config, MADE))))
    work(functions, moto, lambda: made() == MADE, "deploy", "apply")
    deployed, refused = made(), [*functions.refused]
    functions.refused.clear()
    work(functions, moto, lambda: records.health.get("fleet/east").value.swept_at, "sweep")

    if recursion == ALLOW:
        assert deployed == MADE
        assert records.outcomes.get("fleet/east", "many").value.phase == "Provisioned"
    else:
        assert len(deployed) < MANY
        assert refused == [("deploy", MOST + 1)]
        assert functions.refused == [("sweep", MOST + 1)]
        assert records.health.get("fleet/east").value.swept_at is None
    kube.close()
    account.close()
