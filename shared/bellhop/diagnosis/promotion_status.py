"""Promotions as people look at them: where the newest release is, and what it waits for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from bellhop.api.promotion import ClusterPromotion, StageGate
from bellhop.core.windows import find_opening, is_open
from bellhop.diagnosis.condition import Condition, failure
from bellhop.errors import BellhopError
from bellhop.extras.promotions.receivers import read_receivers
from bellhop.installation import Installation, InstallationView
from bellhop.promotions.facts import count_clusters
from bellhop.promotions.machine import StageFacts
from bellhop.state.promotion import PromotionState, StageState
from bellhop.state.table import Stored


class StageStatus(NamedTuple):
    """One stage: its state, its clusters, and the sentence that says what comes next."""

    state: StageState
    gate: StageGate
    facts: StageFacts
    next: str


class PromotionStatus(NamedTuple):
    """A promotion with its stages in their order; `at` is the one that its newest release is at."""

    promotion: ClusterPromotion
    state: PromotionState
    stages: Sequence[StageStatus]
    at: StageStatus


def read_promotion(here: InstallationView, promotion: ClusterPromotion) -> PromotionStatus:
    """Return the status of a promotion as the records have it."""
    kept = here.records.promotions.get(promotion.name)
    state = kept.value if kept else PromotionState(promotion.name)
    stages = list(_list_stages(here, promotion, state))
    moving = [each for each in reversed(stages) if _is_moving(each.state)]
    at = stages[-1] if state.latest else stages[0]._replace(next=state.missing)
    # Of two with the same release it is at the later one.
    at = max(moving, key=lambda each: each.state.release, default=at)
    return PromotionStatus(promotion, state, stages, at)


def _is_moving(stage: StageState) -> bool:
    return bool(stage.release) and stage.phase != "Promoted"


def _list_stages(
    here: InstallationView, promotion: ClusterPromotion, state: PromotionState
) -> Iterator[StageStatus]:
    catalog, now = here.catalogs.known(), here.records.clock.now()
    names = [each.name for each in promotion.stages]
    for name, following in zip(names, [*names[1:], ""], strict=True):
        stage, gate = state.stage(name), promotion.gate(name)
        head = here.records.profiles.head("", "", promotion.profile_name(name))
        facts = count_clusters(here.records, catalog, head.value) if head else StageFacts()
        said = "it is paused" if promotion.paused else _describe_next(stage, gate, following, now)
        yield StageStatus(stage, gate, facts, said)


def list_conditions(here: Installation) -> Iterator[Condition]:
    """Yield the stages at which a release stopped, and notifications that cannot be sent."""
    for name, promotion in here.catalogs.known().promotions.items():
        kept = here.records.promotions.get(name)
        if kept and kept.value.missing:
            said = f"there is no new release: {kept.value.missing}"
            yield failure("promotion", f"'{name}'", said)
        for stage in kept.value.stages if kept else ():
            if stage.stopped:
                what = f"release {stage.release} is {stage.phase}"
                about = f"stage '{stage.name}' of '{name}'"
                said = ": ".join(filter(None, (what, stage.message)))
                said = f"{said}; {_CURES[stage.phase]}"
                yield failure("promotion", about, said, since=stage.since)
        if promotion.notify and (said := _describe_notices(here, promotion, kept)):
            yield failure("promotion", f"notifications of '{name}'", said)


def _describe_notices(
    here: Installation, promotion: ClusterPromotion, kept: Stored[PromotionState] | None
) -> str:
    """Return the reason why notifications cannot be sent, or could not last time."""
    try:
        read_receivers(here.catalogs, promotion)
    except BellhopError as error:
        return str(error)
    deliveries = kept.value.deliveries if kept else ()
    return next((each.error for each in deliveries if each.error), "")


def list_withdrawals(here: Installation) -> Iterator[Condition]:
    """Yield the stages of deleted promotions that cannot leave a cluster: others wait for them."""
    names = {kept.value.name for _, kept in here.records.promotions.rows()}
    deleted = names - here.catalogs.known().promotions.keys()
    heads = here.records.profiles.heads("") if deleted else ()
    for head in (each for each in heads if each.rollout.promotion in deleted):
        for cluster in head.leaving:
            status = here.records.outcomes.get(cluster, head.name)
            if status and status.value.reason:
                said = (
                    f"profile '{head.name}' is to leave cluster '{cluster}', and earlier stages"
                    f" stay until it has: {status.value.message}; correct that, or deregister the"
                    " cluster"
                )
                about, since = f"deleted '{head.rollout.promotion}'", status.value.begun_at
                yield failure("promotion", about, said, since=since)


_CURES: Mapping[str, str] = {
    "Stalled": "correct the cause, or apply another version; no later stage gets this one",
    "Empty": "correct the stage's clusterSelector, label clusters, or have empty stages passed by"
    " the annotation bellhop.dev/empty-stage: skip",
    "RolledBack": "apply a corrected version; until then the stage keeps this release",
}


def _describe_next(stage: StageState, gate: StageGate, following: str, now: datetime) -> str:
    """Say what a stage waits for, and until when."""
    if stage.phase in ("Waiting", "Promoted"):
        return ""
    goal = f"promotes to {following}" if following else "is done"
    if stage.phase == "Soaking" and stage.whole_at:
        over = stage.whole_at + gate.delay
        opens = f"{find_opening(gate.window, over):%H:%M}" if gate.window else ""
        rest = [
            "if it is verified" if gate.verified else "",
            "once it is approved" if gate.manual else "",
            f"if the window (from {opens} UTC) is open" if opens else "",
        ]
        return ", ".join([f"{goal} in {format_span(over - now)}", *filter(None, rest)])
    if stage.phase == "Rejected":
        return f"goes no further: rejected {stage.message}"
    if stage.phase == "AwaitingApproval":
        return f"{goal} once it is approved"
    if stage.phase == "WindowClosed" and gate.window and not is_open(gate.window, now):
        return f"{goal} at {find_opening(gate.window, now):%Y-%m-%d %H:%M} UTC"
    return stage.message


def format_span(left: timedelta) -> str:
    """Return a time that is left in the two largest units, as in `1 h 5 min`."""
    seconds = max(0, round(left.total_seconds()))
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    return f"{minutes} min" if minutes else f"{seconds} s"
