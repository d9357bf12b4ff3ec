"""The state machine by itself: the same facts give the same state, and no stage is skipped."""

from __future__ import annotations

import random
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from bellhop.api.promotion import StageGate
from bellhop.core.windows import Window
from bellhop.promotions import machine
from bellhop.promotions.machine import PromotionPlan, StageFacts, StagePlan, advance
from bellhop.state.promotion import Approval, PromotionState

NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
NIGHT = Window("0 20 * * *", "0 23 * * *")


def plan(*gates: StageGate, **common: object) -> PromotionPlan:
    """Return a promotion with a stage for each gate, and a last one."""
    stages = [StagePlan(f"s{place}", gate) for place, gate in enumerate((*gates, StageGate()))]
    return PromotionPlan(stages, **common)  # type: ignore[arg-type]


def whole(release: int = 1, clusters: int = 4, **more: object) -> StageFacts:
    facts = StageFacts(release, clusters, provisioned=clusters)
    return facts._replace(**more)  # type: ignore[arg-type]


class Play:
    """One promotion, and the time."""

    def __init__(self, planned: PromotionPlan, latest: int = 1) -> None:
        self.plan = planned
        self.state = PromotionState("agent", latest)
        self.now = NOW
        self.wake_at: datetime | None = None

    def step(self, facts: Mapping[str, StageFacts] | None = None, times: int = 1) -> list[str]:
        for _ in range(times):
            self.state, self.wake_at = advance(self.state, self.plan, facts or {}, self.now)
        return [each.phase for each in self.state.stages]


def test_a_stage_waits_until_its_profile_is_rendered_from_the_release() -> None:
    play = Play(plan(StageGate()))
    assert play.step() == ["Deploying", "Waiting"]
    assert play.step({"s0": whole(release=0)}) == ["Deploying", "Waiting"]
    assert play.step({"s0": whole()}) == ["Promoted", "Deploying"]


def test_the_delay_counts_from_when_all_clusters_have_it() -> None:
    play = Play(plan(StageGate(delay=HOUR)))
    play.step()
    play.now += 5 * HOUR
    assert play.step({"s0": whole()}) == ["Soaking", "Waiting"]
    assert play.wake_at == play.now + HOUR
    play.now += HOUR
    assert play.step({"s0": whole()}) == ["Promoted", "Deploying"]


def test_a_failure_in_the_last_minute_begins_the_delay_again() -> None:
    play = Play(plan(StageGate(delay=HOUR)))
    play.step()
    play.step({"s0": whole()})
    play.now += HOUR - timedelta(minutes=1)
    assert play.step({"s0": whole(provisioned=3, failed=1, failure="why")})[0] == "Stalled"
    assert play.step({"s0": whole()})[0] == "Soaking"
    play.now += timedelta(minutes=59)
    assert play.step({"s0": whole()})[0] == "Soaking"
    play.now += timedelta(minutes=1)
    assert play.step({"s0": whole()})[0] == "Promoted"


def test_a_cluster_that_joins_does_not_begin_the_delay_again() -> None:
    play = Play(plan(StageGate(delay=HOUR)))
    play.step()
    play.step({"s0": whole()})
    play.now += HOUR
    assert play.step({"s0": whole(clusters=5, provisioned=4)})[0] == "Soaking"
    assert play.step({"s0": whole(clusters=5)})[0] == "Promoted"


@pytest.mark.parametrize(
    ("share", "failed", "phase"),
    [("0", 1, "Stalled"), ("1", 1, "Promoted"), ("25%", 1, "Promoted"), ("24%", 1, "Stalled")],
)
def test_so_many_may_fail(share: str, failed: int, phase: str) -> None:
    play = Play(plan(StageGate(), max_failures=share))
    play.step()
    facts = {"s0": whole(provisioned=4 - failed, failed=failed, failure="why")}
    assert play.step(facts)[0] == phase


def test_a_stage_that_takes_too_long_stalls_and_goes_on_once_it_is_whole() -> None:
    play = Play(plan(StageGate(), progress_deadline=HOUR))
    play.step()
    slow = {"s0": whole(provisioned=3)}
    assert play.step(slow)[0] == "Deploying"
    assert play.wake_at == NOW + HOUR
    play.now += HOUR
    assert play.step(slow)[0] == "Stalled"
    assert "3 of 4 clusters" in play.state.stages[0].message
    assert play.step({"s0": whole()})[0] == "Promoted"


def test_a_newer_release_does_not_overtake_one_that_is_being_deployed() -> None:
    play = Play(plan(StageGate()))
    play.step()
    play.state = replace(play.state, latest=2)
    play.step({"s0": whole(provisioned=1)})
    assert play.state.stages[0].release == 1
    play.step({"s0": whole(failed=1, failure="why")})
    play.step({"s0": whole(failed=1, failure="why")})
    assert play.state.stages[0].release == 2


