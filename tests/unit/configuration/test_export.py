"""What files have applied moves into the configuration cluster, and nothing is deployed again."""

from __future__ import annotations

from typing import Any

import pytest

from bellhop.api.kinds import DeclarationKey, of, parse
from bellhop.api.served import is_same_declaration, make_served
from bellhop.configuration.export import list_exported
from bellhop.configuration.origin import list_configuration
from bellhop.core.gvk import GVK
from bellhop.documents.document import dump, read_documents
from tests.fakes.fleet import service
from tests.fakes.manifests import INSTANTIATE, config, holder, profile, source, trigger
from tests.unit.configuration.hub import HUB, Hub

CONFIG_MAP = GVK("", "v1", "ConfigMap")
ACCOUNT = {
    "projectsveltos.io/serviceaccount-name": "red",
    "projectsveltos.io/serviceaccount-namespace": "red",
}
FLAT = """
apiVersion: lib.projectsveltos.io/v1alpha1
kind: EventSource
metadata: {name: watched}
spec:
  collectResources: true
  group: ""
  version: v1
  kind: Service
  labelsFilters: [{key: sveltos, operation: Has}]
  script: |
    function evaluate() return {matching = true} end
"""
FIRST = """
apiVersion: lib.projectsveltos.io/v1alpha1
kind: %s
metadata: {name: made, namespace: default, labels: {bellhop.dev/applyset: fleet}}
spec:
  clusterSelector: env=production,tier notin (edge)
  eventSourceName: watched
  oneForEvent: true
  policyRefs: [{kind: ConfigMap, name: made, namespace: default}]
"""
SECRET = """
apiVersion: v1
kind: Secret
metadata: {name: hidden}
type: addons.projectsveltos.io/cluster-profile
stringData:
  main.yaml: |
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: from-secret, namespace: default}
"""
HEALTH = """
apiVersion: lib.projectsveltos.io/v1alpha1
kind: HealthCheck
metadata: {name: old}
spec:
  group: apps
  version: v1
  kind: Deployment
  script: |
    function evaluate() return {status = "Healthy"} end
"""


def move(hub: Hub) -> dict[DeclarationKey, dict[str, Any]]:
    """Write all that is exported to the API server; return it."""
    found = {
        each.key: dict(each.manifest)
        for each in list_exported(hub.fleet.installation())
        if each.manifest
    }
    # In the worst order: what names a holder comes before it.
    hub.write(*(dump(each) for each in found.values()))
    return found


def origins(hub: Hub) -> set[tuple[str, bool]]:
    found = list_configuration(hub.fleet.installation())
    return {(each.origin, each.in_force) for each in found}


def versions(hub: Hub) -> dict[str, tuple[str, str]]:
    """Return uid and version of each ConfigMap in the target."""
    listed = [each["metadata"] for each in hub.east.list(CONFIG_MAP)]
    return {each["name"]: (each["uid"], each["resourceVersion"]) for each in listed}


def test_a_move_changes_nothing_in_the_fleet(hub: Hub) -> None:
    made = config("made-{{ .Resource.metadata.name }}")
    hub.fleet.deploy(
        *(profile(more="tier: 50"), holder("own", config("made"))),
        *(source(), trigger(ref="event"), holder("event", made, annotations=INSTANTIATE)),
        *(profile(name="hidden").replace("kind: ConfigMap", "kind: Secret"), SECRET),
    )
    hub.fleet.write("east", service("web"))
    hub.fleet.pump()
    before = versions(hub)
    assert before.keys() == {"made", "made-web", "from-secret"}

    move(hub)

    assert origins(hub) == {(HUB, True)}
    assert versions(hub) == before
    hub.fleet.resync(HUB)
    assert versions(hub) == before


