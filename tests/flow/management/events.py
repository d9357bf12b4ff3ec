"""The scenarios of Sveltos' event manager that need neither the internet nor pods."""

from __future__ import annotations

from typing import Any

from tests.flow.management.manifests import LIB, Manifest, draw, refer
from tests.flow.management.suite import INSTANTIATE, Client, Suite, await_so

LABELLED = """
function evaluate()
  hs = {matching = false, message = ""}
  if obj.metadata.labels ~= nil then
    for key, value in pairs(obj.metadata.labels) do
      if key == "sveltos" and value == "fv" then hs.matching = true end
    end
  end
  return hs
end"""
HTTPS = """
function evaluate()
  hs = {matching = false, message = ""}
  for _, port in ipairs(obj.spec.ports or {}) do
    if port.port == 443 or port.port == 8443 then hs.matching = true end
  end
  return hs
end"""
NETWORK_POLICY = """kind: NetworkPolicy
apiVersion: networking.k8s.io/v1
metadata:
  name: front-{{ .Resource.metadata.name }}
  namespace: {{ .Resource.metadata.namespace }}
spec:
  podSelector:
    matchLabels:
      {{ range $key, $value := .Resource.spec.selector }}
      {{ $key }}: {{ $value }}
      {{ end }}
  ingress:
  - from:
    - podSelector: {matchLabels: {app: wordpress}}
    ports:
      {{ range $port := .Resource.spec.ports }}
      - port: {{ $port.port }}
      {{ end }}"""
INGRESS = """apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: ingress
  namespace: %s
spec:
  ingressClassName: http-ingress
  rules:
  {{ range .Resources }}
    - http:
        paths:
        - path: /{{ .metadata.name }}
          pathType: Prefix
          backend:
            service:
              name: {{ .metadata.name }}
              port:
                {{ range .spec.ports }}
                {{ if or (eq (int .port) 443) (eq (int .port) 8443) }}
                number: {{ .port }}
                {{ end }}
                {{ end }}
  {{ end }}"""
ACCOUNT = """apiVersion: v1
kind: ServiceAccount
metadata:
  name: "sa-{{ .Resource.metadata.name }}"
  namespace: default"""
LINE = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: default}\n"


def select(kind: str, namespace: str = "", **more: Any) -> Manifest:
    """Return a resourceSelector."""
    where = {"namespace": namespace} if namespace else {}
    return {"group": "", "version": "v1", "kind": kind, **where, **more}


def label_namespace(key: str, value: str) -> Manifest:
    """Return a selector of namespaces with a label."""
    return select("Namespace", labelFilters=[{"key": key, "operation": "Equal", "value": value}])


def make_service(client: Client, namespace: str, port: int, **labels: str) -> str:
    """Create a Service."""
    name = draw()
    ports = [{"name": draw(), "port": port}]
    spec = {"selector": {draw(): draw(), draw(): draw()}, "ports": ports}
    client.make("Service", name, namespace, labels=labels, spec=spec)
    return name


def instantiates_a_profile_for_each_resource(suite: Suite) -> None:
    """A NetworkPolicy for a Service, rendered for it."""
    namespace = draw()
    source = suite.make_source(select("Service", namespace, evaluate=LABELLED))
    place = suite.store(NETWORK_POLICY, namespace="default", annotations=INSTANTIATE)
    trigger = suite.make_trigger("events-", source, oneForEvent=True, policyRefs=[refer(place)])
    suite.await_report(source)
    suite.workload.make("Namespace", namespace)
    service = make_service(suite.workload, namespace, 5467, sveltos="fv")
    suite.await_report(source, "resources")
    profile = suite.await_generated(trigger)
    profile.await_summary()
    profile.await_provisioned()
    assert suite.workload.read("NetworkPolicy", f"front-{service}", namespace)
    suite.end(trigger, source)
    suite.hub.drop("ConfigMap", place[1], "default")


def instantiates_a_profile_for_all_resources(suite: Suite) -> None:
    """An Ingress of two Services."""
    namespace = draw()
    source = suite.make_source(select("Service", namespace, evaluate=HTTPS))
    place = suite.store(INGRESS % namespace, namespace="default", annotations=INSTANTIATE)
    trigger = suite.make_trigger("one-", source, oneForEvent=False, policyRefs=[refer(place)])
    suite.await_report(source)
    suite.workload.make("Namespace", namespace)
    for _ in range(2):
        make_service(suite.workload, namespace, 443)
    suite.await_report(source, "resources")
    profile = suite.await_generated(trigger)
    profile.await_summary()
    profile.await_provisioned()
    assert suite.workload.read("Ingress", "ingress", namespace)
    suite.end(trigger, source)
    suite.hub.drop("ConfigMap", place[1], "default")


