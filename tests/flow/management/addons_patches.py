"""Scenarios of Sveltos' add-on controller: tiers, patches and added metadata."""

from __future__ import annotations

import yaml

from tests.flow.management.manifests import (
    Manifest,
    draw,
    namespace_text,
    refer,
    write_deployment,
    write_object,
)
from tests.flow.management.suite import Suite, await_so


def decides_between_references_by_tier(suite: Suite) -> None:
    """Two ConfigMaps have one object: the first has it, until the other has a lower tier."""
    namespace, name, hub = draw(), draw(), suite.make_namespace()
    first, second = (
        suite.store(
            write_object("ServiceAccount", name, namespace, labels={key: "yes"}), namespace=hub
        )
        for key in ("first", "second")
    )
    profile = suite.make_profile("tier-")
    profile.edit(policyRefs=[refer(first), refer(second)])
    profile.await_summary()

    def read_labels(where: str = namespace) -> Manifest:
        found = suite.workload.read("ServiceAccount", name, where)
        labels: Manifest = (found or {"metadata": {}})["metadata"].get("labels") or {}
        return labels

    await_so("the first has it", lambda: read_labels().get("first") == "yes")
    assert "second" not in read_labels()
    message = "A conflict was detected while deploying resource"
    profile.await_feature(lambda it: message in it.get("failureMessage", ""))
    profile.edit(policyRefs=[refer(first), refer(second, tier=90)])
    profile.await_summary()
    await_so("the second has it", lambda: read_labels().get("second") == "yes")
    await_so("the first has it no more", lambda: "first" not in read_labels())
    elsewhere = draw()
    text = write_object("ServiceAccount", name, elsewhere, labels={"first": "yes"})
    other = suite.store(text, namespace=hub)
    profile.edit(policyRefs=[refer(other), refer(second, tier=90)])
    await_so("the new one is there", lambda: read_labels(elsewhere).get("first") == "yes")
    profile.await_provisioned()
    expected = sorted([("ServiceAccount", each, name) for each in (namespace, elsewhere)])
    await_so("the content is listed", lambda: suite.list_content(profile) == expected)
    profile.delete()
    for each in (namespace, elsewhere):
        suite.workload.await_deleted("ServiceAccount", name, each)


def adds_labels_and_reads_kyaml(suite: Suite) -> None:
    """In flow style with comments, as KYAML is written."""
    namespace, name = draw(), draw()
    text = f"""---
{{
  apiVersion: "v1",
  kind: "Service",
  metadata: {{
    name: "{name}",
    namespace: "{namespace}",
  }},
  spec: {{
    ports: [{{ port: 80, }}],  # only one
  }},
}}
"""
    added = {draw(): draw(), draw(): draw()}
    profile = suite.make_profile("kyaml-", extraLabels=added, extraAnnotations=added)
    profile.edit(policyRefs=[refer(suite.store(text))])
    profile.await_summary()
    suite.workload.await_there("Service", name, namespace)
    profile.await_provisioned()
    expected = [("Service", namespace, name)]
    await_so("the content is listed", lambda: suite.list_content(profile) == expected)
    assert (
        added.items()
        <= suite.workload.need("Service", name, namespace)["metadata"]["labels"].items()
    )
    profile.delete()


def patches_several_resources(suite: Suite) -> None:
    """By a JSON patch for all Namespaces."""
    names = [draw(), draw()]
    place = suite.store("---\n".join(namespace_text(each, app="x") for each in names))
    patch = "- op: add\n  path: /metadata/labels/type\n  value: operator\n"
    profile = suite.make_profile("patch-")
    target = {"kind": "Namespace", "name": ".*"}
    profile.edit(policyRefs=[refer(place)], patches=[{"target": target, "patch": patch}])
    profile.await_summary()

    def are_patched() -> bool:
        found = [suite.workload.read("Namespace", each) for each in names]
        return all(each and each["metadata"]["labels"].get("type") == "operator" for each in found)

    await_so("both are patched", are_patched)
    profile.await_provisioned()
    profile.edit(policyRefs=[])
    profile.await_summary()
    for each in names:
        suite.workload.await_deleted("Namespace", each)
    profile.delete()


def takes_patches_of_a_config_map(suite: Suite) -> None:
    """`patchesFrom` names it by a template; a change of it, and a second one, have an effect."""
    namespace, name, key = draw(), draw(), draw()
    hub = suite.hub
    one, two = f"{key}-{suite.name}", f"{key}-{suite.name}-json"

    def write_patch(field: str) -> str:
        body = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "any", field: {key: "yes"}},
        }
        return yaml.safe_dump({"patch": yaml.safe_dump(body), "target": {"kind": "Deployment"}})

    hub.make("ConfigMap", one, suite.namespace, data={"labels": write_patch("labels")})
    profile = suite.make_profile("patches-from-")
    place = suite.store(write_deployment(name, namespace))
    at = "{{ .Cluster.metadata.namespace }}"
    refs = [
        {
            "kind": "ConfigMap",
            "namespace": at,
            "name": f"{key}-{{{{ .Cluster.metadata.name }}}}{end}",
        }
        for end in ("", "-json")
    ]
    profile.edit(policyRefs=[refer(place)], patchesFrom=refs[:1])
    profile.await_summary()

    def read_field(field: str) -> Manifest:
        found = suite.workload.read("Deployment", name, namespace) or {"metadata": {}}
        written: Manifest = found["metadata"].get(field) or {}
        return written

    await_so("it has the label", lambda: read_field("labels").get(key) == "yes")
    assert key not in read_field("annotations")
    profile.await_provisioned()
    both = {each: write_patch(each) for each in ("labels", "annotations")}
    hub.edit("ConfigMap", one, lambda it: it.update(data=both), suite.namespace)
    await_so("it has the annotation", lambda: read_field("annotations").get(key) == "yes")
    added = "- op: add\n  path: /metadata/annotations/json\n  value: added\n"
    data = {"x": yaml.safe_dump({"patch": added, "target": {"kind": "Deployment"}})}
    hub.make("ConfigMap", two, suite.namespace, data=data)
    profile.edit(patchesFrom=refs)
    await_so("it has both", lambda: read_field("annotations").get("json") == "added")
    assert read_field("labels").get(key) == read_field("annotations").get(key) == "yes"
    profile.delete()
    for each in (one, two):
        hub.drop("ConfigMap", each, suite.namespace)


SCENARIOS = (
    decides_between_references_by_tier,
    adds_labels_and_reads_kyaml,
    patches_several_resources,
    takes_patches_of_a_config_map,
)
