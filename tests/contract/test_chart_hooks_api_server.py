"""Hooks of charts on a real API server: a release is deployed when they have succeeded."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import pytest

from bellhop.adapters.kube.client import KubeClient
from bellhop.core.gvk import GVK
from bellhop.errors import MissingError
from tests.contract.real_cluster import read_outcome, retry
from tests.contract.test_charts_api_server import fleet  # noqa: F401 - a fixture
from tests.fakes.chart import CONFIG_MAP, packed
from tests.fakes.fleet import Fleet
from tests.fakes.releases import chart, charts

# ruff: noqa: F811 - fixtures

CONFIG, SECRET, JOB = GVK("", "v1", "ConfigMap"), GVK("", "v1", "Secret"), GVK("batch", "v1", "Job")
HOOK = """apiVersion: batch/v1
kind: Job
metadata:
  name: hook
  annotations: {{helm.sh/hook: {kind}}}
spec: {{template: {{spec: {{restartPolicy: Never, containers: [{{name: a, image: a}}]}}}}}}
"""
NAMED = CONFIG_MAP.replace("-config", "-{{ .Values.greeting }}")
KEPT = NAMED.replace("}-{", "}-kept-{").replace(
    "metadata: {", "metadata: {annotations: {helm.sh/resource-policy: keep}, "
)


class Jobs:
    """Ends each Job in a cluster as `condition` says, which no controller does here."""

    def __init__(self, kube: KubeClient) -> None:
        self._kube = kube
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._work)
        self.condition = "Failed"
        self.ended: list[str] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _work(self) -> None:
        while not self._over.wait(0.05):
            for job in self._kube.list(JOB):
                if not (job.get("status") or {}).get("conditions"):
                    self._end(job)

    def _end(self, job: dict[str, Any]) -> None:
        now = job["metadata"]["creationTimestamp"]
        before = {"Failed": "FailureTarget", "Complete": "SuccessCriteriaMet"}[self.condition]
        done = [
            {"type": each, "status": "True", "lastTransitionTime": now}
            for each in (before, self.condition)
        ]
        status: dict[str, Any] = {"conditions": done, "startTime": now}
        if self.condition == "Complete":
            status |= {"succeeded": 1, "completionTime": now}
        with suppress(MissingError):
            self._kube.merge_status({**job, "status": status}, uid=job["metadata"]["uid"])
            self.ended.append(self.condition)


@pytest.fixture
def jobs(kube: KubeClient) -> Iterator[Jobs]:
    with Jobs(kube) as one:
        yield one


def configs(kube: KubeClient) -> set[str]:
    found = {each["metadata"]["name"] for each in kube.list(CONFIG, namespace="apps")}
    return found - {"kube-root-ca.crt"}


@pytest.mark.parametrize("kind", ["pre-install", "post-install"])
def test_a_release_is_deployed_once_its_installation_hook_has_succeeded(
    fleet: Fleet, kube: KubeClient, jobs: Jobs, tmp_path: Path, kind: str
) -> None:
    """What failed installations left is deleted, but for what the chart keeps."""
    files = {"templates/hook.yaml": HOOK.format(kind=kind), "templates/a.yaml": NAMED}
    files |= {"templates/kept.yaml": KEPT}
    packed(tmp_path, "web", files=files)
    fleet.apply(charts(of=chart(values="greeting: one")))
    fleet.pump()
    for _ in range(2):
        retry(fleet)
        assert f"failed {kind}" in read_outcome(fleet)[1]
    assert configs(kube) == ({"web-one", "web-kept-one"} if kind == "post-install" else set())

    jobs.condition = "Complete"
    fleet.apply(charts(of=chart(values="greeting: two")))
    retry(fleet)
    assert read_outcome(fleet) == ("Provisioned", "")
    assert jobs.ended == ["Failed", "Failed", "Failed", "Complete"]
    kept = {"web-kept-one"} if kind == "post-install" else set()
    assert configs(kube) == {"web-two", "web-kept-two"} | kept
    assert len(list(kube.list(SECRET, namespace="apps", labels="owner=helm"))) == 2
