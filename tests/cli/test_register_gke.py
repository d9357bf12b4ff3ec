"""GKE clusters join and leave an installation on Google Cloud, by service accounts alone."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from bellhop.core.gvk import GVK
from bellhop.errors import MissingError
from bellhop.registration.record_update import rewrite
from bellhop.registration.renewal import renew
from infra.lab.cluster import Cluster
from infra.lab.google_container import Gke
from tests.cli.conftest import Google, House, on_gcp

pytest_plugins = ["tests.kube_fixtures"]

_NAMESPACE = GVK("", "v1", "Namespace")
MEMBER = "projects/123/locations/global"


class Place:
    """A GKE cluster, where it is one, and an installation in whose project it is."""

    def __init__(self, house: House, gke: Gke, cluster: Cluster) -> None:
        self.house = house
        self.gke = gke
        self.cluster = cluster
        project = house.context.place["project"]
        self.name = f"projects/{project}/locations/europe-west1/clusters/own"
        self.describe(endpoint=cluster.server.removeprefix("https://"))

    def describe(self, **more: Any) -> None:
        """Say where the cluster is."""
        authority = base64.b64encode(self.cluster.ca_pem.encode()).decode()
        self.gke.describe(self.name, {"masterAuth": {"clusterCaCertificate": authority}, **more})

    def hide(self) -> None:
        """Have a cluster without a public address, in a fleet."""
        self.gke.join(f"{MEMBER}/gkeMemberships/own", self.cluster.server, self.cluster.ca_pem)
        member = f"//gkehub.googleapis.com/{MEMBER}/memberships/own"
        self.describe(
            endpoint="10.0.0.2",
            privateClusterConfig={"enablePrivateEndpoint": True, "privateEndpoint": "10.0.0.2"},
            fleet={"membership": member, "project": "123"},
        )

    @property
    def registered(self) -> Any:
        kept = self.house.here.records.clusters.get("prod/eu-1")
        return kept.value if kept else None


@pytest.fixture
def place(
    google: Google,
    gke: Gke,
    gke_cluster: Cluster,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Place]:
    """An installation that is called by a service account."""
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(gke.key_file(tmp_path)))
    project = google.project()
    served = {
        "CONTAINER_EMULATOR_HOST": gke.address,
        "CONNECT_GATEWAY_EMULATOR_HOST": gke.address,
    }
    house = on_gcp(tmp_path, project, environment=served)
    yield Place(house, gke, gke_cluster)
    house.opened.close()
    project.close()


def test_registers_a_gke_cluster(place: Place) -> None:
    """The API server takes the token for who Google says; nothing that opens it is stored.

    It takes seconds: it registers twice, rotates and deregisters on emulators.
    """
    house = place.house
    words = ["register", "cluster-gke", "prod/eu-1", "--gke", "own", "--labels", "env=prod"]
    done = house(*words)
    assert done.exit_code == 0, done.output
    cluster = place.registered

    assert (cluster.managed, cluster.credentials) == (place.name, "")
    assert list(house.here.secrets.names()) == []
    assert "  over         its public address" in done.stdout
    account = house.context.place["accounts"]["sweep"]
    assert f"--member serviceAccount:{account} --role roles/container.clusterViewer" in done.stdout
    assert f"create clusterrolebinding lab-sweep --clusterrole cluster-admin --user {account}" in (
        done.stdout
    )
    assert "gatewayEditor" not in done.stdout
    assert "ya29." not in done.output
    kube = house.here.access.open("prod/eu-1", version=cluster.credentials)
    assert kube.get(_NAMESPACE, "", "bellhop-system")
    again = house(*words)
    assert "Cluster 'prod/eu-1' renewed" in again.stdout
    rotated = house("rotate", "prod/eu-1")
    assert "Cluster 'prod/eu-1' has a new token." in rotated.stdout, rotated.stderr
    gone = house("deregister", "cluster", "prod/eu-1")
    assert (gone.exit_code, place.registered) == (0, None)


def test_registers_a_private_cluster_over_the_gateway(place: Place, gke: Gke) -> None:
    """What the Connect gateway asks for beside is printed; requests go through it."""
    place.hide()
    gke.requests()
    words = "register cluster-gke prod/eu-1 --no-forwarder --gke europe-west1/own"
    done = place.house(*words.split())

    assert done.exit_code == 0, done.output
    assert "  over         the Connect gateway of its fleet" in done.stdout
    assert done.stdout.count("--role roles/gkehub.gatewayEditor") == 2
    assert gke.requests()["gateway"] > 1
    assert place.house.here.access.open("prod/eu-1").get(_NAMESPACE, "", "kube-system")


def test_a_cluster_is_reached_over_the_gateway_for_as_long_as_it_is_hidden(
    place: Place, gke: Gke
) -> None:
    """Registered by it, registered again, and renewed; once it is shown nobody registers anew.

    It takes seconds: a registration takes seconds on emulators, and there are several.
    """
    place.hide()
    house, by_gateway = place.house, []
    words = "register cluster-gke prod/eu-1 --gke europe-west1/own"
    for _ in range(2):
        done = house(*words.split())
        assert done.exit_code == 0, done.output
        by_gateway.append(gke.requests()["gateway"])
    begun = {**place.registered.forwarder, "begun": "2026-01-01T00:00:00+00:00"}
    rewrite(house.here, "prod/eu-1", lambda each: replace(each, forwarder=begun))
    assert renew(house.here, "prod/eu-1")
    by_gateway.append(gke.requests()["gateway"])
    assert house.here.access.open("prod/eu-1").get(_NAMESPACE, "", "kube-system")
    by_gateway.append(gke.requests()["gateway"])
    assert min(by_gateway) > 0

    place.describe(endpoint=place.cluster.server.removeprefix("https://"))
    later = House(house.context, house.environment)
    assert later.here.access.open("prod/eu-1").get(_NAMESPACE, "", "kube-system")
    assert "gateway" not in gke.requests()
    later.opened.close()


def test_a_token_that_is_refused_is_made_anew_at_once(place: Place, gke: Gke) -> None:
    """Nobody notices but Google: of two that are refused together one asks, for all clusters."""
    register = "register cluster-gke prod/eu-1 --no-forwarder --gke own"
    assert place.house(*register.split()).exit_code == 0
    access = place.house.here.access
    kube = access.open("prod/eu-1")
    gke.revoke()  # An API server goes on taking for some seconds what it has taken.
    gke.requests()
    with ThreadPoolExecutor(2) as threads:
        found = list(threads.map(lambda _: kube.get(_NAMESPACE, "", "kube-system"), range(2)))

    assert all(found)
    assert gke.requests() == {"token": 1}
    assert access.open("prod/eu-1") is kube


def test_a_renewal_makes_a_refused_token_anew(place: Place, gke: Gke) -> None:
    """It registers with what is made, and nobody has called the cluster since.

    It takes seconds: it registers and renews on emulators.
    """
    house = place.house
    assert house("register", "cluster-gke", "prod/eu-1", "--gke", "own").exit_code == 0
    house.here.access.open("prod/eu-1")
    gke.revoke()
    begun = {**place.registered.forwarder, "begun": "2026-01-01T00:00:00+00:00"}
    rewrite(house.here, "prod/eu-1", lambda each: replace(each, forwarder=begun))

    assert renew(house.here, "prod/eu-1") == [
        "renewed its token and the certificate of its forwarder"
    ]


def test_leaves_a_kubeconfig_for_an_account(place: Place, tmp_path: Path) -> None:
    """What was stored is deleted."""
    house = place.house
    place.cluster.kubeconfig(tmp_path / "kubeconfig")
    by_file = f"register cluster prod/eu-1 --no-forwarder --kubeconfig {tmp_path / 'kubeconfig'}"
    stored = []
    for words in (by_file, f"register cluster-gke prod/eu-1 --no-forwarder --gke {place.name}"):
        done = house(*words.split())
        assert done.exit_code == 0, done.output
        stored.append(list(house.here.secrets.names()))

    assert stored == [["kubeconfig/prod/eu-1"], []]


def test_says_that_a_cluster_does_not_let_us_in(place: Place, source_cluster: Cluster) -> None:
    """An API server that takes no token of Google's is no reason to keep anything."""
    authority = base64.b64encode(source_cluster.ca_pem.encode()).decode()
    place.describe(
        endpoint=source_cluster.server.removeprefix("https://"),
        masterAuth={"clusterCaCertificate": authority},
    )
    result = place.house("register", "cluster-gke", "prod/eu-1", "--gke", "own")

    assert (result.exit_code, place.registered) == (1, None)
    with pytest.raises(MissingError):
        place.house.here.secrets.read("kubeconfig/prod/eu-1")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ("cluster-gke prod/eu-1 --gke nowhere", 1, "there is no GKE cluster 'projects/"),
        ("cluster-gke prod/eu-1 --gke ../x", 2, "cannot find the GKE cluster '../x': write NAME"),
        ("cluster-gke prod/eu-1", 2, "--gke"),
        ("cluster-gke prod/eu-1 --gke own --install --no-forwarder", 2, "belong neither to"),
        ("cluster-eks prod/eu-1 --eks own", 2, "which has no role of AWS to reach it by"),
    ],
)
def test_refuses(google_house: House, gke: Gke, words: str, code: int, said: str) -> None:
    """Nothing is kept of what cannot be registered."""
    result = google_house("register", *words.split(), CONTAINER_EMULATOR_HOST=gke.address)

    assert (result.exit_code, said in result.stderr) == (code, True), result.stderr
    assert google_house.here.records.clusters.get("prod/eu-1") is None


@pytest.mark.parametrize("kind", ["embedded", "aws"])
def test_others_have_no_account_of_googles(house: House) -> None:
    """They say what they take."""
    result = house("register", "cluster-gke", "prod/eu-1", "--gke", "own")

    assert result.exit_code == 2
    assert "which has no account of Google Cloud to reach it by" in result.stderr
