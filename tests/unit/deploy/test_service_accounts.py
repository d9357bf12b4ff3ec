"""Limits of a tenant's profiles and triggers to the permissions of its service account."""

from __future__ import annotations

from datetime import timedelta

import pytest
from msgspec.structs import replace

from bellhop.api.kinds import InvalidDocuments
from bellhop.core.sveltos_annotations import ACCOUNT_NAME, ACCOUNT_NAMESPACE
from bellhop.diagnosis import profile_manifests
from tests.fakes.fleet import Fleet, service
from tests.fakes.kept import value_of
from tests.fakes.kube import CONFIG, FakeKube
from tests.fakes.manifests import INSTANTIATE, config, holder, join, profile, source, trigger

ANN = "team/ann"
LABELS = f"labels: {{{ACCOUNT_NAME}: ann, {ACCOUNT_NAMESPACE}: team}}"


def anns(manifest: str) -> str:
    """Return a rule that counts with the rights of the service account team/ann."""
    return manifest.replace("metadata: {", f"metadata: {{{LABELS}, ", 1)


def names(kube: FakeKube) -> set[str]:
    return {each["metadata"]["name"] for each in kube.objects(CONFIG)}


def test_all_that_is_asked_of_objects_is_asked_as_the_account(fleet: Fleet, east: FakeKube) -> None:
    """Apply, change, removal removal; which kinds are served is asked by ourselves."""
    east.rbac.grant(ANN, "ConfigMap")
    fleet.deploy(anns(profile()), holder("own", config("a"), config("b")))
    fleet.deploy(holder("own", config("a", "v: '1'")))

    assert names(east) == {"a"}
    asked = {(each.verb, each.account) for each in east.calls}
    assert {each for each in asked if each[1]} == {("apply", ANN), ("remove", ANN)}
    assert not {"apply", "remove", "merge"} & {verb for verb, account in asked if not account}


def test_drift_is_read_and_corrected_as_the_account(fleet: Fleet, east: FakeKube) -> None:
    """An account that may not read an object is not shown the changes of others."""
    east.rbac.grant(ANN, "ConfigMap")
    watched = profile(more="syncMode: ContinuousWithDriftDetection")
    fleet.deploy(anns(watched), holder("own", config("a", "v: '1'")))
    [there] = east.objects(CONFIG)
    stored = east.put({**there, "data": {"v": "theirs"}})
    east.calls.clear()

    fleet.send("east", {"object": stored})
    fleet.pump()

    [back] = east.objects(CONFIG)
    assert back["data"] == {"v": "1"}
    asked = {(each.verb, each.account) for each in east.calls if each.gvk == CONFIG}
    assert {each for each in asked if each[0] in ("get", "apply")} == {("get", ANN), ("apply", ANN)}


def test_a_denied_object_is_reported_and_the_rest_is_deployed(fleet: Fleet, east: FakeKube) -> None:
    """It is tried again after the usual pauses, and works as soon as the permission is there."""
    east.rbac.grant(ANN, "ConfigMap", "default")
    there = config("there", namespace="kube-system")
    fleet.deploy(anns(profile(more="continueOnError: true")), holder("own", there, config("here")))

    assert names(east) == {"here"}
    failed = fleet.status_of()
    assert (failed.phase, failed.reason) == ("Failed", "Denied")
    assert "'team/ann' may not create ConfigMap in namespace 'kube-system'" in failed.message
    assert failed.retry_at

    east.rbac.grant(ANN, "ConfigMap", "kube-system")
    fleet.wait()
    assert names(east) == {"here", "there"}
    assert fleet.status_of().phase == "Provisioned"


def test_a_namespace_is_made_by_who_may_make_it(fleet: Fleet, east: FakeKube) -> None:
    """A tenant who may write into a namespace may not therefore make it."""
    east.rbac.grant(ANN, "ConfigMap")
    fleet.deploy(anns(profile()), holder("own", config("a", namespace="new")))
    assert names(east) == set()
    assert "may not get Namespace" in fleet.status_of().message

    east.rbac.grant(ANN, "Namespace")
    fleet.wait()
    assert names(east) == {"a"}


def test_a_withdrawal_has_the_rights_of_the_account(fleet: Fleet, east: FakeKube) -> None:
    """An object that it may not delete stays owned, and is deleted once it may."""
    east.rbac.grant(ANN, "ConfigMap")
    fleet.deploy(anns(profile()), holder("own", config("a")))
    east.rbac.take(ANN, "ConfigMap", "", "delete")

    fleet.delete("ClusterProfile", "own")
    assert names(east) == {"a"}
    assert "may not delete ConfigMap" in fleet.status_of().message

    east.rbac.grant(ANN, "ConfigMap", "", "delete")
    fleet.wait()
    assert names(east) == set()
    assert not list(fleet.records.inventories.of("fleet/east"))


def test_a_dry_run_shows_what_the_account_would_meet(fleet: Fleet, east: FakeKube) -> None:
    """A missing permission is an error of that object; no call has more permissions."""
    fleet.deploy(anns(profile(more="syncMode: DryRun")), holder("own", config("a")))

    assert names(east) == set()
    (preview,) = fleet.records.previews.of("fleet/east")
    (change,) = preview.changes
    assert change.action == "Error"
    assert "'team/ann' may not" in change.message


