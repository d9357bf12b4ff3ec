"""Takes promotions on: reads what is so, computes the next state, and has stages rendered.

    state is read ─► manifest, release, facts are read ─► next state, on condition
      ─► timer of the next look ─► `Resolve` of each stage that changed ─► marked as published

The state is the outbox of its change: a worker that dies before the messages are out leaves their
profiles in it, and its message comes again. So it is with notifications: `outbox.py`.
"""

from __future__ import annotations

import time
from contextlib import suppress
from datetime import datetime, timedelta

from msgspec.structs import replace

from bellhop.api.promotion import ClusterPromotion
from bellhop.catalog.cache import Catalogs
from bellhop.catalog.catalog import Catalog
from bellhop.clusters.alert import Alert
from bellhop.errors import StaleError
from bellhop.ports.store import ABSENT
from bellhop.promotions import outbox
from bellhop.promotions.facts import is_provisioned, read_facts
from bellhop.promotions.machine import PromotionPlan, StagePlan, advance, approve, take_over
from bellhop.promotions.releases import ReleaseMaker
from bellhop.promotions.steps import list_steps
from bellhop.rendering.inputs import MissingInputError
from bellhop.state.concurrency import until_settled
from bellhop.state.delays import promotion_notice_timer, promotion_timer
from bellhop.state.event_recorder import Nobody, Note, write
from bellhop.state.messages import NotifyPromotion, Promote, Publisher, Resolve
from bellhop.state.promotion import Approval, PromotionState, StageEvent
from bellhop.state.records import Records
from bellhop.state.table import Stored
from bellhop.state.timers import Timer

ANNOTATION = "annotation"
"""The approver of what the annotation of a custom resource approves.

RBAC says who may write it, and the API server's audit log who did: an object does not name its
author, and the `userInfo` of an admission request is that of a write which may never be stored.
"""

_MOVING = ("Deploying", "Verifying", "Stalled")
"""Phases of stages that wait for clusters."""

_WITHDRAWAL_INTERVAL = timedelta(minutes=1)
"""Interval in which a deleted promotion is looked at, should no cluster report that it is left."""


