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
    place = f"release {stage.release} at stage '{stage.name}'"
    if stage.release != was.release and stage.phase != "RolledBack":
        yield StageEvent("begins", stage.name, stage.release, now, place)
    if stage.approval and stage.approval != was.approval:
        release = stage.approval.release
        said = f"release {release} at stage '{stage.name}' by {stage.approval.by}"
        yield StageEvent("approved", stage.name, release, now, said)
    if stage.passed > was.passed:
        seconds = _measure(stage.visits[-1]) if stage.visits else None
        yield StageEvent("promoted", stage.name, stage.release, now, place, seconds)
    if stage.phase == was.phase and stage.release == was.release:
        return
    if stage.phase in ("Stalled", "Empty"):
        said = f"{place}: {stage.message}"
        yield StageEvent("stalled", stage.name, stage.release, now, said)
    if stage.phase == "RolledBack":
        said = f"{place}: {stage.message}"
        yield StageEvent("rolled back", stage.name, stage.release, now, said)


def _measure(visit: Visit) -> float | None:
    """Return how long a stage took; nothing negative, as a clock may have been set back."""
    if visit.passed_at is None:
        return None
    return max(0.0, (visit.passed_at - visit.begun_at).total_seconds())
