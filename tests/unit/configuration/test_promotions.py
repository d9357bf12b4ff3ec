"""A ClusterPromotion as a custom resource: taken, reported on, and withdrawn before it leaves."""

from __future__ import annotations

from datetime import timedelta

from bellhop.operations.promotions import roll_back
from bellhop.state.promotion import PromotionState
from tests.fakes.kube import CONFIG
from tests.unit.configuration.hub import Hub, find_gvk
from tests.unit.configuration.test_notifier import find
from tests.unit.configuration.test_status import truths
from tests.unit.promotions.conftest import auto, manual, promotion, version

KIND = "ClusterPromotion"
LAST = {"name": "production"}


def settle(hub: Hub) -> None:
    hub.fleet.wait(timedelta(seconds=1), times=12)


def test_a_promotion_gets_its_status(hub: Hub) -> None:
    """With the stage that its release is at, and no time that is wrong a minute later."""
    hub.fleet.register("one", env="staging")
    hub.write(f"{version('1')}---\n{promotion(auto('staging', delay='1h'), LAST)}")
    settle(hub)

    status = find(hub, KIND, "agent")["status"]
    assert status["currentStageName"] == "staging"
    first, last = status["stages"]
    assert first["clusters"] == {"total": 1, "provisioned": 1, "failed": 0}
    assert first["release"] == state(hub).latest
    assert first["currentStatusDescription"].startswith("Soaking until ")
    assert first["lastSuccessfulAppliedTime"]
    assert last["currentStatusDescription"] == "Waiting"
    assert truths(status) == {"Ready": "Unknown", "Reconciling": "True", "Stalled": "False"}


def test_a_promotion_comes_before_the_configmap_that_it_names(hub: Hub) -> None:
    """It has no release until then, and says why; its first one has failed nowhere."""
    kube = hub.fleet.register("one", env="staging")
    hub.write(promotion({"name": "staging"}))
    settle(hub)
    status = find(hub, KIND, "agent")["status"]
    assert truths(status) == {"Ready": "False", "Reconciling": "False", "Stalled": "True"}
    assert "cannot find ConfigMap default/agent" in status["conditions"][0]["message"]
    assert state(hub).latest == 0

    hub.write(version("1"))
    settle(hub)

    assert [each["data"]["v"] for each in kube.objects(CONFIG)] == ["1"]
    assert state(hub).latest == 1
    assert truths(find(hub, KIND, "agent")["status"])["Ready"] == "True"


def test_a_promotion_that_waits_for_an_approval_is_not_in_progress(hub: Hub) -> None:
    hub.fleet.register("one", env="staging")
    hub.write(f"{version('1')}---\n{promotion(manual('staging'), LAST)}")
    settle(hub)
    status = find(hub, KIND, "agent")["status"]
    assert truths(status) == {"Ready": "False", "Reconciling": "False", "Stalled": "False"}
    assert status["conditions"][0]["reason"] == "AwaitingApproval"


def test_a_deleted_promotion_stays_until_its_stages_are_withdrawn(hub: Hub) -> None:
    kube = hub.fleet.register("one", env="staging")
    hub.write(f"{version('1')}---\n{promotion(auto('staging', delay='1h'), LAST)}")
    settle(hub)
    assert kube.objects(CONFIG)
    finalizers = find(hub, KIND, "agent")["metadata"]["finalizers"]
    assert finalizers == ["config.projectsveltos.io/clusterpromotion"]
    hub.delete(KIND, "agent")
    settle(hub)
    assert kube.objects(CONFIG) == []
    assert hub.kube.get(find_gvk(KIND), "", "agent") is None


def test_an_annotation_approves_one_release(hub: Hub) -> None:
    """It counts for the release that it names, and for no later one."""
    staging, production = (
        hub.fleet.register("one", env="staging"),
        hub.fleet.register("two", env="production"),
    )
    hub.write(version("1"), promotion(manual("staging"), LAST))
    settle(hub)
    latest = state(hub).latest
    assert production.objects(CONFIG) == []

    approved = {"bellhop.dev/approved": f"staging@{latest}"}
    hub.write(promotion(manual("staging"), LAST, annotations=approved))
    settle(hub)
    assert production.objects(CONFIG)
    approval = state(hub).stage("staging").visits[-1].approval
    assert approval
    assert approval.by == "annotation"

    hub.write(version("2"))
    settle(hub)
    assert [each["data"]["v"] for each in staging.objects(CONFIG)] == ["2"]
    assert [each["data"]["v"] for each in production.objects(CONFIG)] == ["1"]
    assert state(hub).stage("staging").phase == "AwaitingApproval"


def test_a_stage_that_a_user_has_rolled_back_is_not_stalled(hub: Hub) -> None:
    for name, env in (("one", "staging"), ("two", "production")):
        hub.fleet.register(name, env=env)
    for text in ("1", "2"):
        hub.write(version(text), promotion(auto("staging"), LAST))
        settle(hub)
    roll_back(hub.fleet.installation(), "agent", by="ann", stage="production")
    settle(hub)
    status = find(hub, KIND, "agent")["status"]
    assert truths(status) == {"Ready": "False", "Reconciling": "False", "Stalled": "False"}
    ready = status["conditions"][0]
    assert ready["reason"] == "RolledBack"
    assert ready["message"].endswith("was rolled back by ann")


def state(hub: Hub) -> PromotionState:
    kept = hub.fleet.records.promotions.get("agent")
    assert kept
    return kept.value
