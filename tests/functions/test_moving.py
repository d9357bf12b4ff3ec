"""From one machine to AWS and back: deployed objects stay, and one place works at a time."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import pytest

from bellhop.adapters.kube.client import KubeClient
from bellhop.clusters.kubeconfig import sanitise
from bellhop.core.address_policy import LOCAL
from bellhop.core.gvk import GVK
from bellhop.errors import BusyError
from bellhop.installation import Installation
from bellhop.operations import backup
from bellhop.runtime.aws.installation import installation
from bellhop.runtime.embedded.state import open_state
from bellhop.settings import Settings
from infra.demo.user import User as Someone
from infra.lab.cluster import Cluster
from tests.fakes.fleet import service
from tests.functions.lab import RULES, Account, Lambda, User

PASSPHRASE = "four words and a number 7"


@pytest.fixture
def kube(source_cluster: Cluster) -> Iterator[KubeClient]:
    client = KubeClient(
        "fleet/east", sanitise(source_cluster.kubeconfig(), reach=LOCAL), reach=LOCAL
    )
    yield client
    client.close()


def made(kube: KubeClient) -> dict[str, str]:
    """Return the deployed objects, each with its uid and last change."""
    found = kube.list(GVK("", "v1", "ConfigMap"), namespace="default")
    about = [each["metadata"] for each in found if each["metadata"]["name"].startswith("for-")]
    return {each["name"]: f"{each['uid']} {each['resourceVersion']}" for each in about}


def leave(here: Installation) -> io.StringIO:
    file = io.StringIO()
    backup.backup(here, file, PASSPHRASE, leave=True, pause=lambda _: None)
    file.seek(0)
    return file


def settled(account: Account) -> bool:
    """Say whether no message is left."""
    waiting = 0
    sqs = account.services.client("sqs")
    for queue in account.open().queues.values():
        names = [f"ApproximateNumberOfMessages{kind}" for kind in ("", "NotVisible", "Delayed")]
        attributes = sqs.get_queue_attributes(QueueUrl=queue._url, AttributeNames=names)
        waiting += sum(map(int, attributes["Attributes"].values()))
    return waiting == 0


def test_an_installation_moves_to_a_machine_and_back(
    account: Account, moto_place: str, tmp_path: Path, source_cluster: Cluster, kube: KubeClient
) -> None:
    """AWS, embedded, AWS: what is in the cluster is neither made again nor touched.

    It takes long: an installation moves twice, and works off all that is declared after each move.
    """
    del moto_place
    someone = Someone(source_cluster.kubeconfig())
    for name in ("one", "two"):
        web = service(name)
        del web["status"]
        someone.create(web)
    User(account).register("east", source_cluster.kubeconfig(), env="production")
    User(account).apply(RULES)
    first = Lambda(account)
    first.pump(until=lambda: len(made(kube)) == 2 and settled(account))
    before = made(kube)

    archive = leave(installation(account.open()))
    embedded = open_state(tmp_path / "state", Settings())
    moved = backup.restore(embedded.installation, archive, PASSPHRASE)
    assert (moved.clusters, moved.lost) == (1, [])
    assert embedded.installation.secrets.read("kubeconfig/fleet/east")
    assert "made" in embedded.installation.catalogs.current().triggers
    archive = leave(embedded.installation)
    embedded.close()

    again = Account(account.moto, attempts=3, retry_first=1, retry_longest=1)
    backup.restore(installation(again.open()), archive, PASSPHRASE)
    second = Lambda(again)
    second.pump(until=lambda: settled(again))
    assert made(kube) == before
    # It works: a deleted source is withdrawn, by the resync that the move requested or the next.
    inventories = again.open().records.inventories
    assert len(list(inventories.of("fleet/east"))) == 2
    again.close()
    someone.close()


def test_functions_of_an_installation_that_was_left_work_on_nothing(account: Account) -> None:
    """Messages stay where they are, and a sender is sent away: its forwarder keeps all."""
    user, functions = User(account), Lambda(account)
    user.register("east", {}, env="production")
    archive = leave(user.here)

    functions.feed("sweep", functions.handlers["sweep"])
    assert not settled(account)
    batch = {"apiVersion": "bellhop.dev/v1", "kind": "Observations", "items": []}
    assert functions.send("east", batch)["statusCode"] == 503
    with pytest.raises(BusyError):
        functions.tick({}, None)
    assert backup.restore(user.here, archive, PASSPHRASE).returned
    assert functions.send("east", batch)["statusCode"] == 200
