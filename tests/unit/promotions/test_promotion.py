"""Promotions end to end: releases go from stage to stage, and freeze what they deploy."""

from __future__ import annotations

from datetime import timedelta

import pytest

from bellhop.errors import InvalidError, UnreachableError
from bellhop.state.messages import Resolve
from tests.fakes.kube import CONFIG
from tests.fakes.manifests import config, holder
from tests.unit.promotions.conftest import Fleet3, auto, manual, promotion, version

HOUR = timedelta(hours=1)
LAST = {"name": "production"}
THREE = promotion(auto("staging", delay="1h"), manual("canary"), LAST)
QUICK = promotion(auto("staging"), auto("canary"), LAST)
TWO = promotion(auto("staging", delay="1h"), LAST)


def pass_hours(staged: Fleet3, hours: int = 1) -> None:
    for _ in range(hours):
        staged.fleet.wait(HOUR)
        staged.settle()


def test_a_release_reaches_one_stage_after_the_other(staged: Fleet3) -> None:
    staged.apply(version("1"), QUICK)
    assert [staged.has(each) for each in ("staging", "canary", "production")] == [{"1"}] * 3
    assert staged.phases() == ["Promoted"] * 3
    assert staged.state.promoted_at


def test_a_stage_soaks_and_waits_for_an_approval(staged: Fleet3) -> None:
    staged.apply(version("1"), THREE)
    assert (staged.has("staging"), staged.has("canary")) == ({"1"}, {""})
    assert staged.phases() == ["Soaking", "Waiting", "Waiting"]

    pass_hours(staged)

    assert staged.phases() == ["Promoted", "AwaitingApproval", "Waiting"]
    assert (staged.has("canary"), staged.has("production")) == ({"1"}, {""})


def test_a_stage_is_counted_again_only_while_steps_depend_on_it(staged: Fleet3) -> None:
    """Each count reads the status of all clusters of all moving stages."""
    fleet = staged.fleet
    staged.apply(version("1"), THREE)
    assert staged.phases() == ["Soaking", "Waiting", "Waiting"]
    fleet.resolution.resolve(Resolve("agent-staging"))
    assert fleet.queues["deploy"].backlog().waiting == 1

    staged.apply(QUICK)
    assert staged.phases() == ["Promoted"] * 3
    fleet.resolution.resolve(Resolve("agent-staging"))
    assert fleet.queues["deploy"].backlog().waiting == 0


def test_an_edited_configmap_reaches_each_stage_in_its_turn(staged: Fleet3) -> None:
    """Sveltos deploys it to all stages at once."""
    staged.apply(version("1"), TWO)
    pass_hours(staged)
    assert staged.has("production") == {"1"}

    staged.apply(version("2"))

    assert (staged.has("staging"), staged.has("production")) == ({"2"}, {"1"})
    pass_hours(staged)
    assert staged.has("production") == {"2"}


def test_a_cluster_that_joins_gets_the_release_of_its_stage(staged: Fleet3) -> None:
    staged.apply(version("1"), TWO)
    pass_hours(staged)
    staged.apply(version("2"))

    joined = staged.fleet.register("production9", env="production")
    staged.settle()

    assert [each["data"]["v"] for each in joined.objects(CONFIG)] == ["1"]


def test_drift_is_corrected_to_the_release_of_the_stage(staged: Fleet3) -> None:
    staged.apply(version("1"), TWO)
    pass_hours(staged)
    staged.apply(version("2"))
    kube = staged.kubes["production1"]
    [deployed] = kube.objects(CONFIG)

    kube.drop(CONFIG, "default", deployed["metadata"]["name"])
    staged.fleet.resync("fleet/production1", full=True)
    staged.settle()

    assert [each["data"]["v"] for each in kube.objects(CONFIG)] == ["1"]


