"""Scenarios of Sveltos' event manager: generators, reports, and CloudEvents of a report."""

from __future__ import annotations

import base64
import json

from tests.flow.management.events import (
    LABELLED,
    label_namespace,
    make_service,
    select,
    select_nothing,
)
from tests.flow.management.manifests import Manifest, draw, refer
from tests.flow.management.suite import INSTANTIATE, OURS, TEMPLATE, Suite, await_so

WITH_TOKEN = """kind: ConfigMap
apiVersion: v1
metadata:
  name: "%s-{{ .Cluster.metadata.name }}"
  namespace: "{{ .Cluster.metadata.namespace }}"
data:
  token: "{{ ((getResource "ConfigMapToken")).data.token }}"
"""
EACH_NAMESPACE = """{{- range $v := .MatchingResources }}
   {{ $v.Name }}: "ok"
{{- end }}
"""
COPY = """{{ $namespaces := ( ( index (getResource "Namespaces").data "namespaces" ) | fromYaml ) }}
{{- range $key, $value := $namespaces }}
    apiVersion: v1
    kind: Secret
    metadata:
      namespace: {{ $key }}
      name: {{ (getResource "ImagePullSecret").metadata.name }}
    data:
      {{- range $secretKey, $secretValue := (getResource "ImagePullSecret").data }}
        {{ $secretKey }} : {{ $secretValue }}
      {{- end }}
---
{{- end }}
"""


def reads_what_a_generator_wrote(suite: Suite) -> None:
    """A ConfigMap of an event's Secret, read at deploy time."""
    namespace, prefix = draw(), draw()
    source = suite.make_source(select("Secret", namespace))
    deployed = suite.store(WITH_TOKEN % prefix, namespace="default", annotations=TEMPLATE)
    token = draw()
    data = {"token": "{{ .Resource.data.token }}"}
    suite.hub.make("ConfigMap", token, "default", annotations=INSTANTIATE, data=data)
    written = f"{{{{ .Cluster.metadata.namespace }}}}-{{{{ .Cluster.metadata.name}}}}-{token}"
    resource = {"apiVersion": "v1", "kind": "ConfigMap", "namespace": OURS, "name": written}
    trigger = suite.make_trigger(
        *("generators-", source),
        oneForEvent=True,
        policyRefs=[refer(deployed)],
        configMapGenerator=[{"namespace": "default", "name": token, "nameFormat": written}],
        templateResourceRefs=[{"identifier": "ConfigMapToken", "resource": resource}],
    )
    suite.await_report(source)
    suite.workload.make("Namespace", namespace)
    secret = {"token": base64.b64encode(b"a token").decode()}
    suite.workload.make("Secret", draw(), namespace, data=secret)
    suite.await_report(source, "resources")
    profile = suite.await_generated(trigger)
    profile.await_summary()
    profile.await_provisioned()
    found = suite.workload.need("ConfigMap", f"{prefix}-{suite.name}", suite.namespace)
    assert "token" in found["data"]
    suite.end(trigger, source)
    for each in (token, deployed[1]):
        suite.hub.drop("ConfigMap", each, "default")


def deploys_again_what_a_generator_wrote_anew(suite: Suite) -> None:
    """A Secret is copied into the namespaces of an event, and into one more after a change."""
    key, secret, deploy, listed = draw(), draw(), draw(), draw()
    data = {".dockerconfigjson": base64.b64encode(b'{"auths": {}}').decode()}
    suite.hub.make("Secret", secret, "default", data=data)
    suite.hub.make("ConfigMap", listed, "default", data={"namespaces": EACH_NAMESPACE})
    suite.hub.make("ConfigMap", deploy, "default", annotations=TEMPLATE, data={"content": COPY})
    source = suite.make_source(label_namespace(key, "required"), collect=False)
    written = f"{{{{ .Cluster.metadata.name }}}}-{listed}"
    readings = {
        "Namespaces": {"kind": "ConfigMap", "name": written, "namespace": OURS},
        "ImagePullSecret": {"kind": "Secret", "name": secret, "namespace": "default"},
    }
    trigger = suite.make_trigger(
        *("redeploy-", source),
        oneForEvent=False,
        configMapGenerator=[{"namespace": "default", "name": listed, "nameFormat": written}],
        templateResourceRefs=[
            {"identifier": name, "resource": {"apiVersion": "v1", **each}}
            for name, each in readings.items()
        ],
        policyRefs=[refer(("default", deploy))],
    )
    namespace = f"{key}-{draw()}"
    suite.workload.make("Namespace", namespace, labels={key: "required"})
    suite.await_report(source, "matchingResources")
    suite.workload.await_there("Secret", secret, namespace)

    def change(manifest: Manifest) -> None:
        manifest["data"] = {"namespaces": f'{EACH_NAMESPACE}   default: "ok"\n'}

    suite.hub.edit("ConfigMap", listed, change, "default")
    suite.workload.await_there("Secret", secret, "default")
    assert suite.workload.read("Secret", secret, namespace)
    suite.end(trigger, source)
    for kind, name in (("Secret", secret), ("ConfigMap", listed), ("ConfigMap", deploy)):
        suite.hub.drop(kind, name, "default")