@pytest.mark.parametrize("kind", ["EventBasedAddOn", "EventTrigger"])
def test_former_forms_are_converted_and_deploy_the_same(hub: Hub, kind: str) -> None:
    """Their triggers render contents that have no annotation, and still do."""
    made = holder("made", config("made-{{ .Resource.metadata.name }}"))
    hub.fleet.deploy(FLAT, FIRST % kind, HEALTH, made)
    hub.fleet.write("east", service("web"))
    hub.fleet.pump()
    before = versions(hub)
    assert before.keys() == {"made-web"}

    found = move(hub)

    assert {each["apiVersion"] for each in found.values()} == {
        "lib.projectsveltos.io/v1beta1",
        "v1",
    }
    assert "EventBasedAddOn" not in {each["kind"] for each in found.values()}
    assert origins(hub) == {(HUB, True)}
    assert not hub.is_stored("EventBasedAddOn", "made")
    assert versions(hub) == before
    hub.fleet.write("east", service("shop"))
    hub.fleet.pump()
    assert versions(hub).keys() == {"made-shop", "made-web"}


def test_what_the_cluster_holds_and_what_nothing_names_is_left_out(hub: Hub) -> None:
    hub.fleet.deploy(holder("unnamed", config("never")), profile(name="mine"))
    hub.write(profile(), holder("own", config("made")))

    found = {each.key.name: each.reason for each in list_exported(hub.fleet.installation())}

    assert found == {"unnamed": "named by no manifest", "mine": ""}


def test_another_trigger_of_the_name_is_in_the_way(hub: Hub) -> None:
    """Of both names of the kind; and files do not get a name back that the cluster holds."""
    hub.fleet.deploy(FLAT, FIRST % "EventBasedAddOn")

    hub.write(trigger(more="tier: 7"))
    assert hub.read("EventTrigger", "made").state == "OtherOrigin"

    takes = "metadata: {name: made, annotations: {bellhop.dev/take-over: files}}"
    hub.write(trigger(more="tier: 7").replace("metadata: {name: made}", takes))
    assert hub.read("EventTrigger", "made").state == "InForce"
    assert not hub.is_stored("EventBasedAddOn", "made")
    with pytest.raises(Exception, match=f"cluster '{HUB}' holds it"):
        hub.fleet.apply(FIRST % "EventBasedAddOn")


@pytest.mark.parametrize(
    ("change", "same"),
    [
        ({}, True),
        ({"spec": {"syncMode": "Continuous", "tier": 100, "continueOnConflict": False}}, True),
        ({"metadata": {"labels": {"kustomize.toolkit.fluxcd.io/name": "fleet"}}}, True),
        ({"metadata": {"annotations": {"argocd.argoproj.io/tracking-id": "fleet"}}}, True),
        ({"spec": {"tier": 50}}, False),
        ({"metadata": {"labels": ACCOUNT}}, False),
        ({"metadata": {"annotations": {"bellhop.dev/allow": "ConfigMap in shop"}}}, False),
        ({"metadata": {"annotations": {"profile.projectsveltos.io/paused": ""}}}, False),
    ],
)
def test_what_counts_as_the_same(change: dict[str, Any], same: bool) -> None:  # noqa: FBT001
    """Defaults that an API server writes do, and the labels of other tools."""
    [document] = read_documents(profile(), source="profile")
    data: Any = document.data
    changed = {
        **data,
        "spec": data["spec"] | change.get("spec", {}),
        "metadata": data["metadata"] | change.get("metadata", {}),
    }

    assert is_same_declaration(of(data), of(changed)) == same
    # One that lacks a label is another one: templates may read it.
    assert is_same_declaration(of(changed), of(data)) == (same and "metadata" not in change)


def test_a_secret_is_exported_as_it_is_stored() -> None:
    [document] = read_documents(SECRET, source="secret")

    served = make_served(parse(document))

    assert "stringData" not in served
    assert served["metadata"]["namespace"] == "default"
    assert of(served).decoded() == parse(document).decoded()  # type: ignore[attr-defined]
