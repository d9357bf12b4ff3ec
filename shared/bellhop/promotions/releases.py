"""Releases of promotions: one for each change of a profileSpec, or of what it names.

    the profileSpec and its inputs ─► one is missing ─► none is made until it is there
                                      digest is that of the newest release ─► nothing
                                      else ─► the next number ─► stored before a stage gets it

The inputs are found by rendering the stages' profiles as they would be now, so that a reference
with a template is frozen for each cluster that has it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from bellhop.api.kinds import ConfigMap, Secret
from bellhop.api.promotion import ClusterPromotion
from bellhop.api.stage_profile import StageProfile
from bellhop.catalog.catalog import Catalog
from bellhop.core.digest import digest
from bellhop.ports.store import ABSENT
from bellhop.profiles.own_profiles import Resolution
from bellhop.rendering.inputs import Find, Inputs, MissingInputError, Ref
from bellhop.state.promotion import MOVED, Pin, Release, place_of
from bellhop.state.records import Records


class _Recorder:
    """Looks up ConfigMaps and Secrets, and records them; one that is missing is recorded empty."""

    def __init__(self, find: Find, live: frozenset[str]) -> None:
        self._find = find
        self._live = live
        self.found: dict[str, Mapping[str, Any]] = {}
        self.marks: dict[str, str] = {}

    def find(self, ref: Ref) -> ConfigMap | Secret | None:
        """Look one up."""
        inputs = Inputs(self._find)
        holder = inputs.find(ref)
        if str(ref) not in self._live:
            self.found[str(ref)] = holder.written if holder else {}
            self.marks |= inputs.noted
        return holder


def _varies(profile: StageProfile) -> bool:
    """Return whether a stage may name other objects than the first one: those of its clusters.

    A verification belongs to its stage, which may change it without a new release.
    """
    refs = profile.holder_refs
    return not profile.verifies and any(ref.templated or not ref.namespace for ref in refs)


class ReleaseMaker:
    """Makes the releases of promotions."""

    def __init__(self, records: Records, resolution: Resolution, most: int) -> None:
        """Make releases; of those that no stage holds, `most` are kept."""
        self._records = records
        self._resolution = resolution
        self._most = most

    def make(self, catalog: Catalog, promotion: ClusterPromotion, latest: int) -> Release:
        """Return the release of a promotion as it is now: the `latest`, or a new one.

        Raises:
            MissingInputError: the first stage names an object that does not exist yet.
            StaleError: another worker has made one.
        """
        recorder = _Recorder(self._resolution.find, promotion.live_inputs)
        for profile in promotion.profiles:
            if not (profile.leads or _varies(profile)):
                continue
            draft = self._resolution.render(catalog, profile, recorder.find)
            if profile.leads and draft.error_code == MissingInputError.code:
                # A release without it could only fail, and would be one that nobody wrote.
                raise MissingInputError(draft.error)
        spec = promotion.profile_spec
        pins = self._list_moved(promotion.name)
        moved = {each.key: dict(each.description) for each in pins}
        found = {key: dict(each) for key, each in recorder.found.items()}
        mark = digest([spec, found, *([moved] if moved else [])])
        kept = self._records.releases.head(promotion.name, latest) if latest else None
        if kept and kept.value.digest == mark:
            return kept.value
        release = Release(
            promotion=promotion.name,
            number=latest + 1,
            digest=mark,
            made_at=self._records.clock.now(),
            recipe={
                "profileSpec": digest(spec)[:16],
                **recorder.marks,
                **{str(x.description["name"]): str(x.description["digest"]) for x in pins},
            },
            spec=spec,
            inputs=recorder.found,
        )
        # One of this number may be of a worker that died before a promotion named it.
        token = self._records.releases.token(promotion.name, release.number)
        self._records.releases.put(release, expect=token or ABSENT)
        return release

    def _list_moved(self, promotion: str) -> list[Pin]:
        """Return the charts and files that have become other ones since a release was made."""
        return [
            stored.value for _, stored in self._records.pins.rows(promotion, prefix=f"{MOVED}/")
        ]

    def prune(self, promotion: str, held: frozenset[int]) -> None:
        """Delete old releases that no stage holds, with their charts and files."""
        before = self._records.releases.heads(promotion)
        self._records.releases.prune(promotion, held, self._most)
        kept = {each.number for each in self._records.releases.heads(promotion)}
        if len(kept) < len(before):
            self.prune_sources(promotion, kept)

    def prune_sources(self, promotion: str, kept: Collection[int]) -> None:
        """Delete the charts and files that no release has any more."""
        used = set()
        for pin in self._records.pins.of(promotion):
            if pin.release in kept or (pin.release == MOVED and kept):
                used.add(place_of(pin.description["digest"]))
            else:
                self._records.pins.delete(promotion, pin.release, pin.key)
        for item in list(self._records.frozen.items(promotion)):
            if item.sort not in used:
                self._records.frozen.delete(promotion, item.sort)
