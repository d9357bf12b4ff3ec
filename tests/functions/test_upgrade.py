"""A newer version is put in place while messages are under way: nothing is lost."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bellhop.adapters.kube.client import KubeClient
from bellhop.messages import INBOXES
from bellhop.model.gvk import GVK, ObjectKey
from bellhop.model.kubeconfig import sanitise
from bellhop.model.reach import HERE
from infra.demo.user import User as Someone
from infra.lab.cluster import Cluster
from tests.fakes.fleet import service
from tests.fakes.manifests import FOR_EACH, INSTANTIATE, config, holder, join, source, trigger
from tests.functions.lab import Account, Lambda, User
from tests.functions.previous import Previous

MATCHING = ", labelFilters: [{key: sveltos, operation: Equal, value: fv}]"
RULES = join(
    source(more=MATCHING),
    trigger(),
    holder("made", config(FOR_EACH), annotations=INSTANTIATE),
)
MANY = 8


@pytest.fixture
def previous(account: Account, tmp_path: Path) -> Iterator[Previous]:
    one = Previous(account.environment, account.moto.url, tmp_path)
    yield one
    one.close()


class Both:
    """The functions of two versions, which take turns."""

    def __init__(self, functions: Lambda, previous: Previous) -> None:
        self._functions = functions
        new = {**functions.handlers, "ingest": functions.front}
        self._versions = [previous.handlers, new]
        self._turns = itertools.cycle(self._versions)

    def send(self, item: dict[str, Any]) -> None:
        """Have one of the versions take an event."""
        self._functions.front = next(self._turns)["ingest"]  # type: ignore[assignment]
        batch = {"apiVersion": "bellhop.dev/v1", "kind": "Observations", "items": [item]}
        assert self._functions.send("east", batch)["statusCode"] == 200

    def pump(self, until: Callable[[], object]) -> None:
        """Have each batch go to the other version, until something is so."""
        deadline = time.monotonic() + 90
        while not until():
            assert time.monotonic() < deadline, "waited in vain"
            for inbox, stage in INBOXES.items():
                self._functions.feed(inbox, next(self._turns)[stage])


def test_two_versions_work_on_one_installation(
    account: Account, previous: Previous, source_cluster: Cluster
) -> None:
    """What one wrote or published the other goes on with, be it the older or the newer.

    It takes long: eight objects come and go through the functions of two versions in turn.
    """
    user, functions = User(account), Lambda(account)
    kubeconfig = source_cluster.kubeconfig()
    user.register("east", kubeconfig, env="production")
    user.apply(RULES)
    both = Both(functions, previous)
    kube = KubeClient("fleet/east", sanitise(kubeconfig, reach=HERE), reach=HERE)
    someone = Someone(kubeconfig)

    def made() -> set[str]:
        found = kube.list(GVK("", "v1", "ConfigMap"), namespace="default")
        names = {each["metadata"]["name"] for each in found}
        return {name.removeprefix("for-") for name in names if name.startswith("for-")}

    names = {f"web-{number}" for number in range(MANY)}
    there = []
    for name in sorted(names):
        web = service(name)
        del web["status"]
        there.append(someone.create(web))
        both.send({"object": there[-1]})
    both.pump(lambda: names <= made())
    for each in there:
        someone.delete(ObjectKey.of(each))
        meta = each["metadata"]
        version = int(meta["resourceVersion"])
        both.send(
            {"gone": {"key": str(ObjectKey.of(each)), "uid": meta["uid"], "version": version}}
        )
    both.pump(lambda: not names & made())

    dead = {inbox: queue.list() for inbox, queue in account.open().queues.items()}
    assert {inbox: letters for inbox, letters in dead.items() if letters} == {}
    errors = [line for line in account.lines() if line["severity"] == "ERROR"]
    assert json.dumps(errors) == "[]"
    kube.close()
    someone.close()
