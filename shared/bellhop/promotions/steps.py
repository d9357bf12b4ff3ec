"""Steps of releases between two states of a promotion, for event log, metrics and notifications."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from bellhop.state.promotion import PromotionState, StageEvent, StageState, Visit


def list_steps(old: PromotionState, new: PromotionState, now: datetime) -> Iterator[StageEvent]:
    """Yield the steps of all stages, in their order: one stage may be left as the next begins."""
    for stage in new.stages:
        yield from _list_stage(old.stage(stage.name), stage, now)


def _list_stage(was: StageState, stage: StageState, now: datetime) -> Iterator[StageEvent]:
    name, release = stage.name, stage.release
    if release != was.release and stage.phase != "RolledBack":
        yield StageEvent("begins", name, release, now)
    if stage.approval and stage.approval != was.approval:
        said = f"by {stage.approval.by}"
        yield StageEvent("approved", name, stage.approval.release, now, said)
    if stage.passed > was.passed and stage.visits:
        visit = stage.visits[-1]
        yield StageEvent("promoted", name, release, now, _name_forcer(visit), _measure(visit))
    if stage.phase == was.phase and release == was.release:
        return
    if stage.phase in ("Stalled", "Empty"):
        yield StageEvent("stalled", name, release, now, stage.message)
    if stage.phase == "RolledBack":
        yield StageEvent("rolled back", name, release, now, stage.message)


def _name_forcer(visit: Visit) -> str:
    """Return who had a release skip the stages before; empty if it has passed them."""
    is_forced = visit.by and not visit.rolled_back
    return f"by {visit.by}, without the stages before it" if is_forced else ""


def _measure(visit: Visit) -> float | None:
    """Return how long a stage took; nothing negative, as a clock may have been set back."""
    if visit.passed_at is None:
        return None
    return max(0.0, (visit.passed_at - visit.begun_at).total_seconds())