RULES = join(
    anns(source()),
    anns(trigger()),
    holder("made", config("for-{{ .Resource.metadata.name }}"), annotations=INSTANTIATE),
)


def test_what_a_trigger_makes_has_its_account(fleet: Fleet, east: FakeKube) -> None:
    """As Sveltos copies the labels: the ClusterProfile bears them, and is held to them."""
    east.rbac.grant(ANN, "ConfigMap", "default")
    east.rbac.grant(ANN, "Service")
    fleet.apply(RULES)
    fleet.write("east", service("web"))
    fleet.pump()

    assert names(east) == {"for-web"}
    (made,) = fleet.records.profiles.of("made")
    assert made.account == ANN
    labels = profile_manifests.manifest(made, "watched")["metadata"]["labels"]
    assert (labels[ACCOUNT_NAMESPACE], labels[ACCOUNT_NAME]) == ("team", "ann")


def test_rights_taken_away_between_evaluate_and_deploy_count(fleet: Fleet, east: FakeKube) -> None:
    """A match from before the permission was removed is not deployed."""
    east.rbac.grant(ANN, "ConfigMap")
    east.rbac.grant(ANN, "Service")
    fleet.deploy(RULES)
    fleet.write("east", service("web"))
    fleet.work("evaluate", fleet.queues["evaluate"].receive(1, wait=timedelta(0)))
    east.rbac.take(ANN, "ConfigMap")
    fleet.pump()

    assert names(east) == set()
    (made,) = fleet.records.profiles.of("made")
    assert "may not create ConfigMap" in fleet.status_of(made.name).message


def test_a_profile_that_changes_its_account_is_applied_again(fleet: Fleet, east: FakeKube) -> None:
    """An object that one account may not write may be allowed to its successor."""
    fleet.deploy(anns(profile()), holder("own", config("a")))
    assert names(east) == set()

    east.rbac.grant("team/bob", "ConfigMap")
    fleet.apply(anns(profile()).replace("name: ann", "name: bob"))
    fleet.wait()

    assert names(east) == {"a"}
    assert {each.account for each in east.calls if each.verb == "apply"} == {ANN, "team/bob"}


def test_a_cluster_where_nobody_may_act_for_others_gets_nothing(
    fleet: Fleet, east: FakeKube
) -> None:
    """Without that right there is no falling back on our own."""
    east.rbac.grant(ANN, "ConfigMap")
    east.rbac.impersonates = False
    fleet.deploy(anns(profile()), holder("own", config("a")))

    assert names(east) == set()
    assert "may not act for 'team/ann'" in fleet.status_of().message


READS = (
    "templateResourceRefs: [{identifier: It, resource: "
    "{apiVersion: v1, kind: Service, namespace: default, name: web}}]"
)


def test_templates_read_the_management_cluster_as_the_account(fleet: Fleet, east: FakeKube) -> None:
    """An object that it may not get there is not rendered for it."""
    mgmt = fleet.access.clusters["mgmt/mgmt"] = FakeKube("mgmt/mgmt")
    found = value_of(fleet.records.clusters.get("fleet/east"))
    assert found
    fleet.declare.register(replace(found, namespace="mgmt", name="mgmt", labels={}))
    mgmt.put(service("web"))
    east.rbac.grant(ANN, "ConfigMap")
    text = config("saw-{{ (getResource `It`).metadata.name }}")
    annotations = "projectsveltos.io/template: ok"
    fleet.deploy(anns(profile(more=READS)), holder("own", text, annotations=annotations))
    assert names(east) == set()
    assert "may not get Service" in fleet.status_of().message

    mgmt.rbac.grant(ANN, "Service", "default", "get")
    fleet.wait()
    assert names(east) == {"saw-web"}


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        pytest.param(f"{ACCOUNT_NAME}: ann", "together with", id="a name alone"),
        pytest.param(f"{ACCOUNT_NAMESPACE}: a", "together with", id="a namespace alone"),
        pytest.param(
            f"{ACCOUNT_NAME}: ann, {ACCOUNT_NAMESPACE}: ''",
            "together",
            id="an empty one",
        ),
        pytest.param(
            f"{ACCOUNT_NAME}: Ann, {ACCOUNT_NAMESPACE}: a",
            "names no service account: 'Ann' is not a name",
            id="no name",
        ),
        pytest.param(
            f"{ACCOUNT_NAME}: ann, {ACCOUNT_NAMESPACE}: a.b",
            "names no service account: 'a.b' is not a namespace",
            id="no namespace",
        ),
    ],
)
def test_labels_that_name_nobody_are_refused(fleet: Fleet, labels: str, said: str) -> None:
    """Half of them, taken and ignored, would have all rights count."""
    with pytest.raises(InvalidDocuments) as caught:
        fleet.apply(profile().replace("metadata: {", f"metadata: {{labels: {{{labels}}}, ", 1))

    assert said in str(caught.value)
    assert "metadata.labels['projectsveltos.io/serviceaccount-name" in str(caught.value)


@pytest.mark.parametrize("metadata", ["{}", "true", "[]", "{labels: 1}", "{labels: [a]}"])
def test_labels_are_looked_for_wherever_they_may_be(fleet: Fleet, metadata: str) -> None:
    """Metadata of another form has a sentence of its own."""
    with pytest.raises(InvalidDocuments):
        fleet.apply(f"{{apiVersion: v1, kind: ConfigMap, metadata: {metadata}}}")
