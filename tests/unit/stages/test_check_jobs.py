"""Checks by Jobs: one is run for each revision, its success is awaited, and it goes again."""

from __future__ import annotations

import textwrap
from datetime import timedelta
from typing import Any

import pytest

from bellhop.core.gvk import GVK
from bellhop.errors import UnreachableError
from bellhop.state.messages import Apply
from bellhop.state.record import DeploymentStatus
from tests.fakes.fleet import Fleet
from tests.fakes.kube import FakeKube
from tests.fakes.manifests import INSTANTIATE, config, holder, join, profile, trigger
from tests.fakes.manifests import source as event_source

EAST = "fleet/east"
JOB = GVK("batch", "v1", "Job")
CONFIG = GVK("", "v1", "ConfigMap")
RENDERED = "projectsveltos.io/template: ok"
COMPLETE = {"type": "Complete", "status": "True"}
FAILED = {
    "type": "Failed",
    "status": "True",
    "reason": "BackoffLimitExceeded",
    "message": "Job has reached the specified backoff limit",
}


@pytest.fixture
def east(fleet: Fleet) -> FakeKube:
    return fleet.register("east", env="production")


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


def brings(fleet: Fleet, more: str, *others: str, v: str = "1") -> None:
    fleet.apply(profile(more=more), holder("own", config("a", f"v: '{v}'")), *others)
    fleet.pump()


def outcome(fleet: Fleet, name: str = "own") -> DeploymentStatus:
    found = fleet.records.outcomes.get(EAST, name)
    assert found
    return found.value


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


def wait(fleet: Fleet, times: int = 1) -> None:
    for _ in range(times):
        fleet.clock.advance(timedelta(hours=1))
        fleet.pump()


def applied(kube: FakeKube) -> int:
    return sum(call.verb == "apply" and call.gvk == JOB for call in kube.calls)


def brought(kube: FakeKube) -> list[str]:
    found = [each["metadata"] for each in kube.objects(CONFIG)]
    return [each["name"] for each in found if each["namespace"] == "default"]


def test_is_deployed_once_its_job_has_succeeded(fleet: Fleet, east: FakeKube) -> None:
    """It waits for the Job by its name, and deletes it when it has passed."""
    brings(fleet, check(), holder("smoke", job()))

    there = the_job(east)
    name = there["metadata"]["name"]
    assert name.startswith("smoke-")
    assert there["spec"]["activeDeadlineSeconds"] == 120
    assert there["spec"]["ttlSecondsAfterFinished"] == 600
    said = f"waits for check 'smoke': Job 'default/{name}' has not succeeded yet"
    assert (outcome(fleet).phase, outcome(fleet).message) == ("Provisioning", said)

    end(east, COMPLETE)
    wait(fleet)
    assert outcome(fleet).phase == "Provisioned"
    assert jobs(east) == []


def test_however_often_it_is_asked_one_job_is_run(fleet: Fleet, east: FakeKube) -> None:
    """A message that comes twice finds the Job of the first, and so does one when all is done."""
    brings(fleet, check(), holder("smoke", job()))
    wait(fleet, 3)
    assert applied(east) == 1

    end(east, COMPLETE)
    wait(fleet)
    fleet.publisher.publish([Apply("", "", "own", EAST)])
    fleet.pump()
    assert applied(east) == 1


def test_a_new_revision_runs_a_job_of_its_own(fleet: Fleet, east: FakeKube) -> None:
    """What the earlier one would say is about something else: it goes."""
    brings(fleet, check(), holder("smoke", job()))
    first = the_job(east)["metadata"]["name"]
    brings(fleet, check(), v="2")
    wait(fleet)
    second = the_job(east)["metadata"]["name"]
    assert first != second

    brings(fleet, check(), holder("smoke", job("smoke:2")), v="2")
    wait(fleet)
    third = the_job(east)
    assert third["metadata"]["name"] not in (first, second)
    assert third["spec"]["template"]["spec"]["containers"][0]["image"] == "smoke:2"


def test_what_fails_does_not_pass_and_is_run_anew_when_it_is_gone(
    fleet: Fleet, east: FakeKube
) -> None:
    """Its TTL deletes it: until then its logs are there."""
    brings(fleet, f"maxConsecutiveFailures: 1\n  {check()}", holder("smoke", job()))
    end(east, FAILED)
    wait(fleet, 2)
    name = the_job(east)["metadata"]["name"]
    told = "BackoffLimitExceeded: Job has reached the specified backoff limit"
    assert outcome(fleet).message == f"waits for check 'smoke': Job 'default/{name}' failed: {told}"
    assert outcome(fleet).counted == 0

    east.remove(JOB, "default", name)
    wait(fleet)
    assert the_job(east)["metadata"]["name"] == name
    end(east, COMPLETE)
    wait(fleet)
    assert outcome(fleet).phase == "Provisioned"


def test_nothing_is_applied_before_a_job_of_before_has_succeeded(
    fleet: Fleet, east: FakeKube
) -> None:
    """It stays until all is deployed, so that it is not run again meanwhile."""
    more = f"{check('preDeployChecks')}\n  {check('validateHealths')}"
    brings(fleet, more, holder("smoke", job()))
    assert brought(east) == []
    end(east, COMPLETE)
    wait(fleet)
    assert brought(east) == ["a"]
    assert len(jobs(east)) == applied(east) == 2

    for there in jobs(east):
        east.merge_status(
            {**there, "status": {"conditions": [COMPLETE]}}, uid=there["metadata"]["uid"]
        )
    wait(fleet)
    assert (outcome(fleet).phase, jobs(east), applied(east)) == ("Provisioned", [], 2)


