"""Previews of releases: the changes that the next release of a stage would make in its clusters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from bellhop.api.promotion import ClusterPromotion
from bellhop.api.stage_profile import StageProfile
from bellhop.clusters.management_cluster import add_management_cluster
from bellhop.errors import PermanentError
from bellhop.installation import Installation
from bellhop.operations.previews import Begin, PreviewedChange, UnknownChange, preview_profile
from bellhop.operations.promotions import find_promotion, find_stage, read_state
from bellhop.profiles.drafts import name_leaving
from bellhop.profiles.own_profiles import Resolution
from bellhop.profiles.writer import Writer
from bellhop.state.profile import Profile
from bellhop.state.promotion import PromotionState


class NextRelease(NamedTuple):
    """The release that a stage gets next, a clause that says where it is, and who would get it."""

    number: int
    place: str
    clusters: int


def find_next_release(here: Installation, name: str, stage: str) -> NextRelease | None:
    """Return the release that a stage of a promotion gets next; None if nothing waits for it.

    Raises:
        ConflictError: the promotion has no release yet.
        MissingError: there is no such promotion or stage.
    """
    promotion = find_promotion(here, name)
    state = read_state(here, name).value
    find_stage(promotion, state, stage)
    found = _find_next(promotion, state, stage)
    catalog = here.catalogs.known()
    clusters = catalog.profile_destinations(catalog.profiles[promotion.profile_name(stage)])
    return NextRelease(*found, len(clusters)) if found else None


def _find_next(
    promotion: ClusterPromotion, state: PromotionState, name: str
) -> tuple[int, str] | None:
    """Return what the stage before has passed, or what is nearest on its way there."""
    names = [each.name for each in promotion.stages]
    mine = state.stage(name)
    newest = max(mine.release, mine.skipped)
    before = [state.stage(each) for each in names[: names.index(name)]]
    for each in reversed(before):
        if each.passed > newest:
            return each.passed, f"which has passed stage '{each.name}'"
        is_stopped = each.skipped or each.rejected >= each.release
        if each.release > newest and not is_stopped:
            return each.release, f"which is {each.phase} at stage '{each.name}'"
        newest = max(newest, each.release, each.skipped)
    return (state.latest, "the newest one") if state.latest > newest else None


def preview_release(
    here: Installation,
    name: str,
    stage: str,
    release: int,
    cluster: str,
    begin: Begin,
    *,
    live: bool,
) -> Iterator[PreviewedChange | UnknownChange]:
    """Yield the changes that a release would make in a stage; nothing is fetched or written.

    Raises:
        MissingError: the release is lost, or the stage does not select the cluster.
        PermanentError: it cannot be rendered.
    """
    profile = _render(here, find_promotion(here, name), stage, release)
    if profile.error:
        raise PermanentError(
            f"cannot render release {release} of promotion '{name}' for stage '{stage}':"
            f" {profile.error}"
        )
    yield from preview_profile(here, profile, cluster, begin, live=live)


def _render(here: Installation, promotion: ClusterPromotion, stage: str, release: int) -> Profile:
    """Return the profile of a stage as the worker that gives it a release would store it."""
    catalog = here.catalogs.known()
    writer = Writer(here.records, here.catalogs, here.publisher, here.settings)
    resolution = Resolution(here.records, here.catalogs, here.publisher, writer, here.settings)
    declared = catalog.profiles[promotion.profile_name(stage)]
    assert isinstance(declared, StageProfile)
    draft = resolution.render_release(catalog, declared, release)
    found = writer.found("", "", draft.name)
    old = found.value if found else None
    return name_leaving(old, add_management_cluster(here.records, old, draft))