def names_profiles_by_a_format(suite: Suite) -> None:
    """One for each namespace, named after it."""
    source = suite.make_source(select("Namespace"))
    place = suite.store(ACCOUNT, namespace="default", annotations=INSTANTIATE)
    last = draw()
    named = f"{{{{ .Cluster.metadata.name }}}}-{{{{ .Resource.metadata.name }}}}-{last}"
    trigger = suite.make_trigger(
        *("name-", source),
        oneForEvent=True,
        policyRefs=[refer(place)],
        profileNameFormat=named,
    )
    report = suite.await_report(source, "matchingResources")
    expected = {
        f"{suite.name}-{each['name']}-{last}" for each in report["spec"]["matchingResources"]
    }

    def are_named() -> bool:
        return expected <= {each["metadata"]["name"] for each in suite.list_generated(trigger)}

    await_so(f"'{trigger}' has all profiles", are_named)
    suite.end(trigger, source)
    suite.hub.drop("ConfigMap", place[1], "default")


def changes_fields_with_template_functions(suite: Suite) -> None:
    """A copy of a ConfigMap under another name, without its data."""
    namespace, name, copied = draw(), draw(), draw()
    source = suite.make_source(select("ConfigMap", namespace, name=name))
    text = """{{ $copy := chainSetField .Resource "metadata.name" "%s" }}
{{ removeField $copy "data" }}"""
    place = suite.store(text % copied, namespace="default", annotations=INSTANTIATE)
    trigger = suite.make_trigger("functions-", source, oneForEvent=True, policyRefs=[refer(place)])
    suite.workload.make("Namespace", namespace)
    suite.workload.make("ConfigMap", name, namespace, data={draw(): draw(), draw(): draw()})
    suite.await_report(source)
    suite.await_generated(trigger)
    found = suite.workload.await_there("ConfigMap", copied, namespace)
    assert not found.get("data")
    suite.end(trigger, source)
    suite.workload.await_deleted("ConfigMap", copied, namespace)
    suite.hub.drop("ConfigMap", place[1], "default")


def withdraws_what_stops_matching(suite: Suite) -> None:
    """Also what was deployed to the configuration cluster itself."""
    key, deployed = draw(), draw()
    source = suite.make_source(label_namespace(key, "yes"))
    place = suite.store(LINE % deployed, namespace="default")
    refs = [refer(place, deploymentType="Local")]
    trigger = suite.make_trigger("stop-", source, oneForEvent=False, policyRefs=refs)
    suite.await_report(source)
    suite.workload.make("Namespace", draw(), labels={key: "yes"})
    suite.await_report(source, "resources")
    profile = suite.await_generated(trigger)
    assert [each["deploymentType"] for each in profile.spec["policyRefs"]] == ["Local"]
    profile.await_summary()
    suite.hub.await_there("ConfigMap", deployed, "default")
    suite.hub.edit("EventTrigger", trigger, select_nothing)
    await_so("the report is deleted", lambda: suite.read_report(source) is None)
    suite.await_none_generated(trigger)
    suite.hub.await_deleted("ConfigMap", deployed, "default")
    suite.end(trigger, source)
    suite.hub.drop("ConfigMap", place[1], "default")


def select_nothing(manifest: Manifest) -> None:
    manifest["spec"]["sourceClusterSelector"] = {"matchLabels": {draw(): draw()}}


def follows_a_cluster_set(suite: Suite) -> None:
    """A trigger of a set matches what the set selects, which may be nothing."""
    name = f"set-{draw()}"
    selector = {"matchLabels": {"env": "fv"}}
    suite.hub.make("ClusterSet", name, spec={"clusterSelector": selector, "maxReplicas": 1})
    ref = {
        "kind": "SveltosCluster",
        "apiVersion": LIB,
        "namespace": suite.namespace,
        "name": suite.name,
    }

    def list_refs(kind: str, of: str, field: str) -> list[Manifest]:
        status = suite.hub.need(kind, of).get("status") or {}
        return list(status.get(field) or ())

    def resize(replicas: int) -> None:
        suite.hub.edit("ClusterSet", name, lambda it: it["spec"].update(maxReplicas=replicas))

    def await_refs(expected: list[Manifest]) -> None:
        of_set = "ClusterSet", name, "selectedClusterRefs"
        await_so("the set selects it", lambda: list_refs(*of_set) == expected)

    await_refs([ref])
    assert list_refs("ClusterSet", name, "matchingClusterRefs") == [ref]
    source = suite.make_source(select("Service", draw()))
    place = suite.store(LINE % draw(), namespace="default")
    trigger = suite.make_trigger(
        *("set-", source),
        oneForEvent=False,
        clusterSetRefs=[name],
        policyRefs=[refer(place)],
        sourceClusterSelector={"matchLabels": {draw(): draw()}},
    )
    of_trigger = "EventTrigger", trigger, "matchingClusters"
    await_so("the trigger matches", lambda: list_refs(*of_trigger) == [ref])
    resize(0)
    await_refs([])
    await_so("the trigger matches nothing", lambda: not list_refs(*of_trigger))
    resize(2)
    await_refs([ref])
    await_so("the trigger matches again", lambda: list_refs(*of_trigger) == [ref])
    suite.end(trigger, source)
    suite.hub.drop("ClusterSet", name)
    suite.hub.drop("ConfigMap", place[1], "default")


SCENARIOS = (
    names_profiles_by_a_format,
    instantiates_a_profile_for_each_resource,
    instantiates_a_profile_for_all_resources,
    changes_fields_with_template_functions,
    withdraws_what_stops_matching,
    follows_a_cluster_set,
)
