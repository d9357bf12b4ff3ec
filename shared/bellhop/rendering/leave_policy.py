"""Decision whether a profile leaves a cluster, by the declarations: its record may follow later."""

from __future__ import annotations

from bellhop.api.kinds import ClusterProfile, EventTrigger
from bellhop.catalog.catalog import Catalog
from bellhop.state.profile import Profile


def is_leaving(catalog: Catalog, profile: Profile, cluster: str) -> bool:
    """Return whether a profile leaves a cluster, or will as soon as it is written as declared.

    A profile in dry run, or a paused one, stays. So does one that matches no more, until a worker
    has evaluated that.
    """
    declared = (
        profile.name in catalog.profiles
        if not profile.trigger
        else (profile.trigger in catalog.triggers)
    )
    if not declared:
        return True
    if profile.sync == "DryRun":
        return False
    if cluster not in profile.destinations:
        return True
    # What is there only for other clusters leaves with the last of those.
    return cluster in profile.matched and not _selects(catalog, profile, cluster)


def list_departing(
    catalog: Catalog, profile: Profile, before: Catalog | None = None
) -> tuple[str, ...]:
    """Return the clusters from which the declarations withdraw what a profile deployed there.

    Deregistering a cluster concerns only that cluster: neither it nor what was made of its events
    is among them. Nor is what removes nothing: a dry run, and `LeavePolicies`. Of what is about to
    be deleted `before` says so, as its profile may not be written yet.
    """
    if profile.trigger and profile.cluster not in catalog.clusters:
        return ()
    declared = _declared(catalog, profile)
    last = declared or (before and _declared(before, profile))
    if not (last.policy if last else profile).withdraws or profile.sync == "DryRun":
        return ()
    there = (each for each in profile.matched if each in catalog.clusters)
    return tuple(each for each in there if declared is None or not _selects(catalog, profile, each))


def _declared(catalog: Catalog, profile: Profile) -> EventTrigger | ClusterProfile | None:
    if profile.trigger:
        return catalog.triggers.get(profile.trigger)
    return catalog.profiles.get(profile.name)


def is_declared_for(catalog: Catalog, profile: Profile, cluster: str) -> bool:
    """Return whether the declarations certainly select a cluster that a profile is deployed to.

    Of a trigger with `destinationCluster` an event may name another one at any time.
    """
    if profile.trigger:
        declared = catalog.triggers.get(profile.trigger)
        known = declared is not None and declared.destination_cluster is None
    else:
        known = profile.name in catalog.profiles
    return known and cluster in catalog.clusters and _selects(catalog, profile, cluster)


def _selects(catalog: Catalog, profile: Profile, cluster: str) -> bool:
    """Return whether the declaration of a profile still selects a cluster, as far as is known."""
    if not profile.trigger:
        declared = catalog.profiles[profile.name]
        return declared.paused or catalog.selects(declared, cluster)
    trigger = catalog.triggers[profile.trigger]
    if trigger.paused or trigger.name in catalog.problems_in(profile.cluster):
        return True
    if catalog.source_of(trigger, profile.cluster) is None:
        return False
    return catalog.may_reach(trigger, profile.cluster, cluster)
