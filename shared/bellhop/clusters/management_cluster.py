"""What is Local of a profile: it is brought to `mgmt/mgmt`, which hosts it for other clusters.

    profile for a, b ─┬─► a: its other refs
                      ├─► b: its other refs
                      └─► mgmt/mgmt: what is Local, as rendered for a, and as rendered for b

So a profile owns there what any of its clusters asks for, as a whole: what two ask for alike is one
object, and goes with the last of them. How that ends is an outcome of `mgmt/mgmt`: no other cluster
waits for it.
"""

from __future__ import annotations

from msgspec.structs import replace

from bellhop.core.digest import digest
from bellhop.errors import BellhopError, MissingError
from bellhop.state.management_cluster import MANAGEMENT, Hosting
from bellhop.state.record import Cluster, Profile
from bellhop.state.records import Records
from bellhop.state.table import Stored


def housed(records: Records, old: Profile | None, new: Profile) -> Profile:
    """Return a profile that goes to `mgmt/mgmt`, too, where it has anything that is Local."""
    matched, hosting = new.matched, _left(old, new)
    goes = matched
    if matched and any(content.how.local for content in new.contents):
        if records.clusters.get(MANAGEMENT) is None:
            hosting = "nowhere"
        elif MANAGEMENT in matched:
            hosting = "beside"
        else:
            hosting, goes = "alone", tuple(sorted((*matched, MANAGEMENT)))
    return replace(new, destinations=goes, hosting=hosting)


def _left(old: Profile | None, new: Profile) -> Hosting:
    """Say what is to be remembered where nothing is Local any more."""
    return "left" if old and old.hosting and MANAGEMENT not in new.matched else ""


def guests(records: Records, profile: Profile | None, cluster: str) -> list[Stored[Cluster]]:
    """Read the clusters for which a profile brings to a cluster what is Local."""
    names = profile.guests(cluster) if profile else ()
    return records.clusters.several(names) if names else []


def mark(profile: Profile, cluster: str) -> str:
    """Digest for which clusters a profile hosts anything in a cluster; nothing where for none."""
    names = profile.guests(cluster)
    return digest(names) if names else ""


def told(guest: str, error: BellhopError) -> BellhopError:
    """Have an error say for which cluster it is; what is alike for all is for none."""
    if guest:
        error.args = (f"for cluster '{guest}': {error}",)
    return error


def wrong(profile: Profile) -> tuple[str, str]:
    """Say what is wrong with a profile, wherever it was brought, and by which code; or nothing."""
    if profile.error or profile.hosting != "nowhere":
        return profile.error, profile.error_code
    return (
        f"cannot deploy what is Local of '{profile.shown}': no cluster is registered as"
        f" '{MANAGEMENT}'; register the one that it is for by that name"
    ), MissingError.code
