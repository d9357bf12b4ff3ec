"""Scenarios of Sveltos' add-on controller that need neither the internet nor pods: resources."""

from __future__ import annotations

from tests.flow.management.manifests import (
    Manifest,
    draw,
    namespace_text,
    number,
    refer,
    write_deployment,
    write_object,
    write_pod,
    write_role,
    write_service,
)
from tests.flow.management.suite import Suite, await_so

SECRET_TYPE = "addons.projectsveltos.io/cluster-profile"


def deploys_and_updates_resources(suite: Suite) -> None:
    """Of a ConfigMap and of a Secret, and removes what is not in them any more."""
    _deploy_and_update(suite, suite.make_namespace(), named=True)


def takes_resources_of_each_clusters_namespace(suite: Suite) -> None:
    """A reference without a namespace means that of the cluster."""
    _deploy_and_update(suite, suite.namespace, named=False)


def _deploy_and_update(suite: Suite, namespace: str, *, named: bool) -> None:
    hub, workload = suite.hub, suite.workload
    roles, pods = [draw(), draw()], [draw(), draw()]
    place = suite.store(write_role(roles[0], "update"), namespace=namespace)
    secret = draw()
    texts = number([write_pod(pods[0])])
    hub.make("Secret", secret, namespace, type=SECRET_TYPE, stringData=texts)
    profile = suite.make_profile("resource-")
    where = namespace if named else ""
    refs = [refer((where, place[1])), refer((where, secret), "Secret")]
    profile.edit(policyRefs=refs)
    profile.await_summary()
    workload.await_there("ClusterRole", roles[0])
    workload.await_there("Pod", pods[0], "default")
    profile.await_provisioned()

    def await_content(role: str, pod: str) -> None:
        expected = sorted([("ClusterRole", "", role), ("Pod", "default", pod)])
        await_so("the content is listed", lambda: suite.list_content(profile) == expected)

    await_content(roles[0], pods[0])
    new_role = {"data": number([write_role(roles[1], "get")])}
    hub.edit("ConfigMap", place[1], lambda it: it.update(new_role), namespace)
    workload.await_there("ClusterRole", roles[1])
    workload.await_deleted("ClusterRole", roles[0])
    await_content(roles[1], pods[0])
    new_pod = {"stringData": number([write_pod(pods[1])])}
    hub.edit("Secret", secret, lambda it: it.update(new_pod), namespace)
    workload.await_there("Pod", pods[1], "default")
    workload.await_deleted("Pod", pods[0], "default")
    await_content(roles[1], pods[1])
    profile.edit(policyRefs=[])
    profile.await_summary()
    workload.await_deleted("ClusterRole", roles[1])
    workload.await_deleted("Pod", pods[1], "default")
    profile.delete()
    hub.drop("Secret", secret, namespace)
    hub.drop("ConfigMap", place[1], namespace)


def leaves_policies(suite: Suite) -> None:
    """With LeavePolicies a Deployment stays in a cluster that stops matching."""
    profile = suite.make_profile("leave-", stopMatchingBehavior="LeavePolicies")
    name = draw()
    profile.edit(policyRefs=[refer(suite.store(write_deployment(name, "default")))])
    profile.await_summary()
    suite.workload.await_there("Deployment", name, "default")
    profile.await_provisioned()
    expected = [("Deployment", "default", name)]
    await_so("the content is listed", lambda: suite.list_content(profile) == expected)
    profile.edit(clusterSelector={"matchLabels": {"env": draw()}})
    await_so("the summary is deleted", lambda: profile.find_summary() is None)
    assert suite.workload.read("Deployment", name, "default")
    profile.delete()
    assert suite.workload.read("Deployment", name, "default")
    suite.workload.drop("Deployment", name, "default")


def deploys_once(suite: Suite) -> None:
    """With OneTime neither a change of the content nor of the profile has an effect."""
    name = draw()
    place = suite.store(namespace_text(name))
    refs = [refer(place)]
    profile = suite.make_profile("one-time-", syncMode="OneTime", policyRefs=refs)
    suite.workload.await_there("Namespace", name)
    profile.await_provisioned()
    changed = {"data": number([namespace_text(name, env="changed")])}
    suite.hub.edit("ConfigMap", place[1], lambda it: it.update(changed), place[0])
    suite.await_turn()
    assert "env" not in suite.workload.need("Namespace", name)["metadata"]["labels"]
    profile.edit(policyRefs=[])
    suite.await_turn()
    found = profile.find_summary()
    assert found
    assert found["spec"]["clusterProfileSpec"]["policyRefs"] == refs
    profile.delete()
    suite.workload.await_deleted("Namespace", name)


def reports_a_missing_reference(suite: Suite) -> None:
    """FailedNonRetriable, until the ConfigMap is there."""
    profile = suite.make_profile("missing-")
    namespace, place, name = draw(), draw(), draw()
    profile.edit(policyRefs=[refer((namespace, place))])
    profile.await_summary()
    profile.await_feature(lambda it: it.get("status") == "FailedNonRetriable")
    suite.hub.make("Namespace", namespace)
    suite.hub.make("ConfigMap", place, namespace, data=number([namespace_text(name)]))
    suite.workload.await_there("Namespace", name)
    profile.await_provisioned()
    expected = [("Namespace", "", name)]
    await_so("the content is listed", lambda: suite.list_content(profile) == expected)
    profile.delete()


def accepts_an_optional_reference(suite: Suite) -> None:
    """One that is not there is no error."""
    name = draw()
    place = suite.store(namespace_text(name))
    missing = refer((place[0], draw()), optional=True)
    profile = suite.make_profile("optional-", maxConsecutiveFailures=3)
    profile.edit(policyRefs=[refer(place), missing])
    profile.await_summary()
    profile.await_provisioned()
    expected = [("Namespace", "", name)]
    await_so("the content is listed", lambda: suite.list_content(profile) == expected)
    profile.delete()


