"""Checks by Jobs: one is run for each revision, its success is awaited, and it goes again."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest

from bellhop.core.gvk import GVK
from bellhop.errors import UnreachableError
from bellhop.state.messages import Apply
from tests.fakes.fleet import EAST, Fleet
from tests.fakes.kept import require_value
from tests.fakes.kube import CONFIG, FakeKube
from tests.fakes.manifests import INSTANTIATE, config, holder, join, profile, trigger
from tests.fakes.manifests import source as event_source

JOB = GVK("batch", "v1", "Job")
RENDERED = "projectsveltos.io/template: ok"
COMPLETE = {"type": "Complete", "status": "True"}
FAILED = {
    "type": "Failed",
    "status": "True",
    "reason": "BackoffLimitExceeded",
    "message": "Job has reached the specified backoff limit",
}


def job(image: str = "smoke:1", name: str = "smoke", more: str = "backoffLimit: 2") -> str:
    return f"""\
apiVersion: batch/v1
kind: Job
metadata: {{name: '{name}', namespace: default}}
spec:
  {more}
  template:
    spec: {{restartPolicy: Never, containers: [{{name: smoke, image: '{image}'}}]}}
"""


def check(when: str = "validateHealths", ref: str = "name: smoke, namespace: default") -> str:
    return f"""{when}:
  - name: smoke
    featureID: Resources
    jobCheck: {{jobRef: {{{ref}}}, timeout: 2m}}"""


def deploy_own(fleet: Fleet, more: str, *others: str, v: str = "1") -> None:
    fleet.deploy(profile(more=more), holder("own", config("a", f"v: '{v}'")), *others)


def jobs(kube: FakeKube) -> list[dict[str, Any]]:
    return kube.objects(JOB)


def the_job(kube: FakeKube) -> dict[str, Any]:
    (found,) = jobs(kube)
    return found


def end(kube: FakeKube, condition: dict[str, str]) -> None:
    """End the only Job that there is, as its controller does."""
    there = the_job(kube)
    status = {"conditions": [condition]}
    kube.merge_status({**there, "status": status}, uid=there["metadata"]["uid"])


def applied(kube: FakeKube) -> int:
    return sum(call.verb == "apply" and call.gvk == JOB for call in kube.calls)


def deployed(kube: FakeKube) -> list[str]:
    found = [each["metadata"] for each in kube.objects(CONFIG)]
    return [each["name"] for each in found if each["namespace"] == "default"]


def test_is_deployed_once_its_job_has_succeeded(fleet: Fleet, east: FakeKube) -> None:
    """It waits for the Job by its name, and deletes it when it has passed."""
    deploy_own(fleet, check(), holder("smoke", job()))

    there = the_job(east)
    name = there["metadata"]["name"]
    assert name.startswith("smoke-")
    assert there["spec"]["activeDeadlineSeconds"] == 120
    assert there["spec"]["ttlSecondsAfterFinished"] == 600
    said = f"waits for check 'smoke': Job 'default/{name}' has not succeeded yet"
    assert (fleet.status_of().phase, fleet.status_of().message) == ("Provisioning", said)

    end(east, COMPLETE)
    fleet.wait()
    assert fleet.status_of().phase == "Provisioned"
    assert jobs(east) == []


def test_however_often_it_is_asked_one_job_is_run(fleet: Fleet, east: FakeKube) -> None:
    """A message that comes twice finds the Job of the first, and so does one when all is done."""
    deploy_own(fleet, check(), holder("smoke", job()))
    fleet.wait(times=3)
    assert applied(east) == 1

    end(east, COMPLETE)
    fleet.wait()
    fleet.publisher.publish([Apply("", "", "own", EAST)])
    fleet.pump()
    assert applied(east) == 1


def test_a_new_revision_runs_a_job_of_its_own(fleet: Fleet, east: FakeKube) -> None:
    """The earlier one is about another revision, and is deleted."""
    deploy_own(fleet, check(), holder("smoke", job()))
    first = the_job(east)["metadata"]["name"]
    deploy_own(fleet, check(), v="2")
    fleet.wait()
    second = the_job(east)["metadata"]["name"]
    assert first != second

    deploy_own(fleet, check(), holder("smoke", job("smoke:2")), v="2")
    fleet.wait()
    third = the_job(east)
    assert third["metadata"]["name"] not in (first, second)
    assert third["spec"]["template"]["spec"]["containers"][0]["image"] == "smoke:2"


def test_a_failed_job_does_not_pass_and_is_run_again_once_deleted(
    fleet: Fleet, east: FakeKube
) -> None:
    """Its logs are there until its TTL deletes it."""
    deploy_own(fleet, f"maxConsecutiveFailures: 1\n  {check()}", holder("smoke", job()))
    end(east, FAILED)
    fleet.wait(times=2)
    name = the_job(east)["metadata"]["name"]
    message = "BackoffLimitExceeded: Job has reached the specified backoff limit"
    assert (
        fleet.status_of().message
        == f"waits for check 'smoke': Job 'default/{name}' failed: {message}"
    )
    assert fleet.status_of().counted == 0

    east.remove(JOB, "default", name)
    fleet.wait()
    assert the_job(east)["metadata"]["name"] == name
    end(east, COMPLETE)
    fleet.wait()
    assert fleet.status_of().phase == "Provisioned"


def test_nothing_is_applied_before_a_job_of_before_has_succeeded(
    fleet: Fleet, east: FakeKube
) -> None:
    """It stays until all is deployed, so that it is not run again meanwhile."""
    more = f"{check('preDeployChecks')}\n  {check('validateHealths')}"
    deploy_own(fleet, more, holder("smoke", job()))
    assert deployed(east) == []
    end(east, COMPLETE)
    fleet.wait()
    assert deployed(east) == ["a"]
    assert len(jobs(east)) == applied(east) == 2

    for there in jobs(east):
        east.merge_status(
            {**there, "status": {"conditions": [COMPLETE]}}, uid=there["metadata"]["uid"]
        )
    fleet.wait()
    assert (fleet.status_of().phase, jobs(east), applied(east)) == ("Provisioned", [], 2)


def test_a_removal_runs_its_job_though_all_was_deleted_together(
    fleet: Fleet, east: FakeKube
) -> None:
    """The profile has what its checks run: the ConfigMap need not be there any more."""
    more = f"{check('preDeleteChecks')}\n  {check('postDeleteChecks')}"
    deploy_own(fleet, more, holder("smoke", job()))
    assert (fleet.status_of().phase, jobs(east)) == ("Provisioned", [])
    fleet.declare.delete(
        [
            ("ClusterProfile", "", "own"),
            ("ConfigMap", "default", "own"),
            ("ConfigMap", "default", "smoke"),
        ]
    )
    fleet.pump()

    assert deployed(east) == ["a"]
    end(east, COMPLETE)
    fleet.wait()
    assert deployed(east) == []
    (last,) = [each for each in jobs(east) if "status" not in each]
    east.merge_status({**last, "status": {"conditions": [COMPLETE]}}, uid=last["metadata"]["uid"])
    fleet.wait()
    assert fleet.records.outcomes.get(EAST, "own") is None
    assert jobs(east) == []


def test_a_template_is_rendered_for_each_cluster(fleet: Fleet, east: FakeKube) -> None:
    """With the annotation `.Cluster` is the cluster."""
    west = fleet.register("west", env="production")
    text = job("smoke:{{ .Cluster.metadata.name }}")
    deploy_own(fleet, check(), holder("smoke", text, annotations=RENDERED))
    images = [
        the_job(kube)["spec"]["template"]["spec"]["containers"][0]["image"] for kube in (east, west)
    ]
    assert images == ["smoke:east", "smoke:west"]


def test_a_trigger_renders_its_job_with_the_event(fleet: Fleet, east: FakeKube) -> None:
    """As of policyRefs, `instantiate` asks for that."""
    text = job(name="smoke-{{ .Resource.metadata.name }}")
    fleet.apply(
        join(
            event_source("Service"),
            trigger(more=check(), ref="web"),
            holder("web", config("made"), annotations=INSTANTIATE),
            holder("smoke", text, annotations=INSTANTIATE),
        )
    )
    metadata = {"name": "shop", "namespace": "default"}
    fleet.write("east", {"apiVersion": "v1", "kind": "Service", "metadata": metadata})
    fleet.pump()
    assert the_job(east)["metadata"]["name"].startswith("smoke-shop-")


@pytest.mark.usefixtures("east")
def test_a_profile_takes_what_is_in_its_own_namespace(fleet: Fleet, east: FakeKube) -> None:
    """Any other namespace in the ref is ignored."""
    more = check(ref="name: smoke, namespace: other")
    fleet.deploy(
        profile(namespace="fleet", more=more),
        holder("own", config("a"), namespace="fleet"),
        holder("smoke", job(), namespace="fleet"),
    )
    assert the_job(east)["metadata"]["name"].startswith("smoke-")


@pytest.mark.usefixtures("east")
@pytest.mark.parametrize(
    ("others", "said"),
    [
        pytest.param(
            [holder("smoke", job(), job())],
            "waits for check 'smoke': ConfigMap default/smoke holds something else than one Job of"
            " batch/v1",
            id="two",
        ),
        pytest.param(
            [holder("smoke", config("a"))],
            "waits for check 'smoke': ConfigMap default/smoke holds something else than one Job of"
            " batch/v1",
            id="no Job",
        ),
        pytest.param(
            [holder("smoke", job("{{ .Cluster.nonsense }}"), annotations=RENDERED)],
            "waits for check 'smoke': template: ConfigMap default/smoke/main.yaml:7:79: executing",
            id="a template that fails",
        ),
        pytest.param(
            [holder("smoke", job().replace("namespace: default", "namespace: nowhere"))],
            "waits for check 'smoke': ",
            id="a namespace that is not there",
        ),
    ],
)
def test_says_why_there_is_no_job(fleet: Fleet, others: list[str], said: str) -> None:
    """One sentence, and it is asked again."""
    deploy_own(fleet, check(), *others)
    assert fleet.status_of().message.startswith(said)
    assert fleet.status_of().counted == 0

    deploy_own(fleet, check(), holder("smoke", job()))
    fleet.wait()
    assert "has not succeeded yet" in fleet.status_of().message


@pytest.mark.usefixtures("east")
def test_what_is_missing_is_an_error_of_the_profile(fleet: Fleet) -> None:
    """It says which field names it, and what is there stays; once it comes all goes on."""
    deploy_own(fleet, check())
    found = require_value(fleet.records.profiles.get("", "", "own"))
    assert found.error == "cannot find ConfigMap default/smoke that jobRef names; apply it"

    deploy_own(fleet, check(), holder("smoke", job()))
    fleet.wait()
    assert "has not succeeded yet" in fleet.status_of().message


def test_runs_no_job_where_the_profile_may_deploy_none(fleet: Fleet, east: FakeKube) -> None:
    """The kinds that a profile may deploy limit its checks as well."""
    own = profile(more=check()).replace(
        "{name: own}", "{name: own, annotations: {bellhop.dev/allow: 'ConfigMap in default'}}"
    )
    fleet.deploy(own, holder("own", config("a")), holder("smoke", job()))
    assert jobs(east) == []
    assert "may not deploy a Job.batch" in fleet.status_of().message


def test_its_own_deadline_and_ttl_stay(fleet: Fleet, east: FakeKube) -> None:
    """The shorter deadline counts."""
    more = "activeDeadlineSeconds: 5\n  ttlSecondsAfterFinished: 9"
    deploy_own(fleet, check(), holder("smoke", job(more=more)))
    spec = the_job(east)["spec"]
    assert (spec["activeDeadlineSeconds"], spec["ttlSecondsAfterFinished"]) == (5, 9)


@pytest.mark.usefixtures("east")
def test_quotes_no_secret_that_holds_a_job(fleet: Fleet) -> None:
    """A Job's message from the API server is not shown; only Bellhop's own words are."""
    body = textwrap.indent(job("hunter2").replace("namespace: default", "namespace: away"), "    ")
    secret = f"""