def reports_why_nothing_is_generated(suite: Suite) -> None:
    """Until the ConfigMap of a generator is there."""
    namespace, origin = draw(), draw()
    source = suite.make_source(select("Service", namespace, evaluate=LABELLED))
    made = {"namespace": "default", "name": origin, "nameFormat": f"{origin}-generated"}
    trigger = suite.make_trigger("failure-", source, oneForEvent=True, configMapGenerator=[made])
    suite.await_report(source)
    suite.workload.make("Namespace", namespace)
    make_service(suite.workload, namespace, 5467, sveltos="fv")

    def has_failed() -> bool:
        status = (suite.read_report(source) or {}).get("status") or {}
        return "failureMessage" in status

    await_so("the report has a failure", has_failed)
    assert suite.list_generated(trigger) == []
    data = {"key": "{{ .Resource.metadata.name }}"}
    suite.hub.make("ConfigMap", origin, "default", annotations=INSTANTIATE, data=data)
    await_so("the report has none", lambda: not has_failed())
    suite.await_generated(trigger)
    suite.end(trigger, source)
    suite.hub.drop("ConfigMap", origin, "default")


def deletes_a_profile_before_what_it_names(suite: Suite) -> None:
    """Somebody's finalizer keeps the profile, and so the ConfigMap, whose text is no object."""
    key, pin = draw(), "test.projectsveltos.io/do-not-delete"
    source = suite.make_source(label_namespace(key, "yes"))
    name = draw()
    data = {"namespace": "{{ .Resource.metadata.name }}"}
    suite.hub.make("ConfigMap", name, "default", annotations=INSTANTIATE, data=data)
    refs = [refer(("default", name))]
    trigger = suite.make_trigger("before-", source, oneForEvent=True, policyRefs=refs)
    suite.await_report(source)
    suite.workload.make("Namespace", draw(), labels={key: "yes"})
    suite.await_report(source, "resources")
    profile = suite.await_generated(trigger)
    await_so("the ConfigMap is there", lambda: suite.list_generated(trigger, "ConfigMap"))

    def set_pin(manifest: Manifest, *, there: bool) -> None:
        others = [x for x in manifest["metadata"].get("finalizers") or () if x != pin]
        manifest["metadata"]["finalizers"] = [*others, pin] if there else others

    suite.hub.edit("ClusterProfile", profile.name, lambda it: set_pin(it, there=True))
    suite.hub.edit("EventTrigger", trigger, select_nothing)
    suite.hub.await_deleted("ClusterProfile", profile.name)
    suite.await_turn()
    assert suite.hub.read("ClusterProfile", profile.name)
    assert suite.list_generated(trigger, "ConfigMap")
    suite.hub.edit("ClusterProfile", profile.name, lambda it: set_pin(it, there=False))
    await_so("it is deleted", lambda: suite.hub.read("ClusterProfile", profile.name) is None)
    await_so("the ConfigMap is deleted", lambda: not suite.list_generated(trigger, "ConfigMap"))
    suite.end(trigger, source)
    suite.hub.drop("ConfigMap", name, "default")


def accepts_cloud_events_of_a_report(suite: Suite) -> None:
    """The field is emptied, also though the client writes the status next, with what it read."""
    source = suite.make_source(collect=False, messagingMatchCriteria=[{"subject": draw()}])
    text = "kind: Namespace\napiVersion: v1\nmetadata:\n  name: {{ .CloudEvent.subject }}\n"
    place = suite.store(text, namespace="default", annotations=INSTANTIATE)
    trigger = suite.make_trigger("ce-", source, oneForEvent=True, policyRefs=[refer(place)])
    suite.await_report(source)
    subject = draw()
    event = {
        "specversion": "1.0",
        "id": "10001",
        "source": "my.source",
        "type": "my.type",
        "subject": subject,
        "datacontenttype": "application/json",
        "data": {"message": "hello"},
    }
    written = base64.b64encode(json.dumps(event).encode()).decode()

    def change(report: Manifest) -> None:
        report["spec"]["cloudEvents"] = [written]

    stored = suite.hub.edit("EventReport", suite.name_report(source), change, suite.namespace)
    stored.setdefault("status", {})["phase"] = "WaitingForDelivery"
    suite.hub.replace(stored, "status")
    what = "the field is empty"
    await_so(what, lambda: not (suite.read_report(source) or {})["spec"].get("cloudEvents"))
    profile = suite.await_generated(trigger)
    profile.await_summary()
    profile.await_provisioned()
    suite.workload.await_there("Namespace", subject)
    suite.end(trigger, source)
    suite.hub.drop("ConfigMap", place[1], "default")


SCENARIOS = (
    reads_what_a_generator_wrote,
    deploys_again_what_a_generator_wrote_anew,
    reports_why_nothing_is_generated,
    deletes_a_profile_before_what_it_names,
    accepts_cloud_events_of_a_report,
)
