"""State machine of a promotion: from what is known of its stages to their next states.

    Waiting ─► Deploying ─► Soaking ─► Verifying ─► AwaitingApproval or WindowClosed ─► Promoted
                  ▲  │          │           │                 │
                  │  └──────────┴───────────┴── too many fail ┴─► Stalled ─► whole again: Soaking
                  └─ a newer release that the stage before has passed

It is pure: no step is taken but on facts that were read, and the same facts give the same state
whatever happened in between. So repeated messages, dead workers and clocks that jump change the
time of a step, and never the order of stages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from msgspec.structs import replace

from bellhop.api.promotion import StageGate
from bellhop.core.windows import find_opening, is_open
from bellhop.state.promotion import (
    MOST_VISITS,
    Approval,
    PromotionState,
    StagePhase,
    StageState,
    Visit,
)

MANIFEST = "manifest"
"""The approver of what a manifest approves."""

_UNDER_TEST = ("Soaking", "Verifying", "AwaitingApproval", "WindowClosed", "Rejected")
"""Phases of a stage that was whole: a cluster that joins does not begin them again."""


class StagePlan(NamedTuple):
    """A stage as its promotion's manifest has it."""

    name: str
    gate: StageGate


class PromotionPlan(NamedTuple):
    """A promotion as its manifest has it, in what its stages have in common."""

    stages: Sequence[StagePlan]
    max_failures: str = "0"
    progress_deadline: timedelta | None = None
    rolls_back: bool = False
    skips_empty: bool = False
    paused: bool = False


class StageFacts(NamedTuple):
    """The clusters of a stage, counted with the profile that is stored."""

    release: int = 0
    """The release that the stored profile was rendered from; 0 without a profile."""
    clusters: int = 0
    """Without those that are paused."""
    paused: int = 0
    provisioned: int = 0
    failed: int = 0
    failure: str = ""
    """The reason why some failed, or why the release cannot be rendered."""
    unread: int = 0
    """Those of them in which something did not answer, or does not exist yet."""
    unrendered: bool = False
    """The release cannot be rendered."""
    missing: bool = False
    """The reason is that an object does not exist yet."""
    verified: bool = False
    """The verification profile of this release is provisioned in all clusters."""
    unverified: str = ""
    """The reason why it is not."""
    witness: str = ""
    """The last of the clusters that are still to be deployed, or verified."""
    nearest: str = ""
    """A label that clusters have, for a selector that matches none."""


_UNKNOWN = StageFacts()


class Advance(NamedTuple):
    """The next state, and the time at which it has to be computed again; None for never."""

    state: PromotionState
    wake_at: datetime | None


def advance(
    old: PromotionState, plan: PromotionPlan, facts: Mapping[str, StageFacts], now: datetime
) -> Advance:
    """Return the next state of a promotion; a paused one stays as it is.

    Stages that are no longer planned are dropped, and their releases with them.
    """
    if plan.paused:
        return Advance(old, None)
    stages, target = list[StageState](), old.latest
    wakes: list[datetime] = []
    for place, planned in enumerate(plan.stages):
        before = _approve_by_manifest(old.stage(planned.name), planned.gate, old.latest, now)
        step = _Step(plan, planned.gate, place == len(plan.stages) - 1, now)
        found = facts.get(planned.name, _UNKNOWN)
        after, wake = step.advance(before, target, found)
        after = replace(after, witness=found.witness if after.release == found.release else "")
        stages.append(after)
        wakes += [wake] if wake else []
        target = after.passed
    last = stages[-1]
    done = last.passed > old.stage(last.name).passed
    state = replace(old, stages=tuple(stages), promoted_at=now if done else old.promoted_at)
    return Advance(state, min(wakes, default=None))


def take_over(
    old: PromotionState, plan: PromotionPlan, reached: str, now: datetime
) -> PromotionState:
    """Return a promotion that Sveltos has taken to a stage: its newest release is there.

    The clusters of the stages before it have it, and get it again in place.
    """
    stages, release = list[StageState](), old.latest
    for planned in plan.stages:
        stage = _begin(StageState(planned.name), release, now)
        if planned.name == reached:
            return replace(old, stages=(*stages, stage))
        visits = tuple(replace(each, passed_at=now) for each in stage.visits)
        stages.append(replace(stage, phase="Promoted", passed=release, visits=visits))
    return old


