"""Owns the objects that releases consist of, so that others find out whose they are."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from msgspec.structs import replace

from bellhop.core.gvk import Identity, ObjectKey
from bellhop.deploy.context import ReconcileContext
from bellhop.deploy.drift import counted
from bellhop.deploy.features.charts.drift_exclusions import excluded_of
from bellhop.deploy.features.charts.field_owners import is_overwritten
from bellhop.deploy.features.charts.planning import place_of
from bellhop.deploy.features.charts.release_objects import held_objects, is_kept, is_of, objects_in
from bellhop.deploy.ownership import Ownership
from bellhop.errors import BellhopError, ConflictError, MissingError
from bellhop.ports.access import Access
from bellhop.ports.clock import Clock
from bellhop.ports.kube import Kube
from bellhop.rendering.charts.releases import Desired
from bellhop.rendering.drift import manager_of, our_fields
from bellhop.rendering.drift_exclusions import own_fields_but, paths
from bellhop.state.record import Held

_OVERWRITTEN = "overwritten"


class ReleaseOwnership:
    """The objects of releases, as profiles own them."""

    def __init__(self, clock: Clock, access: Access, claims: Ownership) -> None:
        self._clock = clock
        self._access = access
        self._claims = claims

    def note(self, work: ReconcileContext, manifest: str, wanted: Desired) -> None:
        """Note what a release consists of, in place of what it consisted of."""
        cluster = work.cluster
        kube = self._access.open(cluster.key, version=cluster.credentials)
        objects = dict(objects_in(manifest, wanted.key.namespace, kube.resource))
        rendered = {key.identity: each for key, each in objects.items()}
        now, place = self._clock.now(), place_of(wanted.key)
        found = held_objects(objects, place, wanted.digest, wanted.ref, now)
        self.drop(work, wanted.key, but=found)
        for key, held in found.items():
            noted = self._watched(work, kube, key, held, rendered[key]) if work.watches else held
            self._own(work, key, noted)

    def _watched(
        self,
        work: ReconcileContext,
        kube: Kube,
        key: Identity,
        held: Held,
        rendered: Mapping[str, Any],
    ) -> Held:
        """Note which fields of an object are ours, so that drift is known from all else.

        A field that somebody wrote since Helm did is drift already: no later digest equals it.
        """
        there = kube.get(*key.at(held.version)) or {}
        excluded = paths(excluded_of(work.profile), there)
        lost = is_overwritten(rendered, there, excluded)
        fields = _OVERWRITTEN if lost else own_fields_but(there, manager_of(held), excluded)
        return counted(work, key, work.before.get(key), replace(held, fields=fields), there)

    def _own(self, work: ReconcileContext, key: Identity, held: Held) -> None:
        """Own an object of a release; one that another profile has is that one's to look after."""
        old = work.held.get(key)
        if old is None or not old.digest:
            try:
                self._claims.take(work.cluster.key, key, work.profile, free=old is None)
            except ConflictError:
                # Helm may have written over what that one applied.
                self._claims.tell_owner(work.cluster.key, key)
                return
        work.held[key] = held

    def drop(self, work: ReconcileContext, key: Identity, but: Collection[Identity] = ()) -> None:
        """Own the objects of a release no longer."""
        place = place_of(key)
        for name, each in list(work.held.items()):
            if each.part_of == place and name not in but:
                self._claims.give_up(work.cluster.key, name, work.profile.name)
                del work.held[name]

    def claim(self, work: ReconcileContext, key: Identity) -> None:
        """Claim the objects of a release for the tier that its profile has by now."""
        for name, each in work.held.items():
            if each.part_of == place_of(key):
                with suppress(ConflictError):
                    self._claims.take(work.cluster.key, name, work.profile)

    @contextmanager
    def dropped(self, work: ReconcileContext, key: Identity) -> Iterator[tuple[ObjectKey, ...]]:
        """Own the objects of a release no longer; yield them in the order in which Helm wrote them.

        If what follows fails they are held as unsure, so that the next try knows them.
        """
        place = place_of(key)
        parts = {name: each for name, each in work.held.items() if each.part_of == place}
        try:
            self.drop(work, key)
            yield tuple(name.at(each.version) for name, each in parts.items())
        except BellhopError:
            work.held |= {name: replace(each, digest="") for name, each in parts.items()}
            raise

    def remove(self, work: ReconcileContext, key: Identity, objects: Sequence[ObjectKey]) -> bool:
        """Delete objects of a release of which Helm has no record; say whether any was there."""
        cluster = work.cluster
        kube = self._access.open(
            cluster.key, version=cluster.credentials, account=work.profile.account
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
