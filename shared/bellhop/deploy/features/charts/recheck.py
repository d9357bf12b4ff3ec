"""Looks at what is said to have changed hands before Helm is asked to deploy it again.

Another profile may only have tried to have a release, or an object of it, and will try again: an
upgrade costs a revision, and runs hooks. What is as Helm left it stays.
"""

from __future__ import annotations

from contextlib import suppress

from msgspec.structs import replace

from bellhop.core.gvk import Identity
from bellhop.deploy.context import ReconcileContext
from bellhop.deploy.features.charts.inputs import open_cluster
from bellhop.deploy.features.charts.release_objects import is_untouched
from bellhop.deploy.ownership import Ownership, taken_from
from bellhop.deploy.release_records import newest_revision
from bellhop.errors import MissingError
from bellhop.ports.access import Access
from bellhop.state.chart import HeldRelease
from bellhop.state.record import Held


class Recheck:
    """Takes for uncertain what is not as it was deployed."""

    def __init__(self, access: Access, claims: Ownership) -> None:
        self._access = access
        self._claims = claims

    def look(self, work: ReconcileContext, key: Identity) -> None:
        """Look at a release, or at a part of one; a release that another has is held no longer."""
        held = work.held.get(key)
        if held is None or not held.of_chart:
            return
        owner = self._claims.owner(work.cluster.key, key)
        if taken_from(work.profile.name, owner):
            if held.release:
                del work.held[key]
            return
        owned = owner is not None and owner.value.profile != ""
        if not owned or not self._stands(work, key, held):
            work.held[key] = replace(held, digest="")

    def _stands(self, work: ReconcileContext, key: Identity, held: Held) -> bool:
        if held.release:
            return self._is_deployed(work, key, held.release)
        kube, there = self._access.open(work.cluster.key, version=work.cluster.credentials), None
        with suppress(MissingError):
            there = kube.get(*key.at(held.version))
        return is_untouched(there, held.part_of)

    def _is_deployed(self, work: ReconcileContext, key: Identity, known: HeldRelease) -> bool:
        """Say whether the newest revision is the one that was deployed."""
        newest = newest_revision(open_cluster(self._access, work), key.namespace, key.name)
        if newest is None or known.removed:
            return newest is None and known.removed
        return newest.is_deployed and newest.number == known.revision