def approve(old: PromotionState, stage: str, approval: Approval) -> PromotionState:
    """Return a promotion in which a release is approved at a stage, and rejected no more."""
    found = replace(old.stage(stage), approval=approval)
    if found.rejected == approval.release:
        found = replace(found, rejected=0, rejection="")
    return _with_stage(old, found)


def reject(old: PromotionState, stage: str, release: int, by: str) -> PromotionState:
    """Return a promotion in which a release goes no further than a stage."""
    found = replace(old.stage(stage), rejected=release, rejection=by, approval=None)
    return _with_stage(old, found)


def force(old: PromotionState, stage: str, release: int, by: str, now: datetime) -> PromotionState:
    """Return a promotion in which a stage gets a release at once, whatever the stages before.

    It leaves the stage on the usual conditions.
    """
    return _with_stage(old, _begin(old.stage(stage), release, now, by=by))


def roll_back(
    old: PromotionState, stage: str, release: int, by: str, now: datetime
) -> PromotionState:
    """Return a promotion in which a stage has a former release until there is a newer one."""
    return _with_stage(old, _return_to(old.stage(stage), release, now, f" by {by}", by=by))


def end_rollback(old: PromotionState, stage: str, now: datetime) -> PromotionState:
    """Return a promotion in which a stage gets the release that it was rolled back from."""
    found = old.stage(stage)
    return _with_stage(old, _begin(found, found.skipped, now)) if found.skipped else old


def _with_stage(old: PromotionState, new: StageState) -> PromotionState:
    stages = tuple(new if each.name == new.name else each for each in old.stages)
    return replace(old, stages=stages)


def _approve_by_manifest(
    stage: StageState, gate: StageGate, latest: int, now: datetime
) -> StageState:
    """Count a manifest's approval for the release that waits when it is applied.

    Without a reset it counts for every release.
    """
    release = stage.release or latest
    comes = gate.approved and (not stage.was_approved or not gate.resets)
    known = stage.approval and stage.approval.release >= release
    if comes and release and not known:
        stage = replace(stage, approval=Approval(release, MANIFEST, now))
    return replace(stage, was_approved=gate.approved and bool(release))