apiVersion: v1
kind: Secret
metadata: {{name: smoke, namespace: default}}
type: addons.projectsveltos.io/cluster-profile
stringData:
  job.yaml: |
{body}"""
    deploy_own(fleet, check(ref="kind: Secret, name: smoke, namespace: default"), secret)
    said = fleet.status_of().message
    assert said.startswith("waits for check 'smoke': cannot run Job 'smoke-")
    assert "something that it needs is not there; the rest is withheld" in said
    assert "hunter2" not in said


def test_runs_with_the_rights_of_whose_profile_it_is(fleet: Fleet, east: FakeKube) -> None:
    """A tenant's Job is made by his account, or not at all."""
    labels = (
        "{name: own, labels: {projectsveltos.io/serviceaccount-name: ann,"
        " projectsveltos.io/serviceaccount-namespace: team}}"
    )
    own = profile(more=check()).replace("{name: own}", labels)
    for kind in ("ConfigMap", "Namespace"):
        east.rbac.grant("team/ann", kind)
    fleet.deploy(own, holder("own", config("a")), holder("smoke", job()))
    assert jobs(east) == []
    assert "waits for check 'smoke'" in fleet.status_of().message

    east.rbac.grant("team/ann", "Job", "default")
    fleet.wait()
    (made,) = [call for call in east.calls if call.gvk == JOB and call.verb == "apply"]
    assert made.account == "team/ann"


def test_what_cannot_be_deleted_is_left_to_its_ttl(fleet: Fleet, east: FakeKube) -> None:
    """All has passed: the outcome says so, whatever becomes of the Job."""
    deploy_own(fleet, check(), holder("smoke", job()))
    end(east, COMPLETE)
    east.fail_with(UnreachableError("it does not answer"), "remove")
    fleet.wait()
    assert fleet.status_of().phase == "Provisioned"
    assert len(jobs(east)) == 1
