"""Clusters join and leave an installation on AWS: by a kubeconfig, and by roles alone."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml

from bellhop.core.gvk import GVK
from bellhop.errors import MissingError
from infra.lab.cluster import Cluster
from infra.lab.control_plane import ControlPlane
from infra.lab.eks import ARN, NAME, Eks
from infra.lab.moto import REGION, Moto
from tests.cli.conftest import House, on_aws
from tests.functions.lab import Account
from tests.kube_fixtures import as_after_boot

pytest_plugins = ["tests.kube_fixtures"]

_NAMESPACE = GVK("", "v1", "Namespace")


@pytest.fixture(scope="module")
def eks(_moto: Moto) -> Iterator[Eks]:
    """EKS, with one cluster."""
    with Eks(_moto.url) as one:
        yield one


@pytest.fixture(scope="module")
def _eks_cluster(
    eks: Eks, control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Cluster:
    """A cluster whose API server asks EKS who has sent a token.

    The first test that wants it waits until its API server has booted.
    """
    trusts = eks.trusted_by(tmp_path_factory.mktemp("eks"))
    cluster = control_plane.start_cluster("eks", extra_args=trusts)
    eks.describe(cluster)
    return cluster


@pytest.fixture
def eks_cluster(_eks_cluster: Cluster) -> Cluster:
    """The same as after boot, which no other installation has."""
    return as_after_boot(_eks_cluster)


@pytest.fixture
def house(moto: Moto, eks: Eks, tmp_path: Path) -> Iterator[House]:
    """An installation on AWS whose services are found by the environment."""
    account = Account(moto)
    roles = {stage: f"arn:aws:iam::123456789012:role/x-{stage}" for stage in ("deploy", "sweep")}
    own = {"AWS_ENDPOINT_URL": moto.url, "AWS_ENDPOINT_URL_EKS": eks.address}
    made = on_aws(tmp_path, account, environment=own, roles=roles)
    yield made
    made.opened.close()
    account.close()


def registered(house: House, name: str) -> Any:
    kept = house.here.records.clusters.get(name)
    return kept.value if kept else None


def test_registers_by_a_kubeconfig(house: House, source_cluster: Cluster, tmp_path: Path) -> None:
    """The kubeconfig is in Secrets Manager, and the forwarder is told where ingest is.

    It takes long: it registers twice, rotates, examines and deregisters on moto.
    """
    source_cluster.kubeconfig(tmp_path / "kubeconfig")
    words = f"register cluster prod/eu-1 --labels env=prod --kubeconfig {tmp_path / 'kubeconfig'}"
    done = house(*words.split())

    assert done.exit_code == 0, done.stderr
    assert "Cluster 'prod/eu-1' registered." in done.stdout
    assert "nothing answers at https://127.0.0.1:9" in done.stderr
    assert list(house.here.secrets.names()) == ["kubeconfig/prod/eu-1"]
    again = house(*words.split(), "--print-manifests")
    assert again.exit_code == 0, again.stderr
    assert [each["kind"] for each in yaml.safe_load_all(again.stdout)].count("Deployment") == 1
    rotated = house("rotate", "prod/eu-1")
    assert "Cluster 'prod/eu-1' has a new token." in rotated.stdout, rotated.stderr
    examined = {
        each["piece"]: each["verdict"]
        for each in json.loads(house("doctor", "prod/eu-1", "-o", "json").stdout)
    }
    assert (examined["API server"], examined["Secret"]) == ("well", "well")
    gone = house("deregister", "cluster", "prod/eu-1")
    assert "Cluster 'prod/eu-1' deregistered" in gone.stdout
    assert list(house.here.secrets.names()) == []
    assert registered(house, "prod/eu-1") is None


@pytest.mark.usefixtures("eks_cluster")
def test_registers_an_eks_cluster(house: House, eks: Eks) -> None:
    """The API server takes the token for who STS says; nothing that opens it is stored.

    It takes long: it registers twice, rotates, examines and deregisters on moto.
    """
    words = f"register cluster-eks prod/eu-1 --eks {NAME} --labels env=prod".split()
    done = house(*words)
    cluster = registered(house, "prod/eu-1")

    assert done.exit_code == 0, done.stderr
    assert eks.judged
    assert (cluster.managed, cluster.credentials, cluster.labels) == (ARN, "", {"env": "prod"})
    assert list(house.here.secrets.names()) == []
    assert (
        f"aws eks create-access-entry --cluster-name {NAME} --region {REGION} --principal-arn"
        " arn:aws:iam::123456789012:role/x-sweep" in done.stdout
    )
    kube = house.here.access.open("prod/eu-1", version=cluster.credentials)
    assert kube.get(_NAMESPACE, "", "bellhop-system")
    again = house(*words)
    assert "Cluster 'prod/eu-1' renewed" in again.stdout
    rotated = house("rotate", "prod/eu-1")
    assert "Cluster 'prod/eu-1' has a new token." in rotated.stdout, rotated.stderr
    assert house("doctor", "prod/eu-1").stdout.count("API server") == 1
    gone = house("deregister", "cluster", "prod/eu-1")
    assert (gone.exit_code, registered(house, "prod/eu-1")) == (0, None)


@pytest.mark.usefixtures("eks_cluster")
def test_registers_an_eks_cluster_by_a_role_of_another_account(house: House, eks: Eks) -> None:
    """The API server meets that role alone, which has to trust the functions' roles."""
    role = "arn:aws:iam::210987654321:role/bellhop"
    words = f"register cluster-eks prod/eu-1 --eks {NAME} --external-id an-id"
    before = set(eks.judged)
    refused = house(*words.split())
    done = house(*words.split(), "--assume-role", role)
    cluster = registered(house, "prod/eu-1")

    assert (refused.exit_code, "--external-id belongs to --assume-role" in refused.stderr) == (
        2,
        True,
    )
    assert done.exit_code == 0, done.stderr
    assert (cluster.managed, cluster.assume_role, cluster.external_id) == (ARN, role, "an-id")
    assert {eks.judged[each] for each in eks.judged.keys() - before} == {
        "arn:aws:sts::210987654321:assumed-role/bellhop/bellhop"
    }
    assert f"aws eks create-access-entry --cluster-name {NAME} --region {REGION}" in done.stdout
    assert f"--principal-arn {role}" in done.stdout
    assert "--principal-arn arn:aws:iam::123456789012" not in done.stdout
    assert "aws iam update-assume-role-policy --role-name bellhop --policy-document" in done.stdout
    assert '"AWS": ["arn:aws:iam::123456789012:role/x-deploy"' in done.stdout
    assert '"sts:ExternalId": "an-id"' in done.stdout
    assert "Cluster 'prod/eu-1' has a new token." in house("rotate", "prod/eu-1").stdout
    assert registered(house, "prod/eu-1").assume_role == role


