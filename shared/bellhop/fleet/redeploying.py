"""Having what profiles hold applied again, though nothing says that it changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from bellhop.engine.naming import profile_kind
from bellhop.errors import MissingError
from bellhop.fleet.installation import Installation
from bellhop.messages import Apply


class Asked(NamedTuple):
    """A profile that was asked for in a cluster; `busy` if a worker is at it already."""

    profile: str
    cluster: str
    busy: bool


def redeploy(here: Installation, profile: str = "", cluster: str = "") -> Sequence[Asked]:
    """Take all that a profile, or a cluster, or everybody holds for unsure, and ask for it.

    What was given up for its failures is tried again, for as many.

    Raises:
        MissingError: there is no such cluster, or the profile is in none.
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
            if profile not in ("", outcome.profile):
                continue
            now = here.records.clock.now()
            here.records.outcomes.recount(key, outcome.profile)
            doubted = here.records.inventories.doubt(key, outcome.profile, now)
            kept = None if doubted else here.records.inventories.get(key, outcome.profile)
            here.publisher.publish([Apply(outcome.trigger, outcome.source, outcome.profile, key)])
            asked.append(Asked(outcome.profile, key, bool(kept and kept.value.held)))
    if profile and not asked:
        where = f"cluster '{cluster}'" if cluster else "any cluster"
        raise MissingError(
            f"cannot redeploy profile '{profile}': it is not in {where};"
            f" `bellhop get {profile_kind(profile).lower()}s` lists those that are"
        )
    return asked
