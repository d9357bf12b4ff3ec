"""Profiles of promotions' stages: no other has their names, and they may outlast the promotion."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from bellhop.api.kinds import ClusterPromotion, Declaration, DeclarationKey, of
from bellhop.api.stage_profile import StageProfile
from bellhop.catalog.catalog import Catalog
from bellhop.errors import InvalidError
from bellhop.state.records import Records


def refuse_taken_names(before: Catalog, declared: Sequence[Declaration]) -> None:
    """See that no two of stages' profiles and users' own ClusterProfiles have one name.

    Raises:
        InvalidError: two do, be it in what is applied, or with what is stored.
    """
    applied = {each.name for each in declared if isinstance(each, ClusterPromotion)}
    owners = {
        name: f"ClusterPromotion '{each.stage.promotion}'"
        for name, each in before.profiles.items()
        if isinstance(each, StageProfile) and each.stage.promotion not in applied
    }
    written = {each.name for each in declared if each.kind == "ClusterProfile"}
    stored = {x for x, each in before.profiles.items() if not isinstance(each, StageProfile)}
    for each in declared:
        if each.kind == "ClusterProfile" and each.name in owners:
            raise InvalidError(
                f"cannot apply ClusterProfile '{each.name}': a stage of {owners[each.name]} has"
                " that name; give it another one"
            )
        if isinstance(each, ClusterPromotion):
            _refuse_stages(each, owners, written | stored)


def _refuse_stages(promotion: ClusterPromotion, owners: dict[str, str], profiles: set[str]) -> None:
    for profile in promotion.profiles:
        if profile.name in profiles or profile.name in owners:
            other = owners.get(profile.name) or f"ClusterProfile '{profile.name}'"
            raise InvalidError(
                f"cannot apply ClusterPromotion '{promotion.name}': its stage"
                f" '{profile.stage.stage}' would be the ClusterProfile '{profile.name}', a name"
                f" that {other} has; give the stage another name, or delete that"
            )
        owners[profile.name] = f"ClusterPromotion '{promotion.name}'"


def is_preserved(catalog: Catalog, key: DeclarationKey) -> bool:
    """Return whether the profiles of a promotion stay when it is deleted."""
    found = catalog.promotions.get(key.name) if key.kind == "ClusterPromotion" else None
    return found is not None and found.spec.preserve_cluster_profiles_on_delete


def list_preserved(
    records: Records, before: Catalog, deleted: Iterable[DeclarationKey]
) -> Iterator[Declaration]:
    """Yield the ClusterProfiles that deleted promotions leave to the user, as the stages have them.

    From then on they follow their ConfigMaps and Secrets, as any ClusterProfile does.
    """
    for key in deleted:
        if not is_preserved(before, key):
            continue
        promotion, kept = before.promotions[key.name], records.promotions.get(key.name)
        for each in kept.value.stages if kept else ():
            if not each.release:
                continue
            release = records.releases.get(key.name, each.release)
            spec = release.value.spec if release else promotion.profile_spec
            yield of(promotion.make_profile(each.name, spec).written)
