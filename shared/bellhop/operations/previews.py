"""Previews of profiles: the recorded changes of dry runs, or the changes right now."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from msgspec.structs import replace

from bellhop.clusters.management_cluster import list_target_clusters
from bellhop.core.identity import profile_kind
from bellhop.deploy.context import Lease, Progress, ReconcileContext, is_done_once
from bellhop.deploy.features.feature import Feature
from bellhop.deploy.reconciler import make_features
from bellhop.diagnosis import profile_status
from bellhop.errors import BellhopError, MissingError, TemporaryError
from bellhop.installation import Installation
from bellhop.ports.store import ABSENT
from bellhop.ports.tools import NONE
from bellhop.state.deployment import Change, Held, Inventory
from bellhop.state.messages import Apply
from bellhop.state.profile import Profile
from bellhop.state.worker_pool import HELPERS, WorkerPool

Begin = Callable[[str, int, int], None]
"""A callback with the next cluster, its number, and the number of all."""


class PreviewedChange(NamedTuple):
    """One change that a profile would make in a cluster."""

    cluster: str
    profile: str
    change: Change


class UnknownChange(NamedTuple):
    """A cluster in which the changes of a profile are unknown."""

    cluster: str
    profile: str
    error: BellhopError


def list_dry_runs(
    here: Installation, cluster: str = "", profile: str = ""
) -> Iterator[PreviewedChange]:
    """Yield the recorded changes of profiles in DryRun, in one cluster or all."""
    for key in [cluster] if cluster else sorted(here.catalogs.known().clusters):
        for preview in here.records.previews.of(key):
            if profile not in ("", preview.profile):
                continue
            status = here.records.outcomes.get(key, preview.profile)
            if status and status.value.phase == "DryRun":
                yield from (PreviewedChange(key, preview.profile, each) for each in preview.changes)


def list_dry_run_profiles(
    here: Installation, cluster: str = "", profile: str = ""
) -> list[Profile]:
    """Return the profiles in DryRun, of one cluster or all, of one name or all."""
    return [
        each.profile
        for each in profile_status.read_statuses(here)
        if each.profile.sync == "DryRun"
        and profile in ("", each.profile.name)
        and (not cluster or each.profile.may_name(cluster))
    ]


def preview_now(
    here: Installation,
    profile: str,
    cluster: str = "",
    begin: Begin = lambda *_: None,
    *,
    live: bool = False,
) -> Iterator[PreviewedChange | UnknownChange]:
    """Yield the changes of applying a profile now; clusters are read, nothing is written.

    `begin` gets each cluster before it is called. Objects that are as desired by the records are
    only compared if `live`: then the result is that of `bellhop redeploy`.

    Raises:
        MissingError: there is no such profile, or it does not concern the cluster.
        PermanentError: its newest inputs fail.
        TemporaryError: it was applied, and no worker has read it yet.
    """
    found = [
        each.profile for each in profile_status.read_statuses(here) if each.profile.name == profile
    ]
    if not found and profile in here.catalogs.known().profiles:
        raise TemporaryError(
            f"cannot determine yet what profile '{profile}' would change: it was just applied, and"
            " no worker has read it; repeat the command"
        )
    if not found:
        raise MissingError(
            f"cannot determine what profile '{profile}' would change: no profile has this name;"
            f" `bellhop get {profile_kind(profile).lower()}s` lists those that are"
        )
    yield from preview_profile(here, found[0], cluster, begin, live=live)


def preview_profile(
    here: Installation, profile: Profile, cluster: str, begin: Begin, *, live: bool
) -> Iterator[PreviewedChange | UnknownChange]:
    """Yield the changes of applying a profile, which may be another one than is stored.

    Raises:
        MissingError: it does not concern the cluster.
    """
    features = make_features(
        here.catalogs,
        here.access,
        here.publisher,
        here.settings,
        pool=WorkerPool(HELPERS),
        tools=here.tools or NONE,
    )
    # As a draft it stores no chart and no file for its promotion.
    profile, name = replace(profile, revision=""), profile.name
    goes = [each for each in (*profile.destinations, *profile.leaving) if cluster in ("", each)]
    if cluster and not goes:
        raise MissingError(
            f"cannot determine what profile '{name}' would change in '{cluster}': it does not"
            " select that cluster, and has nothing there"
        )
    for number, key in enumerate(goes, start=1):
        begin(key, number, len(goes))
        try:
            yield from (
                PreviewedChange(key, name, each)
                for each in _changes(here, features, profile, key, live=live)
            )
        except BellhopError as error:
            yield UnknownChange(key, name, error)


def _changes(
    here: Installation,
    features: Iterable[Feature[Any]],
    profile: Profile,
    cluster: str,
    *,
    live: bool,
) -> Iterator[Change]:
    record = here.records.clusters.get(cluster)
    if record is None:
        return
    kept = here.records.inventories.get(cluster, profile.name)
    held = kept.value if kept else Inventory(cluster, profile.name, {})
    if live:
        held = replace(held, held={key: _mark_uncertain(each) for key, each in held.held.items()})
    if not live and is_done_once(profile, here.records.outcomes.get(cluster, profile.name), held):
        return
    context = ReconcileContext(
        message=Apply(profile.trigger, profile.cluster, profile.name, cluster),
        profile=profile,
        cluster=record.value,
        status=None,
        lease=Lease(kept.token if kept else ABSENT, here.records.clock.now()),
        progress=Progress(
            dict(held.held),
            targets=tuple(
                each.value for each in list_target_clusters(here.records, profile, cluster)
            ),
        ),
        live=live,
    )
    for feature, plan in [(each, each.plan(context)) for each in features]:
        yield from feature.preview(context, plan)


def _mark_uncertain(held: Held) -> Held:
    """Return an object as uncertain, to be compared; releases are compared as a whole."""
    return held if held.of_chart else replace(held, digest="")
