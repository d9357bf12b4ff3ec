"""A tenant's rights are those that a real API server's RBAC gives its service account."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from bellhop.adapters.kube.client import KubeClient, Right
from bellhop.clusters.kubeconfig import sanitise
from bellhop.core.address_policy import LOCAL
from bellhop.core.gvk import GVK
from bellhop.core.sveltos_annotations import ACCOUNT_NAME, ACCOUNT_NAMESPACE
from bellhop.errors import DeniedError
from bellhop.ports.kube import Manifest
from infra.lab.cluster import Cluster
from tests.contract.real_cluster import EAST, read_message, retry
from tests.fakes.fleet import Fleet
from tests.fakes.manifests import config, holder, profile
from tests.waiting import await_rights

ANN = "team/ann"
CONFIG = GVK("", "v1", "ConfigMap")
WRITE = ("create", "patch", "delete")
VERBS = (*WRITE, "get", "list", "impersonate")
OWN = profile(more="continueOnError: true").replace(
    "metadata: {",
    f"metadata: {{labels: {{{ACCOUNT_NAME}: ann, {ACCOUNT_NAMESPACE}: team}}, ",
    1,
)


@pytest.fixture
def kube(kube: KubeClient) -> KubeClient:
    """The administrator of a cluster that has the tenant's service account."""
    make_account(kube, "ann")
    return kube


def make_account(kube: KubeClient, name: str) -> None:
    """Make a service account in the namespace team."""
    kube.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    metadata = {"name": name, "namespace": "team"}
    kube.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})


def limited_client(kube: KubeClient, cluster: Cluster, name: str) -> KubeClient:
    """Return a client that may do in a cluster what its service account is granted, no more."""
    make_account(kube, "bellhop")
    mine, token = sanitise(cluster.kubeconfig(), reach=LOCAL), kube.token_request("team", "bellhop")
    return KubeClient(name, replace(mine, token=token), reach=LOCAL)


def grant(
    kube: KubeClient,
    name: str,
    *verbs: str,
    resources: Sequence[str] = ("configmaps",),
    namespace: str = "default",
) -> None:
    """Let a service account do something in a namespace, and by the same role nothing else."""
    rbac = "rbac.authorization.k8s.io"
    metadata = {"name": f"for-{name}", "namespace": namespace}
    rules = [{"apiGroups": [""], "resources": [*resources], "verbs": [*verbs]}]
    role: Manifest = {"apiVersion": f"{rbac}/v1", "kind": "Role", "metadata": metadata}
    kube.apply({**role, "rules": rules})
    kube.apply(
        {
            **role,
            "kind": "RoleBinding",
            "roleRef": {"apiGroup": rbac, "kind": "Role", "name": f"for-{name}"},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": "team"}],
        }
    )
    rights = [Right(verb, "", each, "", namespace) for verb in VERBS for each in resources]
    granted = [each for each in rights if each.verb in verbs]
    await_rights(kube, f"team/{name}", granted, [each for each in rights if each not in granted])


def test_allowed_then_denied_a_verb_and_a_namespace(fleet: Fleet, kube: KubeClient) -> None:
    """What is denied is named with verb, kind, namespace and account; the rest is as declared."""
    grant(kube, "ann", *WRITE)
    fleet.apply(OWN, holder("own", config("a"), config("b")))
    fleet.pump()
    assert read_message(fleet) == "Provisioned"

    grant(kube, "ann", "create", "patch")
    fleet.apply(holder("own", config("a", "v: '1'")))
    fleet.pump()
    assert "cannot remove ConfigMap 'default/b' on cluster 'fleet/east': " in read_message(fleet)
    assert (
        'User "system:serviceaccount:team:ann" cannot delete resource "configmaps" in API group ""'
        " in the namespace \"default\"; the rights of service account 'team/ann' count"
    ) in read_message(fleet)

    fleet.apply(
        holder("own", config("c", namespace="kube-system"), config("a", "v: '2'"), config("b"))
    )
    retry(fleet)
    assert 'cannot patch resource "configmaps" in API group "" in the namespace "kube-system"' in (
        read_message(fleet)
    )
    changed = kube.get(CONFIG, "default", "a")
    assert changed
    assert changed["data"] == {"v": "2"}
    assert kube.get(CONFIG, "kube-system", "c") is None


def test_an_account_that_is_not_there_may_nothing(fleet: Fleet, kube: KubeClient) -> None:
    """Nobody has bound a role to it."""
    fleet.apply(OWN.replace("name: ann", "name: nobody"), holder("own", config("a")))
    fleet.pump()

    assert 'User "system:serviceaccount:team:nobody" cannot patch resource' in read_message(fleet)
    assert kube.get(CONFIG, "default", "a") is None


def test_its_groups_count(fleet: Fleet, kube: KubeClient) -> None:
    """The API server adds the groups of a service account, so that roles bound to these help."""
    grant(kube, "ann", *WRITE)
    binding = kube.get(GVK("rbac.authorization.k8s.io", "v1", "RoleBinding"), "default", "for-ann")
    assert binding
    group = {"kind": "Group", "name": "system:serviceaccounts:team"}
    kube.apply(
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": {"name": "for-ann", "namespace": "default"},
            "roleRef": binding["roleRef"],
            "subjects": [{**group, "apiGroup": "rbac.authorization.k8s.io"}],
        }
    )
    fleet.apply(OWN, holder("own", config("a")))
    fleet.pump()

    assert read_message(fleet) == "Provisioned"


def test_credentials_that_may_not_act_for_it(
    fleet: Fleet, kube: KubeClient, source_cluster: Cluster
) -> None:
    """They may write everything themselves, and still nothing is written for the tenant."""
    limited = limited_client(kube, source_cluster, EAST)
    grant(kube, "bellhop", "get", "list", *WRITE)
    fleet.access.clusters[EAST] = limited  # type: ignore[assignment]
    fleet.apply(OWN, holder("own", config("a")))
    fleet.pump()

    assert read_message(fleet) == (
        "cannot apply ConfigMap 'default/a' on cluster 'fleet/east': Bellhop's credentials there"
        " may not act for service account 'team/ann', whose rights count; grant them the verb"
        " impersonate on serviceaccounts, or register the cluster with others"
    )
    assert kube.get(CONFIG, "default", "a") is None

    grant(kube, "bellhop", "impersonate", resources=("serviceaccounts",), namespace="team")
    grant(kube, "ann", *WRITE)
    retry(fleet)
    assert read_message(fleet) == "Provisioned"
    limited.close()


def test_a_client_for_an_account_shares_what_it_knows_and_nothing_else(kube: KubeClient) -> None:
    """Who asked for one keeps their own rights."""
    acting = kube.acting_as(ANN)
    with pytest.raises(DeniedError):
        acting.get(GVK("", "v1", "Namespace"), "", "team")

    assert kube.get(GVK("", "v1", "Namespace"), "", "team")
    assert acting._discovery is kube._discovery
