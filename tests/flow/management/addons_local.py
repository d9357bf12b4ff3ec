"""Scenarios of Sveltos' add-on controller: templates, and the management cluster itself."""

from __future__ import annotations

import base64

from tests.flow.management.manifests import (
    LIB,
    Manifest,
    config_map,
    draw,
    namespace_text,
    refer,
    write_deployment,
    write_object,
)
from tests.flow.management.suite import TEMPLATE, Suite, await_so

LUA = """function evaluate()
  local namespace = getResource(resources, "Namespace")
  local hs = {}
  local result = [[
apiVersion: v1
kind: Namespace
metadata:
  name: ]] .. namespace.metadata.name .. [[

  labels:
    env: ]] .. getLabel(namespace, "env")
  hs.resources = result
  return hs
end"""
TOKEN = """apiVersion: v1
kind: Secret
metadata:
  name: %s
  namespace: "{{ .Cluster.metadata.namespace }}"
  annotations:
    kubernetes.io/service-account.name: "{{ .Cluster.metadata.name }}-%s"
type: kubernetes.io/service-account-token
"""
TOKEN_ACCOUNT = """apiVersion: v1
kind: ServiceAccount
metadata:
  name: "{{ .Cluster.metadata.name }}-%s"
  namespace: "{{ .Cluster.metadata.namespace }}"
"""
TOKEN_COPY = """apiVersion: v1
kind: Secret
metadata:
  name: %s
  namespace: {{ (index .MgmtResources "AutoscalerSecret").metadata.namespace }}
data:
  token: {{ (index .MgmtResources "AutoscalerSecret").data.token }}
  ca.crt: {{ $data:=(index .MgmtResources "AutoscalerSecret").data }} {{ (index $data "ca.crt") }}
"""


def read(identifier: str, kind: str, name: str, namespace: str = "", **more: object) -> Manifest:
    """Return a templateResourceRef."""
    where = {"namespace": namespace} if namespace else {}
    resource = {"apiVersion": "v1", "kind": kind, "name": name, **where}
    return {"identifier": identifier, "resource": resource, **more}


def runs_lua(suite: Suite) -> None:
    """A script writes a Namespace like one of the management cluster."""
    value = draw()
    namespace = suite.make_namespace(labels={"env": value})
    place = suite.store(LUA, namespace=namespace, annotations={"projectsveltos.io/lua": "ok"})
    profile = suite.make_profile("lua-")
    readings = [read("Namespace", "Namespace", namespace)]
    profile.edit(templateResourceRefs=readings, policyRefs=[refer(place)])
    profile.await_summary()
    profile.await_provisioned()
    found = suite.workload.await_there("Namespace", namespace)
    assert found["metadata"]["labels"]["env"] == value
    profile.delete()
    suite.workload.await_deleted("Namespace", namespace)


def fills_a_template_with_the_cluster(suite: Suite) -> None:
    """Once for each cluster, at deploy time."""
    name = draw()
    text = config_map(name, info="of {{ .Cluster.metadata.name }}")
    refs = [refer(suite.store(text, annotations=TEMPLATE))]
    profile = suite.make_profile("template-", policyRefs=refs)
    found = suite.workload.await_there("ConfigMap", name, "default")
    assert suite.name in found["data"]["info"]
    profile.await_provisioned()
    profile.edit(policyRefs=[])
    profile.await_summary()
    suite.workload.await_deleted("ConfigMap", name, "default")
    profile.delete()


def copies_an_object(suite: Suite) -> None:
    """A Secret of the management cluster, by the function `copy`."""
    namespace, name = suite.make_namespace(), draw()
    data = {"pwd": base64.b64encode(b"hidden").decode()}
    suite.hub.make("Secret", name, namespace, data=data)
    text = '{{ (copy "ExternalSecret") }}'
    place = suite.store(text, namespace=namespace, annotations=TEMPLATE)
    readings = [read("ExternalSecret", "Secret", name, namespace)]
    profile = suite.make_profile("clone-", templateResourceRefs=readings, policyRefs=[refer(place)])
    profile.await_provisioned()
    assert suite.workload.need("Secret", name, namespace)["data"] == data
    profile.delete()
    suite.workload.await_deleted("Secret", name, namespace)


