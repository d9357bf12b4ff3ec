"""Jobs of checks as a real API server takes them; no controller is there: the tests end them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from bellhop.adapters.kube.client import KubeClient
from bellhop.core.gvk import GVK
from tests.contract.test_preview_api_server import EAST, fleet, kube  # noqa: F401 - the fixtures
from tests.fakes.fleet import Fleet
from tests.fakes.manifests import config, holder, profile

# ruff: noqa: F811 - the fixtures

pytest_plugins = ["tests.kube_fixtures"]

JOB = GVK("batch", "v1", "Job")
AT = "2026-01-01T12:00:00Z"
SMOKE = """\
apiVersion: batch/v1
kind: Job
metadata: {name: smoke, namespace: default}
spec:
  backoffLimit: 0
  template:
    spec: {restartPolicy: Never, containers: [{name: smoke, image: "smoke:1"}]}
"""
CHECK = """validateHealths:
  - name: smoke
    featureID: Resources
    jobCheck: {jobRef: {name: smoke, namespace: default}}"""
SUCCESS = {
    "startTime": AT,
    "completionTime": AT,
    "succeeded": 1,
    "conditions": [
        {"type": each, "status": "True", "lastTransitionTime": AT}
        for each in ("SuccessCriteriaMet", "Complete")
    ],
}
FAILURE = {
    "startTime": AT,
    "failed": 1,
    "conditions": [
        {
            "type": each,
            "status": "True",
            "lastTransitionTime": AT,
            "reason": "BackoffLimitExceeded",
            "message": "Job has reached the specified backoff limit",
        }
        for each in ("FailureTarget", "Failed")
    ],
}


def the_job(kube: KubeClient) -> dict[str, Any]:
    (found,) = kube.list(JOB, namespace="default")
    return found


def end(kube: KubeClient, status: dict[str, Any]) -> None:
    there = the_job(kube)
    kube.merge_status({**there, "status": status}, uid=there["metadata"]["uid"])


def wait(fleet: Fleet) -> None:
    fleet.clock.advance(timedelta(hours=1))
    fleet.pump()


def message(fleet: Fleet) -> str:
    found = fleet.records.outcomes.get(EAST, "own")
    assert found
    return found.value.message or found.value.phase


def brings(fleet: Fleet, v: str) -> None:
    fleet.apply(profile(more=CHECK), holder("own", config("a", f"v: '{v}'")))
    fleet.apply(holder("smoke", SMOKE))
    fleet.pump()


@pytest.mark.usefixtures("kube")
def test_a_job_is_run_once_for_each_revision(fleet: Fleet, kube: KubeClient) -> None:
    """A failed one is told, the next revision has its own, and what passed is deleted."""
    brings(fleet, "1")
    first = the_job(kube)["metadata"]
    wait(fleet)
    assert the_job(kube)["metadata"]["uid"] == first["uid"]
    assert message(fleet).endswith(f"Job 'default/{first['name']}' has not succeeded yet")

    end(kube, FAILURE)
    wait(fleet)
    assert "failed: BackoffLimitExceeded: Job has reached" in message(fleet)

    brings(fleet, "2")
    wait(fleet)
    assert the_job(kube)["metadata"]["name"] != first["name"]
    end(kube, SUCCESS)
    wait(fleet)
    assert message(fleet) == "Provisioned"
    assert list(kube.list(JOB, namespace="default")) == []