class Promoter:
    """Handles `Promote`."""

    def __init__(
        self,
        records: Records,
        catalogs: Catalogs,
        publisher: Publisher,
        releases: ReleaseMaker,
        interval: timedelta,
    ) -> None:
        """Promote with releases of a maker; stages on their way are counted in this interval."""
        self._records = records
        self._catalogs = catalogs
        self._publisher = publisher
        self._releases = releases
        self._interval = interval

    def promote(self, message: Promote) -> None:
        """Compute the stages of a promotion from what is so now.

        Raises:
            StaleError: other writers keep winning.
        """
        self._promote(message)

    @until_settled("promote '{message.promotion}'")
    def _promote(self, message: Promote) -> bool:
        # Before the state: a timer that another worker sets for a later state stays.
        timer = self._records.timers.get(promotion_timer(message.promotion))
        kept = self._records.promotions.get(message.promotion)
        catalog = self._catalogs.current()
        promotion = catalog.promotions.get(message.promotion)
        if promotion is None:
            return self._end(message.promotion, catalog, kept, timer)
        old = kept.value if kept else PromotionState(message.promotion)
        begun = time.perf_counter()
        try:
            found = self._find_latest(catalog, promotion, old)
            facts = read_facts(self._records, catalog, promotion, old)
            plan, now = plan_promotion(promotion), self._records.clock.now()
            if found.latest and not (found.held or plan.paused):
                found = take_over(found, plan, promotion.reached_stage, now)
            found = _approve_by_annotation(promotion, found, now)
            new, wake_at = advance(found, plan, facts, now)
            if any(each.phase in _MOVING for each in new.stages):
                # Whatever was lost, it is counted again.
                wake_at = min(filter(None, (wake_at, now + self._interval)))
            changed = _list_changed(promotion, old, new)
            new = replace(new, unpublished=tuple(dict.fromkeys((*old.unpublished, *changed))))
            steps = list(list_steps(old, new, now))
            new = outbox.add(new, steps) if promotion.notify else outbox.clear(new)
            token = kept.token if kept else ABSENT
            if new != old:
                token = self._records.promotions.put(new, expect=token)
        except StaleError:
            return False
        self._note(new.name, steps, (time.perf_counter() - begun) * 1000)
        token = self._publish(new, token)
        if new.latest != old.latest:
            self._releases.prune(promotion.name, new.held | {new.latest})
        if not self._set_timer(message.promotion, wake_at, timer):
            return False
        # A deployment that ended before it could see that it is a witness has not been counted.
        again = self._has_late_witness(new) or not self._report_stopped(new, token)
        return self._catalogs.current().revision == catalog.revision and not again

    def _note(self, name: str, steps: list[StageEvent], took: float) -> None:
        """Write the steps to the event log; the first has the time that all of them took."""
        for step in steps:
            context: dict[str, str | float] = {"promotion": name}
            if step.seconds is not None:
                context["stage_seconds"] = step.seconds
            note = Note(step.what, step.detail, context=context)
            write(self._records, Nobody(), "", "", note, took if step is steps[0] else 0.0)

    def _report_stopped(self, state: PromotionState, token: str) -> bool:
        """Record how many stages are stopped, for the alarms of clouds.

        Return whether it is still so: another worker may have written the state meanwhile.
        """
        alert = Alert(stages=len(state.stopped))
        if self._records.alerts.get(state.name) == alert:
            return True
        self._records.alerts.put(state.name, alert)
        return self._records.promotions.token(state.name) == token

    def _find_latest(
        self, catalog: Catalog, promotion: ClusterPromotion, old: PromotionState
    ) -> PromotionState:
        """Return a promotion with its newest release, or with what one waits for."""
        try:
            release = self._releases.make(catalog, promotion, old.latest)
        except MissingInputError as error:
            return replace(old, missing=str(error))
        return replace(old, latest=release.number, missing="")

    def _has_late_witness(self, state: PromotionState) -> bool:
        """Return whether a cluster whose deployment a stage waits for has just been deployed."""
        for stage in state.stages:
            profile, _, cluster = stage.witness.partition(" ")
            head = self._records.profiles.head("", "", profile) if cluster else None
            status = self._records.outcomes.get(cluster, profile) if head else None
            if head and status and is_provisioned(status.value, head.value):
                return True
        return False

    def _publish(self, state: PromotionState, token: str) -> str:
        """Publish the messages of a state, and return the token that its record has then."""
        if state.unpublished:
            self._publisher.publish(map(Resolve, state.unpublished))
            with suppress(StaleError):
                # A later writer publishes what is left, or has.
                token = self._records.promotions.mark_published(state, expect=token)
        if state.events:
            self._publisher.publish([NotifyPromotion(state.name)])
        return token

    def _set_timer(self, name: str, at: datetime | None, kept: Stored[Timer] | None) -> bool:
        """Set the timer, or cancel it; False if it is not the one that was read any more."""
        timer = promotion_timer(name)
        with suppress(StaleError):
            if at is None and kept:
                self._records.timers.cancel(timer, expect=kept.token)
            elif at and (kept is None or kept.value.at != at):
                expect = kept.token if kept else ABSENT
                self._records.timers.set(timer, at, Promote(name).message().body, expect=expect)
            return True
        return False

    def _end(
        self,
        name: str,
        catalog: Catalog,
        kept: Stored[PromotionState] | None,
        timer: Stored[Timer] | None,
    ) -> bool:
        """Have the stages of a deleted promotion withdrawn, and forget it once all have been.

        Each is asked each time, and the last that is left is withdrawn: see `may_leave`.
        """
        self._records.alerts.delete(name)
        if kept is None:
            return True
        if left := _list_left(self._records, catalog, name):
            self._publisher.publish(map(Resolve, left))
            return self._set_timer(name, self._records.clock.now() + _WITHDRAWAL_INTERVAL, timer)
        for release in self._records.releases.heads(name):
            self._records.releases.delete(name, release.number)
        self._releases.prune_sources(name, ())
        self._records.timers.cancel(promotion_timer(name))
        self._records.timers.cancel(promotion_notice_timer(name))
        try:
            self._records.promotions.delete(name, expect=kept.token)
        except StaleError:
            return False
        return True


def _list_left(records: Records, catalog: Catalog, promotion: str) -> list[str]:
    """Return the profiles that are still a deleted promotion's.

    One that becomes the user's own is that once it is rendered; a paused one is not rendered.
    """
    own = catalog.profiles
    return [
        each.name
        for each in records.profiles.heads("")
        if each.rollout.promotion == promotion and not (each.name in own and own[each.name].paused)
    ]


def _approve_by_annotation(
    promotion: ClusterPromotion, state: PromotionState, now: datetime
) -> PromotionState:
    """Count the approval that an annotation names once its release is at the stage.

    It counts once: a later rejection takes it back.
    """
    name, release = promotion.approved_release
    stage = state.stage(name)
    known = stage.rejected >= release or (stage.approval and stage.approval.release >= release)
    if known or stage not in state.stages or release != (stage.release or state.latest):
        return state
    return approve(state, name, Approval(release, ANNOTATION, now))


def plan_promotion(promotion: ClusterPromotion) -> PromotionPlan:
    """Return a promotion as its manifest has it."""
    return PromotionPlan(
        [StagePlan(each.name, promotion.gate(each.name)) for each in promotion.stages],
        max_failures=promotion.max_failures,
        progress_deadline=promotion.progress_deadline,
        rolls_back=promotion.rolls_back,
        skips_empty=promotion.skips_empty,
        paused=promotion.paused,
    )


def _list_changed(
    promotion: ClusterPromotion, old: PromotionState, new: PromotionState
) -> list[str]:
    """Return the profiles that a change of state has rendered again."""
    changed = []
    for stage in new.stages:
        was = old.stage(stage.name)
        if stage.release != was.release:
            changed.append(promotion.profile_name(stage.name))
        if (stage.phase == "Verifying") != (was.phase == "Verifying"):
            changed.append(promotion.verification_name(stage.name))
    return changed
