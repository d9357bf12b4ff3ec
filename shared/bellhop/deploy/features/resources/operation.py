"""Operations on one object: it is applied or removed, if its profile owns it.

Several threads may execute operations of one attempt: they read the context, and return results.
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
from bellhop.deploy.drift import count_correction
from bellhop.deploy.features.resources.adoption import (
    NotOursError,
    adopted_from,
    left,
    meet,
    take_fields,
)
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
from bellhop.deploy.ownership import Ownership, Taken, is_owned_by_other
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
from bellhop.rendering.secrecy import withhold_quotes
from bellhop.state.deployment import Held

_UNPROCESSABLE = 422
"""Status of an API server that does not allow a change."""

_LOOKS = 2
"""Reads of one object while other clients create and delete it."""


class Steps:
    """Executes operations; a permanent error is part of an operation's result."""

    def __init__(
        self, ownership: Ownership, reloading: Reloader, clock: Clock, *, always: bool
    ) -> None:
        """Make the steps of one process; `always` adopts what others made, asked or not."""
        self._ownership = ownership
        self._reloader = reloading
        self._clock = clock
        self._always = always

    def apply(self, kube: Kube, context: ReconcileContext, step: Apply) -> ObjectResult:
        """Claim an object and apply it; one that another profile owns is not changed."""
        taken: Taken | None = None
        key, each = step.key, step.desired
        try:
            free = step.held is None
            taken = context.progress.claimed.get(key) or self._ownership.claim(
                context.cluster.key, key, context.profile, free=free
            )
            noted = step.held or Held("", each.ref)
            if context.profile.rollout.reloads:
                each, noted = self._reloader.annotate(context, each, noted)
            write = self._write_as_seen if taken.disputed else self._write
            stored = write(
                kube, context, step if each is step.desired else replace(step, desired=each)
            )
            # Between the claim and the apply another profile may have taken the object.
            self._ownership.claim(context.cluster.key, key, context.profile)
            wrong = self._write_status(kube, context, each, stored)
        except NotOursError as error:
            # Nothing of ours is there: another profile that asks to adopt it may have it.
            before = taken.before if taken else None
            self._ownership.return_claim(context.cluster.key, key, context.profile, before)
            return ObjectResult(key, None, refused=error)
        except ConflictError as error:
            self._notify_if_overwritten(context, step, applied=taken is not None)
            return ObjectResult(key, None, refused=None if each.how.shared else error)
        except PermanentError as error:
            return ObjectResult(key, self._restore(context, step, taken), refused=error)
        held = Held(
            # Without its status it is as if applying it had only begun.
            digest="" if wrong else each.digest,
            ref=each.ref,
            applied_at=self._clock.now(),
            version=each.key.gvk.version,
            uid=uid_of(stored),
            secret=each.secret,
            adopted=adopted_from(stored),
            fields=own_fields(stored) if context.watches_drift else "",
            mounted=noted.mounted,
            reloaded=noted.reloaded,
            local=each.how.local,
            kustomized=each.feature == "Kustomize",
        )
        if context.progress.corrections or noted.mended_at:
            held = count_correction(context, step.key, step.held, held, stored)
        return ObjectResult(key, held, changed=True, refused=wrong)

    def _write(self, kube: Kube, context: ReconcileContext, step: Apply) -> Manifest:
        """Write an object to the uid of the inventory; decide again if another object is there."""
        doing, each = f"cannot apply {format_object(context, step.key)}", step.desired
        meant: Apply | Adopt = step
        with _raise_temporary():
            for _ in range(_LOOKS):
                with suppress(StaleError), withhold_quotes(doing, secret=each.secret):
                    return self._send(kube, context, meant)
                with withhold_quotes(doing, secret=each.secret):
                    there = self._take_fields(kube, context, kube.get(*each.key))
                _check_not_terminating(doing, there)
                meant = meet(step, there, always=self._always)
            with withhold_quotes(doing, secret=each.secret):
                return self._send(kube, context, meant)

    def _write_as_seen(self, kube: Kube, context: ReconcileContext, step: Apply) -> Manifest:
        """Write a disputed object only in the version that was read while the profile owned it.

        A profile that claims it after that writes it later, or has: then this write is refused, and
        does not revert the other one. So the object changes owners once.

        Raises:
            ConflictError: a profile of the same or a lower tier owns it by now.
            NotOursError: another manager created it, and its manifest does not ask for adoption.
        """
        doing, each = f"cannot apply {format_object(context, step.key)}", step.desired
        looks = 0
        while True:
            looks += 1
            with _raise_temporary(), withhold_quotes(doing, secret=each.secret):
                there = self._take_fields(kube, context, kube.get(*each.key))
                _check_not_terminating(doing, there)
            meant = meet(step, there, always=self._always)
            self._ownership.claim(context.cluster.key, step.key, context.profile)
            refused = suppress(StaleError) if looks <= _LOOKS else _raise_temporary()
            with refused, withhold_quotes(doing, secret=each.secret):
                return self._send(kube, context, meant, seen=_version(there))

    def _take_fields(
        self, kube: Kube, context: ReconcileContext, there: Manifest | None
    ) -> Manifest | None:
        """Make the fields that Sveltos applied Bellhop's, where the profile takes them over."""
        if there is None or (patch := take_fields(context.profile, there)) is None:
            return there
        kube.merge(*ObjectKey.of(there), patch)
        return kube.get(*ObjectKey.of(there))

    def _send(
        self, kube: Kube, context: ReconcileContext, step: Apply | Adopt, seen: str = ""
    ) -> Manifest:
        each, profile = step.desired, context.profile
        manifest = decorate(each, profile.name, profile.tier, step.adopted)
        manifest = self._keep_excluded(kube, step, manifest)
        try:
            return kube.apply(manifest, uid=step.life, version=seen)
        except MissingError:
            if each.how.skip_namespace or not self._make_namespace(kube, each.key):
                raise
            return kube.apply(manifest, uid=step.life, version=seen)
        except InvalidError as error:
            if not is_replaced(each, error):
                raise
            # If the worker dies now, its inventory entry is uncertain: the next attempt creates it.
            self._remove_former(kube, each.key)
            return kube.apply(decorate(each, profile.name, profile.tier), uid="")

    def _write_status(
        self, kube: Kube, context: ReconcileContext, each: Desired, stored: Manifest
    ) -> PermanentError | None:
        """Write the status of a manifest, if its ref asks for that; return the error.

        The controller of the kind writes it, too, and overwrites this at its next reconciliation.
        """
        if not each.how.status or not each.manifest.get("status"):
            return None
        doing = f"cannot apply the status of {format_object(context, each.key.identity)}"
        try:
            with withhold_quotes(doing, secret=each.secret):
                kube.merge_status(dict(each.manifest), uid=uid_of(stored))
        except PermanentError as error:
            return error
        return None

    def _keep_excluded(self, kube: Kube, step: Apply | Adopt, manifest: Manifest) -> Manifest:
        """Keep the excluded paths of an object as the cluster has them; a new one gets all."""
        if not step.desired.how.excluded:
            return manifest
        excluded = paths(step.desired.how.excluded, manifest)
        there = kube.get(*step.desired.key) if excluded and step.life else None
        return withheld(manifest, there, excluded) if there else manifest

    def claim(self, context: ReconcileContext, step: Apply) -> Claimed:
        """Claim a new object before anything is applied."""
        key = step.key
        try:
            return Claimed(
                key, self._ownership.claim(context.cluster.key, key, context.profile, free=True)
            )
        except ConflictError as error:
            self._notify_if_overwritten(context, step, applied=False)
            if step.desired.how.shared:
                return Claimed(key)
            return Claimed(key, refused=error)

    def unclaim(self, context: ReconcileContext, key: Identity) -> None:
        """Return the claim of an object that was not applied."""
        before = context.progress.claimed[key].before
        self._ownership.return_claim(context.cluster.key, key, context.profile, before)

    def _notify_if_overwritten(
        self, context: ReconcileContext, step: Apply, *, applied: bool
    ) -> None:
        """Notify the owner of an object that this profile may have overwritten."""
        before = step.held
        if applied or (before and not before.digest):
            self._ownership.notify_owner(context.cluster.key, step.key)

    def _restore(self, context: ReconcileContext, step: Apply, taken: Taken | None) -> Held | None:
        """Return the former inventory entry of an object that was refused.

        If its claim is not new, an earlier attempt may have applied it.
        """
        if taken and not taken.new:
            return context.progress.held[step.key]
        if taken:
            self._ownership.return_claim(
                context.cluster.key, step.key, context.profile, taken.before
            )
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

    def _remove_former(self, kube: Kube, key: ObjectKey) -> None:
        """Delete the object that is to be re-created."""
        there = kube.get(*key)
        if there is not None:
            kube.remove(*key, uid=uid_of(there))

    def leave(self, kube: Kube, context: ReconcileContext, step: Remove | Release) -> ObjectResult:
        """Remove an object that the profile applied, or release it; not one with another uid.

        An object of the inventory that has no owner counts as the profile's: the owner record may
        have been deleted with a former registration of the cluster.

        A cluster is left once its objects no longer exist: one that a finalizer or a grace period
        keeps is waited for.
        """
        cluster, name, key = context.cluster.key, context.profile.name, step.key
        owner = self._ownership.read(cluster, key)
        if not is_owned_by_other(name, owner):
            secret = key.kind == SECRET or step.held.secret
            try:
                with (
                    _raise_temporary(),
                    withhold_quotes(f"cannot remove {format_object(context, key)}", secret=secret),
                ):
                    deleted, rest = self._remove_own(kube, context, step)
            except MissingError:
                deleted, rest = True, {}  # The kind was deleted, and its objects with it.
            except PermanentError as error:
                return ObjectResult(key, context.progress.held[key], refused=error)
            if rest and not context.is_destination:
                # Without a uid it is read next time, and re-created if it is desired by then.
                held = replace(step.held, digest="", uid="")
                why = f"waits until {format_object(context, key)} is deleted: {why_kept(rest)}"
                return ObjectResult(key, held, changed=deleted, waits=UnmetError(why))
            if not self._ownership.release(cluster, key, name, owner):
                # Another profile claimed it between the read and the removal.
                self._ownership.notify_owner(cluster, key)
            return ObjectResult(key, None, changed=deleted)
        if not step.held.digest:
            # An earlier attempt may have removed it after another profile claimed it.
            self._ownership.notify_owner(cluster, key)
        return ObjectResult(key, None)

    def _remove_own(
        self, kube: Kube, context: ReconcileContext, step: Remove | Release
    ) -> tuple[bool, Manifest]:
        """Return whether an object was deleted now, and what is left of it while it terminates."""
        if isinstance(step, Release) and step.untouched:
            return False, {}
        gvk, namespace, name = step.key.at(step.held.version)
        uid = step.held.uid
        if isinstance(step, Release) or not uid:
            # A worker may have died after it applied or adopted it: its annotations say so.
            there = kube.get(gvk, namespace, name)
            if there is None or owner_of(there) != context.profile.name:
                return False, {}
            if isinstance(left(step, there), Release):
                # It stays without an owner: with ownership annotations it would be an orphan.
                kube.merge(gvk, namespace, name, undecorate(there))
                return False, {}
            if is_terminating(there):
                return False, there
            uid = uid_of(there)
        rest = kube.remove(gvk, namespace, name, uid=uid)
        return rest is not None, rest or {}


