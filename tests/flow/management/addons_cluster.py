"""Scenarios of Sveltos' add-on controller: drift, a paused cluster, and a changed label.

They run one at a time: some change the cluster, and drift of a kind is reported only once the API
server knows the webhook for it, which takes longer beside others.
"""

from __future__ import annotations

from tests.flow.management.manifests import (
    Manifest,
    config_map,
    draw,
    namespace_text,
    number,
    refer,
    write_object,
    write_role,
)
from tests.flow.management.suite import Suite, await_so


def corrects_a_kind_that_was_defined_late(suite: Suite) -> None:
    """A Widget that is deleted comes back, though its definition is younger than the profile."""
    group = f"{draw()}.example.com"
    profile = suite.make_profile("drift-", syncMode="ContinuousWithDriftDetection")
    namespace, base, name = suite.make_namespace(), draw(), draw()
    place = suite.store(config_map(base, namespace), namespace=namespace)
    profile.edit(policyRefs=[refer(place)])
    profile.await_summary()
    suite.workload.await_there("ConfigMap", base, namespace)
    profile.await_provisioned()
    suite.workload.create(_define_widgets(group))
    widget = write_object("Widget", name, api=f"{group}/v1")
    data = {"data": number([config_map(base, namespace), widget])}
    suite.hub.edit("ConfigMap", place[1], lambda it: it.update(data), namespace)

    def find() -> Manifest | None:
        return suite.workload.find_custom(group, "Widget", name)

    await_so("the Widget is there", find)
    profile.await_provisioned()
    suite.await_turn()
    first = find()
    assert first
    suite.workload.drop_custom(group, "Widget", name)
    uid = first["metadata"]["uid"]
    await_so(
        "it is there again",
        lambda: (find() or {"metadata": {"uid": uid}})["metadata"]["uid"] != uid,
    )
    profile.delete()
    await_so("the Widget is deleted", lambda: find() is None)
    suite.workload.drop_custom(
        "apiextensions.k8s.io", "CustomResourceDefinition", f"widgets.{group}"
    )


def _define_widgets(group: str) -> Manifest:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"widgets.{group}"},
        "spec": {
            "group": group,
            "scope": "Cluster",
            "names": {"kind": "Widget", "plural": "widgets", "singular": "widget"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }


def waits_while_the_cluster_is_paused(suite: Suite) -> None:
    """Nothing is deployed until it is resumed."""
    hub = suite.hub

    def pause(*, paused: bool) -> None:
        change = {"paused": paused}
        hub.edit(
            "SveltosCluster", suite.name, lambda it: it["spec"].update(change), suite.namespace
        )

    profile = suite.make_profile("paused-")
    name = draw()
    place = suite.store(namespace_text(name), namespace="default")
    pause(paused=True)
    try:
        profile.edit(policyRefs=[refer(place)])
        profile.await_summary()
        # What was written before it has been read.
        fence = suite.make_profile("fence-")
        assert suite.workload.read("Namespace", name) is None
    finally:
        pause(paused=False)
    fence.delete()
    suite.workload.await_there("Namespace", name)
    profile.await_provisioned()
    profile.edit(policyRefs=[])
    profile.await_summary()
    suite.workload.await_deleted("Namespace", name)
    profile.delete()
    hub.drop("ConfigMap", place[1], "default")


def hands_resources_to_a_successor(suite: Suite) -> None:
    """With `transitionFrom` a shared ClusterRole is changed in place while a label changes."""
    shared, own = f"t-{draw()}", f"t-{draw()}"
    hub = suite.make_namespace()
    refs = [refer(suite.store(write_role(each, "get"), namespace=hub)) for each in (shared, own)]
    first = suite.make_profile("predecessor-")
    first.edit(policyRefs=refs)
    first.await_summary()
    first.await_provisioned()
    former = suite.workload.await_there("ClusterRole", shared)
    suite.workload.await_there("ClusterRole", own)
    name = f"successor-{draw()}"
    changed = refer(suite.store(write_role(shared, "get", "watch"), namespace=hub))
    spec = {
        "clusterSelector": {"matchLabels": {"env": "fv-transition"}},
        "transitionFrom": [first.name],
        "policyRefs": [changed],
    }
    suite.hub.make("ClusterProfile", name, spec=spec)
    second = suite.find_profile(name)
    suite.label("fv-transition")
    try:
        second.await_match()
        second.await_provisioned()
        await_so("the predecessor has left", lambda: first.find_summary() is None)
        suite.workload.await_deleted("ClusterRole", own)
        found = suite.workload.need("ClusterRole", shared)
        assert found["metadata"]["uid"] == former["metadata"]["uid"]
        assert found["metadata"]["annotations"]["projectsveltos.io/owner-name"] == name
        assert "watch" in found["rules"][0]["verbs"]
    finally:
        suite.label("fv")
    second.delete()
    first.delete()


SCENARIOS = (
    corrects_a_kind_that_was_defined_late,
    waits_while_the_cluster_is_paused,
    hands_resources_to_a_successor,
)
