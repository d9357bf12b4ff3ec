"""Parts of profiles for the management cluster (`deploymentType: Local`), deployed to `mgmt/mgmt`.

    profile for a, b ─┬─► a: its other refs
                      ├─► b: its other refs
                      └─► mgmt/mgmt: Local parts, rendered for a, and rendered for b

There the profile owns the parts of all its clusters together: an object that two clusters share is
deleted with the last of them. The result is a status of `mgmt/mgmt`; no other cluster waits for it.
"""

from __future__ import annotations

from msgspec.structs import replace

from bellhop.core.digest import digest
from bellhop.errors import BellhopError, MissingError
from bellhop.state.cluster import MANAGEMENT, Cluster
from bellhop.state.profile import Hosting, Profile
from bellhop.state.records import Records
from bellhop.state.table import Stored


def add_management_cluster(records: Records, old: Profile | None, new: Profile) -> Profile:
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
    """Return the state to record if no part is Local any more."""
    return "left" if old and old.hosting and MANAGEMENT not in new.matched else ""


def list_target_clusters(
    records: Records, profile: Profile | None, cluster: str
) -> list[Stored[Cluster]]:
    """Return the clusters for which a profile has Local parts in a cluster."""
    names = profile.guests(cluster) if profile else ()
    return records.clusters.several(names) if names else []


def digest_targets(profile: Profile, cluster: str) -> str:
    """Digest for which clusters a profile hosts anything in a cluster; nothing where for none."""
    names = profile.guests(cluster)
    return digest(names) if names else ""


def add_target(target: str, error: BellhopError) -> BellhopError:
    """Add the target cluster to an error; an error that is alike for all names none."""
    if target:
        error.args = (f"for cluster '{target}': {error}",)
    return error


def find_error(profile: Profile) -> tuple[str, str]:
    """Return a profile's error in any cluster with its code; empty if there is none."""
    if profile.error or profile.hosting != "nowhere":
        return profile.error, profile.error_code
    return (
        f"cannot deploy what is Local of '{profile.shown}': no cluster is registered as"
        f" '{MANAGEMENT}'; register the one that it is for by that name"
    ), MissingError.code