def test_a_cluster_that_fails_stops_the_clock_and_the_next_stage(staged: Fleet3) -> None:
    broken = staged.kubes["staging2"]
    broken.fail_with(UnreachableError("cannot reach it"))
    staged.apply(version("1"), TWO)
    pass_hours(staged, 3)
    stage = staged.stage("staging")
    assert stage.phase == "Stalled"
    assert "fleet/staging2" in stage.message
    assert staged.has("production") == {""}

    broken.fail_with(None)
    pass_hours(staged)

    assert staged.stage("staging").phase == "Promoted" or staged.has("production") == {""}
    pass_hours(staged, 2)
    assert staged.has("production") == {"1"}


def test_so_many_clusters_may_fail(staged: Fleet3) -> None:
    staged.kubes["staging2"].fail_with(UnreachableError("cannot reach it"))
    allowed = promotion(auto("staging"), LAST, annotations={"bellhop.dev/max-failures": "50%"})
    staged.apply(version("1"), allowed)
    staged.settle()
    assert staged.has("production") == {"1"}


def test_a_stage_that_fails_returns_to_its_former_release(staged: Fleet3) -> None:
    back = promotion(auto("staging"), LAST, annotations={"bellhop.dev/on-failure": "rollback"})
    staged.apply(version("1"), back)
    assert staged.has("production") == {"1"}

    refuse = staged.kubes["staging2"].refuse("agent", InvalidError("its webhook refuses it"))
    staged.apply(version("2"))
    refuse()
    staged.settle(400)

    stage = staged.stage("staging")
    assert (stage.phase, stage.release) == ("RolledBack", 1)
    assert "release 2 was rolled back" in stage.message
    assert (staged.has("staging"), staged.has("production")) == ({"1"}, {"1"})
    staged.apply(version("3"))
    assert (staged.has("staging"), staged.has("production")) == ({"3"}, {"3"})


def test_a_misspelt_label_is_no_deployed_stage(staged: Fleet3) -> None:
    """Sveltos counts a stage without clusters as deployed, and production is next."""
    typo = promotion(
        {"name": "staging", "clusterSelector": {"matchLabels": {"env": "stagng"}}}, LAST
    )
    staged.apply(version("1"), typo)
    pass_hours(staged)
    assert staged.stage("staging").phase == "Empty"
    assert "clusters have env=" in staged.stage("staging").message
    assert staged.has("production") == {""}

    skipped = typo.replace("annotations: {}", "annotations: {bellhop.dev/empty-stage: skip}")
    staged.apply(skipped)
    assert staged.has("production") == {"1"}


def test_a_stage_is_verified_before_it_is_left(staged: Fleet3) -> None:
    check = {
        "name": "job",
        "featureID": "Resources",
        "group": "",
        "version": "v1",
        "kind": "ConfigMap",
        "evaluateCEL": [
            {"name": "done", "rule": "!has(resource.data.state) || resource.data.state == 'done'"}
        ],
    }
    verified = auto(
        "staging",
        preHealthCheckDeployment=[{"kind": "ConfigMap", "name": "job", "namespace": "default"}],
        postDelayHealthChecks=[check],
    )
    staged.apply(version("1"), holder("job", config("job", "state: begun")))
    staged.apply(promotion(verified, LAST))
    stage = staged.stage("staging")
    assert stage.phase == "Verifying", stage
    kube = staged.kubes["staging1"]
    assert sorted(kube.names()) == ["agent", "job"]
    assert staged.has("production") == {""}

    staged.apply(holder("job", config("job", "state: done")))
    staged.settle(60)

    assert staged.stage("staging").phase == "Promoted"
    assert staged.has("production") == {"1"}
    assert kube.names() == ["agent"], "the deployment is removed when the stage is left"


def test_a_cluster_moves_between_stages_in_place(staged: Fleet3) -> None:
    staged.apply(version("1"), TWO)
    pass_hours(staged)
    staged.apply(version("2"))
    kube = staged.kubes["staging2"]
    [before] = kube.objects(CONFIG)

    staged.fleet.declare.label("fleet/staging2", {"env": "production"})
    staged.settle()

    [after] = kube.objects(CONFIG)
    assert after["data"]["v"] == "1"
    assert after["metadata"]["uid"] == before["metadata"]["uid"]


