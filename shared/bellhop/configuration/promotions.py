"""Status of a ClusterPromotion: Sveltos' fields, and the release and clusters of each stage."""

from __future__ import annotations

from datetime import datetime

from bellhop.api.promotion import PROMOTION_NAME
from bellhop.configuration.conditions import State, progress, stall, succeed, to_seconds, wait
from bellhop.configuration.names import make_hash
from bellhop.configuration.objects import Bytes, Observed, Written
from bellhop.core.gvk import GVK
from bellhop.diagnosis.promotion_status import PromotionStatus, StageStatus, read_promotion
from bellhop.installation import InstallationView
from bellhop.ports.kube import Kube, Manifest
from bellhop.rendering.inputs import MissingInputError

_STALLED = ("Stalled", "RolledBack")
_WAITING = ("Empty", "AwaitingApproval", "WindowClosed", "Rejected", "RolledBack")


class StageClusters(Written, frozen=True):
    """The clusters of a stage, without those that are paused."""

    total: int
    provisioned: int
    failed: int


class PromotionStageStatus(Written, frozen=True):
    """The status of one stage."""

    name: str
    last_update_reconciled_time: datetime | None = None
    last_successful_applied_time: datetime | None = None
    last_status_check_time: datetime | None = None
    failure_message: str = ""
    current_status_description: str = ""
    release: int = 0
    clusters: StageClusters | None = None


class ClusterPromotionStatus(Observed, frozen=True):
    """Status of a ClusterPromotion."""

    stages: tuple[PromotionStageStatus, ...] = ()
    current_stage_name: str = ""
    last_promotion_time: datetime | None = None
    profile_spec_hash: Bytes = ""
    stages_hash: Bytes = ""


def make_promotion_status(
    here: InstallationView, name: str
) -> tuple[ClusterPromotionStatus, State] | None:
    """Return the status of a ClusterPromotion and its state; None if there is no such promotion."""
    promotion = here.catalogs.known().promotions.get(name)
    if promotion is None:
        return None
    found = read_promotion(here, promotion)
    status = ClusterPromotionStatus(
        stages=tuple(map(_make_stage, found.stages)),
        current_stage_name=found.at.state.name,
        last_promotion_time=_to_seconds(found.state.promoted_at),
        profile_spec_hash=make_hash(promotion.profile_spec),
        stages_hash=make_hash(promotion.written["spec"]["stages"]),
    )
    return status, _make_state(found)


def is_of_stage(kube: Kube, found: Manifest) -> bool:
    """Return whether a ClusterProfile is one that Sveltos made for a stage, and declares nothing.

    One that its promotion has left to the user has the label, too.
    """
    name = (found["metadata"].get("labels") or {}).get(PROMOTION_NAME)
    if found["kind"] != "ClusterProfile" or not name:
        return False
    return (
        kube.get(GVK("config.projectsveltos.io", "v1beta1", "ClusterPromotion"), "", name)
        is not None
    )


def _make_stage(found: StageStatus) -> PromotionStageStatus:
    state, facts = found.state, found.facts
    return PromotionStageStatus(
        name=state.name,
        last_update_reconciled_time=_to_seconds(state.begun_at),
        last_successful_applied_time=_to_seconds(state.deployed_at),
        failure_message=facts.failure,
        current_status_description=_describe(found),
        release=state.release,
        clusters=StageClusters(
            total=facts.clusters, provisioned=facts.provisioned, failed=facts.failed
        ),
    )


def _describe(found: StageStatus) -> str:
    """Return the state of a stage and its reason, with times that stay true until it changes."""
    state = found.state
    if state.phase == "Soaking" and state.whole_at:
        return f"Soaking until {state.whole_at + found.gate.delay:%Y-%m-%d %H:%M} UTC"
    return ": ".join(filter(None, (state.phase, state.message)))


def _make_state(found: PromotionStatus) -> State:
    at, latest = found.at.state, found.state.latest
    place = f"release {at.release} at stage '{at.name}'"
    said = f"{place}: {_describe(found.at)}"
    if found.state.missing:
        return stall(MissingInputError.code, found.state.missing)
    if latest and at.phase == "Promoted" and found.stages[-1].state.passed >= latest:
        return succeed("Promoted", f"release {latest} has passed all stages", at.since)
    if at.phase in _STALLED and at.stopped:
        return stall(at.phase, said, at.since)
    if at.phase in _WAITING:
        return wait(at.phase, said)
    return progress(at.phase, said, at.since)


def _to_seconds(at: datetime | None) -> datetime | None:
    return to_seconds(at) if at else None
