"""The example of a HealthCheck: a resource that is not well rings, and an Event tells of it."""

from __future__ import annotations

from pathlib import Path

from bellhop.core.gvk import GVK, ObjectKey
from tests.fakes.chat import chat
from tests.fakes.fleet import service
from tests.flow.conftest import Flow
from tests.waiting import eventually

EAST = "fleet/source"
EVENT = GVK("", "v1", "Event")
WEB = ObjectKey(GVK("", "v1", "Service"), "default", "web")


PORT = "port: 80000"
BROUGHT = f"""
apiVersion: lib.projectsveltos.io/v1beta1
kind: ClusterHealthCheck
metadata: {{name: production}}
spec:
  clusterSelector: {{matchLabels: {{env: production}}}}
  livenessChecks: [{{name: deployment, type: Addons}}]
  notifications:
  - name: program
    type: Webhook
    notificationRef: {{kind: Secret, namespace: default, name: program}}
---
apiVersion: config.projectsveltos.io/v1beta1
kind: ClusterProfile
metadata: {{name: web}}
spec:
  clusterSelector: {{matchLabels: {{env: production}}}}
  policyRefs: [{{kind: ConfigMap, namespace: default, name: web}}]
---
apiVersion: v1
kind: ConfigMap
metadata: {{name: web, namespace: default}}
data:
  web.yaml: |
    apiVersion: v1
    kind: Service
    metadata: {{name: web, namespace: default}}
    spec: {{ports: [{{{PORT}, protocol: TCP}}]}}
---
apiVersion: v1
kind: Secret
metadata: {{name: program, namespace: default}}
stringData: {{WEBHOOK_TOKEN: hidden, WEBHOOK_URL: URL}}
"""


def said(flow: Flow) -> str:
    """Return how the cluster is and why; nothing where that is not known."""
    kept = flow.stand.records().conditions.of(EAST).get("production")
    return f"{kept.value.healthy} {kept.value.message}" if kept else ""


def events(flow: Flow) -> list[tuple[str, str]]:
    """Return what is told in the cluster."""
    names = (each for each in flow.source.names(EVENT, "default") if each.startswith("production."))
    found = (flow.source.get(ObjectKey(EVENT, "default", each)) for each in names)
    return [(each["type"], each["message"]) for each in found if each]


def test_a_resource_that_is_not_well_is_told_of_until_it_is(flow: Flow) -> None:
    """By rings, status included: no sweep is asked for after what is declared.

    It takes seconds: the health changes twice.
    """
    flow.apply("health")
    eventually("the cluster is known to be well", lambda: said(flow).startswith("True"))

    web = service("web")
    del web["status"]
    web["spec"]["type"] = "LoadBalancer"
    flow.source.create(web)
    sick = "False Service 'default/web' is Progressing: no address"
    eventually("it is not well", lambda: said(flow) == sick)
    eventually("an Event tells of it", lambda: len(events(flow)) == 1)
    [(kind, text)] = events(flow)
    assert kind == "Warning"
    assert "Service 'default/web' is Progressing: no address" in text
    assert "no address" in flow.stand.do("describe", "healthcheck", "addresses")
    (row,) = flow.stand.do("show", "resources", "--kind", "Service", "--no-headers").splitlines()
    assert row.split() == [EAST, "v1/Service", "default", "web", "Progressing:", "no", "address"]

    flow.source.give_address(WEB, "203.0.113.7")
    eventually("it is well again", lambda: said(flow).startswith("True"))


def test_a_profile_that_fails_is_told_until_it_is_mended(flow: Flow, tmp_path: Path) -> None:
    """A program hears what the API server refuses, and nobody sees its token.

    It takes seconds: the health changes twice.
    """
    file = tmp_path / "web.yaml"
    with chat() as program:
        file.write_text(BROUGHT.replace("URL: URL", f"URL: '{program.url}/hook'"))
        flow.stand.do("apply", "-f", str(file))
        eventually("it is refused", lambda: "Failed" in flow.stand.do("get", "clusterprofiles"))
        flow.stand.settle(EAST)
        eventually("a program is told", lambda: program.taken)
        [(path, token, body)] = program.taken
    assert (path, token) == ("/hook", "Bearer hidden")
    assert (body["cluster"], body["healthy"]) == (EAST, False)
    assert "ClusterProfile/web: " in body["message"]
    assert "hidden" not in flow.stand.do("describe", "clusterhealthcheck", "production")

    file.write_text(file.read_text().replace(PORT, "port: 80"))
    flow.stand.do("apply", "-f", str(file))
    eventually("it is there", lambda: " 1/1 " in flow.stand.do("get", "clusterprofiles"))
    flow.stand.settle(EAST)
    eventually("all is well", lambda: said(flow) == "True all 1 profiles are deployed")