def reports_a_missing_object_of_templates(suite: Suite) -> None:
    """The failure names it; once it is there the rest is deployed."""
    profile = suite.make_profile("missing-ref-")
    namespace, secret, name = draw(), draw(), draw()
    place = suite.store(namespace_text(name))
    readings = [read("MySecret", "Secret", secret, namespace, optional=False)]
    profile.edit(templateResourceRefs=readings, policyRefs=[refer(place)])
    profile.await_summary()
    profile.await_feature(
        lambda it: it.get("status") == "FailedNonRetriable" and secret in it["failureMessage"]
    )
    suite.hub.make("Namespace", namespace)
    data = {"key": base64.b64encode(b"value").decode()}
    suite.hub.make("Secret", secret, namespace, data=data)
    suite.workload.await_there("Namespace", name)
    profile.await_provisioned()
    profile.delete()


def reports_a_wrong_template(suite: Suite) -> None:
    """In the words of Go, until it is corrected."""
    profile = suite.make_profile("template-error-")
    namespace, name = suite.make_namespace(), draw()
    place = suite.store(write_object("ServiceAccount", name, namespace), namespace=namespace)
    wrong = "{{ nonexistingfunction .Cluster.metadata.namespace }}"
    profile.edit(policyRefs=[refer((wrong, place[1]))])
    profile.await_summary()
    said = 'function "nonexistingfunction" not defined'
    profile.await_feature(
        lambda it: it.get("status") == "FailedNonRetriable" and said in it["failureMessage"]
    )
    profile.edit(policyRefs=[refer(place)])
    suite.workload.await_there("ServiceAccount", name, namespace)
    profile.await_provisioned()
    profile.delete()


def ignores_fields_that_it_does_not_watch(suite: Suite) -> None:
    """`watchFields` names those that count."""
    namespace, name, origin = suite.make_namespace(), draw(), draw()
    data = {"watched": "value1", "unwatched": "extra"}
    suite.hub.make("ConfigMap", origin, namespace, data=data)
    text = config_map(name, watchedValue='{{ (getResource "RefData").data.watched }}')
    place = suite.store(text, namespace=namespace, annotations=TEMPLATE)
    readings = [read("RefData", "ConfigMap", origin, namespace, watchFields=["data.watched"])]
    profile = suite.make_profile("watch-", templateResourceRefs=readings, policyRefs=[refer(place)])
    profile.await_provisioned()
    found = suite.workload.await_there("ConfigMap", name, "default")
    assert found["data"]["watchedValue"] == "value1"
    changed = {**data, "unwatched": "changed"}
    suite.hub.edit("ConfigMap", origin, lambda it: it.update(data=changed), namespace)
    suite.await_turn()
    assert profile.read_feature()["status"] == "Provisioned"
    profile.delete()


def deploys_to_the_management_cluster_that_it_matches(suite: Suite) -> None:
    """What is Local, in the namespace `mgmt` as any cluster's."""
    name = f"mgmt-{draw()}"
    ref = {"apiVersion": LIB, "kind": "SveltosCluster", "namespace": "mgmt", "name": "mgmt"}
    spec = {"clusterRefs": [ref], "syncMode": "ContinuousWithDriftDetection"}
    suite.hub.make("ClusterProfile", name, spec=spec)
    profile = suite.find_profile(name)
    profile.cluster = ("mgmt", "mgmt")
    namespace = suite.make_namespace()
    text = config_map("my-test-{{ .Cluster.metadata.name }}", namespace)
    place = suite.store(text, namespace="default", annotations=TEMPLATE)
    profile.edit(policyRefs=[refer(place, deploymentType="Local")])
    profile.await_summary()
    profile.await_provisioned()
    suite.hub.await_there("ConfigMap", "my-test-mgmt", namespace)
    profile.delete()
    suite.hub.await_deleted("ConfigMap", "my-test-mgmt", namespace)
    suite.hub.drop("ConfigMap", place[1], "default")


