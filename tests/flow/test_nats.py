"""A NATS server in a cluster: from a message to the add-on, as somebody who comes from Sveltos."""

from __future__ import annotations

import asyncio
import http.client
import json
import ssl
from pathlib import Path

import nats

from bellhop.core.gvk import GVK, ObjectKey
from infra.lab.processes import Nursery
from tests.flow.conftest import Flow
from tests.infra.nats_rig import NAMESPACE, configuration, happened, program, secret
from tests.lab.nats import Nats
from tests.waiting import eventually

USER = {"user": "admin", "password": "my-password"}
DECLARED = """
apiVersion: lib.projectsveltos.io/v1beta1
kind: EventSource
metadata: {name: user-operation}
spec:
  messagingMatchCriteria:
  - subject: ^user-operation$
    cloudEventSource: auth.example
---
apiVersion: lib.projectsveltos.io/v1beta1
kind: EventTrigger
metadata: {name: manage-namespace}
spec:
  sourceClusterSelector: {matchLabels: {env: production}}
  eventSourceName: user-operation
  oneForEvent: true
  cloudEventAction: '{{if eq .CloudEvent.type "logout"}}Delete{{else}}Create{{end}}'
  policyRefs:
  - {kind: ConfigMap, namespace: default, name: namespace}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: namespace
  namespace: default
  annotations: {projectsveltos.io/instantiate: ok}
data:
  namespace.yaml: |
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: "of-{{ .CloudEvent.subject }}", namespace: default}
"""


def test_a_message_of_nats_deploys_an_add_on_and_another_removes_it(
    flow: Flow, tmp_path: Path
) -> None:
    """The Secret of Sveltos' agent and its EventSource are enough; the right comes by a resync."""
    with Nursery() as nursery:
        (tmp_path / "nats").mkdir()
        server = Nats(program(), tmp_path / "nats", nursery, f"authorization: {json.dumps(USER)}")
        server.start()
        flow.source.create(NAMESPACE)
        proof = {"authorization": {"user": USER}}
        flow.source.create(
            secret(
                configuration(url=server.url, subjects=["user-operation", "releases.>"], **proof)
            )
        )
        (tmp_path / "declared.yaml").write_text(DECLARED)
        flow.stand.do("apply", "-f", str(tmp_path / "declared.yaml"))
        flow.apply("promotions")
        log = flow.stand.processes["forwarder-source"].log_path
        eventually(
            "it is subscribed", lambda: _knock(flow) and "Subscribed to NATS" in log.read_text()
        )

        added = ObjectKey(GVK("", "v1", "ConfigMap"), "default", "of-user-1")
        asyncio.run(_publish(server.url, happened(1)))
        eventually("it is there", lambda: flow.source.get(added))
        asyncio.run(_publish(server.url, happened("2", type="logout", subject="user-1")))
        eventually("it is gone", lambda: not flow.source.get(added))

        # Of the example's criteria one is met by a subject and CEL, the other by names and Lua.
        rolled = ObjectKey(GVK("", "v1", "ConfigMap"), "default", "release-web")
        for number, approvals in enumerate((["ann"], ["ann", "bob"])):
            asyncio.run(_publish(server.url, released(number, approvals), "releases.web"))
        eventually("the approved one is there", lambda: flow.source.get(rolled))
        shop = {"source": "ci.example/shop", "type": "any", "subject": "shop-api"}
        asyncio.run(_publish(server.url, released(9, ["ann", "bob"], **shop)))
        rolled = rolled._replace(name="release-shop-api")
        eventually("the shop's is there", lambda: flow.source.get(rolled))

        assert "my-password" not in log.read_text()


def released(number: int, approvals: list[str], **more: str) -> bytes:
    about = {"source": "releases.example", "type": "example.release", "subject": "web", **more}
    data = {"version": f"1.{number}", "approvals": approvals}
    return json.dumps({"specversion": "1.0", "id": str(number), **about, "data": data}).encode()


def _knock(flow: Flow) -> bool:
    """Have the forwarder look at its Secrets now: it does each minute, and for another path."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    port = flow.stand._ports["source"]
    line = http.client.HTTPSConnection("127.0.0.1", port, timeout=10, context=context)
    line.request("POST", "/another", b"{}")
    line.getresponse().read()
    line.close()
    return True


async def _publish(url: str, body: bytes, subject: str = "user-operation") -> None:
    client = await nats.connect(url, **USER)
    await client.publish(subject, body)
    await client.close()
