"""One object at a time: applied or removed as a step of a plan says, by who owns it.

Several threads may be at the steps of one work: they read it, and return what is to be noted in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from msgspec.structs import replace

from bellhop.core.gvk import GVK, Identity, ObjectKey
from bellhop.core.sveltos_annotations import FORCE_RECREATE, OWNER
from bellhop.core.terminating_objects import is_terminating, why_kept
from bellhop.deploy.context import Claimed, ObjectResult, ReconcileContext
from bellhop.deploy.drift import counted
from bellhop.deploy.features.resources.adoption import NotOursError, adopted_from, left, meet
from bellhop.deploy.features.resources.planning import (
    Adopt,
    Apply,
    Desired,
    Release,
    Remove,
    decorate,
    undecorate,
)
from bellhop.deploy.features.resources.reloader import Reloader
from bellhop.deploy.ownership import Ownership, Taken, taken_from
from bellhop.errors import (
    ConflictError,
    InvalidError,
    MissingError,
    PermanentError,
    StaleError,
    TemporaryError,
    UnmetError,
)
from bellhop.ports.clock import Clock
from bellhop.ports.kube import Kube, Manifest
from bellhop.rendering.drift import own_fields
from bellhop.rendering.drift_exclusions import paths, withheld
from bellhop.rendering.secrecy import KIND as SECRET
from bellhop.rendering.secrecy import unquoted
from bellhop.state.record import Held

_UNPROCESSABLE = 422
"""What an API server says to a change that may not be."""

_LOOKS = 2
"""How often one object is looked at, while others make and remove it."""


class Steps:
    """Carries out steps; what is refused for good is part of what came of one."""

    def __init__(
        self, claims: Ownership, reloading: Reloader, clock: Clock, *, always: bool
    ) -> None:
        """Make the steps of one process; `always` adopts what others made, asked or not."""
        self._claims = claims
        self._reloading = reloading
        self._clock = clock
        self._always = always

    def apply(self, kube: Kube, work: ReconcileContext, step: Apply) -> ObjectResult:
        """Claim an object and apply it; what another profile has is not ours to change."""
        taken: Taken | None = None
        key, each = step.key, step.wanted
        try:
            free = step.held is None
            taken = work.claimed.get(key) or self._claims.take(
                work.cluster.key, key, work.profile, free=free
            )
            each, noted = self._reloading.read_now(work, each, step.held)
            write = self._write_as_seen if taken.disputed else self._write
            stored = write(kube, work, step if each is step.wanted else replace(step, wanted=each))
            # Between the claim and the apply another profile may have taken the object.
            self._claims.take(work.cluster.key, key, work.profile)
            wrong = self._write_status(kube, work, each, stored)
        except NotOursError as error:
            # Nothing of ours is there: another profile that asks to adopt it may have it.
            before = taken.before if taken else None
            self._claims.give_back(work.cluster.key, key, work.profile, before)
            return ObjectResult(key, None, refused=error)
        except ConflictError as error:
            self._lost(work, step, applied=taken is not None)
            return ObjectResult(key, None, refused=None if each.how.shared else error)
        except PermanentError as error:
            return ObjectResult(key, self._let_go(work, step, taken), refused=error)
        held = Held(
            # Without its status it is as if applying it had only begun.
            digest="" if wrong else each.digest,
            ref=each.ref,
            applied_at=self._clock.now(),
            version=each.key.gvk.version,
            uid=uid_of(stored),
            secret=each.secret,
            adopted=adopted_from(stored),
            fields=own_fields(stored) if work.watches else "",
            mounted=noted.mounted,
            reloaded=noted.reloaded,
            local=each.how.local,
            kustomized=each.feature == "Kustomize",
        )
        held = counted(work, step.key, step.held, held, stored)
        return ObjectResult(key, held, changed=True, refused=wrong)

    def _write(self, kube: Kube, work: ReconcileContext, step: Apply) -> Manifest:
        """Write an object to the life that is meant; where another is there, decide anew.

        Raises:
            NotOursError: no profile made what is there, and nobody asked to adopt it.
        """
        doing, each = f"cannot apply {named(work, step.key)}", step.wanted
        meant: Apply | Adopt = step
        with _overtaken():
            for _ in range(_LOOKS):
                with suppress(StaleError), unquoted(doing, secret=each.secret):
                    return self._send(kube, work, meant)
                with unquoted(doing, secret=each.secret):
                    there = kube.get(*each.key)
                _wait_for_its_end(doing, there)
                meant = meet(step, there, always=self._always)
            with unquoted(doing, secret=each.secret):
                return self._send(kube, work, meant)

    def _write_as_seen(self, kube: Kube, work: ReconcileContext, step: Apply) -> Manifest:
        """Write what others want, too, only as it was seen while it was still ours.

        Who takes it from then on writes it later, or has: then this write is refused, and does not
        put back what the other one has brought. So it changes hands once.

        Raises:
            ConflictError: a profile of the same or a lower tier has it by now.
            NotOursError: no profile made what is there, and nobody asked to adopt it.
        """
        doing, each = f"cannot apply {named(work, step.key)}", step.wanted
        looks = 0
        while True:
            looks += 1
            with _overtaken(), unquoted(doing, secret=each.secret):
                there = kube.get(*each.key)
                _wait_for_its_end(doing, there)
            meant = meet(step, there, always=self._always)
            self._claims.take(work.cluster.key, step.key, work.profile)
            refused = suppress(StaleError) if looks <= _LOOKS else _overtaken()
            with refused, unquoted(doing, secret=each.secret):
                return self._send(kube, work, meant, seen=_version(there))

    def _send(
        self, kube: Kube, work: ReconcileContext, step: Apply | Adopt, seen: str = ""
    ) -> Manifest:
        each, profile = step.wanted, work.profile
        manifest = decorate(each, profile.name, profile.tier, step.adopted)
        manifest = self._but_excluded(kube, step, manifest)
        try:
            return kube.apply(manifest, uid=step.life, version=seen)
        except MissingError:
            if each.how.skip_namespace or not self._make_namespace(kube, each.key):
                raise
            return kube.apply(manifest, uid=step.life, version=seen)
        except InvalidError as error:
            if not is_replaced(each, error):
                raise
            # Who dies now leaves it unsure in the inventory: the next try makes it.
            self._clear(kube, each.key)
            return kube.apply(decorate(each, profile.name, profile.tier), uid="")

    def _write_status(
        self, kube: Kube, work: ReconcileContext, each: Desired, stored: Manifest
    ) -> PermanentError | None:
        """Write the status that an object is to have, where that is asked; return what is wrong.

        Who made the object's kind writes it too, and writes over this as soon as it looks.
        """
        if not each.how.status or not each.manifest.get("status"):
            return None
        doing = f"cannot apply the status of {named(work, each.key.identity)}"
        try:
            with unquoted(doing, secret=each.secret):
                kube.merge_status(dict(each.manifest), uid=uid_of(stored))
        except PermanentError as error:
            return error
        return None

    def _but_excluded(self, kube: Kube, step: Apply | Adopt, manifest: Manifest) -> Manifest:
        """Leave as they are what paths of an object are others' to decide; a new one gets all."""
        excluded = paths(step.wanted.how.excluded, manifest)
        there = kube.get(*step.wanted.key) if excluded and step.life else None
        return withheld(manifest, there, excluded) if there else manifest

    def claim(self, work: ReconcileContext, step: Apply) -> Claimed:
        """Claim an object that is not held yet, before anything is applied."""
        key = step.key
        try:
            return Claimed(key, self._claims.take(work.cluster.key, key, work.profile, free=True))
        except ConflictError as error:
            self._lost(work, step, applied=False)
            if step.wanted.how.shared:
                return Claimed(key)
            return Claimed(key, refused=error)

    def unclaim(self, work: ReconcileContext, key: Identity) -> None:
        """Give back what was claimed and not applied."""
        before = work.claimed[key].before
        self._claims.give_back(work.cluster.key, key, work.profile, before)

    def _lost(self, work: ReconcileContext, step: Apply, *, applied: bool) -> None:
        """Tell who has an object instead of us if we may have overwritten it."""
        before = step.held
        if applied or (before and not before.digest):
            self._claims.tell_owner(work.cluster.key, step.key)

    def _let_go(self, work: ReconcileContext, step: Apply, taken: Taken | None) -> Held | None:
        """Return how an object is held that was refused: as it was before.

        Where a claim is not new, an earlier try may have applied it.
        """
        if taken and not taken.new:
            return work.held[step.key]
        if taken:
            self._claims.give_back(work.cluster.key, step.key, work.profile, taken.before)
        return step.held

    def _make_namespace(self, kube: Kube, key: ObjectKey) -> bool:
        """Create the namespace of an object, as Sveltos does; say whether it was missing."""
        gvk = GVK("", "v1", "Namespace")
        if not key.namespace or kube.get(gvk, "", key.namespace) is not None:
            return False
        manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": key.namespace}}
        with suppress(StaleError):  # Another object's thread was quicker.
            kube.apply(manifest, uid="")
        return True

    def _clear(self, kube: Kube, key: ObjectKey) -> None:
        """Remove what stands where an object is to be made anew."""
        there = kube.get(*key)
        if there is not None:
            kube.remove(*key, uid=uid_of(there))

    def leave(self, kube: Kube, work: ReconcileContext, step: Remove | Release) -> ObjectResult:
        """Remove what we applied, or leave it; what somebody made in its place since is not ours.

        What we hold and nobody has is ours: the claim may have been forgotten with the cluster's
        former life, while we were at work.

        A cluster is left once its objects no longer exist: one that a finalizer or a grace period
        keeps is waited for.
        """
        cluster, name, key = work.cluster.key, work.profile.name, step.key
        owner = self._claims.owner(cluster, key)
        if not taken_from(name, owner):
            secret = key.kind == SECRET or step.held.secret
            try:
                with _overtaken(), unquoted(f"cannot remove {named(work, key)}", secret=secret):
                    gone, rest = self._leave_ours(kube, work, step)
            except MissingError:
                gone, rest = True, {}  # The kind itself is gone, and its objects with it.
            except PermanentError as error:
                return ObjectResult(key, work.held[key], refused=error)
            if rest and not work.wanted:
                # Without a uid it is read next time, and made again if it is wanted by then.
                held = replace(step.held, digest="", uid="")
                why = f"waits until {named(work, key)} is deleted: {why_kept(rest)}"
                return ObjectResult(key, held, changed=gone, waits=UnmetError(why))
            if not self._claims.give_up(cluster, key, name, owner):
                # It was taken between the question and the removal.
                self._claims.tell_owner(cluster, key)
            return ObjectResult(key, None, changed=gone)
        if not step.held.digest:
            # An earlier try may have removed it for good after it was taken.
            self._claims.tell_owner(cluster, key)
        return ObjectResult(key, None)

    def _leave_ours(
        self, kube: Kube, work: ReconcileContext, step: Remove | Release
    ) -> tuple[bool, Manifest]:
        """Return whether an object was deleted now, and what is left of it while it terminates."""
        if isinstance(step, Release) and step.untouched:
            return False, {}
        gvk, namespace, name = step.key.at(step.held.version)
        uid = step.held.uid
        if isinstance(step, Release) or not uid:
            # Nobody may have come back to say whether it was applied, or adopted: its marks tell.
            there = kube.get(gvk, namespace, name)
            if there is None or owner_of(there) != work.profile.name:
                return False, {}
            if isinstance(left(step, there), Release):
                # It stays, and is nobody's: with our marks it would be taken for a stray.
                kube.merge(gvk, namespace, name, undecorate(there))
                return False, {}
            if is_terminating(there):
                return False, there
            uid = uid_of(there)
        rest = kube.remove(gvk, namespace, name, uid=uid)
        return rest is not None, rest or {}


