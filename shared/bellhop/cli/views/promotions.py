"""ClusterPromotions: the release of each stage, its clusters, and what it waits for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise, zip_longest
from typing import TYPE_CHECKING, Any

from bellhop.cli.output import (
    Column,
    Row,
    format_age,
    format_age_now,
    format_count,
    format_time,
)
from bellhop.cli.printer import Description
from bellhop.cli.views.view import Query, View, select_applied
from bellhop.installation import Installation
from bellhop.ports.kube import Manifest
from bellhop.state.promotion import Approval, StageState, Visit

if TYPE_CHECKING:
    from bellhop.diagnosis.promotion_status import PromotionStatus, StageStatus

COLUMNS = (
    Column("NAME", "name"),
    Column("RELEASE", "release", shown=lambda value: str(value or "-")),
    Column("STAGE", "stage"),
    Column("STATE", "state"),
    Column("SINCE", "since", shown=lambda value: format_age_now(value) if value else "-"),
    Column("NEXT", "next", prose=True),
)

Item = tuple["PromotionStatus", Mapping[str, Any]]


def _select(here: Installation, query: Query) -> Iterator[Item]:
    from bellhop.diagnosis.promotion_status import read_promotion

    promotions = here.catalogs.current().promotions
    for manifest in select_applied(here, query, "ClusterPromotion"):
        promotion = promotions.get(manifest["metadata"]["name"])
        if promotion:
            yield read_promotion(here, promotion), manifest


def _row(_here: Installation, item: Item) -> Row:
    status, _ = item
    at = status.at.state
    return {
        "namespace": "",
        "name": status.promotion.name,
        "release": at.release,
        "stage": at.name,
        "state": at.phase,
        "since": at.since,
        "next": status.at.next,
    }


def _manifest(_here: Installation, item: Item) -> Manifest:
    status, manifest = item
    stages = [_stage(each) for each in status.stages]
    shown: dict[str, Any] = {"currentStageName": status.at.state.name, "stages": stages}
    if status.state.promoted_at:
        shown["lastPromotionTime"] = status.state.promoted_at.isoformat()
    return {**manifest, "status": shown}


def _stage(status: StageStatus) -> Mapping[str, Any]:
    state, facts = status.state, status.facts
    shown = {
        "name": state.name,
        "release": state.release,
        "currentStatusDescription": f"{state.phase}: {status.next}" if status.next else state.phase,
        "clusters": {
            "total": facts.clusters,
            "provisioned": facts.provisioned,
            "failed": facts.failed,
        },
    }
    if facts.failure:
        shown["failureMessage"] = facts.failure
    if state.begun_at:
        shown["lastUpdateReconciledTime"] = state.begun_at.isoformat()
    if state.deployed_at:
        shown["lastSuccessfulAppliedTime"] = state.deployed_at.isoformat()
    return shown


def _describe(here: Installation, item: Item, description: Description) -> None:
    status, _ = item
    now = here.records.clock.now()
    description.begin("ClusterPromotion", status.promotion.name)
    description.field("Newest release", str(status.state.latest or "none yet"))
    if status.state.missing:
        description.field("The next one waits", status.state.missing)
    description.field("Promoted", format_time(status.state.promoted_at))
    description.table(
        "Stages",
        (
            (
                each.state.name,
                f"release {each.state.release}" if each.state.release else "no release",
                each.state.phase,
                format_age(each.state.since, now) if each.state.since else "",
                _count(each),
                each.next,
            )
            for each in status.stages
        ),
        nothing="it has no stages",
    )
    release = here.records.releases.head(status.promotion.name, status.at.state.release)
    if release:
        frozen = [each for each in release.value.recipe if each != "profileSpec"]
        description.section(f"Frozen in release {release.value.number}", frozen)
    failing = [f"{x.state.name}: {x.facts.failure}" for x in status.stages if x.facts.failure]
    if failing:
        description.section("Failing", failing)
    approved = [
        f"{each.state.name}, release {approval.release}: by {_sign(approval)}"
        for each in status.stages
        if (approval := each.state.approval)
    ]
    if approved:
        description.section("Approved", approved)


def _sign(approval: Approval) -> str:
    return ": ".join(filter(None, (approval.by, approval.reason)))


def _count(status: StageStatus) -> str:
    facts = status.facts
    paused = f", {facts.paused} paused" if facts.paused else ""
    failed = f", {facts.failed} failed" if facts.failed else ""
    clusters = format_count(facts.clusters, "cluster")
    return f"{facts.provisioned} of {clusters}{failed}{paused}"


HISTORY = (
    Column("RELEASE", "release"),
    Column("STAGE", "stage"),
    Column("BEGUN", "begun", shown=format_time),
    Column("PASSED", "passed", shown=lambda value: format_time(value) or "-"),
    Column("APPROVED", "approved", shown=lambda value: value or "-"),
    Column("STATE", "state", shown=lambda value: value or "-"),
    Column("CHANGED", "changed", shown=lambda value: value or "-"),
)


def list_history(here: Installation, status: PromotionStatus) -> Iterator[Row]:
    """Yield when each stage got each release, in the order of time, and what differed in it."""
    changes = _list_changes(here, status.promotion.name)
    visits = [
        (visit, each.state, following)
        for each in status.stages
        for visit, following in zip_longest(each.state.visits, each.state.visits[1:])
    ]
    for visit, stage, following in sorted(visits, key=lambda each: each[0].begun_at):
        yield {
            "release": visit.release,
            "stage": stage.name,
            "begun": visit.begun_at,
            "passed": visit.passed_at,
            "approved": _sign(visit.approval) if visit.approval else "",
            "state": _describe_visit(visit, stage, following),
            "changed": changes.get(visit.release, ""),
        }


def _describe_visit(visit: Visit, stage: StageState, following: Visit | None) -> str:
    """Return what became of a release at a stage before the following, and who decided that."""
    if visit.rolled_back:
        return f"rolled back to, by {visit.by}" if visit.by else "rolled back to"
    forced = f", forced by {visit.by}" if visit.by else ""
    if visit.passed_at:
        return f"promoted{forced}"
    if following:
        return f"rolled back{forced}" if following.rolled_back else f"superseded{forced}"
    return f"rejected {stage.rejection}" if stage.rejected == visit.release else f"here{forced}"


def _list_changes(here: Installation, name: str) -> Mapping[int, str]:
    from bellhop.rendering.inputs import differences

    releases = sorted(here.records.releases.heads(name), key=lambda each: each.number)
    return {
        new.number: ", ".join(differences(old.recipe, new.recipe))
        for old, new in pairwise(releases)
    }


VIEWS = {"clusterpromotion": View(COLUMNS, _select, _row, _manifest, _describe)}
