"""Owns the objects that releases consist of, so that others find out whose they are."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from msgspec.structs import replace

from bellhop.core.gvk import Identity, ObjectKey
from bellhop.deploy.context import ReconcileContext
from bellhop.deploy.drift import count_correction
from bellhop.deploy.features.charts.drift_exclusions import excluded_of
from bellhop.deploy.features.charts.field_owners import is_overwritten
from bellhop.deploy.features.charts.planning import place_of
from bellhop.deploy.features.charts.release_objects import held_objects, is_kept, is_of, objects_in
from bellhop.deploy.ownership import Ownership
from bellhop.errors import BellhopError, ConflictError, MissingError
from bellhop.ports.clock import Clock
from bellhop.ports.kube import Access, Kube
from bellhop.rendering.charts.releases import Desired
from bellhop.rendering.drift import manager_of, our_fields
from bellhop.rendering.drift_exclusions import own_fields_but, paths
from bellhop.state.deployment import Held

_OVERWRITTEN = "overwritten"


class ReleaseOwnership:
    """The objects of releases, as profiles own them."""

    def __init__(self, clock: Clock, access: Access, ownership: Ownership) -> None:
        self._clock = clock
        self._access = access
        self._ownership = ownership

    def note(self, context: ReconcileContext, manifest: str, desired: Desired) -> None:
        """Note what a release consists of, in place of what it consisted of."""
        cluster = context.cluster
        kube = self._access.open(cluster.key, version=cluster.credentials)
        objects = dict(objects_in(manifest, desired.key.namespace, kube.resource))
        rendered = {key.identity: each for key, each in objects.items()}
        now, place = self._clock.now(), place_of(desired.key)
        found = held_objects(objects, place, desired.digest, desired.ref, now)
        self.drop(context, desired.key, but=found)
        for key, held in found.items():
            noted = (
                self._watched(context, kube, key, held, rendered[key])
                if context.watches_drift
                else held
            )
            self._own(context, key, noted)

    def _watched(
        self,
        context: ReconcileContext,
        kube: Kube,
        key: Identity,
        held: Held,
        rendered: Mapping[str, Any],
    ) -> Held:
        """Note which fields of an object are ours, so that drift is known from all else.

        A field that somebody wrote since Helm did is drift already: no later digest equals it.
        """
        there = kube.get(*key.at(held.version)) or {}
        excluded = paths(excluded_of(context.profile), there)
        lost = is_overwritten(rendered, there, excluded)
        fields = _OVERWRITTEN if lost else own_fields_but(there, manager_of(held), excluded)
        return count_correction(
            context, key, context.lease.before.get(key), replace(held, fields=fields), there
        )

    def _own(self, context: ReconcileContext, key: Identity, held: Held) -> None:
        """Own an object of a release; one that another profile has is that one's to look after."""
        old = context.progress.held.get(key)
        if old is None or not old.digest:
            try:
                self._ownership.claim(context.cluster.key, key, context.profile, free=old is None)
            except ConflictError:
                # Helm may have written over what that one applied.
                self._ownership.notify_owner(context.cluster.key, key)
                return
        context.progress.held[key] = held

    def drop(
        self, context: ReconcileContext, key: Identity, but: Collection[Identity] = ()
    ) -> None:
        """Own the objects of a release no longer."""
        place = place_of(key)
        for name, each in list(context.progress.held.items()):
            if each.part_of == place and name not in but:
                self._ownership.release(context.cluster.key, name, context.profile.name)
                del context.progress.held[name]

    def claim(self, context: ReconcileContext, key: Identity) -> None:
        """Claim the objects of a release for the tier that its profile has by now."""
        for name, each in context.progress.held.items():
            if each.part_of == place_of(key):
                with suppress(ConflictError):
                    self._ownership.claim(context.cluster.key, name, context.profile)

    @contextmanager
    def dropped(self, context: ReconcileContext, key: Identity) -> Iterator[tuple[ObjectKey, ...]]:
        """Own the objects of a release no longer; yield them in the order in which Helm wrote them.

        If what follows fails they are held as unsure, so that the next try knows them.
        """
        place = place_of(key)
        parts = {
            name: each for name, each in context.progress.held.items() if each.part_of == place
        }
        try:
            self.drop(context, key)
            yield tuple(name.at(each.version) for name, each in parts.items())
        except BellhopError:
            context.progress.held |= {
                name: replace(each, digest="") for name, each in parts.items()
            }
            raise

    def remove(
        self, context: ReconcileContext, key: Identity, objects: Sequence[ObjectKey]
    ) -> bool:
        """Delete objects of a release of which Helm has no record; say whether any was there."""
        cluster = context.cluster
        kube = self._access.open(
            cluster.key, version=cluster.credentials, account=context.profile.account
        )
        were = [remove_part(kube, each, place_of(key)) for each in reversed(objects)]
        return any(were)


def remove_part(kube: Kube, key: ObjectKey, place: str) -> bool:
    """Delete an object that is of the release at a place still; say whether it was there.

    One that another profile has written to stays, and one that its chart keeps.
    """
    with suppress(MissingError):
        there = kube.get(*key)
        if there and is_of(there, place) and not (our_fields(there) or is_kept(there)):
            return kube.remove(*key, uid=there["metadata"]["uid"]) is not None
    return False
