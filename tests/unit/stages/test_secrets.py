"""What nobody may read in logs, outcomes and the ledger."""

from __future__ import annotations

import base64

from tests.fakes.fleet import Fleet, service


def test_tells_no_secret_whatever_fails(fleet: Fleet) -> None:
    """An observed Secret and a token appear in no line, when templates and senders are wrong."""
    fleet.register("east", env="production")
    fleet.apply(
        """
apiVersion: lib.projectsveltos.io/v1beta1
kind: EventSource
metadata: {name: secrets}
spec: {collectResources: true, resourceSelectors: [{group: "", version: v1, kind: Secret}]}
---
apiVersion: lib.projectsveltos.io/v1beta1
kind: EventTrigger
metadata: {name: copy}
spec:
  sourceClusterSelector: {matchLabels: {env: production}}
  eventSourceName: secrets
  oneForEvent: true
  policyRefs: [{kind: ConfigMap, name: copy, namespace: default}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: copy, namespace: default, annotations: {projectsveltos.io/instantiate: ok}}
data: {main.yaml: "{{ .Resource.data.password | b64dec }}"}
"""
    )
    fleet.pump()
    hidden = base64.b64encode(b"hush-hush").decode()
    metadata = {"name": "s", "namespace": "default"}
    fleet.write(
        "east",
        {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": {"password": hidden}},
    )
    fleet.pump()
    assert fleet.send("east", {"object": service("a")}, token="hush-token").status == 401

    outcome = next(fleet.records.outcomes.of("fleet/east"))
    assert outcome.reason == "Invalid"
    shown = "\n".join([fleet.output.getvalue(), outcome.message, *map(str, fleet.ledger())])
    assert "hush" not in shown
    assert hidden not in shown
