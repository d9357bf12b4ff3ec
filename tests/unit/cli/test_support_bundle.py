"""`bellhop support-bundle` writes what helps to find a fault, and nothing that is secret."""

from __future__ import annotations

import base64
import json
import stat
import tarfile
from pathlib import Path

import pytest
from msgspec.structs import replace

from bellhop.installation import Installation
from tests.fakes.kept import require_value
from tests.unit.cli import fleet
from tests.unit.cli.conftest import Bellhop

SECRET = "hunter2-is-secret"
PLANTED = f"""
apiVersion: v1
kind: Secret
metadata:
  name: slack
  namespace: default
  annotations: {{note: {SECRET}-annotation}}
stringData: {{url: "https://hooks.example.com/{SECRET}-receiver"}}
---
apiVersion: v1
kind: ConfigMap
metadata: {{name: values, namespace: default}}
data: {{values.yaml: "password: {SECRET}-values"}}
---
apiVersion: lib.projectsveltos.io/v1beta1
kind: ClusterHealthCheck
metadata: {{name: check}}
spec:
  clusterSelector: {{matchLabels: {{env: fv}}}}
  livenessChecks: [{{name: all, type: Addons}}]
  notifications:
  - name: slack
    type: Slack
    notificationRef: {{apiVersion: v1, kind: Secret, name: slack, namespace: default}}
---
apiVersion: config.projectsveltos.io/v1beta1
kind: ClusterProfile
metadata: {{name: web}}
spec:
  clusterSelector: {{matchLabels: {{env: fv}}}}
  policyRefs:
  - remoteURL: {{url: "https://user:{SECRET}-url@files.example.com/a.yaml"}}
  helmCharts:
  - repositoryURL: https://user:{SECRET}-repository@charts.example.com
    repositoryName: web
    chartName: web/web
    chartVersion: 1.0.0
    releaseName: web
    releaseNamespace: web
    values: "password: {SECRET}-inline"
    valuesFrom: [{{kind: Secret, name: registry, namespace: infra}}]
  patches: [{{patch: "password: {SECRET}-patch"}}]
---
apiVersion: lib.projectsveltos.io/v1beta1
kind: EventSource
metadata: {{name: script}}
spec:
  resourceSelectors:
  - {{group: "", version: v1, kind: Secret, evaluate: "-- {SECRET}-script"}}
"""
KUBECONFIG = f"""{{"apiVersion": "v1", "kind": "Config", "current-context": "a",
 "contexts": [{{"name": "a", "context": {{"cluster": "a", "user": "a"}}}}],
 "clusters": [{{"name": "a", "cluster": {{"server": "https://127.0.0.1:9"}}}}],
 "users": [{{"name": "a", "user": {{"token": "{SECRET}-token"}}}}]}}"""


@pytest.fixture
def planted(here: Installation) -> Installation:
    """An installation with a secret in every place that has some."""
    fleet.populate(here)
    fleet.declare(here, PLANTED)
    object_of_a_report = {**fleet.service(), "data": {"password": f"{SECRET}-observed"}}
    fleet.observe(here, object_of_a_report)
    kept = require_value(here.records.clusters.get("default/workload"))
    address = "https://bellhop.example.com"
    sender = {"url": address, "path": f"/{SECRET}-path", "token": f"{SECRET}-sender", "ca": ""}
    data = {"data": {"registry": f"{SECRET}-data"}}
    changed = {"forwarder": sender, "annotations": {"a": f"{SECRET}-cluster"}, "spec": data}
    here.records.clusters.put(replace(kept, **changed))
    here.records.catalog.change("clusters")
    here.secrets.put("kubeconfig/default/workload", KUBECONFIG.encode())
    return here


def contents(path: Path) -> dict[str, str]:
    """Return the files of a bundle, by name."""
    with tarfile.open(path) as archive:
        found = {each.name.partition("/")[2]: archive.extractfile(each) for each in archive}
        return {name: file.read().decode() for name, file in found.items() if file}


def test_has_what_helps(bellhop: Bellhop, planted: Installation, tmp_path: Path) -> None:
    planted.records.ledger.note(fleet.entry("applied", detail="in 3 ms"))
    path = tmp_path / "fault.tar.gz"
    result = bellhop("support-bundle", str(path))
    found = contents(path)

    assert (result.exit_code, result.stdout) == (0, f"written to {path}\n")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert json.loads(found["version.json"])["bellhop"]
    assert json.loads(found["settings.json"])["workers"] == 8
    assert json.loads(found["status.json"])["clusters"][0]["cluster"] == "default/workload"
    assert '"cluster": "default/workload"' in found["doctor.jsonl"]
    assert '"name": "service-network-policy"' in found["eventtriggers.jsonl"]
    assert '"name": "registry"' in found["secrets.jsonl"]
    assert "in 3 ms" in found["events.jsonl"]


def test_has_no_secret(bellhop: Bellhop, planted: Installation, tmp_path: Path) -> None:
    """Neither as it was written nor as base64, in no file and no name."""
    assert SECRET in planted.secrets.read("kubeconfig/default/workload").decode()
    path = tmp_path / "fault.tar.gz"
    bellhop("support-bundle", str(path))
    found = contents(path)

    assert len(found) > 15
    assert not [name for name in found if "error" in name]
    everything = "\n".join([*found, *found.values()])
    assert SECRET not in everything
    # Three letters of a text are four of base64, wherever the text begins in it.
    for before in ("", "x", "xx"):
        encoded = base64.b64encode(f"{before}{SECRET}".encode()).decode()
        assert encoded[4:-4] not in everything


def test_a_file_that_exists_is_kept(
    bellhop: Bellhop, planted: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unless it is to be replaced; without a name the file is named after the time."""
    del planted
    path = tmp_path / "fault.tar.gz"
    path.write_text("other")
    refused = bellhop("support-bundle", str(path))
    assert (refused.exit_code, path.read_text()) == (1, "other")
    assert "it exists; name another file, or --overwrite" in refused.stderr
    assert bellhop("support-bundle", str(path), "--overwrite").exit_code == 0
    assert "version.json" in contents(path)

    monkeypatch.chdir(tmp_path)
    bellhop("support-bundle")
    assert len(list(tmp_path.glob("bellhop-support-*.tar.gz"))) == 1


def test_a_part_that_cannot_be_read_keeps_no_other_out(
    bellhop: Bellhop, planted: Installation, tmp_path: Path
) -> None:
    """Also after a fault of Bellhop's own, whose message is left out: it may quote anything."""
    kept = require_value(planted.records.clusters.get("default/workload"))
    planted.records.clusters.put(replace(kept, forwarder={f"{SECRET}-odd": ""}))
    planted.records.catalog.change("clusters")
    path = tmp_path / "fault.tar.gz"
    assert bellhop("support-bundle", str(path)).exit_code == 0

    found = contents(path)
    assert found["status.json.error.txt"] == "internal error (KeyError)\n"
    assert '"name": "service-network-policy"' in found["eventtriggers.jsonl"]
    assert SECRET not in "".join(found.values())
