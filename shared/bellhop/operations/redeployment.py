"""Having what profiles hold applied again, though nothing says that it changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from bellhop.core.generated_names import profile_kind
from bellhop.errors import ConflictError, MissingError
from bellhop.installation.installation import Installation
from bellhop.state.concurrency import until_written
from bellhop.state.messages import Apply
from bellhop.state.record import DeploymentStatus

Tell = Callable[[int], None]
"""Is told how many deployments were asked for."""


class Asked(NamedTuple):
    """A profile that was asked for in a cluster; `busy` if a worker is at it already."""

    profile: str
    cluster: str
    busy: bool


def redeploy(
    here: Installation,
    profile: str = "",
    cluster: str = "",
    *,
    trigger: str = "",
    unchecked: bool = False,
    tell: Tell = lambda _: None,
) -> Sequence[Asked]:
    """Take all that a profile, or a trigger's profiles, a cluster, or everybody holds for unsure.

    It is asked for again.

    What was given up for its failures is tried again, for as many. By `unchecked` a profile that
    is to go everywhere does so without its checks.

    Raises:
        MissingError: there is no such cluster, or the profile is in none.
        ConflictError: a profile is to go unchecked that is not to go.
    """
    known = here.catalogs.known().clusters
    if cluster and cluster not in known:
        raise MissingError(
            f"cannot redeploy to cluster '{cluster}': it is not registered;"
            " `bellhop get clusters` lists those that are"
        )
    asked: list[Asked] = []
    for key in [cluster] if cluster else known:
        for outcome in list(here.records.outcomes.of(key)):
            if profile not in ("", outcome.profile) or trigger not in ("", outcome.trigger):
                continue
            now = here.records.clock.now()
            if unchecked:
                _uncheck(here, outcome)
            here.records.outcomes.recount(key, outcome.profile)
            doubted = here.records.inventories.doubt(key, outcome.profile, now)
            kept = None if doubted else here.records.inventories.get(key, outcome.profile)
            here.publisher.publish([Apply(outcome.trigger, outcome.source, outcome.profile, key)])
            asked.append(Asked(outcome.profile, key, bool(kept and kept.value.held)))
            tell(len(asked))
    where = f"cluster '{cluster}'" if cluster else "any cluster"
    if trigger and not asked:
        raise MissingError(
            f"cannot redeploy the profiles of trigger '{trigger}': none of them is in {where};"
            " `bellhop get clusterprofiles` lists those that are"
        )
    if profile and not asked:
        raise MissingError(
            f"cannot redeploy profile '{profile}': it is not in {where};"
            f" `bellhop get {profile_kind(profile).lower()}s` lists those that are"
        )
    return asked


@until_written("leave the checks of '{outcome.profile}' out")
def _uncheck(here: Installation, outcome: DeploymentStatus) -> None:
    """Have a profile that is to go do so without its checks, whatever became of these.

    Raises:
        ConflictError: it is not to go, or only from some clusters.
        StaleError: other writers keep winning.
    """
    profiles, which = here.records.profiles, (outcome.trigger, outcome.source, outcome.profile)
    head = profiles.head(*which)
    if head is None:
        return
    if head.value.destinations or head.value.digest or head.value.error:
        raise ConflictError(
            f"cannot leave the checks of '{outcome.profile}' out: it is still wanted; take them"
            " out of what declares it"
        )
    # A profile that is removed contains nothing else: a lost payload is nothing to keep.
    profiles.put(replace(head.value, checked=(), checks=()), expect=head.token)