@pytest.mark.usefixtures("eks_cluster")
def test_a_token_that_is_refused_is_made_anew_at_once(house: House, eks: Eks) -> None:
    """Nobody notices: of two that are refused together one signs.

    It takes seconds: it registers on moto, and waits for another second twice: in one second all
    tokens are the same.
    """
    register = f"register cluster-eks prod/eu-1 --no-forwarder --eks {NAME}"
    assert house(*register.split()).exit_code == 0
    time.sleep(1)  # Of one second all signatures are the same, and who was taken is remembered.
    kube = house.here.access.open("prod/eu-1")
    before = set(eks.judged)
    eks.refuse_one()
    time.sleep(1)
    with ThreadPoolExecutor(2) as threads:
        found = list(threads.map(lambda _: kube.get(_NAMESPACE, "", "kube-system"), range(2)))

    assert all(found)
    assert len(eks.judged.keys() - before) == 1


def test_leaves_a_kubeconfig_for_roles_and_comes_back(
    house: House, eks_cluster: Cluster, tmp_path: Path
) -> None:
    """What was stored is deleted, and stored again; one cluster keeps its name all the while.

    It takes seconds: a registration takes seconds on moto, and there are four.
    """
    eks_cluster.kubeconfig(tmp_path / "kubeconfig")
    by_file = f"register cluster prod/eu-1 --no-forwarder --kubeconfig {tmp_path / 'kubeconfig'}"
    by_role = f"register cluster-eks prod/eu-1 --no-forwarder --eks {NAME}"
    for words, stored in (
        (by_file, ["kubeconfig/prod/eu-1"]),
        (by_role, []),
        (by_role, []),
        (by_file, ["kubeconfig/prod/eu-1"]),
    ):
        done = house(*words.split())

        assert done.exit_code == 0, done.stderr
        assert list(house.here.secrets.names()) == stored
        assert house.here.access.open("prod/eu-1").get(_NAMESPACE, "", "kube-system")
    assert registered(house, "prod/eu-1").managed == ""