def test_a_cluster_keeps_its_release_until_its_new_stage_has_one(staged: Fleet3) -> None:
    staged.apply(version("1"), THREE)
    kube = staged.kubes["staging2"]

    staged.fleet.declare.label("fleet/staging2", {"env": "production"})
    staged.settle()

    assert kube.names() == ["agent"]


def test_a_deleted_promotion_withdraws_all(staged: Fleet3) -> None:
    staged.apply(version("1"), QUICK)
    staged.fleet.delete("ClusterPromotion", "agent")
    staged.settle()
    assert [kube.names() for kube in staged.kubes.values()] == [[]] * 6
    assert staged.fleet.records.promotions.get("agent") is None
    assert staged.fleet.records.releases.heads("agent") == []


def test_a_stage_that_is_taken_out_is_held(staged: Fleet3) -> None:
    staged.apply(version("1"), QUICK)
    staged.apply(promotion(auto("staging"), LAST))
    assert staged.has("canary") == {"1"}
    assert [each.value.rule for each in staged.fleet.records.removals.all()] == [
        ("", "agent-canary")
    ]


def test_a_stage_that_is_added_begins_with_the_release_before_it(staged: Fleet3) -> None:
    staged.apply(version("1"), promotion(auto("staging"), {"name": "canary"}))
    staged.apply(promotion(auto("staging"), auto("canary"), LAST))
    assert staged.has("production") == {"1"}


def test_a_paused_promotion_takes_no_step(staged: Fleet3) -> None:
    paused = promotion(
        auto("staging", delay="1h"),
        LAST,
        annotations={"profile.projectsveltos.io/paused": "true"},
    )
    staged.apply(version("1"), TWO)
    staged.apply(paused)
    pass_hours(staged, 3)
    assert staged.has("production") == {""}
    staged.apply(TWO)
    assert staged.has("production") == {"1"}


def test_an_approval_of_a_manifest_counts_once(staged: Fleet3) -> None:
    waits = promotion(manual("staging"), LAST)
    staged.apply(version("1"), waits)
    assert staged.phases() == ["AwaitingApproval", "Waiting"]
    approved = promotion(manual("staging", approved=True), LAST)
    staged.apply(approved)
    assert staged.has("production") == {"1"}

    staged.apply(version("2"))

    assert staged.phases()[0] == "AwaitingApproval"
    assert staged.has("production") == {"1"}


@pytest.mark.parametrize("reset", [False])
def test_without_a_reset_it_counts_for_each_release(staged: Fleet3, *, reset: bool) -> None:
    approved = promotion(manual("staging", approved=True, automaticReset=reset), LAST)
    staged.apply(version("1"), approved)
    staged.apply(version("2"))
    assert staged.has("production") == {"2"}


def test_a_deleted_promotion_leaves_its_profiles_if_asked(staged: Fleet3) -> None:
    staged.apply(
        version("1"), promotion(auto("staging"), LAST, preserveClusterProfilesOnDelete=True)
    )
    kube = staged.kubes["production1"]
    [before] = kube.objects(CONFIG)

    staged.fleet.delete("ClusterPromotion", "agent")
    staged.settle()

    [after] = kube.objects(CONFIG)
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert staged.fleet.records.manifests.has("ClusterProfile", "", "agent-production")
    staged.apply(version("2"))
    assert staged.has("production") == {"2"}, "they are profiles as any other"


def test_what_is_named_by_the_clusters_of_a_later_stage_is_frozen_too(staged: Fleet3) -> None:
    named = [{"kind": "ConfigMap", "name": "of-{{ .Cluster.metadata.labels.env }}"}]
    refs = [{**each, "namespace": "default"} for each in named]
    stages = auto("staging", delay="1h"), LAST
    of = [holder(f"of-{env}", config("agent", "v: '1'")) for env in ("staging", "production")]
    staged.apply(*of, promotion(*stages, profileSpec={"policyRefs": refs}))
    assert staged.state.latest == 1

    staged.apply(holder("of-production", config("agent", "v: '2'")))

    assert staged.state.latest == 2, "it is a part of the release"
    pass_hours(staged)
    assert (staged.has("staging"), staged.has("production")) == ({"1"}, {"2"})
