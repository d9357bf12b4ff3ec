"""Releases as the profiles of stages are rendered from them: a later change reaches none of them.

A cluster that joins a stage gets its release, too. If a reference has a template, it may name an
object for that cluster that no cluster had when the release was made: only this one is read as it
is now.
"""

from __future__ import annotations

from typing import NamedTuple

from bellhop.api.kinds import ConfigMap, Secret, of
from bellhop.api.stage_profile import StageProfile, name_stage_profile
from bellhop.catalog.catalog import Catalog
from bellhop.errors import MissingError
from bellhop.rendering.inputs import Find, Ref
from bellhop.state.profile import Profile
from bellhop.state.promotion import Release, StageState
from bellhop.state.records import Records


class FrozenProfile(NamedTuple):
    """The profile of a stage at its release, and what reads the inputs of that."""

    profile: StageProfile
    find: Find


def release_of(declared: StageProfile, stage: StageState) -> int:
    """Return the release that a profile of a stage deploys; 0 for nothing."""
    return stage.release if not declared.verifies or stage.phase == "Verifying" else 0


class StageReleases:
    """Reads which release a stage deploys."""

    def __init__(self, records: Records, find: Find) -> None:
        self._records = records
        self._find = find

    def find_stage(self, declared: StageProfile) -> StageState | None:
        """Return the state of a stage; None if that of its promotion is not computed yet."""
        kept = self._records.promotions.get(declared.stage.promotion)
        return kept.value.stage(declared.stage.stage) if kept else None

    def find_release(self, declared: StageProfile) -> int | None:
        """Return the release that a stage deploys now; 0 for nothing, None if that is unknown."""
        stage = self.find_stage(declared)
        return release_of(declared, stage) if stage else None

    def freeze(self, catalog: Catalog, declared: StageProfile, number: int) -> FrozenProfile:
        """Return the profile of a stage as a release has it.

        Raises:
            MissingError: the release is lost.
        """
        kept = self._records.releases.get(declared.stage.promotion, number)
        if kept is None:
            raise MissingError(
                f"cannot deploy release {number} of promotion '{declared.stage.promotion}': it is"
                " lost; apply another version of what it deploys"
            )
        promotion, release = catalog.promotions[declared.stage.promotion], kept.value
        frozen = declared
        if not declared.verifies:
            frozen = promotion.make_profile(declared.stage.stage, release.spec)
        return FrozenProfile(frozen, self._frozen(release, promotion.live_inputs))

    def may_leave(self, catalog: Catalog, profile: Profile) -> bool:
        """Return whether a profile that is not declared any more may be withdrawn.

        Of a deleted promotion the last stage leaves first: the clusters on which most depends are
        not the ones that keep what nobody tests any more.
        """
        promotion = profile.rollout.promotion
        if not promotion or promotion in catalog.promotions:
            return True
        kept = self._records.promotions.get(promotion)
        stages = [each.name for each in kept.value.stages] if kept else []
        names = [name_stage_profile(promotion, each) for each in stages]
        later = names[names.index(profile.name) + 1 :] if profile.name in names else []
        return not any(self._is_left(promotion, each) for each in later)

    def _is_left(self, promotion: str, name: str) -> bool:
        """Return whether the profile of a stage is there, and has not become a user's own."""
        kept = self._records.profiles.head("", "", name)
        return kept is not None and kept.value.rollout.promotion == promotion

    def _frozen(self, release: Release, live: frozenset[str]) -> Find:
        def find(ref: Ref) -> ConfigMap | Secret | None:
            manifest = release.inputs.get(str(ref))
            if manifest is None or str(ref) in live:
                return self._find(ref)
            if not manifest:
                return None
            found = of(dict(manifest))
            assert isinstance(found, ConfigMap | Secret)
            return found

        return find