@contextmanager
def _raise_temporary() -> Iterator[None]:
    """Raise a refused write to a cluster as an error of the object, unlike one to a record."""
    try:
        yield
    except StaleError as error:
        raise TemporaryError(str(error), delay=error.delay) from None


def _check_not_terminating(doing: str, there: Manifest | None) -> None:
    """Write nothing to an object that is being deleted.

    Raises:
        StaleError: what is there is being deleted.
    """
    if there is not None and (there.get("metadata") or {}).get("deletionTimestamp"):
        raise StaleError(f"{doing}: the existing object is terminating and will be re-created")


def is_replaced(each: Desired, error: InvalidError) -> bool:
    """Say whether a refused change has the object re-created; a definition never is."""
    if error.context.get("status") != _UNPROCESSABLE:
        return False
    annotations = (each.manifest.get("metadata") or {}).get("annotations") or {}
    asked = each.how.force or annotations.get(FORCE_RECREATE) not in (None, "false")
    return asked and each.key.gvk.kind != "CustomResourceDefinition"


def uid_of(manifest: Mapping[str, Any]) -> str:
    """Return the uid of an object."""
    return str((manifest.get("metadata") or {}).get("uid") or "")


def _version(manifest: Mapping[str, Any] | None) -> str:
    return str(((manifest or {}).get("metadata") or {}).get("resourceVersion") or "")


def owner_of(manifest: Mapping[str, Any]) -> str:
    """Name the profile in the ownership annotation of an object; empty for none."""
    annotations = (manifest.get("metadata") or {}).get("annotations") or {}
    return str(annotations.get(OWNER) or "")


def format_object(context: ReconcileContext, key: Identity) -> str:
    """Name an object in a cluster, as sentences do."""
    place = "/".join(filter(None, (key.namespace, key.name)))
    return f"{key.kind} '{place}' on cluster '{context.cluster.key}'"
