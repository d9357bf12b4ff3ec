"""Signals of promotions: lines of the event log, metrics, alerts and failures."""

from __future__ import annotations

import io
import json
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace
from prometheus_client import CollectorRegistry

from bellhop.clusters.alert import Alert
from bellhop.diagnosis.failures import list_failures
from bellhop.errors import InvalidError, UnreachableError
from bellhop.logs import Log
from bellhop.operations import promotions
from bellhop.runtime.aws.metrics import Metrics as AwsMetrics
from bellhop.runtime.cloud.resources import Resources
from bellhop.runtime.cloud.tick import report_alerts
from bellhop.runtime.embedded.gauges import count_stopped, promotions_by_name
from bellhop.runtime.embedded.metrics import Metrics
from bellhop.state.messages import CollectGarbage, Promote
from bellhop.state.promotion import PromotionState
from tests.unit.promotions.conftest import Fleet3, auto, manual, promotion, version

HOUR = timedelta(hours=1)
LAST = {"name": "production"}
TWO = promotion(auto("staging", delay="1h"), LAST)
EMPTY = promotion({"name": "staging", "clusterSelector": {"matchLabels": {"env": "no"}}}, LAST)


def lines(staged: Fleet3) -> list[tuple[str, str]]:
    """Return the lines of the event log about the promotion."""
    entries = staged.fleet.ledger()
    return [(each.what, each.detail) for each in entries if each.context.get("promotion")]


def break_cluster(staged: Fleet3) -> None:
    staged.kubes["staging2"].fail_with(UnreachableError("cannot reach it"))


def heal_cluster(staged: Fleet3) -> None:
    staged.kubes["staging2"].fail_with(None)
    for _ in range(3):
        staged.fleet.wait(HOUR)
        staged.settle()


def test_each_step_has_a_line_also_of_stages_that_change_at_once(staged: Fleet3) -> None:
    staged.apply(version("1"), promotion(auto("staging"), auto("canary"), LAST))
    assert sorted(lines(staged)) == [
        (what, f"release 1 at stage '{stage}'")
        for what in ("begins", "promoted")
        for stage in ("canary", "production", "staging")
    ]


@pytest.mark.parametrize(
    ("spec", "by"),
    [
        (promotion(manual("staging", approved=True), LAST), "manifest"),
        (
            promotion(manual("staging"), LAST, annotations={"bellhop.dev/approved": "staging@1"}),
            "annotation",
        ),
    ],
)
def test_an_approval_without_a_command_has_a_line(staged: Fleet3, spec: str, by: str) -> None:
    staged.apply(version("1"), spec)
    assert ("approved", f"release 1 at stage 'staging' by {by}") in lines(staged)
    assert staged.has("production") == {"1"}


def test_an_approval_by_a_command_has_one_line(staged: Fleet3) -> None:
    staged.apply(version("1"), promotion(manual("staging"), LAST))
    promotions.approve(staged.fleet.installation(), "agent", by="ann", reason="CHG-1")
    staged.settle()
    approved = [detail for what, detail in lines(staged) if what == "approved"]
    assert approved == ["release 1 at stage 'staging' by ann: CHG-1"]


def test_a_stage_that_fails_has_a_line_a_failure_and_an_alert(staged: Fleet3) -> None:
    break_cluster(staged)
    staged.apply(version("1"), TWO)

    [stalled] = [detail for what, detail in lines(staged) if what == "stalled"]
    assert stalled.startswith("release 1 at stage 'staging': fleet/staging2: ")
    [failure] = _failures(staged)
    assert failure.about == "stage 'staging' of 'agent'"
    assert "fleet/staging2" in failure.message
    assert _alerts(staged) == {"agent": Alert(stages=1)}

    heal_cluster(staged)
    assert _failures(staged) == []
    assert _alerts(staged) == {}


def test_a_stage_that_waits_for_a_person_is_no_failure(staged: Fleet3) -> None:
    staged.apply(version("1"), promotion(manual("staging"), LAST))
    assert staged.phases()[0] == "AwaitingApproval"
    assert (_failures(staged), _alerts(staged)) == ([], {})


def test_an_empty_stage_is_stalled(staged: Fleet3) -> None:
    staged.apply(version("1"), EMPTY)
    assert sorted(what for what, _ in lines(staged)) == ["begins", "stalled"]
    assert _alerts(staged) == {"agent": Alert(stages=1)}


def test_a_stage_that_is_rolled_back_by_itself_is_stopped_and_by_a_user_is_not(
    staged: Fleet3,
) -> None:
    back = promotion(auto("staging"), LAST, annotations={"bellhop.dev/on-failure": "rollback"})
    staged.apply(version("1"), back)
    here = staged.fleet.installation()
    refuse = staged.kubes["staging2"].refuse("agent", InvalidError("its webhook refuses it"))
    staged.apply(version("2"))
    refuse()
    staged.settle(400)
    [rolled_back] = [detail for what, detail in lines(staged) if what == "rolled back"]
    cause = "release 2 was rolled back: fleet/staging2: "
    assert rolled_back.startswith(f"release 1 at stage 'staging': {cause}")
    assert _alerts(staged) == {"agent": Alert(stages=1)}

    staged.apply(version("3"))
    assert _alerts(staged) == {}
    promotions.roll_back(here, "agent", stage="production", by="ann")
    staged.settle()
    assert staged.stage("production").phase == "RolledBack"
    assert _alerts(staged) == {}


