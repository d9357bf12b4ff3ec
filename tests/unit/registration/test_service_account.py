"""Bellhop's own service account: made with an administrator's credentials, kept as it is."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from bellhop.adapters.kube.client import KubeClient
from bellhop.clusters.kubeconfig import Kubeconfig, sanitise
from bellhop.core.address_policy import LOCAL
from bellhop.errors import UnreachableError
from bellhop.installation import Installation
from bellhop.registration import service_account
from bellhop.registration.service_account import create_account
from infra.lab.cluster import Cluster

KEY = "prod/eu-1"
RBAC = "rbac.authorization.k8s.io"


def login(cluster: Cluster) -> Kubeconfig:
    """The credentials of an administrator."""
    return sanitise(cluster.kubeconfig(), reach=LOCAL)


@pytest.fixture
def admin(governed_cluster: Cluster) -> Iterator[KubeClient]:
    """A cluster with controllers, as its administrator sees it."""
    client = KubeClient("test", login(governed_cluster), reach=LOCAL)
    yield client
    client.close()


def test_the_account_logs_in_by_a_token_that_does_not_expire(
    here: Installation, governed_cluster: Cluster
) -> None:
    """It may do everything at once, and a second time it is the same."""
    given = login(governed_cluster)
    own = create_account(here, KEY, given)
    kube = KubeClient("own", own, reach=LOCAL)

    assert kube.rights([("delete", "*", "*", "", "")]) == []
    kube.close()
    assert (own.server, own.ca_data, own.ends_at) == (given.server, given.ca_data, None)
    assert own.token != given.token
    assert create_account(here, KEY, given) == own


def test_a_cluster_that_makes_no_token_is_not_waited_for_without_end(
    here: Installation, source_cluster: Cluster
) -> None:
    """One without controllers fills no Secret."""
    paused: list[float] = []

    with pytest.raises(UnreachableError, match="makes no token of service account 'bellhop-acc"):
        create_account(here, KEY, login(source_cluster), pause=paused.append)

    assert sum(paused) == pytest.approx(30)


def test_an_account_that_somebody_left_without_rights_is_named(
    here: Installation, governed_cluster: Cluster, admin: KubeClient
) -> None:
    """Its binding is left unchanged, and the sentence says where to look."""
    admin.apply(
        {
            "apiVersion": f"{RBAC}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "bellhop-account"},
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "none"},
            "subjects": [],
        }
    )
    for manifest in service_account._manifests(bound=True):
        admin.apply(manifest)
    service_account._wait_until(lambda: service_account._read_token(admin), "no token", time.sleep)

    with pytest.raises(UnreachableError, match=r"accepts no token .* at the ClusterRoleBinding"):
        create_account(here, KEY, login(governed_cluster), pause=lambda _: None)
