"""Jinja2 through the whole pipeline: event time, the store, and deploy time."""

from __future__ import annotations

from bellhop.core.gvk import GVK
from tests.fakes.fleet import Fleet, service

CONFIG_MAP = GVK("", "v1", "ConfigMap")
POLICY = """
apiVersion: lib.projectsveltos.io/v1beta1
kind: EventSource
metadata: {name: services-production}
spec:
  collectResources: true
  resourceSelectors: [{group: "", version: v1, kind: Service}]
---
apiVersion: lib.projectsveltos.io/v1beta1
kind: EventTrigger
metadata: {name: t, annotations: {bellhop.dev/template: jinja2}}
spec:
  sourceClusterSelector: {matchLabels: {env: production}}
  destinationClusterSelector: {matchLabels: {dep: eng}}
  eventSourceName: "services-{{ Cluster.metadata.labels.env }}"
  oneForEvent: true
  policyRefs:
  - {kind: ConfigMap, namespace: default, name: "for-{{ MatchingResource.Kind | lower }}"}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: for-service
  annotations: {projectsveltos.io/instantiate: ok, projectsveltos.io/template: ok}
data:
  here.yaml: |
    apiVersion: v1
    kind: ConfigMap
    metadata:
      name: {{ Resource.metadata.name }}-{% raw %}{{ Cluster.metadata.name }}{% endraw %}
      namespace: default
"""


def names(fleet: Fleet, cluster: str) -> list[str]:
    found = fleet.access.clusters[f"fleet/{cluster}"].objects(CONFIG_MAP)
    return [each["metadata"]["name"] for each in found]


def test_a_trigger_in_jinja2_is_carried_out(fleet: Fleet) -> None:
    """Names and contents are rendered in Jinja2, at event time and again for each cluster."""
    fleet.register("east", env="production")
    fleet.register("west", dep="eng")
    fleet.deploy(POLICY)

    fleet.write("east", service("web"))
    fleet.pump()

    assert names(fleet, "west") == ["web-west"]


def test_a_failing_template_leaves_what_was_good(fleet: Fleet) -> None:
    """The error is kept on the profile with the template's line, and nothing is withdrawn."""
    fleet.register("east", env="production")
    fleet.register("west", dep="eng")
    fleet.apply(POLICY)
    fleet.write("east", service("web"))
    fleet.pump()

    fleet.deploy(POLICY.replace("Resource.metadata.name }}-", "Resource.metadata.nmae }}-"))

    (profile,) = fleet.records.profiles.of("t")
    assert profile.error == (
        "template: default/for-service/here.yaml:4: 'dict object' has no attribute 'nmae' (did"
        " you mean 'name'?), in 'name: {{ Resource.metadata.nmae }}-{% raw %}{{"
        " Cluster.metadata.name }}{% endraw %}'"
    )
    assert names(fleet, "west") == ["web-west"]
