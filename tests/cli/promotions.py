"""A promotion whose release waits for an approval, for those who may decide about it or not."""

from __future__ import annotations

from datetime import timedelta

from bellhop.state.promotion import PromotionState, Release, StageState, Visit
from tests.cli.conftest import House
from tests.unit.promotions.conftest import manual, promotion, version

DECISIONS = (
    "reject promotion agent",
    "approve promotion agent --reason CHG-4711",
    "rollback promotion agent --stage staging",
    "rollback promotion agent --stage staging --end",
    "promote promotion agent --stage production --force",
)
"""Commands that decide about a promotion."""


def add_promotion(house: House) -> PromotionState:
    """Have the second release of a promotion wait at the first of its two stages."""
    stages = manual("staging"), {"name": "production"}
    done = house("apply", "-f", "-", stdin=f"{version('1')}---\n{promotion(*stages)}")
    assert done.exit_code == 0, done.output
    records, now = house.here.records, house.here.records.clock.now()
    visits = tuple(Visit(number, now - timedelta(hours=3 - number)) for number in (1, 2))
    waits = StageState("staging", 2, "AwaitingApproval", now, passed=1, visits=visits)
    done_once = StageState("production", 1, "Promoted", now, passed=1, visits=visits[:1])
    state = PromotionState("agent", 2, (waits, done_once))
    records.promotions.put(state)
    for number in (1, 2):
        records.releases.put(Release("agent", number, f"digest {number}", now))
    return state
