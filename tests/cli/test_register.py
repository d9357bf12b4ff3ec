"""Clusters join and leave an installation in a cloud: by a kubeconfig, or by its own account."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import Result
from msgspec.structs import replace

from bellhop.core.gvk import GVK
from bellhop.errors import MissingError
from bellhop.registration.record_update import update_cluster
from bellhop.registration.renewal import renew
from infra.lab.cluster import Cluster
from infra.lab.control_plane import ControlPlane
from tests.cli.conftest import Google, House, on_aws, on_gcp
from tests.functions.lab import Account
from tests.kube_fixtures import as_after_boot
from tests.lab.eks import ARN, NAME, Eks
from tests.lab.google_container import Gke
from tests.lab.moto import REGION, Moto

pytest_plugins = ["tests.kube_fixtures"]

_NAMESPACE = GVK("", "v1", "Namespace")
MEMBER = "projects/123/locations/global"


class Place:
    """A cluster of a cloud, and an installation there, which reaches it by its own account."""

    command: str
    option: str
    managed: str
    granted: tuple[str, ...]
    secret: tuple[str, ...]

    def __init__(self, house: House, cluster: Cluster) -> None:
        self.house = house
        self.cluster = cluster

    def register(self, *words: str) -> Result:
        """Register the cluster as prod/eu-1."""
        return self.house("register", self.command, "prod/eu-1", self.option, "own", *words)

    @property
    def registered(self) -> Any:
        kept = self.house.here.records.clusters.get("prod/eu-1")
        return kept.value if kept else None


class EksPlace(Place):
    """An EKS cluster, and an installation on AWS."""

    command, option = "cluster-eks", "--eks"
    managed = ARN
    granted = (
        f"aws eks create-access-entry --cluster-name {NAME} --region {REGION}",
        "--principal-arn arn:aws:iam::123456789012:role/x-sweep",
    )
    secret = ("k8s-aws-v1.",)

    def __init__(self, house: House, eks: Eks, cluster: Cluster) -> None:
        super().__init__(house, cluster)
        self._eks = eks
        eks.describe(cluster)

    def lead_to(self, other: Cluster) -> None:
        """Have the cloud say that the cluster is where another one is."""
        self._eks.describe(other)


class GkePlace(Place):
    """A GKE cluster, and an installation on Google Cloud in whose project it is."""

    command, option = "cluster-gke", "--gke"
    secret = ("ya29.", "gatewayEditor")

    def __init__(self, house: House, gke: Gke, cluster: Cluster) -> None:
        super().__init__(house, cluster)
        self.gke = gke
        project = house.context.place["project"]
        account = house.context.place["accounts"]["sweep"]
        self.managed = f"projects/{project}/locations/europe-west1/clusters/own"
        self.granted = (
            "  over         its public address",
            f"--member serviceAccount:{account} --role roles/container.clusterViewer",
            f"create clusterrolebinding lab-sweep --clusterrole cluster-admin --user {account}",
        )
        self.lead_to(cluster)

    def describe(self, cluster: Cluster, **more: Any) -> None:
        """Have Google say where the cluster is."""
        authority = base64.b64encode(cluster.ca_pem.encode()).decode()
        self.gke.describe(self.managed, {"masterAuth": {"clusterCaCertificate": authority}, **more})

    def lead_to(self, other: Cluster) -> None:
        """Have the cloud say that the cluster is where another one is."""
        self.describe(other, endpoint=other.server.removeprefix("https://"))

    def hide(self) -> None:
        """Have a cluster without a public address, in a fleet."""
        self.gke.join(f"{MEMBER}/gkeMemberships/own", self.cluster.server, self.cluster.ca_pem)
        member = f"//gkehub.googleapis.com/{MEMBER}/memberships/own"
        self.describe(
            self.cluster,
            endpoint="10.0.0.2",
            privateClusterConfig={"enablePrivateEndpoint": True, "privateEndpoint": "10.0.0.2"},
            fleet={"membership": member, "project": "123"},
        )


@pytest.fixture(scope="module")
def eks(_moto: Moto) -> Iterator[Eks]:
    """EKS, with one cluster."""
    with Eks(_moto.url) as one:
        yield one


@pytest.fixture(scope="module")
def _eks_cluster(
    eks: Eks, control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Cluster:
    """A cluster whose API server asks EKS for the sender of a token; it takes seconds to boot."""
    trusts = eks.trusted_by(tmp_path_factory.mktemp("eks"))
    cluster = control_plane.start_cluster("eks", extra_args=trusts)
    eks.describe(cluster)
    return cluster


@pytest.fixture
def eks_cluster(_eks_cluster: Cluster) -> Cluster:
    """The same as after boot, which no other installation has."""
    return as_after_boot(_eks_cluster)


@pytest.fixture
def eks_place(moto: Moto, eks: Eks, eks_cluster: Cluster, tmp_path: Path) -> Iterator[EksPlace]:
    """An installation on AWS whose services are found by the environment."""
    account = Account(moto)
    roles = {stage: f"arn:aws:iam::123456789012:role/x-{stage}" for stage in ("deploy", "sweep")}
    own = {"AWS_ENDPOINT_URL": moto.url, "AWS_ENDPOINT_URL_EKS": eks.address}
    house = on_aws(tmp_path, account, environment=own, roles=roles)
    yield EksPlace(house, eks, eks_cluster)
    house.opened.close()
    account.close()


@pytest.fixture
def gke_place(
    google: Google, gke: Gke, gke_cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[GkePlace]:
    """An installation on Google Cloud that is called by a service account."""
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(gke.key_file(tmp_path)))
    project = google.project()
    served = {
        "CONTAINER_EMULATOR_HOST": gke.address,
        "CONNECT_GATEWAY_EMULATOR_HOST": gke.address,
    }
    house = on_gcp(tmp_path, project, environment=served)
    yield GkePlace(house, gke, gke_cluster)
    house.opened.close()
    project.close()


@pytest.fixture(params=["eks", "gke"])
def place(request: pytest.FixtureRequest) -> EksPlace | GkePlace:
    """A cluster of each cloud."""
    found: EksPlace | GkePlace = request.getfixturevalue(f"{request.param}_place")
    return found


def test_registers_by_a_kubeconfig(prod: House, source_cluster: Cluster, tmp_path: Path) -> None:
    """It takes long: it registers twice, rotates, examines and deregisters on moto."""
    source_cluster.kubeconfig(tmp_path / "kubeconfig")
    words = f"register cluster prod/eu-1 --labels env=prod --kubeconfig {tmp_path / 'kubeconfig'}"
    done = prod(*words.split())

    assert done.exit_code == 0, done.stderr
    assert "Cluster 'prod/eu-1' registered." in done.stdout
    assert "nothing answers at https://127.0.0.1:9" in done.stderr
    assert list(prod.here.secrets.names()) == ["kubeconfig/prod/eu-1"]
    again = prod(*words.split(), "--print-manifests")
    assert again.exit_code == 0, again.stderr
    assert [each["kind"] for each in yaml.safe_load_all(again.stdout)].count("Deployment") == 1
    rotated = prod("rotate", "prod/eu-1")
    assert "Cluster 'prod/eu-1' has a new token." in rotated.stdout, rotated.stderr
    examined = {
        each["piece"]: each["verdict"]
        for each in json.loads(prod("doctor", "prod/eu-1", "-o", "json").stdout)
    }
    assert (examined["API server"], examined["Secret"]) == ("well", "well")
    gone = prod("deregister", "cluster", "prod/eu-1")
    assert "Cluster 'prod/eu-1' deregistered" in gone.stdout
    assert list(prod.here.secrets.names()) == []
    assert prod.here.records.clusters.get("prod/eu-1") is None


def test_registers_a_cluster_of_a_cloud(place: Place) -> None:
    """The API server takes the token for who the cloud says; nothing that opens it is stored.

    It takes long: it registers twice, rotates, examines and deregisters on emulators.
    """
    house, done = place.house, place.register("--labels", "env=prod")
    assert done.exit_code == 0, done.output
    cluster = place.registered

    assert (cluster.managed, cluster.credentials) == (place.managed, "")
    assert cluster.labels == {"env": "prod"}
    assert list(house.here.secrets.names()) == []
    assert [each for each in place.granted if each not in done.stdout] == []
    assert [each for each in place.secret if each in done.output] == []
    kube = house.here.access.open("prod/eu-1", version=cluster.credentials)
    assert kube.get(_NAMESPACE, "", "bellhop-system")
    again = place.register("--labels", "env=prod")
    assert "Cluster 'prod/eu-1' renewed" in again.stdout
    rotated = house("rotate", "prod/eu-1")
    assert "Cluster 'prod/eu-1' has a new token." in rotated.stdout, rotated.stderr
    assert house("doctor", "prod/eu-1").stdout.count("API server") == 1
    gone = house("deregister", "cluster", "prod/eu-1")
    assert (gone.exit_code, place.registered) == (0, None)


def test_leaves_a_kubeconfig_for_an_account_and_comes_back(place: Place, tmp_path: Path) -> None:
    """It takes seconds: a registration takes seconds on an emulator, and there are four."""
    house = place.house
    place.cluster.kubeconfig(tmp_path / "kubeconfig")
    by_file = f"register cluster prod/eu-1 --no-forwarder --kubeconfig {tmp_path / 'kubeconfig'}"
    for by_account in (False, True, True, False):
        done = place.register("--no-forwarder") if by_account else house(*by_file.split())

        assert done.exit_code == 0, done.stderr
        stored = [] if by_account else ["kubeconfig/prod/eu-1"]
        assert list(house.here.secrets.names()) == stored
        assert house.here.access.open("prod/eu-1").get(_NAMESPACE, "", "kube-system")
    assert place.registered.managed == ""


def test_says_that_a_cluster_does_not_let_us_in(
    place: EksPlace | GkePlace, source_cluster: Cluster
) -> None:
    """An API server that takes no token of the cloud is no reason to keep anything."""
    place.lead_to(source_cluster)
    result = place.register()

    assert (result.exit_code, place.registered) == (1, None)
    with pytest.raises(MissingError):
        place.house.here.secrets.read("kubeconfig/prod/eu-1")


@pytest.mark.parametrize(
    ("place", "words", "code", "said"),
    [
        (
            "eks",
            "prod/eu-1 --eks nowhere",
            1,
            "there is no EKS cluster 'nowhere' in eu-west-1 that you may see; check its name",
        ),
        ("eks", "prod/eu-1 --eks ../x", 2, "the EKS cluster '../x': it is not the name of one"),
        ("eks", "prod/UP --eks own", 2, "cannot register cluster 'prod/UP'"),
        ("eks", "eu-1 --eks own", 2, "needs a namespace"),
        ("eks", "prod/eu-1", 2, "--eks"),
        ("eks", "prod/eu-1 --eks own --install --no-forwarder", 2, "belong neither to"),
        ("gke", "prod/eu-1 --gke nowhere", 1, "there is no GKE cluster 'projects/"),
        ("gke", "prod/eu-1 --gke ../x", 2, "cannot find the GKE cluster '../x': write NAME"),
        ("gke", "prod/eu-1", 2, "--gke"),
        ("gke", "prod/eu-1 --gke own --install --no-forwarder", 2, "belong neither to"),
    ],
    indirect=["place"],
)
def test_refuses(place: Place, words: str, code: int, said: str) -> None:
    """Nothing is kept of what cannot be registered."""
    result = place.house("register", place.command, *words.split())

    assert (result.exit_code, said in result.stderr) == (code, True), result.stderr
    assert place.registered is None


@pytest.mark.parametrize(
    ("kind", "words", "said"),
    [
        ("embedded", "cluster-eks prod/eu-1 --eks own", "has no role of AWS to reach it by"),
        ("gcp", "cluster-eks prod/eu-1 --eks own", "has no role of AWS to reach it by"),
        ("embedded", "cluster-gke prod/eu-1 --gke own", "has no account of Google Cloud to reach"),
        ("aws", "cluster-gke prod/eu-1 --gke own", "has no account of Google Cloud to reach"),
    ],
)
def test_others_have_no_account_in_the_cloud(house: House, words: str, said: str) -> None:
    """They say what they take."""
    result = house("register", *words.split())

    assert (result.exit_code, said in result.stderr) == (2, True)
    assert house.here.records.clusters.get("prod/eu-1") is None


# AWS ---------------------------------------------------------------------------------------------


def test_registers_a_cluster_by_a_role_of_another_account(eks_place: EksPlace, eks: Eks) -> None:
    house, role = eks_place.house, "arn:aws:iam::210987654321:role/bellhop"
    words = f"register cluster-eks prod/eu-1 --eks {NAME} --external-id an-id"
    before = set(eks.judged)
    refused = house(*words.split())
    done = house(*words.split(), "--assume-role", role)
    cluster = eks_place.registered

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
    assert eks_place.registered.assume_role == role


def test_a_token_of_aws_is_renewed_at_once_if_refused(eks_place: EksPlace, eks: Eks) -> None:
    """Nobody notices: of two that are refused together one signs.

    It takes seconds: it registers on moto, and waits for another second twice: in one second all
    tokens are the same.
    """
    house = eks_place.house
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


def test_gives_a_name_to_another_cluster(
    eks_place: EksPlace, source_cluster: Cluster, tmp_path: Path
) -> None:
    """From one that has a kubeconfig to one that has none, and back: nothing stays behind.

    It takes seconds: a registration takes seconds on moto, and there are three.
    """
    house = eks_place.house
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
        uids.append(eks_place.registered.uid)
    assert uids[0] == uids[2] != uids[1]


# Google Cloud ----------------------------------------------------------------------------------


def test_registers_a_private_cluster_over_the_gateway(gke_place: GkePlace, gke: Gke) -> None:
    gke_place.hide()
    gke.requests()
    words = "register cluster-gke prod/eu-1 --no-forwarder --gke europe-west1/own"
    done = gke_place.house(*words.split())

    assert done.exit_code == 0, done.output
    assert "  over         the Connect gateway of its fleet" in done.stdout
    assert done.stdout.count("--role roles/gkehub.gatewayEditor") == 2
    assert gke.requests()["gateway"] > 1
    assert gke_place.house.here.access.open("prod/eu-1").get(_NAMESPACE, "", "kube-system")


def test_a_cluster_is_reached_over_the_gateway_for_as_long_as_it_is_hidden(
    gke_place: GkePlace, gke: Gke
) -> None:
    gke_place.hide()
    house, by_gateway = gke_place.house, []
    words = "register cluster-gke prod/eu-1 --gke europe-west1/own"
    for _ in range(2):
        done = house(*words.split())
        assert done.exit_code == 0, done.output
        by_gateway.append(gke.requests()["gateway"])
    begun = {**gke_place.registered.forwarder, "begun": "2026-01-01T00:00:00+00:00"}
    update_cluster(house.here, "prod/eu-1", lambda each: replace(each, forwarder=begun))
    assert renew(house.here, "prod/eu-1")
    by_gateway.append(gke.requests()["gateway"])
    assert house.here.access.open("prod/eu-1").get(_NAMESPACE, "", "kube-system")
    by_gateway.append(gke.requests()["gateway"])
    assert min(by_gateway) > 0

    gke_place.lead_to(gke_place.cluster)
    later = House(house.context, house.environment)
    assert later.here.access.open("prod/eu-1").get(_NAMESPACE, "", "kube-system")
    assert "gateway" not in gke.requests()
    later.opened.close()


def test_a_token_of_google_is_renewed_at_once_if_refused(gke_place: GkePlace, gke: Gke) -> None:
    """Nobody notices but Google: of two that are refused together one asks, for all clusters."""
    register = "register cluster-gke prod/eu-1 --no-forwarder --gke own"
    assert gke_place.house(*register.split()).exit_code == 0
    access = gke_place.house.here.access
    kube = access.open("prod/eu-1")
    gke.revoke()  # An API server goes on taking for some seconds what it has taken.
    gke.requests()
    with ThreadPoolExecutor(2) as threads:
        found = list(threads.map(lambda _: kube.get(_NAMESPACE, "", "kube-system"), range(2)))

    assert all(found)
    assert gke.requests() == {"token": 1}
    assert access.open("prod/eu-1") is kube


def test_a_renewal_replaces_a_refused_token(gke_place: GkePlace, gke: Gke) -> None:
    """It registers with what is made, and nobody has called the cluster since.

    It takes seconds: it registers and renews on emulators.
    """
    house = gke_place.house
    assert house("register", "cluster-gke", "prod/eu-1", "--gke", "own").exit_code == 0
    house.here.access.open("prod/eu-1")
    gke.revoke()
    begun = {**gke_place.registered.forwarder, "begun": "2026-01-01T00:00:00+00:00"}
    update_cluster(house.here, "prod/eu-1", lambda each: replace(each, forwarder=begun))

    assert renew(house.here, "prod/eu-1") == [
        "renewed its token and the certificate of its forwarder"
    ]