def keeps_a_profile_of_a_namespace_in_it(suite: Suite) -> None:
    """What is Local of a Profile may be in no other namespace of the management cluster."""
    profile = suite.make_profile("profile-local-", "Profile")
    name = draw()
    wrong, right = (
        suite.store(write_object("ServiceAccount", name, where), namespace=suite.namespace)
        for where in (draw(), suite.namespace)
    )
    profile.edit(policyRefs=[refer(wrong, deploymentType="Local")])
    profile.await_summary()
    said = "profile can only deploy resource in same namespace in the management cluster"
    profile.await_feature(lambda it: it.get("failureMessage") == said)
    profile.edit(policyRefs=[refer(right, deploymentType="Local")])
    profile.await_summary()
    profile.await_provisioned()
    assert suite.hub.read("ServiceAccount", name, suite.namespace)
    profile.delete()
    suite.hub.await_deleted("ServiceAccount", name, suite.namespace)
    for each in (wrong, right):
        suite.hub.drop("ConfigMap", each[1], suite.namespace)


def deploys_to_both_clusters(suite: Suite) -> None:
    """A Secret that the management cluster fills is read by a template for the managed one."""
    name = draw()
    profile = suite.make_profile("autoscaler-")
    texts = TOKEN_ACCOUNT % name, TOKEN % (name, name)
    local = suite.store(*texts, namespace="default", annotations=TEMPLATE)
    remote = suite.store(TOKEN_COPY % name, namespace="default", annotations=TEMPLATE)
    reading = {"identifier": "AutoscalerSecret", "optional": True}
    profile.edit(
        templateResourceRefs=[{**reading, "resource": {"kind": "Secret", "name": name}}],
        policyRefs=[
            refer(local, deploymentType="Local"),
            refer(remote, deploymentType="Remote"),
        ],
    )
    profile.await_summary()
    suite.hub.await_there("ServiceAccount", f"{suite.name}-{name}", suite.namespace)
    suite.hub.await_there("Secret", name, suite.namespace)

    def read_authority(client: object) -> str:
        found = client.read("Secret", name, suite.namespace) or {}  # type: ignore[attr-defined]
        return str((found.get("data") or {}).get("ca.crt", ""))

    await_so("the Secret is copied", lambda: read_authority(suite.workload))
    assert read_authority(suite.workload) == read_authority(suite.hub)
    profile.await_provisioned()
    profile.delete()
    suite.hub.await_deleted("ServiceAccount", f"{suite.name}-{name}", suite.namespace)
    suite.hub.await_deleted("Secret", name, suite.namespace)
    suite.workload.await_deleted("Secret", name, suite.namespace)
    for each in (local, remote):
        suite.hub.drop("ConfigMap", each[1], "default")


def acts_with_the_rights_of_a_tenant(suite: Suite) -> None:
    """Who may write Deployments, and no Secrets."""
    namespace, account, role, name = suite.make_namespace(), draw(), draw(), draw()
    suite.hub.make("ServiceAccount", account, namespace)
    rule = {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["*"]}
    suite.hub.make("ClusterRole", role, rules=[rule])
    ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
    subject = {"kind": "ServiceAccount", "namespace": namespace, "name": account}
    suite.hub.make("ClusterRoleBinding", role, roleRef=ref, subjects=[subject])
    profile = suite.make_profile("tenant-")
    secret = write_object("Secret", name, "default", data={"a": "dmFsdWU="})
    text = "---\n".join((write_deployment(name, "default"), secret))
    place = suite.store(text, namespace="default")

    def change(manifest: Manifest) -> None:
        manifest["metadata"]["labels"] = {
            "projectsveltos.io/serviceaccount-name": account,
            "projectsveltos.io/serviceaccount-namespace": namespace,
        }
        manifest["spec"]["policyRefs"] = [refer(place, deploymentType="Local")]

    suite.hub.edit("ClusterProfile", profile.name, change)
    profile.await_summary()
    suite.hub.await_there("Deployment", name, "default")
    profile.await_feature(lambda it: "is forbidden" in it.get("failureMessage", ""))
    assert suite.hub.read("Secret", name, "default") is None
    profile.delete()
    suite.hub.drop("ConfigMap", place[1], "default")


SCENARIOS = (
    runs_lua,
    fills_a_template_with_the_cluster,
    copies_an_object,
    reports_a_missing_object_of_templates,
    reports_a_wrong_template,
    ignores_fields_that_it_does_not_watch,
    deploys_to_the_management_cluster_that_it_matches,
    keeps_a_profile_of_a_namespace_in_it,
    deploys_to_both_clusters,
    acts_with_the_rights_of_a_tenant,
)
