"""A GKE cluster is reached as the calling account, and nothing of it is stored."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bellhop.adapters.gcp.gke import GATEWAY, KEPT_SECONDS, PRIVATE, PUBLIC, GkeClusters
from bellhop.adapters.gcp.services import Services
from bellhop.adapters.local.secrets import FileSecrets
from bellhop.clusters.kubeconfig import sanitise
from bellhop.core import address_policy
from bellhop.errors import InvalidError, MissingError, TemporaryError, UnreachableError
from bellhop.registration.managed_clusters import EKS, GKE, ClusterRequest
from bellhop.runtime.cloud.managed import MadeKubeconfigs
from bellhop.runtime.gcp.access import OwnGke
from tests.fakes.clock import Hand
from tests.lab.google_container import Gke

NAME = "projects/lab-7/locations/europe-west1/clusters/own"
_PEM = b"-----BEGIN CERTIFICATE-----\nMAMCAQE=\n-----END CERTIFICATE-----\n"
CA = base64.b64encode(_PEM).decode()
MEMBER = "//gkehub.googleapis.com/projects/lab-7/locations/europe-west1/memberships/own"


@pytest.fixture
def gke() -> Iterator[Gke]:
    with Gke() as served:
        yield served


@pytest.fixture
def services(gke: Gke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Services]:
    """Google's services, called by a service account."""
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(gke.key_file(tmp_path)))
    emulators = {
        "CONTAINER_EMULATOR_HOST": gke.address,
        "CONNECT_GATEWAY_EMULATOR_HOST": gke.address,
    }
    made = Services("lab-7", emulators=emulators, sleep=lambda _: None)
    yield made
    made.close()


@pytest.fixture
def clusters(services: Services, hand: Hand) -> GkeClusters:
    return GkeClusters(services, seconds=hand)


def description(**more: Any) -> dict[str, Any]:
    """The Container API's description of a cluster."""
    return {"name": "own", "masterAuth": {"clusterCaCertificate": CA}, **more}


HIDDEN = {"privateClusterConfig": {"enablePrivateEndpoint": True, "privateEndpoint": "10.0.0.2"}}
HIDDEN_NOW = {
    "controlPlaneEndpointsConfig": {
        "ipEndpointsConfig": {"enablePublicEndpoint": False, "privateEndpoint": "10.0.0.3"}
    }
}


@pytest.mark.parametrize(
    ("about", "over", "server", "ca_data"),
    [
        pytest.param({"endpoint": "34.1.2.3"}, PUBLIC, "https://34.1.2.3", CA, id="public"),
        pytest.param(
            {
                "endpoint": "10.0.0.2",
                "privateClusterConfig": {
                    "publicEndpoint": "34.1.2.4",
                    "privateEndpoint": "10.0.0.2",
                },
            },
            PUBLIC,
            "https://34.1.2.4",
            CA,
            id="private nodes alone",
        ),
        pytest.param(
            {"endpoint": "34.1.2.3", "fleet": {"membership": MEMBER, "project": "123"}},
            PUBLIC,
            "https://34.1.2.3",
            CA,
            id="public, in a fleet",
        ),
        pytest.param(
            {"endpoint": "10.0.0.2", **HIDDEN, "fleet": {"membership": MEMBER, "project": "123"}},
            GATEWAY,
            "https://europe-west1-connectgateway.googleapis.com/v1/projects/123/locations/"
            "europe-west1/gkeMemberships/own",
            "",
            id="private, in a fleet",
        ),
        pytest.param(
            {"endpoint": "10.0.0.2", **HIDDEN}, PRIVATE, "https://10.0.0.2", CA, id="private"
        ),
        pytest.param(
            {"endpoint": "10.0.0.3", **HIDDEN_NOW, "fleet": {}},
            PRIVATE,
            "https://10.0.0.3",
            CA,
            id="private, as newer answers have it",
        ),
    ],
)
def test_says_how_a_cluster_is_reached(
    clusters: GkeClusters, gke: Gke, about: dict[str, Any], over: str, server: str, ca_data: str
) -> None:
    """By its public address, else over its fleet's gateway, else in its own network."""
    gke.describe(NAME, description(**about))
    way = clusters.way(NAME)

    assert (way.over, way.server, way.ca_data) == (over, server, ca_data)


def test_a_member_of_all_regions_is_at_the_one_gateway(clusters: GkeClusters, gke: Gke) -> None:
    """If the project's number is unknown, its name is taken."""
    member = MEMBER.replace("europe-west1", "global")
    gke.describe(NAME, description(**HIDDEN, fleet={"membership": member}))

    assert clusters.way(NAME).server == (
        f"{gke.address}/v1/projects/lab-7/locations/global/gkeMemberships/own"
    )


def test_makes_a_kubeconfig_that_is_taken(clusters: GkeClusters, gke: Gke) -> None:
    """It passes the validation of every kubeconfig, with a token of the account."""
    gke.describe(NAME, description(endpoint="34.1.2.3"))
    made = clusters.kubeconfig(NAME)

    assert sanitise(made.to_dict(), reach=address_policy.PUBLIC).token == made.token
    assert made.token.startswith("ya29.")
    assert made.token not in repr(made) + made.describe()


