"""From what registration stored to a cluster that answers, with a real secret store and server."""

from __future__ import annotations

import copy
import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from bellhop.adapters.kube.access import KubeAccess
from bellhop.adapters.local.secrets import FileSecrets
from bellhop.clusters.kubeconfig import sanitise
from bellhop.core.address_policy import LOCAL
from bellhop.core.gvk import GVK
from bellhop.errors import DeniedError, InvalidError, MissingError
from bellhop.ports.kube import Access
from infra.lab.cluster import Cluster

pytestmark = pytest.mark.oldest

CONFIG_MAP = GVK("", "v1", "ConfigMap")
NAME = "kubeconfig/prod/eu-1"


@pytest.fixture
def secrets(tmp_path: Path) -> FileSecrets:
    """The embedded mode's secret store."""
    return FileSecrets(tmp_path / "secrets", bytes(range(32)))


def _store(secrets: FileSecrets, kubeconfig: dict[str, Any], token: str = "") -> None:
    document = copy.deepcopy(kubeconfig)
    if token:
        document["users"][0]["user"]["token"] = token
    secrets.put(NAME, json.dumps(sanitise(document, reach=LOCAL).to_dict()).encode())


def test_opens_a_registered_cluster(secrets: FileSecrets, source_cluster: Cluster) -> None:
    """What was stored sanitised opens, once for all that ask."""
    _store(secrets, source_cluster.kubeconfig())
    access: Access = KubeAccess(secrets, reach=LOCAL)

    cluster = access.open("prod/eu-1")

    assert cluster.get(CONFIG_MAP, "default", "a") is None
    assert access.open("prod/eu-1") is cluster


def test_each_cluster_is_its_own(
    secrets: FileSecrets, source_cluster: Cluster, destination_cluster: Cluster
) -> None:
    """What goes to one does not appear in the other."""
    _store(secrets, source_cluster.kubeconfig())
    secrets.put("kubeconfig/prod/us-1", json.dumps(destination_cluster.kubeconfig()).encode())
    access = KubeAccess(secrets, reach=LOCAL)
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}

    access.open("prod/us-1").apply(manifest)

    assert access.open("prod/us-1").get(CONFIG_MAP, "default", "a") is not None
    assert access.open("prod/eu-1").get(CONFIG_MAP, "default", "a") is None


def test_a_token_that_was_replaced_works_at_once(
    secrets: FileSecrets, source_cluster: Cluster
) -> None:
    """The call that is refused is the one that finds the new token."""
    _store(secrets, source_cluster.kubeconfig(), token="expired")
    access = KubeAccess(secrets, reach=LOCAL, seconds=itertools.count(step=10).__next__)
    cluster = access.open("prod/eu-1")
    with pytest.raises(DeniedError):
        cluster.get(CONFIG_MAP, "default", "a")

    _store(secrets, source_cluster.kubeconfig())

    assert cluster.get(CONFIG_MAP, "default", "a") is None


def test_a_cluster_without_credentials_is_missing(secrets: FileSecrets) -> None:
    """It is not registered, or no longer."""
    with pytest.raises(MissingError, match="'prod/eu-1' has no stored credentials"):
        KubeAccess(secrets, reach=LOCAL).open("prod/eu-1")


def test_what_was_stored_by_another_hand_is_checked(
    secrets: FileSecrets, source_cluster: Cluster
) -> None:
    """A kubeconfig that would run a program is refused here as at registration."""
    document = source_cluster.kubeconfig()
    document["users"][0]["user"] = {"exec": {"command": "sh"}}
    secrets.put(NAME, json.dumps(document).encode())

    with pytest.raises(InvalidError, match=r"cluster 'prod/eu-1'.*`exec` is refused"):
        KubeAccess(secrets, reach=LOCAL).open("prod/eu-1")
