"""What would change, as a real API server says by its dry run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bellhop.adapters.kube.client import KubeClient
from bellhop.adapters.kube.refusal import Call
from bellhop.adapters.kube.transport import Request
from bellhop.clusters.kubeconfig import sanitise
from bellhop.core.address_policy import LOCAL
from bellhop.core.gvk import GVK
from bellhop.operations.previews import noted, now
from infra.lab.cluster import Cluster
from tests.contract.test_kube import config_map
from tests.fakes.fleet import Fleet
from tests.fakes.manifests import config, holder, join, profile

pytest_plugins = ["tests.kube_fixtures"]

EAST = "fleet/east"
DRY = "syncMode: DryRun"
CRD = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.lab.example}
spec:
  group: lab.example
  scope: Namespaced
  names: {kind: Gadget, plural: gadgets}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
"""
GADGET = "apiVersion: lab.example/v1\nkind: Gadget\nmetadata: {name: g, namespace: shop}\n"
SECRET = """\
apiVersion: v1
kind: Secret
metadata: {{name: secret, namespace: default}}
stringData: {{password: {}}}
"""


@pytest.fixture
def kube(source_cluster: Cluster) -> Iterator[KubeClient]:
    """A client of a fresh cluster."""
    client = KubeClient(EAST, sanitise(source_cluster.kubeconfig(), reach=LOCAL), reach=LOCAL)
    yield client
    client.close()


@pytest.fixture
def fleet(tmp_path: Path, kube: KubeClient) -> Iterator[Fleet]:
    """An installation that knows the cluster."""
    one = Fleet(tmp_path)
    one.access.clusters[EAST] = kube  # type: ignore[assignment]
    one.register("east", env="production")
    yield one
    one.close()


def told(found: Iterator[Any]) -> dict[str, str]:
    return {each.change.key.name: each.change.action for each in found}


def adopted(name: str, *data: str) -> str:
    """Return a ConfigMap that is to be adopted."""
    return config(name, *data).replace("}", ", annotations: {bellhop.dev/adopt: 'true'}}", 1)


def make(kube: KubeClient, manager: str, name: str, **data: str) -> None:
    """Make a ConfigMap as somebody else does."""
    path, body = "/api/v1/namespaces/default/configmaps", config_map(name, **data)
    request = Request("POST", path, {"fieldManager": manager}, body)
    kube._transport.send(request, Call(EAST, "make one", "default"))


def versions(kube: KubeClient) -> dict[str, str]:
    """Return name and resourceVersion of all that profiles of this file bring."""
    return {
        f"{kind} {each['metadata']['name']}": each["metadata"]["resourceVersion"]
        for kind in ("ConfigMap", "Secret", "Namespace")
        for each in kube.list(GVK("", "v1", kind))
        if each["metadata"].get("namespace", "default") in {"default", "shop"}
    }


def test_every_action_is_told_and_nothing_is_written(fleet: Fleet, kube: KubeClient) -> None:
    """What is new, changed, refused or gone, in a namespace or of a kind that is still to come."""
    make(kube, "kubectl-create", "theirs", key="theirs")
    before = [config("same", "v: '1'"), config("new-value", "v: '1'"), config("unwanted", "v: '1'")]
    fleet.apply(join(profile(), holder("own", *before, SECRET.format("old-one"))))
    fleet.pump()
    there = versions(kube)

    wanted = [
        config("same", "v: '1'"),
        config("new-value", "v: '2'"),
        adopted("theirs", "key: ours"),
        config("placed", namespace="shop"),
        config("Not_A_Name"),
        SECRET.format("new-one"),
        CRD,
        GADGET,
    ]
    fleet.apply(join(profile(more=DRY), holder("own", *wanted)))
    fleet.pump()

    here = fleet.installation()
    assert told(noted(here)) == {
        "same": "No Action",
        "new-value": "Update",
        "theirs": "Adopt",
        "placed": "Create",
        "Not_A_Name": "Error",
        "secret": "Update",
        "gadgets.lab.example": "Create",
        "g": "Create",
        "unwanted": "Delete",
    }
    assert versions(kube) == there
    found = {each.change.key.name: each.change for each in noted(here)}
    assert "-  key: theirs\n+  key: ours\n" in found["theirs"].diff
    assert "password: <hidden, and another>" in found["secret"].diff
    assert "new-one" not in "".join(each.diff + each.message for each in found.values())


def test_what_it_told_is_what_it_does(fleet: Fleet, kube: KubeClient) -> None:
    """Once it is meant, all that was to be created is there, and nothing is left to do."""
    wanted = [config("a", "v: '1'"), config("b", namespace="shop"), CRD]
    fleet.apply(join(profile(more=DRY), holder("own", *wanted)))
    fleet.pump()
    assert set(told(noted(fleet.installation())).values()) == {"Create"}

    fleet.apply(profile())
    fleet.pump()

    assert {"ConfigMap a", "ConfigMap b", "Namespace shop"} <= versions(kube).keys()
    assert set(told(now(fleet.installation(), "own")).values()) == {"No Action"}


def test_what_another_profile_has_is_told(fleet: Fleet, kube: KubeClient) -> None:
    """As a conflict, with whose it is; what this one would have beside it is told, too."""
    fleet.apply(join(profile(name="first"), holder("first", config("a", "v: '1'"))))
    fleet.pump()
    before = versions(kube)

    wanted = [config("a", "v: '2'"), config("b", "v: '2'")]
    fleet.apply(join(profile(more=DRY), holder("own", *wanted)))
    fleet.pump()

    found = {each.change.key.name: each.change for each in noted(fleet.installation())}
    assert {name: each.action for name, each in found.items()} == {"a": "Conflict", "b": "Create"}
    assert "profile 'first' of tier 100 has it" in found["a"].message
    assert versions(kube) == before