class _Step(NamedTuple):
    """One stage at one time."""

    plan: PromotionPlan
    gate: StageGate
    is_last: bool
    now: datetime

    def advance(
        self, stage: StageState, target: int, facts: StageFacts
    ) -> tuple[StageState, datetime | None]:
        """Return the next state of the stage, and when to look again."""
        if self._takes(stage, target):
            return _begin(stage, target, self.now), None
        if not stage.release or facts.release != stage.release:
            # Its profile is about to be rendered, and what is deployed is of another release.
            return stage, None
        if stage.skipped or (stage.phase == "Promoted" and stage.passed >= stage.release):
            return stage, None
        allowed = _count_allowed(self.plan.max_failures, facts.clusters)
        if facts.unrendered or facts.failed > allowed:
            refused = facts.failed - facts.unread > allowed
            refused = refused or (facts.unrendered and not facts.missing)
            return self._stall(stage, facts.failure, refused=refused), None
        if not facts.clusters and not (self.plan.skips_empty and not facts.paused):
            return self._wait_for_clusters(stage, facts), None
        if facts.provisioned + facts.failed < facts.clusters:
            return self._wait_for_rest(stage, facts)
        return self._pass(stage, facts)

    def _takes(self, stage: StageState, target: int) -> bool:
        """Return whether the stage takes a newer release now: not while one is being deployed."""
        newer = target > max(stage.release, stage.skipped)
        return newer and stage.phase != "Deploying"

    def _stall(self, stage: StageState, why: str, *, refused: bool = True) -> StageState:
        """Stall, or return to the release before: never because something could not be read."""
        if refused and self.plan.rolls_back and 0 < stage.passed < stage.release:
            return _return_to(stage, stage.passed, self.now, f": {why}")
        return self._enter(replace(stage, whole_at=None), "Stalled", why)

    def _wait_for_clusters(self, stage: StageState, facts: StageFacts) -> StageState:
        if facts.paused:
            return self._enter(stage, "Deploying", "all its clusters are paused")
        near = f"; clusters have {facts.nearest}" if facts.nearest else ""
        return self._enter(stage, "Empty", f"its selector matches no cluster{near}")

    def _wait_for_rest(
        self, stage: StageState, facts: StageFacts
    ) -> tuple[StageState, datetime | None]:
        """Wait for clusters that are not provisioned yet, up to the deadline."""
        if stage.phase in _UNDER_TEST and stage.whole_at:
            return stage, None
        begun, limit = stage.begun_at or self.now, self.plan.progress_deadline
        count = f"{facts.provisioned} of {facts.clusters} clusters"
        if limit and self.now >= begun + limit:
            return self._stall(stage, f"{count} were provisioned within {limit}"), None
        return self._enter(stage, "Deploying", count), begun + limit if limit else None

    def _pass(self, stage: StageState, facts: StageFacts) -> tuple[StageState, datetime | None]:
        """Check the conditions to leave the stage, which has all its clusters provisioned."""
        # A clock that was ahead must not shorten the delay, nor lengthen it by more than itself.
        whole_at = min(stage.whole_at or self.now, self.now)
        fresh = stage.whole_at is None
        deployed_at = self.now if fresh else stage.deployed_at
        stage = replace(stage, whole_at=whole_at, deployed_at=deployed_at)
        approval = stage.approval if _is_for(stage.approval, stage.release) else None
        if self.is_last:
            return self._promote(stage, approval), None
        over = whole_at + self.gate.delay
        if self.now < over:
            return self._enter(stage, "Soaking", ""), over
        if self.gate.verified and not facts.verified:
            return self._enter(stage, "Verifying", facts.unverified), None
        if stage.rejected >= stage.release:
            return self._enter(stage, "Rejected", stage.rejection), None
        if self.gate.manual and approval is None:
            return self._enter(stage, "AwaitingApproval", ""), None
        if self.gate.window and not is_open(self.gate.window, self.now):
            return self._enter(stage, "WindowClosed", ""), find_opening(self.gate.window, self.now)
        return self._promote(stage, approval), None

    def _promote(self, stage: StageState, approval: Approval | None) -> StageState:
        visits = tuple(
            replace(each, passed_at=self.now, approval=approval)
            if each is stage.visits[-1] and each.release == stage.release
            else each
            for each in stage.visits
        )
        stage = self._enter(stage, "Promoted", "")
        return replace(stage, passed=max(stage.release, stage.passed), visits=visits)

    def _enter(self, stage: StageState, phase: StagePhase, message: str) -> StageState:
        since = stage.since if stage.phase == phase else self.now
        return replace(stage, phase=phase, message=message, since=since)


def _begin(stage: StageState, release: int, now: datetime, *, by: str = "") -> StageState:
    """Return a stage that begins to deploy a release."""
    visits = (*stage.visits, Visit(release, now, by=by))[-MOST_VISITS:]
    return replace(
        stage,
        release=release,
        phase="Deploying",
        since=now,
        message="",
        begun_at=now,
        whole_at=None,
        skipped=0,
        visits=visits,
    )


def _return_to(
    stage: StageState, release: int, now: datetime, why: str, *, by: str = ""
) -> StageState:
    """Return a stage that has a former release again, until there is a newer one than now."""
    skipped = max(stage.skipped, stage.release)
    visits = (*stage.visits, Visit(release, now, rolled_back=True, by=by))[-MOST_VISITS:]
    return replace(
        stage,
        release=release,
        phase="RolledBack",
        since=now,
        message=f"release {skipped} was rolled back{why}",
        whole_at=None,
        skipped=skipped,
        visits=visits,
    )


def _count_allowed(share: str, clusters: int) -> int:
    """Return how many clusters may fail; a percentage is rounded down, to the cautious side."""
    number = int(share.rstrip("%"))
    return number * clusters // 100 if share.endswith("%") else number


def _is_for(approval: Approval | None, release: int) -> bool:
    return approval is not None and approval.release == release
