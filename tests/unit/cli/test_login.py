"""A cluster is registered by a person's login, of which nothing is stored."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from bellhop.adapters.kube.client import KubeClient, Right
from bellhop.clusters.kubeconfig import sanitise
from bellhop.core.address_policy import LOCAL
from bellhop.core.gvk import GVK
from bellhop.installation import Installation
from infra.lab.cluster import Cluster
from tests.fakes.kept import require_value
from tests.unit.cli.logins import answer, plugin, write
from tests.unit.cli.registering import INGEST, KEY, SECRET, rules_of_the_how_to
from tests.waiting import await_rights

Register = Callable[..., Result]
RBAC = "rbac.authorization.k8s.io"
BINDING = GVK(RBAC, "v1", "ClusterRoleBinding")


@pytest.fixture
def admin(governed_cluster: Cluster) -> Iterator[KubeClient]:
    """The administrator of a cluster with controllers."""
    kubeconfig = sanitise(governed_cluster.kubeconfig(), reach=LOCAL)
    client = KubeClient("test", kubeconfig, reach=LOCAL)
    yield client
    client.close()


@pytest.fixture
def person(admin: KubeClient) -> str:
    """The token of somebody who may do everything, as a cloud gives it for some minutes."""
    account = {"namespace": "default", "name": "person"}
    admin.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account})
    bind(admin, "person", "cluster-admin", account)
    await_rights(admin, "default/person", [Right("*", "*", "*")])
    return admin.token_request("default", "person", seconds=600)


def bind(admin: KubeClient, name: str, role: str, account: dict[str, str]) -> None:
    """Bind a ClusterRole to an account."""
    admin.apply(
        {
            "apiVersion": f"{RBAC}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": name},
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": role},
            "subjects": [{"kind": "ServiceAccount", **account}],
        }
    )


def kubeconfig(cluster: Cluster, folder: Path, user: dict[str, Any]) -> Path:
    """Write the kubeconfig of a person who has a cluster."""
    authority = base64.b64encode(cluster.ca_pem.encode()).decode()
    return write(folder, user, cluster.server, authority)


@pytest.fixture
def by_plugin(
    governed_cluster: Cluster, person: str, tmp_path: Path, bellhop: Register
) -> Callable[..., Result]:
    """Register the cluster by a kubeconfig such as `aws eks update-kubeconfig` writes."""
    path = kubeconfig(governed_cluster, tmp_path, plugin(tmp_path, answer(token=person)))
    return lambda *more: bellhop(
        "register", "cluster", KEY, "--kubeconfig", str(path), *INGEST, *more
    )


def stored(here: Installation) -> bytes:
    """Read the kubeconfig that is stored."""
    return here.secrets.read(f"kubeconfig/{KEY}")


def subject(token: str) -> str:
    """Read whose token it is."""
    claims = token.split(".")[1]
    return str(json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))["sub"])


def test_stores_the_token_of_bellhops_account_and_nothing_of_the_persons(
    by_plugin: Callable[..., Result],
    here: Installation,
    admin: KubeClient,
    person: str,
    tmp_path: Path,
) -> None:
    """The account may do everything, its token does not end, and no plugin is in what is stored."""
    result = by_plugin("--labels", "env=prod")
    found = sanitise(stored(here), reach=LOCAL)

    assert result.exit_code == 0, result.output
    assert "Service account 'bellhop-account/bellhop' is in the cluster" in result.stdout
    assert "its credentials end" not in result.stderr
    assert subject(found.token) == "system:serviceaccount:bellhop-account:bellhop"
    assert found.ends_at is None
    assert not found.client_certificate_data
    assert b"exec" not in stored(here)
    assert not any(
        person.encode() in each.read_bytes()
        for each in (tmp_path / "state").rglob("*")
        if each.is_file()
    )
    assert list(here.secrets.names()) == [f"kubeconfig/{KEY}"]
    cluster = require_value(here.records.clusters.get(KEY))
    assert cluster.credentials == found.version
    binding = admin.get(BINDING, "", "bellhop-account")
    assert binding is not None
    assert binding["roleRef"]["name"] == "cluster-admin"


def test_registers_by_the_token_of_an_openid_connect_provider(
    governed_cluster: Cluster, person: str, tmp_path: Path, bellhop: Register, here: Installation
) -> None:
    """One that has not expired is used as it is, and is not stored either."""
    config = {"idp-issuer-url": "https://127.0.0.1:1", "client-id": "c", "id-token": person}
    user = {"auth-provider": {"name": "oidc", "config": config}}
    path = kubeconfig(governed_cluster, tmp_path, user)
    result = bellhop("register", "cluster", KEY, "--kubeconfig", str(path), *INGEST)

    assert result.exit_code == 0, result.output
    found = sanitise(stored(here), reach=LOCAL)
    assert subject(found.token) == "system:serviceaccount:bellhop-account:bellhop"
    assert person.encode() not in stored(here)


def test_a_second_login_finds_the_account(
    by_plugin: Callable[..., Result], here: Installation
) -> None:
    """It keeps its token, and the registration is renewed."""
    assert by_plugin("--no-forwarder").exit_code == 0
    before = stored(here)
    result = by_plugin("--no-forwarder")

    assert result.exit_code == 0, result.output
    assert "renewed" in result.stdout
    assert stored(here) == before


def test_an_account_keeps_the_rights_that_somebody_gave_it(
    by_plugin: Callable[..., Result], admin: KubeClient
) -> None:
    role = {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": "bellhop"}}
    admin.apply({**role, "rules": rules_of_the_how_to()})
    bind(admin, "bellhop-account", "bellhop", {"namespace": "bellhop-account", "name": "bellhop"})
    result = by_plugin()

    assert result.exit_code == 0, result.output
    assert "may not get, create, patch or delete objects of every kind" in result.stderr
    binding = admin.get(BINDING, "", "bellhop-account")
    assert binding is not None
    assert binding["roleRef"]["name"] == "bellhop"


def test_a_person_without_rights_makes_no_account(
    governed_cluster: Cluster, admin: KubeClient, tmp_path: Path, bellhop: Register
) -> None:
    """The right that is missing is named, and nothing is stored."""
    account = {"namespace": "default", "name": "nobody"}
    admin.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account})
    user = plugin(tmp_path, answer(token=admin.token_request("default", "nobody")))
    path = kubeconfig(governed_cluster, tmp_path, user)
    result = bellhop("register", "cluster", KEY, "--kubeconfig", str(path), *INGEST)

    assert result.exit_code == 1
    assert "clusterrolebindings" in result.stderr
    assert admin.get(SECRET, "bellhop-account", "bellhop-token") is None


def test_a_token_that_the_cluster_refuses_is_the_logins(
    governed_cluster: Cluster, tmp_path: Path, bellhop: Register
) -> None:
    """The sentence speaks of the kubeconfig that was given: none is stored."""
    user = plugin(tmp_path, answer(token="of-yesterday"))
    path = kubeconfig(governed_cluster, tmp_path, user)
    result = bellhop("register", "cluster", KEY, "--kubeconfig", str(path), *INGEST)

    assert result.exit_code == 1
    assert "does not accept the credentials of the kubeconfig that was given" in result.stderr


def test_a_failed_plugin_stores_and_makes_nothing(tmp_path: Path, bellhop: Register) -> None:
    """The command ends with the plugin's words, before anything is called or opened."""
    path = write(tmp_path, plugin(tmp_path, "sys.exit('Token has expired and refresh failed')"))
    result = bellhop("register", "cluster", KEY, "--kubeconfig", str(path), *INGEST)

    assert result.exit_code == 1
    assert "exit code 1: Token has expired and refresh failed;" in result.stderr
    assert not (tmp_path / "state").exists()