def test_asks_rarely_where_a_cluster_is_and_for_a_token_when_it_ends(
    clusters: GkeClusters, gke: Gke, hand: Hand
) -> None:
    """A token stays as long as it is good, and is another one well before its end."""
    gke.describe(NAME, description(endpoint="34.1.2.3"))
    first = clusters.kubeconfig(NAME)
    hand.at += KEPT_SECONDS - 1
    assert clusters.kubeconfig(NAME) == first
    assert gke.requests() == {"cluster": 1, "token": 1}

    hand.at += 1
    gke.describe(NAME, description(endpoint="34.9.9.9"))
    assert clusters.kubeconfig(NAME).server == "https://34.9.9.9"
    assert gke.requests() == {"cluster": 1}


def test_a_token_that_is_about_to_end_is_not_given_out(clusters: GkeClusters, gke: Gke) -> None:
    """Each that is asked for has some minutes left."""
    gke.lifetime = 60
    gke.describe(NAME, description(endpoint="34.1.2.3"))
    tokens = {clusters.kubeconfig(NAME).token for _ in range(3)}

    assert len(tokens) == 3
    assert gke.requests() == {"cluster": 1, "token": 3}


def test_a_token_that_is_refused_is_given_out_no_more(clusters: GkeClusters, gke: Gke) -> None:
    """A caller that comes late with the same token gets the one that was made since."""
    gke.describe(NAME, description(endpoint="34.1.2.3"))
    first = clusters.kubeconfig(NAME).token
    clusters.refused(NAME, first)
    second = clusters.kubeconfig(NAME).token
    clusters.refused("another", first)

    assert first != second == clusters.kubeconfig(NAME).token
    assert gke.requests() == {"cluster": 1, "token": 2}


def test_what_is_not_there_is_missing(clusters: GkeClusters, gke: Gke) -> None:
    """A cluster that was deleted in GKE, or has no address yet, is no reason to guess."""
    with pytest.raises(MissingError, match="there is no GKE cluster"):
        clusters.kubeconfig(NAME)
    gke.describe(NAME, description())
    with pytest.raises(UnreachableError, match="it has no address yet"):
        clusters.kubeconfig(NAME)


@pytest.mark.parametrize(
    "wrong", ["prod", "arn:aws:eks:eu-west-1:1:cluster/x", f"{NAME}/../x", f"{NAME}?a", "x" * 5000]
)
def test_what_is_no_full_name_is_refused(clusters: GkeClusters, gke: Gke, wrong: str) -> None:
    """Nobody is asked for it."""
    with pytest.raises(InvalidError, match="this is not the full name of one"):
        clusters.kubeconfig(wrong)
    assert gke.requests() == {}


@pytest.mark.parametrize(
    ("text", "full"),
    [
        ("own", NAME),
        ("us-east1-b/own", "projects/lab-7/locations/us-east1-b/clusters/own"),
        (NAME.replace("lab-7", "other"), NAME.replace("lab-7", "other")),
    ],
)
def test_a_name_may_be_short(clusters: GkeClusters, text: str, full: str) -> None:
    """The installation's project, and its region, need not be said."""
    assert clusters.named(text, "europe-west1") == full


@pytest.mark.parametrize("wrong", ["", "a/b/c", "../own", "Own", "own?x", f"{NAME}/"])
def test_a_name_that_is_none_is_refused(clusters: GkeClusters, wrong: str) -> None:
    """With how one is written."""
    with pytest.raises(InvalidError, match="write NAME, LOCATION/NAME or"):
        clusters.named(wrong, "europe-west1")


def test_without_credentials_nobody_is_signed_in(
    gke: Gke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error asks the caller to log in; neither the key nor its file is in the sentence."""
    path = gke.key_file(tmp_path)
    path.write_text(json.dumps({**json.loads(path.read_text()), "private_key": "none"}))
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(path))
    services = Services("lab-7", emulators={}, sleep=lambda _: None)

    with pytest.raises(TemporaryError, match="Google does not accept the credentials; log in"):
        services.token(doing="sign in")


def test_other_clusters_are_reached_by_what_is_stored(
    clusters: GkeClusters, gke: Gke, tmp_path: Path
) -> None:
    """Their kubeconfig, and every other secret, is the secret store's own affair."""
    gke.describe(NAME, description(endpoint="34.1.2.3"))
    managed = {"prod/eu-1": NAME}
    secrets = MadeKubeconfigs(FileSecrets(tmp_path / "secrets", bytes(32)), clusters, managed.get)
    secrets.put("kubeconfig/lab/one", b"stored")

    assert secrets.read("kubeconfig/lab/one") == b"stored"
    made = sanitise(secrets.read("kubeconfig/prod/eu-1"), reach=address_policy.LOCAL)
    assert made.server == "https://34.1.2.3"
    assert list(secrets.names()) == ["kubeconfig/lab/one"]
    with pytest.raises(MissingError):
        secrets.read("prod/eu-1")


def test_a_workload_identity_finds_a_cluster_by_its_full_name(services: Services, gke: Gke) -> None:
    """Its kubeconfig leads there; a cluster of another cloud is refused."""
    gke.describe(NAME, description(endpoint="34.1.2.3"))
    own = OwnGke(services)

    found = own.find(ClusterRequest(GKE, NAME))

    assert (found.name, found.kubeconfig.server) == (NAME, "https://34.1.2.3")
    with pytest.raises(InvalidError, match="has no role of AWS"):
        own.find(ClusterRequest(EKS, "one"))
    with pytest.raises(MissingError):
        own.find(ClusterRequest(GKE, NAME.replace("own", "nobody")))
