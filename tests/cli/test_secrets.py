"""No secret is in what functions log, what queues carry, what is stored and what is printed."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from bellhop.installation import Installation
from bellhop.state.cluster import Cluster as Record
from bellhop.state.messages import Resync
from infra.demo.user import User as Someone
from infra.lab.cluster import Cluster
from tests.cli.conftest import on_aws
from tests.cli.test_commands import CHANGING, READING
from tests.fakes.hostile import Hostile
from tests.fakes.manifests import join, source
from tests.functions.lab import KEY, Account, Context, Lambda, event
from tests.lab.moto import Moto

pytest_plugins = ["tests.kube_fixtures"]

BEARER = "bearer-Qq3kV7-of-the-sender"
KUBE = "kubeconfig-Zx8pL2-of-west"
DATA = "data-Rt5mN9-of-the-secret"
HELD = "held-Yw4jH6-by-a-holder"
DELIVERED = "west"

TRIGGER = """
apiVersion: lib.projectsveltos.io/v1beta1
kind: EventTrigger
metadata: {{name: {name}}}
spec:
  sourceClusterSelector: {{matchLabels: {{env: production}}}}
  destinationClusterSelector: {{matchLabels: {{env: hostile}}}}
  eventSourceName: watched
  oneForEvent: true
  policyRefs: [{{kind: Secret, name: {name}, namespace: default}}]
"""
HOLDERS = f"""
apiVersion: v1
kind: Secret
type: addons.projectsveltos.io/cluster-profile
metadata:
  name: held
  namespace: default
  annotations: {{projectsveltos.io/instantiate: ok}}
stringData:
  main.yaml: |
    apiVersion: v1
    kind: Secret
    metadata: {{name: copy-of-{{{{ .Resource.metadata.name }}}}, namespace: default}}
    stringData:
      held: {HELD}
      data: '{{{{ .Resource.data.password }}}}'
---
apiVersion: v1
kind: Secret
type: addons.projectsveltos.io/cluster-profile
metadata:
  name: broken
  namespace: default
  annotations: {{projectsveltos.io/instantiate: ok}}
stringData:
  main.yaml: |
    {{{{ fail (printf "no: {HELD} %s" (b64dec .Resource.data.password)) }}}}
"""


def _trigger(name: str) -> str:
    return TRIGGER.format(name=name)


def spellings(text: str) -> set[str]:
    """Every way in which a secret could be written."""
    raw = text.encode()
    found = {text, base64.b64encode(raw).decode().rstrip("="), raw.hex()}
    return found | {base64.urlsafe_b64encode(raw).decode().rstrip("=")}


PLANTED = [each for text in (BEARER, KUBE, DATA, HELD) for each in spellings(text)]
PLANTED += [KEY.hex(), base64.b64encode(KEY).decode().rstrip("="), repr(KEY)[2:-1]]


class Carried(Lambda):
    """Functions whose queues are read by somebody who should not."""

    def __init__(self, account: Account) -> None:
        super().__init__(account)
        self.carried: list[str] = []

    def _event(self, inbox: str, taken: Any) -> dict[str, Any]:
        self.carried.append(json.dumps(taken, default=str))
        return super()._event(inbox, taken)


@pytest.fixture
def hostile() -> Iterator[Hostile]:
    """A cluster that quotes what it is given."""
    one = Hostile(KUBE)
    yield one
    one.close()


def enrol(here: Installation, name: str, kubeconfig: Mapping[str, Any], **labels: str) -> None:
    """Add a cluster `fleet/NAME` whose sender has the planted token."""
    here.secrets.put(f"kubeconfig/fleet/{name}", json.dumps(kubeconfig).encode())
    digest = hashlib.sha256(BEARER.encode()).hexdigest()
    now = here.records.clock.now()
    here.declare.register(Record("fleet", name, labels, "v1.31.0", digest, now))


def test_no_secret_gets_out(
    moto: Moto, tmp_path: Path, source_cluster: Cluster, hostile: Hostile
) -> None:
    """Planted as token, kubeconfig, Secret, template and sealing key; quoted by a cluster.

    It takes over a minute: functions work off events of two clusters, and nearly all commands run.
    """
    account = Account(moto, attempts=3, retry_first=1, retry_longest=1)
    house = on_aws(tmp_path, account)
    enrol(house.here, "east", source_cluster.kubeconfig(), env="production")
    enrol(house.here, DELIVERED, hostile.kubeconfig(), env="hostile")
    rules = tmp_path / "rules.yaml"
    rules.write_text(join(source("Secret"), *map(_trigger, ("held", "broken")), HOLDERS))
    printed = [house("apply", "-f", str(rules)).output]
    functions, someone = Carried(account), Someone(source_cluster.kubeconfig())
    stored = someone.create(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "password", "namespace": "default"},
            "data": {"password": base64.b64encode(DATA.encode()).decode()},
        }
    )
    someone.close()
    send_batch(functions, {"items": [{"object": stored}]})
    send_batch(
        functions, {"items": [{"object": {**stored, "metadata": DATA}}, {"strange": BEARER}]}
    )
    house.here.publisher.publish([Resync("fleet/east"), Resync(f"fleet/{DELIVERED}")])

    def failed() -> set[str]:
        return {line["cluster"] for line in account.lines() if line.get("what") == "failed"}

    functions.pump(until=lambda: failed() == {"fleet/east", f"fleet/{DELIVERED}"})
    letter = house.bury({"kind": "sweep", "cluster": "fleet/east"}, "why")
    commands = [
        *(line for line in READING if "--show-secrets" not in line),
        *("status", "doctor", "show failures -o json", "dead-letters list -o wide"),
        *("get clusters -o yaml", "get eventreports -o yaml", "get clusterprofiles -o yaml"),
        *("describe clusterprofile", "show resources --full", "show events -o json"),
        "explain fleet/east Secret default/password",
        "explain trigger held",
        f"dead-letters replay {letter}",
        *(change for change, _ in CHANGING if change.startswith("redeploy")),
    ]
    printed += [house(*line.split(), BELLHOP_DEBUG="1").output for line in commands]

    quoted = "".join(hostile.quoted)
    assert all(any(each in quoted for each in spellings(text)) for text in (HELD, DATA, KUBE))
    assert "default/password" in "".join(printed)
    seen = {
        "logged": account.output.getvalue(),
        "carried": "".join(functions.carried),
        "printed": "".join(printed),
        **dict(kept(account)),
    }
    for where, text in seen.items():
        assert [each for each in PLANTED if each in text] == [], where


def send_batch(functions: Carried, batch: Mapping[str, Any]) -> None:
    """Have the sender of `east` send a batch, with its token."""
    sent = event("function_url")
    sent["rawPath"] = sent["requestContext"]["http"]["path"] = "/clusters/fleet/east"
    sent["headers"]["authorization"] = f"Bearer {BEARER}"
    sent["body"] = json.dumps({"apiVersion": "bellhop.dev/v1", "kind": "Observations", **batch})
    functions.front(sent, Context())


def kept(account: Account) -> Iterator[tuple[str, str]]:
    """Yield all that is stored outside Secrets Manager."""
    dynamo, s3 = account.services.client("dynamodb"), account.services.client("s3")
    pages = dynamo.get_paginator("scan").paginate(TableName=account.name)
    yield "the table", "".join(json.dumps(page["Items"], default=str) for page in pages)
    for each in s3.list_objects_v2(Bucket=account.name).get("Contents", []):
        body = s3.get_object(Bucket=account.name, Key=each["Key"])["Body"].read()
        yield f"the blob {each['Key']}", body.decode("latin-1")