@pytest.mark.usefixtures("eks_cluster")
def test_gives_a_name_to_another_cluster(
    house: House, source_cluster: Cluster, tmp_path: Path
) -> None:
    """From one that has a kubeconfig to one that has none, and back: nothing stays behind.

    It takes seconds: a registration takes seconds on moto, and there are three.
    """
    source_cluster.kubeconfig(tmp_path / "kubeconfig")
    by_file = f"register cluster prod/eu-1 --no-forwarder --kubeconfig {tmp_path / 'kubeconfig'}"
    by_role = f"register cluster-eks prod/eu-1 --no-forwarder --eks {NAME}"
    uids = []
    for words, stored in (
        (by_file, ["kubeconfig/prod/eu-1"]),
        (by_role, []),
        (by_file, ["kubeconfig/prod/eu-1"]),
    ):
        done = house(*words.split())

        assert done.exit_code == 0, done.stderr
        assert list(house.here.secrets.names()) == stored
        uids.append(registered(house, "prod/eu-1").uid)
    assert uids[0] == uids[2] != uids[1]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (
            "prod/eu-1 --eks nowhere",
            1,
            "there is no EKS cluster 'nowhere' in eu-west-1 that you may see; check its name",
        ),
        (
            "prod/eu-1 --eks ../x",
            2,
            "cannot find the EKS cluster '../x': it is not the name of one",
        ),
        ("prod/UP --eks own", 2, "cannot register cluster 'prod/UP'"),
        ("eu-1 --eks own", 2, "needs a namespace"),
        ("prod/eu-1", 2, "--eks"),
        ("prod/eu-1 --eks own --install --no-forwarder", 2, "belong neither to"),
    ],
)
@pytest.mark.usefixtures("eks_cluster")
def test_refuses(house: House, words: str, code: int, said: str) -> None:
    """Nothing is kept of what cannot be registered."""
    result = house("register", "cluster-eks", *words.split())

    assert (result.exit_code, said in result.stderr) == (code, True), result.stderr
    assert registered(house, "prod/eu-1") is None


def test_says_that_a_cluster_does_not_let_us_in(
    house: House, eks: Eks, source_cluster: Cluster, eks_cluster: Cluster
) -> None:
    """An API server that takes no token of EKS' is no reason to keep anything."""
    eks.describe(source_cluster)
    result = house("register", "cluster-eks", "prod/eu-1", "--eks", NAME)
    eks.describe(eks_cluster)

    assert result.exit_code == 1
    assert registered(house, "prod/eu-1") is None
    with pytest.raises(MissingError):
        house.here.secrets.read("kubeconfig/prod/eu-1")


def test_one_machine_has_no_role(bellhop_local: House) -> None:
    """The embedded mode says what it takes."""
    result = bellhop_local("register", "cluster-eks", "prod/eu-1", "--eks", NAME)

    assert result.exit_code == 2
    assert "which has no role of AWS to reach it by" in result.stderr
