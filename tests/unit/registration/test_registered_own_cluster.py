"""The cluster that `serve` runs in registers itself once, by its pod's account."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from bellhop.adapters.kube import service_account
from bellhop.adapters.kube.client import KubeClient
from bellhop.clusters.kubeconfig import sanitise
from bellhop.core.address_policy import LOCAL
from bellhop.core.gvk import GVK
from bellhop.errors import InvalidError, MissingError
from bellhop.registration import instructions
from bellhop.registration.forwarder_manifests import NAME, NAMESPACE
from bellhop.runtime.embedded.own_cluster import check_own_cluster, register_own_cluster
from bellhop.runtime.embedded.state import Embedded, open_state
from bellhop.settings import Settings
from infra.lab.cluster import Cluster
from tests.fakes.kept import require_value

KEY = "mgmt/mgmt"
SECRET = GVK("", "v1", "Secret")


@pytest.fixture
def pod(source_cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What a node gives a pod of the cluster; return the file of its token."""
    folder = tmp_path / "account"
    folder.mkdir()
    (folder / "token").write_text(source_cluster.token)
    (folder / "ca.crt").write_text(source_cluster.ca_pem)
    server = urlsplit(source_cluster.server)
    monkeypatch.setattr(service_account, "ACCOUNT", folder)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", str(server.hostname))
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(server.port))
    return folder / "token"


@pytest.fixture
def embedded(tmp_path: Path) -> Iterator[Embedded]:
    """A state folder whose `serve` listens at an address."""
    state = tmp_path / "state"
    state.mkdir()
    (state / "address.json").write_text('{"url": "https://bellhop.example.com:8443", "ca": ""}')
    opened = open_state(state, Settings())
    yield opened
    opened.close()


def register(embedded: Embedded) -> str:
    return register_own_cluster(embedded.installation, KEY, pause=lambda _: None)


def test_it_is_registered_once_and_opened_by_the_token_of_the_moment(
    embedded: Embedded, pod: Path, source_cluster: Cluster
) -> None:
    """A second start changes nothing, and no credentials are stored."""
    here = embedded.installation
    admin = KubeClient("x", sanitise(source_cluster.kubeconfig(), reach=LOCAL), reach=LOCAL)

    assert register(embedded) == "created"
    first = admin.get(SECRET, NAMESPACE, NAME)
    assert register(embedded) == "unchanged"
    assert admin.get(SECRET, NAMESPACE, NAME) == first
    assert list(here.secrets.names()) == []
    assert require_value(here.records.clusters.get(KEY)).credentials == ""
    assert here.access.open(KEY).get(GVK("", "v1", "Namespace"), "", NAMESPACE)
    pod.write_text("another")
    assert b"another" in here.secrets.read(f"kubeconfig/{KEY}")
    admin.close()


def test_a_secret_of_another_address_is_written_again(
    embedded: Embedded, pod: Path, source_cluster: Cluster
) -> None:
    """So is one that somebody emptied."""
    admin = KubeClient("x", sanitise(source_cluster.kubeconfig(), reach=LOCAL), reach=LOCAL)
    register(embedded)
    state = embedded.state
    (state / "address.json").write_text('{"url": "https://other.example.com:8443", "ca": ""}')
    again = open_state(state, Settings())

    assert register(again) == "renewed"
    assert instructions.read_entries(admin)["ingest-url"] == "https://other.example.com:8443"
    admin.merge(SECRET, NAMESPACE, NAME, {"data": None})
    assert register(again) == "renewed"
    assert instructions.read_entries(admin)["cluster"] == KEY
    assert pod.exists()
    again.close()
    admin.close()


@pytest.mark.usefixtures("pod")
@pytest.mark.parametrize("key", ["mgmt", "/mgmt", "mgmt/", "Mgmt/mgmt", "a/b/c"])
def test_refuses_what_is_no_name(key: str) -> None:
    """Before anything is started."""
    with pytest.raises(InvalidError, match="cannot register the own cluster as"):
        check_own_cluster(key)


def test_refuses_to_start_outside_a_pod(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It would try for ever."""
    with pytest.raises(MissingError, match="this is not a pod"):
        check_own_cluster(KEY)
    monkeypatch.setattr(service_account, "ACCOUNT", tmp_path)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    with pytest.raises(MissingError, match="no usable service account"):
        check_own_cluster(KEY)
