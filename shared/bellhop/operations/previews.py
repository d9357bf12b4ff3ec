"""What applying profiles would change: as noted for those tried dry, or as it is right now."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from msgspec.structs import replace

from bellhop.clusters.management_cluster import guests
from bellhop.core.generated_names import profile_kind
from bellhop.deploy.context import ReconcileContext, is_done_once
from bellhop.deploy.features.feature import Feature
from bellhop.deploy.reconciler import make_features
from bellhop.diagnosis import overview
from bellhop.errors import BellhopError, MissingError, TemporaryError
from bellhop.installation.installation import Installation
from bellhop.ports.store import ABSENT
from bellhop.ports.tools import NONE
from bellhop.state.messages import Apply
from bellhop.state.record import Change, Held, Inventory, Profile
from bellhop.state.worker_pool import HELPERS, WorkerPool

Begin = Callable[[str, int, int], None]
"""Is told which cluster is asked next, its number, and of how many."""


class Previewed(NamedTuple):
    """One change that a profile would make in a cluster."""

    cluster: str
    profile: str
    change: Change


class Unknown(NamedTuple):
    """A cluster of which nobody can say what a profile would change there."""

    cluster: str
    profile: str
    error: BellhopError


def noted(here: Installation, cluster: str = "", profile: str = "") -> Iterator[Previewed]:
    """Yield what profiles that are tried dry would change, in one cluster or all, as noted last."""
    for key in [cluster] if cluster else sorted(here.catalogs.known().clusters):
        for preview in here.records.previews.of(key):
            if profile not in ("", preview.profile):
                continue
            outcome = here.records.outcomes.get(key, preview.profile)
            if outcome and outcome.value.phase == "DryRun":
                yield from (Previewed(key, preview.profile, each) for each in preview.changes)


def tried_dry(here: Installation, cluster: str = "", profile: str = "") -> list[Profile]:
    """Return the profiles in DryRun, of one cluster or all, of one name or all."""
    return [
        each.profile
        for each in overview.statuses(here)
        if each.profile.sync == "DryRun"
        and profile in ("", each.profile.name)
        and (not cluster or each.profile.may_name(cluster))
    ]


def now(
    here: Installation,
    profile: str,
    cluster: str = "",
    begin: Begin = lambda *_: None,
    *,
    live: bool = False,
) -> Iterator[Previewed | Unknown]:
    """Yield what applying a profile would change now; clusters are asked, nothing is written.

    `begin` is told of each cluster before it is asked. What records say is as desired is compared
    with the cluster only if `live`: then the result is what `bellhop redeploy` would change.

    Raises:
        MissingError: there is no such profile, or it has nothing to do with the cluster.
        PermanentError: its newest inputs fail.
        TemporaryError: it was applied, and no worker has read it yet.
    """
    found = [each.profile for each in overview.statuses(here) if each.profile.name == profile]
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
    features = make_features(
        here.catalogs,
        here.access,
        here.publisher,
        here.settings,
        hands=WorkerPool(HELPERS),
        tools=here.tools or NONE,
    )
    (one,) = found
    goes = [each for each in (*one.destinations, *one.leaving) if cluster in ("", each)]
    if cluster and not goes:
        raise MissingError(
            f"cannot determine what profile '{profile}' would change in '{cluster}': it does not"
            " select that cluster, and has nothing there"
        )
    for number, key in enumerate(goes, start=1):
        begin(key, number, len(goes))
        try:
            yield from (
                Previewed(key, profile, each)
                for each in _changes(here, features, one, key, live=live)
            )
        except BellhopError as error:
            yield Unknown(key, profile, error)


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
        held = replace(held, held={key: _unsure(each) for key, each in held.held.items()})
    if not live and is_done_once(profile, here.records.outcomes.get(cluster, profile.name), held):
        return
    work = ReconcileContext(
        message=Apply(profile.trigger, profile.cluster, profile.name, cluster),
        profile=profile,
        cluster=record.value,
        outcome=None,
        held=dict(held.held),
        token=kept.token if kept else ABSENT,
        begun_at=here.records.clock.now(),
        live=live,
        guests=tuple(each.value for each in guests(here.records, profile, cluster)),
    )
    for feature, plan in [(each, each.plan(work)) for each in features]:
        yield from feature.preview(work, plan)


def _unsure(held: Held) -> Held:
    """Return an object as one that is to be compared; releases are compared as a whole."""
    return held if held.of_chart else replace(held, digest="")