def test_a_removal_runs_its_job_though_all_was_deleted_together(
    fleet: Fleet, east: FakeKube
) -> None:
    """The profile has what its checks run: the ConfigMap need not be there any more."""
    more = f"{check('preDeleteChecks')}\n  {check('postDeleteChecks')}"
    brings(fleet, more, holder("smoke", job()))
    assert (outcome(fleet).phase, jobs(east)) == ("Provisioned", [])
    fleet.declare.delete(
        [
            ("ClusterProfile", "", "own"),
            ("ConfigMap", "default", "own"),
            ("ConfigMap", "default", "smoke"),
        ]
    )
    fleet.pump()

    assert brought(east) == ["a"]
    end(east, COMPLETE)
    wait(fleet)
    assert brought(east) == []
    (last,) = [each for each in jobs(east) if "status" not in each]
    east.merge_status({**last, "status": {"conditions": [COMPLETE]}}, uid=last["metadata"]["uid"])
    wait(fleet)
    assert fleet.records.outcomes.get(EAST, "own") is None
    assert jobs(east) == []


def test_a_template_is_rendered_for_each_cluster(fleet: Fleet, east: FakeKube) -> None:
    """Where the annotation says so, `.Cluster` is the cluster."""
    west = fleet.register("west", env="production")
    text = job("smoke:{{ .Cluster.metadata.name }}")
    brings(fleet, check(), holder("smoke", text, annotations=RENDERED))
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
    """Whatever namespace is written, if any."""
    more = check(ref="name: smoke, namespace: other")
    fleet.apply(
        profile(namespace="fleet", more=more),
        holder("own", config("a"), namespace="fleet"),
        holder("smoke", job(), namespace="fleet"),
    )
    fleet.pump()
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
    brings(fleet, check(), *others)
    assert outcome(fleet).message.startswith(said)
    assert outcome(fleet).counted == 0

    brings(fleet, check(), holder("smoke", job()))
    wait(fleet)
    assert "has not succeeded yet" in outcome(fleet).message


@pytest.mark.usefixtures("east")
def test_what_is_missing_is_an_error_of_the_profile(fleet: Fleet) -> None:
    """It says which field names it, and what is there stays; once it comes all goes on."""
    brings(fleet, check())
    found = fleet.records.profiles.get("", "", "own")
    assert found
    assert found.value.error == "cannot find ConfigMap default/smoke that jobRef names; apply it"

    brings(fleet, check(), holder("smoke", job()))
    wait(fleet)
    assert "has not succeeded yet" in outcome(fleet).message


def test_runs_no_job_where_the_profile_may_bring_none(fleet: Fleet, east: FakeKube) -> None:
    """What a profile is allowed to bring counts for its checks as well."""
    own = profile(more=check()).replace(
        "{name: own}", "{name: own, annotations: {bellhop.dev/allow: 'ConfigMap in default'}}"
    )
    fleet.apply(own, holder("own", config("a")), holder("smoke", job()))
    fleet.pump()
    assert jobs(east) == []
    assert "may not deploy a Job.batch" in outcome(fleet).message


def test_its_own_deadline_and_ttl_stay(fleet: Fleet, east: FakeKube) -> None:
    """The shorter deadline counts."""
    more = "activeDeadlineSeconds: 5\n  ttlSecondsAfterFinished: 9"
    brings(fleet, check(), holder("smoke", job(more=more)))
    spec = the_job(east)["spec"]
    assert (spec["activeDeadlineSeconds"], spec["ttlSecondsAfterFinished"]) == (5, 9)


@pytest.mark.usefixtures("east")
def test_quotes_no_secret_that_holds_a_job(fleet: Fleet) -> None:
    """What an API server says of such a Job is told in our words alone."""
    body = textwrap.indent(job("hunter2").replace("namespace: default", "namespace: away"), "    ")
    secret = f"""
apiVersion: v1
kind: Secret
metadata: {{name: smoke, namespace: default}}
type: addons.projectsveltos.io/cluster-profile
stringData:
  job.yaml: |
{body}"""
    brings(fleet, check(ref="kind: Secret, name: smoke, namespace: default"), secret)
    said = outcome(fleet).message
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
    fleet.apply(own, holder("own", config("a")), holder("smoke", job()))
    fleet.pump()
    assert jobs(east) == []
    assert "waits for check 'smoke'" in outcome(fleet).message

    east.rbac.grant("team/ann", "Job", "default")
    wait(fleet)
    (made,) = [call for call in east.calls if call.gvk == JOB and call.verb == "apply"]
    assert made.account == "team/ann"


def test_what_cannot_be_deleted_is_left_to_its_ttl(fleet: Fleet, east: FakeKube) -> None:
    """All has passed: the outcome says so, whatever becomes of the Job."""
    brings(fleet, check(), holder("smoke", job()))
    end(east, COMPLETE)
    east.fail_with(UnreachableError("it does not answer"), "remove")
    wait(fleet)
    assert outcome(fleet).phase == "Provisioned"
    assert len(jobs(east)) == 1