@contextmanager
def _overtaken() -> Iterator[None]:
    """Tell what a cluster says was overtaken from a write of ours that was: it is an outcome."""
    try:
        yield
    except StaleError as error:
        raise TemporaryError(str(error), delay=error.delay) from None


def _wait_for_its_end(doing: str, there: Manifest | None) -> None:
    """Write nothing to what would take it along when it goes.

    Raises:
        StaleError: what is there is being deleted.
    """
    if there is not None and (there.get("metadata") or {}).get("deletionTimestamp"):
        raise StaleError(f"{doing}: the existing object is terminating and will be re-created")


def is_replaced(each: Desired, error: InvalidError) -> bool:
    """Say whether an object is made anew, as a change of it is refused; a definition never is."""
    if error.context.get("status") != _UNPROCESSABLE:
        return False
    annotations = (each.manifest.get("metadata") or {}).get("annotations") or {}
    asked = each.how.force or annotations.get(FORCE_RECREATE) not in (None, "false")
    return asked and each.key.gvk.kind != "CustomResourceDefinition"


def uid_of(manifest: Mapping[str, Any]) -> str:
    """Say which life of an object it is."""
    return str((manifest.get("metadata") or {}).get("uid") or "")


def _version(manifest: Mapping[str, Any] | None) -> str:
    return str(((manifest or {}).get("metadata") or {}).get("resourceVersion") or "")


def owner_of(manifest: Mapping[str, Any]) -> str:
    """Say which profile an object is marked as coming from; empty for none."""
    annotations = (manifest.get("metadata") or {}).get("annotations") or {}
    return str(annotations.get(OWNER) or "")


def named(work: ReconcileContext, key: Identity) -> str:
    """Name an object in a cluster, as sentences do."""
    place = "/".join(filter(None, (key.namespace, key.name)))
    return f"{key.kind} '{place}' on cluster '{work.cluster.key}'"
