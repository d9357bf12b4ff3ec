"""A promotion of a chart through two clusters, with a validation Job, by real API servers."""

from __future__ import annotations

from pathlib import Path

from bellhop.core.gvk import GVK, ObjectKey
from infra.demo.user import User
from tests.fakes.chart import CONFIG_MAP, packed, repository
from tests.flow.conftest import Flow
from tests.waiting import eventually

CONFIG = ObjectKey(GVK("", "v1", "ConfigMap"), "apps", "web-config")
JOB = ObjectKey(GVK("batch", "v1", "Job"), "default", "validation")
CHART = {"templates/config.yaml": CONFIG_MAP}
PROMOTION = """
apiVersion: config.projectsveltos.io/v1beta1
kind: ClusterPromotion
metadata: {{name: web}}
spec:
  profileSpec:
    helmCharts:
    - repositoryURL: {repository}
      repositoryName: charts
      chartName: charts/web
      chartVersion: 1.0.0
      releaseName: web
      releaseNamespace: apps
      values: |
        greeting: {greeting}
  stages:
  - name: staging
    clusterSelector: {{matchLabels: {{dep: eng}}}}
    trigger:
      auto:
        delay: 2s
        preHealthCheckDeployment:
        - {{kind: ConfigMap, namespace: default, name: validation}}
        postDelayHealthChecks:
        - name: succeeded
          featureID: Resources
          group: batch
          version: v1
          kind: Job
          evaluateCEL:
          - name: succeeded
            rule: has(resource.status.succeeded) && resource.status.succeeded >= 1
  - name: production
    clusterSelector: {{matchLabels: {{env: production}}}}
---
apiVersion: v1
kind: ConfigMap
metadata: {{name: validation, namespace: default}}
data:
  job.yaml: |
    apiVersion: batch/v1
    kind: Job
    metadata: {{name: validation, namespace: default}}
    spec:
      template:
        spec:
          restartPolicy: Never
          containers: [{{name: check, image: registry.example/check:1}}]
"""


def greeting(user: User) -> str:
    found = user.get(CONFIG) or {"data": {}}
    return str(found["data"].get("greeting"))


def shown(flow: Flow) -> str:
    return flow.stand.do("get", "promotions").splitlines()[-1]


def test_a_chart_goes_to_production_once_a_job_has_verified_it(flow: Flow, tmp_path: Path) -> None:
    """Each release runs the Job again, and is deployed to the next stage only after that."""
    file = tmp_path / "web.yaml"
    with repository(packed(tmp_path, "web", files=CHART)) as site:
        for text in ("one", "two"):
            file.write_text(PROMOTION.format(repository=site.address, greeting=text))
            flow.stand.do("apply", "-f", str(file))
            eventually(f"staging has {text}", lambda text=text: greeting(flow.destination) == text)
            eventually("the Job runs", lambda: flow.destination.get(JOB))
            eventually("it is verified", lambda: "Verifying" in shown(flow))
            compared = flow.stand.bellhop("diff", "promotion", "web", "--stage", "production")
            assert compared.returncode == 1, compared.stderr
            assert "which is Verifying at stage 'staging', comes next" in compared.stdout
            assert ("-  greeting: one\n+  greeting: two" in compared.stdout) == (text == "two")
            assert greeting(flow.source) != text

            flow.destination.patch(JOB, {"status": {"succeeded": 1}}, "status")
            eventually(f"production has {text}", lambda text=text: greeting(flow.source) == text)
            eventually("the Job is removed", lambda: flow.destination.get(JOB) is None)

        flow.stand.do("rollback", "promotion", "web", "--stage", "production")
        eventually("production has one again", lambda: greeting(flow.source) == "one")
        assert greeting(flow.destination) == "two"
        history = flow.stand.do("history", "promotion", "web")
        assert "rolled back to" in history
