"""Senders for a cluster, with tokens signed by real API servers."""

from __future__ import annotations

import io
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from bellhop.adapters.kube.client import KubeClient, Right
from bellhop.core.gvk import GVK
from bellhop.errors import DeniedError
from bellhop.ingest.handler import Ingest
from bellhop.ingest.http import Caller
from bellhop.installation import Inbound, Installation
from bellhop.logs import Log
from bellhop.registration import instructions
from bellhop.registration.forwarder_manifests import NAME, NAMESPACE
from bellhop.registration.registration import register
from bellhop.registration.removal import deregister
from bellhop.state.ingest_policy import IngestPolicy
from infra.lab.cluster import Cluster
from tests.fakes.clock import FakeClock
from tests.fakes.kept import value_of
from tests.unit.registration.conftest import Enroll, Wished
from tests.waiting import await_rights, eventually

KEY = "prod/eu-1"
RBAC = "rbac.authorization.k8s.io"
DISCOVERY = "system:service-account-issuer-discovery"
AUDIENCE = "https://ingest.example"

Admits = Callable[..., bool]


@pytest.fixture
def clock() -> FakeClock:
    """A clock that goes as that of the API servers did when the test began."""
    return FakeClock(datetime.now(UTC))


@pytest.fixture
def admits(here: Installation) -> Admits:
    """Say whether ingest lets a token in."""

    def ask(token: str, key: str = KEY) -> bool:
        ingest = Ingest(here.records, here.publisher, here.settings, Log(io.StringIO()))
        return isinstance(ingest.admit(Caller(key, token)), IngestPolicy)

    return ask


def account_token(kube: KubeClient, audience: str = AUDIENCE, seconds: int = 600) -> str:
    """Have an API server make what a forwarder's pod has mounted."""
    return kube.token_request(NAMESPACE, NAME, audience, seconds)


def test_a_forwarder_sends_by_its_account(
    here: Installation,
    enroll: Enroll,
    source: KubeClient,
    destination: KubeClient,
    destination_cluster: Cluster,
    admits: Admits,
) -> None:
    """For its own cluster and this installation only, from the registration on."""
    enroll(inbound=Inbound(f"{AUDIENCE}/", ""))
    enroll("eu-2", cluster=destination_cluster)
    source.apply(
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": NAME, "namespace": "default"},
        }
    )
    token, elsewhere = account_token(source), account_token(destination)

    assert admits(token)
    assert admits(instructions.read_entries(source)["token"])
    assert admits(elsewhere, "prod/eu-2")
    assert not admits(elsewhere)
    assert not admits(token, "prod/eu-2")
    assert not admits(account_token(source, "https://other.example"))
    assert not admits(account_token(source, ""))
    assert not admits(source.token_request("default", NAME, AUDIENCE))
    head, claims, signature = token.split(".")
    assert not admits(f"{head}.{claims}.{signature[::-1]}")
    deregister(here, KEY)
    assert not admits(token)


def test_a_token_counts_only_in_its_time(
    enroll: Enroll, source: KubeClient, admits: Admits, clock: FakeClock
) -> None:
    """Neither before it is in force nor after it has expired, but for a minute of clocks' doubt."""
    enroll()
    token = account_token(source)

    with clock.behind(timedelta(minutes=2)):
        assert not admits(token)
    assert admits(token)
    clock.advance(timedelta(minutes=12))
    assert not admits(token)


def test_another_cluster_under_a_name_has_other_accounts(
    here: Installation,
    enroll: Enroll,
    source: KubeClient,
    destination: KubeClient,
    destination_cluster: Cluster,
    admits: Admits,
) -> None:
    """Nobody of the former one sends for it; a cluster without a forwarder has none at all."""
    enroll()
    former = account_token(source)
    assert admits(former)
    enroll(cluster=destination_cluster)

    assert not admits(former)
    present = account_token(destination)
    assert admits(present)
    enroll(forwarder=False, cluster=destination_cluster)
    assert value_of(here.records.issuers.get(KEY)) is None
    assert not admits(present)


def may_read_keys(kube: KubeClient) -> bool:
    try:
        kube.issuer()
    except DeniedError:
        return False
    return True


def test_says_that_keys_may_not_be_read(
    here: Installation, wished: Wished, source: KubeClient, source_cluster: Cluster, admits: Admits
) -> None:
    """The cluster is registered all the same, and its forwarder has the token of its Secret."""
    account = {"kind": "ServiceAccount", "name": "default", "namespace": "default"}
    everything = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
    for manifest in (
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": "default", "namespace": "default"},
        },
        {"kind": "ClusterRole", "metadata": {"name": "but-paths"}, "rules": [everything]},
        {
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "but-paths"},
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "but-paths"},
            "subjects": [account],
        },
    ):
        source.apply({"apiVersion": f"{RBAC}/v1", **manifest})
    # What lets all accounts read the keys goes: an API server has it from its first start on.
    source.remove(GVK(RBAC, "v1", "ClusterRoleBinding"), "", DISCOVERY)
    await_rights(source, "default/default", [Right("*", "*", "*")])
    account_client = source.acting_as("default/default")
    eventually("the keys may not be read", lambda: not may_read_keys(account_client))
    spec = wished(source_cluster)
    mine = replace(spec.kubeconfig, token=source.token_request("default", "default"))
    done = register(here, replace(spec, kubeconfig=mine))

    assert "cannot prove itself by its account" in " ".join(done.warnings)
    assert "read the keys of its service accounts" in " ".join(done.warnings)
    assert not admits(account_token(source))
    assert admits(instructions.read_entries(source)["token"])
