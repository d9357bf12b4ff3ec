"""Decisions of people: approve, reject, force and roll back."""

from __future__ import annotations

from datetime import timedelta

import pytest

from bellhop.errors import ConflictError, MissingError
from bellhop.operations import promotions
from bellhop.state.delays import counting_timer, promotion_timer
from bellhop.state.messages import Promote, Resolve
from bellhop.state.promotion import PromotionState
from tests.unit.promotions.conftest import Fleet3, auto, manual, promotion, version

LAST = {"name": "production"}
WAITS = promotion(manual("staging"), LAST)


@pytest.fixture
def waiting(staged: Fleet3) -> Fleet3:
    staged.apply(version("1"), WAITS)
    assert staged.phases() == ["AwaitingApproval", "Waiting"]
    return staged


def test_an_approved_release_is_promoted(waiting: Fleet3) -> None:
    here = waiting.fleet.installation()
    decision = promotions.approve(here, "agent", by="ann", reason="CHG-1")
    waiting.settle()
    assert decision == ("staging", 1, True)
    assert waiting.has("production") == {"1"}
    [visit] = waiting.stage("staging").visits
    assert visit.approval
    assert (visit.approval.by, visit.approval.reason) == ("ann", "CHG-1")
    assert "approved" in [each.what for each in waiting.fleet.ledger()]


def test_an_approval_while_a_worker_counts_keeps_its_timer(staged: Fleet3) -> None:
    """The worker that saw the stage wait cancels no timer that another one has set since."""
    staged.apply(version("1"), promotion(manual("staging", delay="1h"), LAST))
    fleet, handle = staged.fleet, staged.fleet.stages["deploy"].handle
    fleet.clock.advance(timedelta(hours=1))
    states = fleet.records.promotions
    put, before = states.put, list[str]()

    def put_slowly(state: PromotionState, *, expect: str) -> str:
        token = put(state, expect=expect)
        if not before:
            before.extend(each.phase for each in state.stages)
            promotions.approve(fleet.installation(), "agent", by="ann")
            handle(Promote("agent"))
        return token

    states.put = put_slowly  # type: ignore[method-assign, assignment]
    handle(Promote("agent"))

    assert (before, staged.phases()) == (["AwaitingApproval", "Waiting"], ["Promoted", "Deploying"])
    assert fleet.records.timers.get(promotion_timer("agent"))


def test_an_approval_belongs_to_its_release(waiting: Fleet3) -> None:
    promotions.approve(waiting.fleet.installation(), "agent", by="ann")
    waiting.settle()
    waiting.apply(version("2"))
    assert waiting.phases()[0] == "AwaitingApproval"
    assert waiting.has("production") == {"1"}


def test_a_rejected_release_goes_no_further_and_the_next_one_may(waiting: Fleet3) -> None:
    here = waiting.fleet.installation()
    promotions.reject(here, "agent", by="ann")
    waiting.settle()
    assert waiting.phases()[0] == "Rejected"
    assert waiting.has("production") == {""}

    waiting.apply(version("2"))
    assert waiting.phases()[0] == "AwaitingApproval"
    promotions.approve(here, "agent", by="ann")
    waiting.settle()
    assert waiting.has("production") == {"2"}


def test_a_rejected_release_may_be_approved_later(waiting: Fleet3) -> None:
    here = waiting.fleet.installation()
    promotions.reject(here, "agent", by="ann")
    promotions.approve(here, "agent", stage="staging", by="bob")
    waiting.settle()
    assert waiting.has("production") == {"1"}


def test_a_forced_release_skips_the_stages_before(staged: Fleet3) -> None:
    staged.apply(version("1"), promotion(auto("staging", delay="5h"), manual("canary"), LAST))
    promotions.force(staged.fleet.installation(), "agent", stage="production", by="ann")
    staged.settle()
    assert staged.has("production") == {"1"}
    assert staged.has("canary") == {""}


def test_a_forced_release_leaves_its_stage_on_the_usual_conditions(staged: Fleet3) -> None:
    here = staged.fleet.installation()
    staged.apply(version("1"), promotion(auto("staging", delay="5h"), manual("canary"), LAST))
    promotions.force(here, "agent", stage="canary", by="ann", reason="INC-1")
    staged.settle()
    assert staged.has("canary") == {"1"}
    assert staged.phases() == ["Soaking", "AwaitingApproval", "Waiting"]
    assert promotions.force(here, "agent", stage="canary", by="ann") == ("canary", 1, False)
    promotions.approve(here, "agent", stage="canary", by="bob")
    staged.settle()
    assert staged.has("production") == {"1"}
    [visit] = staged.stage("canary").visits
    assert visit.approval
    assert (visit.by, visit.approval.by) == ("ann: INC-1", "bob")


def test_a_release_before_that_of_the_stage_is_rolled_back_to_and_not_forced(
    staged: Fleet3,
) -> None:
    here = staged.fleet.installation()
    staged.apply(version("1"), promotion(auto("staging"), LAST))
    staged.apply(version("2"))
    with pytest.raises(ConflictError, match="had release 2 already; `bellhop rollback promotion"):
        promotions.force(here, "agent", stage="production", release=1, by="ann")


