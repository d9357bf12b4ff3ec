"""An installation moves by the rights of who operates it, and with it what EKS is asked for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bellhop.clusters.kubeconfig import Kubeconfig
from bellhop.state.cluster import Cluster
from tests.cli.conftest import House, on_aws
from tests.cli.test_commands import populate
from tests.cli.test_permissions import eks, identity, may, policy
from tests.functions.lab import Account
from tests.lab.moto import Moto
from tests.unit.cli import fleet

PASSPHRASE = "four words and a number 7"


@pytest.fixture
def passphrase(tmp_path: Path) -> tuple[str, str]:
    """The options that say where the passphrase is."""
    (tmp_path / "secret").write_text(PASSPHRASE)
    return "--passphrase-file", str(tmp_path / "secret")


@pytest.fixture
def archive(tmp_path: Path) -> str:
    return str(tmp_path / "archive")


def register(house: House, arn: str) -> None:
    """Have an EKS cluster `prod/eu-2` be registered."""
    cluster = Cluster("prod", "eu-2", {}, "v1.33.1", "", fleet.now(), managed=arn)
    house.here.declare.register(cluster)


def test_goes_to_another_one_on_aws(
    prod: House, moto: Moto, tmp_path: Path, archive: str, passphrase: tuple[str, str]
) -> None:
    """In the same account a cluster of EKS is to let new roles in, in another nothing helps.

    It takes long: three installations on moto are filled, and moto checks IAM at each call.
    """
    populate(prod)
    arn = prod.services.client("eks").describe_cluster(name=eks(prod))["cluster"]["arn"]
    register(prod, arn)
    may(prod, policy("operator", prod))
    done = prod("backup", archive, *passphrase, **identity(prod))
    assert (done.exit_code, done.stderr) == (0, "")

    for account, said in (
        ("123456789012", "`bellhop register cluster-eks prod/eu-2 --eks own --region eu-west-1`"),
        ("210987654321", "which is of EKS in account 123456789012: roles reach the clusters of"),
    ):
        made = Account(moto)
        (tmp_path / account).mkdir()
        roles = {"deploy": f"arn:aws:iam::{account}:role/x-deploy"}
        there = on_aws(tmp_path / account, made, roles=roles)
        may(there, policy("operator", there))
        filled = there("restore", archive, "--without-leave", *passphrase, **identity(there))
        assert filled.exit_code == 0, filled.stderr
        assert said in filled.stderr
        kept = there.here.records.clusters.get("prod/eu-2")
        assert kept
        assert kept.value.managed == arn
        there.opened.close()
        made.close()


def test_who_reads_makes_no_archive(prod: House, archive: str, passphrase: tuple[str, str]) -> None:
    """It would have the credentials of all clusters."""
    may(prod, policy("read-only", prod))
    denied = prod("backup", archive, *passphrase, **identity(prod))

    assert (denied.exit_code, "AWS denies it" in denied.stderr) == (1, True)
    assert not Path(archive).exists()


def test_a_cluster_of_eks_is_reached_from_no_machine(
    bellhop_local: House, tmp_path: Path, archive: str, passphrase: tuple[str, str]
) -> None:
    register(bellhop_local, "arn:aws:eks:eu-west-1:123456789012:cluster/own")
    assert bellhop_local("backup", archive, *passphrase).exit_code == 0
    there = ("--state", str(tmp_path / "there"))
    filled = bellhop_local("restore", archive, "--without-leave", *passphrase, *there)

    assert filled.exit_code == 0
    assert filled.stderr == (
        "warning: nothing here reaches cluster 'prod/eu-2', which is of EKS: only an installation"
        " on AWS has roles that it lets in; register it again, by a kubeconfig with a token\n"
    )


def test_a_cluster_of_gke_is_reached_by_only_accounts(
    bellhop_local: House,
    google_house: House,
    archive: str,
    passphrase: tuple[str, str],
    tmp_path: Path,
) -> None:
    register(bellhop_local, "projects/lab-7/locations/europe-west1/clusters/own")
    assert bellhop_local("--context", "lab", "backup", archive, *passphrase).exit_code == 0
    there = google_house("restore", archive, "--without-leave", *passphrase)
    here = bellhop_local(
        "restore", archive, "--without-leave", *passphrase, "--state", str(tmp_path / "there")
    )

    assert (there.exit_code, here.exit_code) == (0, 0)
    assert "`bellhop register cluster-gke prod/eu-2 --gke projects/lab-7/" in there.stderr
    assert "only an installation on Google Cloud has accounts that it lets in" in here.stderr


def test_a_cluster_that_is_called_from_nowhere_else_is_named(
    bellhop_local: House, tmp_path: Path, archive: str, passphrase: tuple[str, str]
) -> None:
    """Its kubeconfig came along, and leads where this installation calls nobody."""
    kubeconfig = Kubeconfig("https://169.254.1.1", token="t")
    bellhop_local.here.secrets.put(
        "kubeconfig/prod/eu-3", json.dumps(kubeconfig.to_dict()).encode()
    )
    assert bellhop_local("backup", archive, *passphrase).exit_code == 0
    there = ("--state", str(tmp_path / "there"))
    filled = bellhop_local("restore", archive, "--without-leave", *passphrase, *there)

    assert filled.exit_code == 0
    assert filled.stderr == (
        "warning: nothing here reaches cluster 'prod/eu-3': cluster.server: the host is link-local,"
        " where clouds hand out credentials; give the address where the API server is reached, and"
        " register it again\n"
    )