def test_an_alert_outlasts_garbage_collection_and_goes_with_its_promotion(staged: Fleet3) -> None:
    staged.apply(version("1"), EMPTY)
    staged.fleet.records.alerts.put("former", Alert(stages=1))
    staged.fleet.handlers[CollectGarbage](CollectGarbage())
    assert _alerts(staged) == {"agent": Alert(stages=1)}

    staged.fleet.delete("ClusterPromotion", "agent")
    staged.settle()
    assert _alerts(staged) == {}


def test_an_alert_that_a_dead_worker_left_is_corrected(staged: Fleet3) -> None:
    """It wrote the state, and died before the alert; its message comes again."""
    staged.apply(version("1"), TWO)
    staged.fleet.records.alerts.put("agent", Alert(stages=1))
    staged.fleet.publisher.publish([Promote("agent")])
    staged.fleet.pump()
    assert _alerts(staged) == {}


def test_a_worker_that_was_slow_leaves_no_stale_alert(staged: Fleet3) -> None:
    """Another one takes the promotion on between its state and its alert."""
    break_cluster(staged)
    promotions_table, alerts = staged.fleet.records.promotions, staged.fleet.records.alerts
    put, raced = alerts.put, []

    def put_late(name: str, alert: Alert) -> None:
        if name == "agent" and alert.stages and not raced:
            raced.append(alert)
            kept = promotions_table.get("agent")
            assert kept
            (first, *others) = kept.value.stages
            healed = replace(first, phase="Promoted", passed=first.release)
            promotions_table.put(replace(kept.value, stages=(healed, *others)), expect=kept.token)
        put(name, alert)

    alerts.put = put_late  # type: ignore[method-assign]
    staged.apply(version("1"), TWO)
    assert raced
    assert (_alerts(staged) == {}) == (staged.state.stopped == ())


@pytest.mark.parametrize("named", [0, 20])
def test_ticks_of_clouds_count_promotions_and_name_none(staged: Fleet3, named: int) -> None:
    staged.apply(version("1"), EMPTY)
    output = io.StringIO()
    here: Any = SimpleNamespace(
        records=staged.fleet.records,
        settings=replace(staged.fleet.settings, named_clusters=named),
        log=Log(output),
    )
    here.report_alert = lambda *given: Resources.report_alert(here, *given)
    report_alerts(here)
    line = json.loads(output.getvalue())
    assert (line["alert"], line["others"], "cluster" in line) == ("PromotionsStalled", 1, False)


def test_the_time_of_a_stage_is_measured(staged: Fleet3) -> None:
    registry, output = CollectorRegistry(), io.StringIO()
    serve, aws = Metrics(registry), AwsMetrics("prod", Log(output))
    staged.fleet.records.ledger.observe(lambda each: (serve.noted(each), aws.count(each)))
    staged.apply(version("1"), TWO)
    staged.fleet.wait(HOUR)
    staged.settle()
    aws.publish()

    name = "bellhop_promotion_stage_seconds"
    assert registry.get_sample_value(f"{name}_count") == 2
    assert 3600 <= (registry.get_sample_value(f"{name}_sum") or 0) < 3 * 3600
    line = json.loads(output.getvalue())
    assert [each >= 3600 for each in line["PromotionStageSeconds"]] == [True, False]


def test_a_clock_that_was_set_back_measures_nothing_negative(staged: Fleet3) -> None:
    registry = CollectorRegistry()
    staged.fleet.records.ledger.observe(Metrics(registry).noted)
    staged.apply(version("1"), promotion(manual("staging"), LAST))
    staged.fleet.clock.jump(-HOUR)
    promotions.approve(staged.fleet.installation(), "agent", by="ann")
    staged.settle()
    assert staged.stage("staging").phase == "Promoted"
    assert registry.get_sample_value("bellhop_promotion_stage_seconds_sum") == pytest.approx(
        0, abs=60
    )


def test_gauges_count_stopped_stages_and_name_them_on_request(staged: Fleet3) -> None:
    here = staged.fleet.installation()
    staged.apply(version("1"), EMPTY)
    [count] = count_stopped(here)
    assert [(each.labels, each.value) for each in count.samples] == [({}, 1)]

    stalled, left_out = promotions_by_name(here)
    assert [(*each.labels.values(), each.value) for each in stalled.samples] == [
        ("agent", "production", 0),
        ("agent", "staging", 1),
    ]
    assert [each.value for each in left_out.samples] == [0]


def test_gauges_name_a_thousand_stages(staged: Fleet3) -> None:
    staged.apply(version("1"), EMPTY)
    [stage, _] = staged.state.stages
    stages = tuple(replace(stage, name=f"s{number}") for number in range(20))
    for number in range(51):
        state = PromotionState(f"p{number:02}", stages=stages)
        staged.fleet.records.promotions.put(state)
    stalled, left_out = promotions_by_name(staged.fleet.installation())
    assert len(stalled.samples) == 1000
    assert [each.value for each in left_out.samples] == [22]


def _failures(staged: Fleet3) -> list[Any]:
    found = list_failures(staged.fleet.installation())
    return [each for each in found if each.type == "promotion"]


def _alerts(staged: Fleet3) -> dict[str, Alert]:
    return dict(staged.fleet.records.alerts.first(100))