def test_a_stage_that_is_rolled_back_stays_if_it_is_rolled_back_again(staged: Fleet3) -> None:
    here = staged.fleet.installation()
    staged.apply(version("1"), promotion(auto("staging"), LAST))
    staged.apply(version("2"))
    for is_new in (True, False):
        decision = promotions.roll_back(here, "agent", stage="production", by="ann")
        assert decision == ("production", 1, is_new)
        staged.settle()
    assert staged.has("production") == {"1"}
    assert staged.stage("production").message == "release 2 was rolled back by ann"
    with pytest.raises(ConflictError, match=r"is rolled back from release 2: .* --end` returns"):
        promotions.roll_back(here, "agent", stage="production", release=2, by="ann")


def test_a_rollback_is_no_way_around_the_stages(waiting: Fleet3) -> None:
    here = waiting.fleet.installation()
    promotions.approve(here, "agent", by="ann")
    waiting.settle()
    waiting.apply(version("2"))
    with pytest.raises(ConflictError, match="stage 'production' never had release 2"):
        promotions.roll_back(here, "agent", stage="production", release=2, by="ann")


def test_a_stage_that_asks_for_no_approval_gets_none(staged: Fleet3) -> None:
    here = staged.fleet.installation()
    staged.apply(version("1"), promotion(auto("staging", delay="5h"), LAST))
    with pytest.raises(ConflictError, match="asks for no approval, as its trigger is not manual"):
        promotions.approve(here, "agent", stage="staging", by="ann")
    for decide in (promotions.approve, promotions.reject):
        with pytest.raises(ConflictError, match="the last stage, which no release leaves; what"):
            decide(here, "agent", stage="production", by="ann")
    # What is rejected there may be approved again.
    promotions.reject(here, "agent", stage="staging", by="ann")
    staged.fleet.wait(timedelta(hours=5))
    staged.settle()
    assert staged.phases()[0] == "Rejected"
    promotions.approve(here, "agent", stage="staging", by="ann")
    staged.settle()
    assert staged.has("production") == {"1"}


def test_a_stage_is_rolled_back_until_a_newer_release_comes(staged: Fleet3) -> None:
    here = staged.fleet.installation()
    staged.apply(version("1"), promotion(auto("staging"), LAST))
    staged.apply(version("2"))
    assert staged.has("production") == {"2"}

    promotions.roll_back(here, "agent", stage="production", by="ann")
    staged.settle()
    assert (staged.has("staging"), staged.has("production")) == ({"2"}, {"1"})
    assert staged.stage("production").phase == "RolledBack"

    staged.apply(version("3"))
    assert staged.has("production") == {"3"}


def test_the_end_of_a_rollback_deploys_the_release_again(staged: Fleet3) -> None:
    here = staged.fleet.installation()
    staged.apply(version("1"), promotion(auto("staging"), LAST))
    staged.apply(version("2"))
    promotions.roll_back(here, "agent", stage="production", by="ann")
    staged.settle()
    promotions.end_rollback(here, "agent", stage="production", by="ann")
    staged.settle()
    assert staged.has("production") == {"2"}
    assert staged.stage("production").phase == "Promoted"


def test_a_wrong_decision_changes_nothing_and_says_why(waiting: Fleet3) -> None:
    here = waiting.fleet.installation()
    before = waiting.state
    with pytest.raises(MissingError, match="did you mean 'agent'"):
        promotions.approve(here, "agant", by="ann")
    with pytest.raises(MissingError, match="its stages are staging, production"):
        promotions.approve(here, "agent", stage="canary", by="ann")
    with pytest.raises(ConflictError, match="that has release 1"):
        promotions.approve(here, "agent", stage="staging", release=7, by="ann")
    with pytest.raises(ConflictError, match="had no other release"):
        promotions.roll_back(here, "agent", stage="staging", by="ann")
    with pytest.raises(MissingError, match="kept are 1"):
        promotions.force(here, "agent", stage="production", release=9, by="ann")
    with pytest.raises(MissingError, match="has no release 9; kept are 1"):
        promotions.roll_back(here, "agent", stage="production", release=9, by="ann")
    assert waiting.state == before


def test_a_promoted_release_can_be_approved_no_more(waiting: Fleet3) -> None:
    here = waiting.fleet.installation()
    promotions.approve(here, "agent", by="ann")
    waiting.settle()
    with pytest.raises(ConflictError, match="no stage waits"):
        promotions.approve(here, "agent", by="ann")
    with pytest.raises(ConflictError, match="left stage 'staging' already"):
        promotions.reject(here, "agent", stage="staging", by="ann")


def test_a_lost_state_withdraws_nothing(staged: Fleet3) -> None:
    staged.apply(version("1"), promotion(auto("staging"), LAST))
    staged.fleet.records.promotions.delete("agent")
    staged.fleet.publisher.publish([Resolve("agent-production")])
    staged.fleet.pump()
    assert staged.has("production") == {"1"}
    staged.fleet.deploy(version("2"))
    staged.settle()
    assert staged.has("production") == {"2"}


def test_a_promotion_that_waits_for_an_approval_costs_nothing(waiting: Fleet3) -> None:
    records = waiting.fleet.records
    before = records.promotions.token("agent")
    for name in (promotion_timer("agent"), counting_timer("agent")):
        timer = records.timers.get(name)
        assert timer is None or timer.value.at <= waiting.fleet.clock.now()
    waiting.fleet.wait(timedelta(hours=1), times=5)
    assert records.promotions.token("agent") == before