def test_a_window_that_is_closed_is_waited_for() -> None:
    play = Play(plan(StageGate(window=NIGHT)))
    play.step()
    assert play.step({"s0": whole()})[0] == "WindowClosed"
    assert play.wake_at == NOW.replace(hour=20)
    play.now = NOW.replace(hour=20)
    assert play.step({"s0": whole()})[0] == "Promoted"


def test_an_early_approval_skips_no_check() -> None:
    play = Play(plan(StageGate(manual=True, verified=True, delay=HOUR)))
    play.step()
    play.state = machine.approve(play.state, "s0", Approval(1, "ann", NOW))
    assert play.step({"s0": whole()})[0] == "Soaking"
    play.now += HOUR
    assert play.step({"s0": whole(unverified="the Job runs")})[0] == "Verifying"
    assert play.step({"s0": whole(verified=True)})[0] == "Promoted"


def test_a_clock_that_was_ahead_does_not_shorten_the_delay() -> None:
    play = Play(plan(StageGate(delay=HOUR)))
    play.step()
    play.now += HOUR
    play.step({"s0": whole()})
    play.now -= HOUR
    assert play.step({"s0": whole()})[0] == "Soaking"
    assert play.wake_at == play.now + HOUR


def test_paused_clusters_do_not_count() -> None:
    play = Play(plan(StageGate()))
    play.step()
    assert play.step({"s0": whole(clusters=0, provisioned=0, paused=4)})[0] == "Deploying"
    assert play.step({"s0": whole(clusters=1, paused=3)})[0] == "Promoted"


def test_a_release_that_cannot_be_rendered_stalls() -> None:
    play = Play(plan(StageGate()))
    play.step()
    assert play.step({"s0": whole(unrendered=True, failure="no such function")})[0] == "Stalled"


def _draw_facts(draw: random.Random, state: PromotionState) -> dict[str, StageFacts]:
    """Return facts that no state excludes: profiles may lag behind, and clusters fail and heal."""
    facts = {}
    for stage in state.stages:
        clusters = draw.randrange(4)
        failed = draw.choice((0, 0, min(1, clusters)))
        facts[stage.name] = StageFacts(
            draw.choice((stage.release, stage.release, max(stage.release - 1, 0))),
            clusters,
            provisioned=draw.randint(0, clusters - failed),
            failed=failed,
            failure="why" * bool(failed),
            verified=draw.random() < 0.5,
        )
    return facts


@pytest.mark.parametrize("seed", range(200))
def test_no_history_promotes_what_its_stage_before_has_not_passed(seed: int) -> None:
    """And what has passed is never taken back, but by a rollback."""
    draw = random.Random(seed)
    gates = [
        StageGate(delay=draw.choice((timedelta(0), HOUR)), manual=draw.random() < 0.3)
        for _ in range(3)
    ]
    play = Play(plan(*gates, max_failures=draw.choice(("0", "50%"))))
    for _ in range(60):
        play.now += draw.choice((timedelta(0), timedelta(minutes=30), HOUR, -HOUR))
        play.state = replace(play.state, latest=play.state.latest + draw.choice((0, 0, 0, 1)))
        if play.state.stages and draw.random() < 0.2:
            at = draw.choice(play.state.stages)
            approval = Approval(at.release, "ann", play.now)
            play.state = machine.approve(play.state, at.name, approval)
        before = play.state
        facts = _draw_facts(draw, before)
        play.step(facts)
        first, *others = play.state.stages
        assert first.release <= play.state.latest
        for earlier, stage in zip(play.state.stages, others, strict=False):
            assert stage.release <= earlier.passed <= earlier.release
        for stage in play.state.stages:
            was = before.stage(stage.name)
            assert stage.passed >= was.passed
            if stage.passed > was.passed:
                counted = facts[stage.name]
                assert counted.release == stage.passed
                assert counted.provisioned + counted.failed == counted.clusters > 0
        again = advance(play.state, play.plan, {}, play.now).state
        assert again == advance(again, play.plan, {}, play.now).state, "it settles without facts"


def test_what_sveltos_has_promoted_goes_on_where_it_was() -> None:
    """The stages before get the release in place, and ask for nothing again."""
    play = Play(plan(StageGate(manual=True), StageGate(delay=HOUR)), latest=3)
    play.state = machine.take_over(play.state, play.plan, "s1", NOW)
    assert play.step() == ["Promoted", "Deploying", "Waiting"]
    assert [each.release for each in play.state.stages] == [3, 3, 0]
    assert play.step({"s1": whole(3)}) == ["Promoted", "Soaking", "Waiting"]
    play.state = replace(play.state, latest=4)
    assert play.step({"s1": whole(3)}) == ["Deploying", "Soaking", "Waiting"]


def test_a_stage_that_is_not_known_is_not_taken_over() -> None:
    state = PromotionState("agent", 3)
    assert machine.take_over(state, plan(StageGate()), "", NOW) == state
