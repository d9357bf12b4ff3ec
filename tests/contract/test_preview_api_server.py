"""What would change, as a real API server says by its dry run."""

from __future__ import annotations

from bellhop.adapters.kube.client import KubeClient
from bellhop.adapters.kube.refusal import Call
from bellhop.adapters.kube.transport import Request
from bellhop.core.gvk import GVK
from bellhop.operations.previews import list_dry_runs
from tests.contract.real_cluster import EAST, map_actions
from tests.contract.test_kube import config_map
from tests.fakes.fleet import Fleet
from tests.fakes.manifests import config, holder, join, profile

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


def adopted(name: str, *data: str) -> str:
    """Return a ConfigMap that is to be adopted."""
    return config(name, *data).replace("}", ", annotations: {bellhop.dev/adopt: 'true'}}", 1)


def make(kube: KubeClient, manager: str, name: str, **data: str) -> None:
    """Make a ConfigMap as somebody else does."""
    path, body = "/api/v1/namespaces/default/configmaps", config_map(name, **data)
    request = Request("POST", path, {"fieldManager": manager}, body)
    kube._transport.send(request, Call(EAST, "make one", "default"))


def versions(kube: KubeClient) -> dict[str, str]:
    """Return name and resourceVersion of all objects that profiles of this file deploy."""
    return {
        f"{kind} {each['metadata']['name']}": each["metadata"]["resourceVersion"]
        for kind in ("ConfigMap", "Secret", "Namespace")
        for each in kube.list(GVK("", "v1", kind))
        if each["metadata"].get("namespace", "default") in {"default", "shop"}
    }


def test_every_action_is_shown_and_nothing_is_written(fleet: Fleet, kube: KubeClient) -> None:
    """New, changed, refused and deleted objects, in a namespace or of a kind that is to come."""
    make(kube, "kubectl-create", "theirs", key="theirs")
    before = [config("same", "v: '1'"), config("new-value", "v: '1'"), config("unwanted", "v: '1'")]
    fleet.apply(join(profile(), holder("own", *before, SECRET.format("old-one"))))
    fleet.pump()
    there = versions(kube)

    desired = [
        config("same", "v: '1'"),
        config("new-value", "v: '2'"),
        adopted("theirs", "key: ours"),
        config("placed", namespace="shop"),
        config("Not_A_Name"),
        SECRET.format("new-one"),
        CRD,
        GADGET,
    ]
    fleet.apply(join(profile(more=DRY), holder("own", *desired)))
    fleet.pump()

    here = fleet.installation()
    assert map_actions(list_dry_runs(here)) == {
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
    found = {each.change.key.name: each.change for each in list_dry_runs(here)}
    assert "-  key: theirs\n+  key: ours\n" in found["theirs"].diff
    assert "password: <hidden, and another>" in found["secret"].diff
    assert "new-one" not in "".join(each.diff + each.message for each in found.values())
