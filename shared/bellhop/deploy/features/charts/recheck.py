"""Checks a release that may have changed owners before Helm deploys it again.

Another profile may only have tried to claim the release, or an object of it, and will try again: an
upgrade costs a revision, and runs hooks. A release that is as Helm left it stays.
"""

from __future__ import annotations

from contextlib import suppress

from msgspec.structs import replace

from bellhop.core.gvk import Identity
from bellhop.deploy.context import ReconcileContext
from bellhop.deploy.features.charts.inputs import open_cluster
from bellhop.deploy.features.charts.release_objects import is_untouched
from bellhop.deploy.ownership import Ownership, is_owned_by_other
from bellhop.deploy.release_records import newest_revision
from bellhop.errors import MissingError
from bellhop.ports.kube import Access
from bellhop.state.chart import HeldRelease
from bellhop.state.deployment import Held


class Recheck:
    """Takes for uncertain what is not as it was deployed."""

    def __init__(self, access: Access, ownership: Ownership) -> None:
        self._access = access
        self._ownership = ownership

    def mark_uncertain(self, context: ReconcileContext, key: Identity) -> None:
        """Look at a release, or at a part of one; a release that another has is held no longer."""
        held = context.progress.held.get(key)
        if held is None or not held.of_chart:
            return
        owner = self._ownership.read(context.cluster.key, key)
        if is_owned_by_other(context.profile.name, owner):
            if held.release:
                del context.progress.held[key]
            return
        owned = owner is not None and owner.value.profile != ""
        if not owned or not self._stands(context, key, held):
            context.progress.held[key] = replace(held, digest="")

    def _stands(self, context: ReconcileContext, key: Identity, held: Held) -> bool:
        if held.release:
            return self._is_deployed(context, key, held.release)
        kube, there = (
            self._access.open(context.cluster.key, version=context.cluster.credentials),
            None,
        )
        with suppress(MissingError):
            there = kube.get(*key.at(held.version))
        return is_untouched(there, held.part_of)

    def _is_deployed(self, context: ReconcileContext, key: Identity, known: HeldRelease) -> bool:
        """Say whether the newest revision is the one that was deployed."""
        newest = newest_revision(open_cluster(self._access, context), key.namespace, key.name)
        if newest is None or known.removed:
            return newest is None and known.removed
        return newest.is_deployed and newest.number == known.revision
