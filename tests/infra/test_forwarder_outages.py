"""What fails around the forwarder, and the forwarder itself: nothing that was answered is lost."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest

from bellhop.adapters.kube.client import KubeClient, Right
from bellhop.clusters.kubeconfig import sanitise
from bellhop.core.address_policy import LOCAL
from bellhop.registration import forwarder_manifests
from infra.lab.cluster import Cluster
from tests.infra.forwarder_rig import (
    CONFIG_MAP,
    MAPS,
    SERVICE,
    SERVICES,
    TOKEN,
    Rig,
    rigged,
)
from tests.waiting import await_rights, eventually


@pytest.fixture
def bare_rig(tmp_path: Path, source_cluster: Cluster) -> Iterator[Rig]:
    with rigged(tmp_path, source_cluster) as rig:
        yield rig


@pytest.fixture
def rig(bare_rig: Rig) -> Rig:
    return bare_rig.ready()


def names(rig: Rig) -> set[str]:
    return {item["object"]["metadata"]["name"] for item in rig.inbox.items if "object" in item}


def create(rig: Rig, count: int) -> set[str]:
    made = {f"made-{number}" for number in range(count)}
    for name in sorted(made):
        rig.api.create(name)
    return made


def test_loses_nothing_while_ingest_is_away(rig: Rig) -> None:
    """Events while connections to ingest are refused are sent when they are not."""
    rig.inbox.stop()
    made = create(rig, 30)
    eventually("sending failed", lambda: rig.metric("send_failures_total") >= 2)
    assert rig.metric("spooled") == 30
    assert rig.metric("oldest_spooled_seconds") > 0
    rig.inbox.start()
    rig.settle()

    assert made == names(rig)


@pytest.mark.parametrize("status", [302, 403, 404, 429, 500, 503])
def test_loses_nothing_while_ingest_takes_nothing(rig: Rig, status: int) -> None:
    """An answer that says nothing about an item costs no item."""
    rig.inbox.status = status
    made = create(rig, 5)
    eventually("ingest refused", lambda: rig.inbox.refused >= 3)
    rig.inbox.status = 200
    rig.settle()

    assert made == names(rig)
    assert rig.metric("dropped_total") == 0


def test_loses_nothing_while_ingest_hangs(rig: Rig) -> None:
    """Writes go on while ingest does not answer, and what they did arrives afterwards."""
    rig.inbox.answers.clear()
    made = create(rig, 20)
    rig.inbox.answers.set()
    rig.settle()

    assert made == names(rig)


@pytest.mark.parametrize("status", [400, 413, 422])
def test_drops_only_the_item_that_ingest_refuses(rig: Rig, status: int) -> None:
    """Of a batch with one bad item the others arrive; the log names it, without its content."""

    def fails(item: dict[str, Any]) -> int:
        return status if item["object"]["metadata"]["name"] == "made-7" else 0

    rig.inbox.answers.clear()
    made = create(rig, 6)
    rig.api.create("made-7", secret="hidden-in-the-object")
    made |= create_more(rig, range(8, 20))
    rig.inbox.fails = fails
    rig.inbox.answers.set()
    rig.settle()

    assert made == names(rig)
    assert rig.metric("dropped_total") == 1
    [line] = [line for line in rig.logged() if line["message"].startswith("Dropped")]
    assert line["object"].endswith("/made-7")
    assert "hidden-in-the-object" not in rig.log.read_text()


def create_more(rig: Rig, numbers: range) -> set[str]:
    for number in numbers:
        rig.api.create(f"made-{number}")
    return {f"made-{number}" for number in numbers}


def test_follows_a_changed_token_at_once(rig: Rig) -> None:
    """A refused token sends it to the Secret, not to its next minute."""
    rig.inbox.tokens = {"another-token"}
    made = create(rig, 3)
    eventually("the token is refused", lambda: rig.inbox.refused >= 1)
    begun = time.monotonic()
    rig.instruct(token="another-token")
    rig.settle()

    assert made == names(rig)
    assert time.monotonic() - begun < 30
    assert TOKEN not in rig.log.read_text()


def test_follows_another_authority_of_ingest_at_once(rig: Rig) -> None:
    """A certificate that it cannot trust sends it to the Secret, as a refused token does."""
    rig.inbox.stop()
    rig.inbox.identify()
    rig.inbox.start()
    rig.instruct()
    begun = time.monotonic()
    made = create(rig, 3)
    rig.settle()

    assert made == names(rig)
    assert time.monotonic() - begun < 30


def test_follows_a_changed_path_and_certificate(rig: Rig) -> None:
    """A request to the new path has the Secret read; the former one works on for a while."""
    rig.instruct(path="/ring/another")
    review = json.dumps({"request": {"uid": "u"}}).encode()
    eventually("the new path rings", lambda: rig.ring(review, "/ring/another")[0] == 200)
    assert rig.ring(review)[0] == 200

    rig.hook("/ring/another")
    rig.api.create("after")
    eventually("it is sent", lambda: rig.inbox.named("after"))


def test_waits_for_its_secret(bare_rig: Rig) -> None:
    """Before registration it runs, is alive, is not ready, and says what it waits for."""
    bare_rig.grant()
    bare_rig.start()
    eventually("it is alive", lambda: bare_rig.probe("/healthz")[0] == 200)
    eventually("it says so", lambda: "Waiting for the Secret" in bare_rig.log.read_text())
    assert bare_rig.probe("/readyz")[0] == 503
    bare_rig.instruct()
    bare_rig.wait()
    bare_rig.hook()
    bare_rig.await_webhook()

    assert bare_rig.process.returncode() is None
    assert bare_rig.probe("/healthz")[0] == 200


def test_waits_for_a_right_that_it_lacks_yet(rig: Rig) -> None:
    """What it may not read yet is read once it may, and each kind is named in the log once."""
    rig.admin.apply(forwarder_manifests.forwarder_role([CONFIG_MAP]))
    account = f"{forwarder_manifests.NAMESPACE}/{forwarder_manifests.NAME}"
    await_rights(
        rig.admin, account, [Right("get", "", "configmaps")], [Right("get", "", "services")]
    )
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web"},
        "spec": {"ports": [{"port": 80}]},
    }
    rig.api.do("POST", SERVICES, service)
    eventually("reading is refused", lambda: rig.metric("read_failures_total") >= 3)
    rig.api.create("other")
    eventually("other kinds are sent", lambda: rig.inbox.named("other"))
    assert rig.inbox.named("web") == []
    rig.admin.apply(forwarder_manifests.forwarder_role([CONFIG_MAP, SERVICE]))
    rig.settle()

    assert len(rig.inbox.named("web")) == 1
    assert len([line for line in rig.logged() if line["message"].startswith("Cannot read")]) == 1


def test_waits_for_its_api_server(rig: Rig) -> None:
    """A hint whose object cannot be read is kept until it can."""
    stored = rig.api.create("there")
    rig.settle()
    rig.inbox.items.clear()
    old = {**stored, "metadata": {**stored["metadata"], "resourceVersion": "1"}}
    kind = {"group": "", "version": "v1", "kind": "ConfigMap"}
    request = {"uid": "u", "kind": kind, "name": "there", "namespace": "default"}
    review = {"request": {**request, "operation": "UPDATE", "oldObject": old}}
    rig.cluster.stop()
    assert rig.ring(json.dumps(review).encode())[0] == 200
    eventually("reading failed", lambda: rig.metric("read_failures_total") >= 3)
    rig.cluster.start()
    rig.settle()

    assert len(rig.inbox.named("there")) == 1


def test_loses_nothing_that_it_answered_when_killed(rig: Rig) -> None:
    """Kill -9 with everything answered and nothing sent; the next process sends it all."""
    rig.api.create("doomed")
    rig.settle()
    rig.inbox.answers.clear()
    made = create(rig, 40)
    rig.api.do("DELETE", f"{MAPS}/doomed")
    eventually("all have rung", lambda: rig.metric("hints_total") >= 42)
    rig.kill()
    rig.inbox.items.clear()
    rig.inbox.answers.set()
    time.sleep(0.2)
    rig.inbox.items.clear()
    rig.start()
    rig.wait()
    rig.settle()

    assert made == names(rig)
    assert "gone" in rig.inbox.named("doomed")[-1]


def test_loses_nothing_that_it_answered_when_killed_at_any_moment(rig: Rig) -> None:
    """Kill -9 right after a write, again and again: the object arrives before or after."""
    for number in range(6):
        rig.api.create(f"made-{number}")
        time.sleep(number * 0.002)
        rig.kill()
        rig.start()
        rig.wait()
    rig.settle()

    assert {f"made-{number}" for number in range(6)} <= names(rig)


def test_ends_cleanly_when_asked(rig: Rig) -> None:
    """SIGTERM with nothing owed: exit status 0, and nothing is kept."""
    rig.process.terminate()

    assert rig.process.wait(60) == 0
    assert rig.logged()[-1]["message"] == "Ended"


@pytest.mark.clocked
def test_sends_the_rest_before_it_ends(rig: Rig) -> None:
    """SIGTERM with ingest slow but there: what is owed is sent within the grace period."""
    rig.inbox.answers.clear()
    made = create(rig, 10)
    rig.process.terminate()
    time.sleep(0.3)
    rig.inbox.answers.set()
    rig.process.wait(60)

    assert rig.process.returncode() == 0
    assert made == names(rig)
    assert rig.logged()[-1]["message"] == "Ended"


def test_ends_within_its_grace_and_keeps_the_rest(rig: Rig) -> None:
    """SIGTERM with ingest hanging: it ends in time, says what is owed, and sends it next time."""
    rig.inbox.answers.clear()
    made = create(rig, 10)
    rig.process.terminate()
    assert rig.process.wait(60) == 0
    assert rig.logged()[-1]["objects"] == 10
    rig.inbox.answers.set()
    time.sleep(0.2)
    rig.inbox.items.clear()
    rig.start()
    rig.wait()
    rig.settle()

    assert made == names(rig)


def test_has_no_right_that_it_does_not_use(rig: Rig) -> None:
    """Its own token reads single objects of the watched kinds and its Secret, and nothing else."""
    own = KubeClient(
        "own", sanitise((rig.folder / "kubeconfig").read_text(), reach=LOCAL), reach=LOCAL
    )
    refused = [
        Right("list", "", "configmaps"),
        Right("watch", "", "configmaps"),
        Right("create", "", "configmaps"),
        Right("delete", "", "services"),
        Right("get", "", "secrets", namespace="default"),
        Right("get", "", "pods"),
        Right("get", "rbac.authorization.k8s.io", "clusterroles"),
        Right("create", "", "serviceaccounts", "token"),
    ]
    granted = [Right("get", "", "configmaps"), Right("get", "apps", "deployments")]
    try:
        assert refused == own.rights([*refused, *granted])
    finally:
        own.close()


def test_asks_for_a_resync_when_it_restarts(rig: Rig) -> None:
    """Changes while nobody was there are found because a restarted forwarder asks for a resync."""
    eventually("it asked at its start", lambda: rig.inbox.asked == [HTTPStatus.OK])
    rig.kill()
    rig.api.create("sent-in-vain")
    rig.start()

    eventually("it asked again", lambda: rig.inbox.asked == [HTTPStatus.OK, HTTPStatus.OK])