def recreates_what_cannot_be_changed(suite: Suite) -> None:
    """With `force`: the API server refuses another strategy for a Deployment that is there."""
    namespace, name = suite.make_namespace(), draw()
    place = suite.store(write_deployment(name, namespace), namespace=namespace)
    profile = suite.make_profile("force-")
    profile.edit(policyRefs=[refer(place)])
    profile.await_summary()
    profile.await_provisioned()

    def read_strategy() -> Manifest:
        found = suite.workload.read("Deployment", name, namespace) or {"spec": {}}
        strategy: Manifest = found["spec"].get("strategy") or {}
        return strategy

    await_so("it has a default strategy", lambda: "rollingUpdate" in read_strategy())
    recreate = {"data": number([write_deployment(name, namespace, strategy={"type": "Recreate"})])}
    suite.hub.edit("ConfigMap", place[1], lambda it: it.update(recreate), namespace)
    profile.await_feature(lambda it: "failureMessage" in it)
    profile.edit(policyRefs=[refer(place, force=True)])
    profile.await_provisioned()
    await_so("it is another one", lambda: read_strategy() == {"type": "Recreate"})
    profile.delete()


def keeps_what_it_has_while_something_fails(suite: Suite) -> None:
    """What is not in the content any more is removed only after a success."""
    namespace = suite.make_namespace()
    names, wrong, late = [draw() for _ in range(3)], draw(), draw()
    texts = [write_service(each, namespace) for each in names]
    place = suite.store(*texts, namespace=namespace)
    profile = suite.make_profile("stale-")
    profile.edit(policyRefs=[refer(place)])
    profile.await_summary()
    for each in names:
        suite.workload.await_there("Service", each, namespace)
    profile.await_provisioned()
    broken = write_service(wrong, namespace).replace("port: 80", "port: none")
    data = {"data": number([texts[0], broken, *texts[1:]])}
    suite.hub.edit("ConfigMap", place[1], lambda it: it.update(data), namespace)
    profile.await_feature(lambda it: "failureMessage" in it)
    suite.await_turn()
    assert all(suite.workload.read("Service", each, namespace) for each in names)
    assert suite.workload.read("Service", wrong, namespace) is None
    data = {"data": number([texts[0], write_service(late, namespace), *texts[1:]])}
    suite.hub.edit("ConfigMap", place[1], lambda it: it.update(data), namespace)
    for each in (*names, late):
        suite.workload.await_there("Service", each, namespace)
    profile.await_provisioned()
    profile.delete()


def deploys_a_profile_of_a_namespace(suite: Suite) -> None:
    """With the label and the owner of its kind."""
    profile = suite.make_profile("profile-", "Profile")
    namespace, name = draw(), draw()
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "x"}]}}
    text = write_object("Job", name, namespace, api="batch/v1", spec={"template": template})
    place = suite.store(text, namespace=suite.namespace)
    profile.edit(policyRefs=[refer(place)])
    profile.await_summary()
    suite.workload.await_there("Job", name, namespace)
    expected = [("Job", namespace, name)]
    await_so("the content is listed", lambda: suite.list_content(profile) == expected)
    profile.delete()
    suite.workload.await_deleted("Job", name, namespace)
    suite.hub.drop("ConfigMap", place[1], suite.namespace)


def matches_nothing_while_a_profile_is_paused(suite: Suite) -> None:
    """The annotation is removed, and it matches."""
    name = f"paused-{draw()}"
    selector = {"clusterSelector": {"matchLabels": {"env": "fv"}}}
    paused = {"profile.projectsveltos.io/paused": "true"}
    suite.hub.make("ClusterProfile", name, annotations=paused, spec=selector)
    suite.await_turn()
    found = suite.hub.need("ClusterProfile", name).get("status") or {}
    assert not found.get("matchingClusters")
    profile = suite.find_profile(name)
    suite.hub.edit("ClusterProfile", name, lambda it: it["metadata"].pop("annotations"))
    profile.await_match()
    profile.delete()


def follows_a_cluster_set(suite: Suite) -> None:
    """A profile of a set matches what the set selects, and nothing once the set is deleted."""
    name = f"set-{draw()}"
    selector = {"matchLabels": {"env": "fv"}}
    suite.hub.make("ClusterSet", name, spec={"clusterSelector": selector, "maxReplicas": 1})
    profile = suite.make_profile("set-", clusterSelector={}, setRefs=[name])

    def resize(replicas: int) -> None:
        suite.hub.edit("ClusterSet", name, lambda it: it["spec"].update(maxReplicas=replicas))

    def read_selected() -> list[Manifest]:
        status = suite.hub.need("ClusterSet", name).get("status") or {}
        return list(status.get("selectedClusterRefs") or ())

    assert [each["name"] for each in read_selected()] == [suite.name]
    resize(0)
    await_so("the set selects nothing", lambda: not read_selected())
    await_so("the profile matches nothing", lambda: not profile.list_matches())
    resize(2)
    await_so("the set selects it again", read_selected)
    profile.await_match()
    suite.hub.drop("ClusterSet", name)
    await_so("the profile matches nothing", lambda: not profile.list_matches())
    profile.delete()


SCENARIOS = (
    deploys_and_updates_resources,
    takes_resources_of_each_clusters_namespace,
    leaves_policies,
    deploys_once,
    reports_a_missing_reference,
    accepts_an_optional_reference,
    recreates_what_cannot_be_changed,
    keeps_what_it_has_while_something_fails,
    deploys_a_profile_of_a_namespace,
    matches_nothing_while_a_profile_is_paused,
    follows_a_cluster_set,
)
