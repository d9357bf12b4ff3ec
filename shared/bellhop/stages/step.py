"""One object at a time: applied or removed as a step of a plan says, by who owns it.

Several threads may be at the steps of one work: they read it, and return what is to be noted in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from bellhop.engine.planning import OWNER, Desired, decorate, undecorate
from bellhop.engine.secrecy import KIND as SECRET
from bellhop.engine.secrecy import unquoted
from bellhop.errors import (
    ConflictError,
    InvalidError,
    MissingError,
    PermanentError,
    StaleError,
    TemporaryError,
)
from bellhop.model.gvk import GVK, Identity, ObjectKey
from bellhop.model.marks import FORCE_RECREATE
from bellhop.model.record import Held
from bellhop.ports.clock import Clock
from bellhop.ports.kube import Kube
from bellhop.stages.claim import Claims, Taken, taken_from
from bellhop.stages.work import Claimed, Upshot, Work

_UNPROCESSABLE = 422
"""What an API server says to a change that may not be."""


class Steps:
    """Carries out steps; what is refused for good is part of what came of one."""

    def __init__(self, claims: Claims, clock: Clock) -> None:
        self._claims = claims
        self._clock = clock

    def apply(self, kube: Kube, work: Work, each: Desired) -> Upshot:
        """Claim an object and apply it; what another profile has is not ours to change."""
        taken: Taken | None = None
        key = each.key.identity
        try:
            free = key not in work.before
            taken = work.claimed.get(key) or self._claims.take(
                work.cluster.key, key, work.profile, free=free
            )
            manifest = decorate(each, work.profile.name, work.profile.tier)
            with _overtaken(), unquoted(f"cannot apply {_named(work, key)}", secret=each.secret):
                try:
                    stored = kube.apply(manifest)
                except MissingError:
                    if each.how.skip_namespace or not self._make_namespace(kube, each.key):
                        raise
                    stored = kube.apply(manifest)
                except InvalidError as error:
                    if error.context.get("status") != _UNPROCESSABLE or not _may_go(each):
                        raise
                    # Who dies now leaves it unsure in the inventory: the next try makes it.
                    self._clear(kube, each.key)
                    stored = kube.apply(manifest)
            # Between the claim and the apply another profile may have taken the object.
            self._claims.take(work.cluster.key, key, work.profile)
        except ConflictError as error:
            self._lost(work, key, applied=taken is not None)
            return Upshot(key, None, refused=error)
        except PermanentError as error:
            return Upshot(key, self._let_go(work, key, taken), refused=error)
        held = Held(
            digest=each.digest,
            ref=each.ref,
            applied_at=self._clock.now(),
            version=each.key.gvk.version,
            uid=_uid(stored),
            secret=each.secret,
        )
        return Upshot(key, held, changed=True)

    def claim(self, work: Work, each: Desired) -> Claimed:
        """Claim an object that is not held yet, before anything is applied."""
        key = each.key.identity
        try:
            return Claimed(key, self._claims.take(work.cluster.key, key, work.profile, free=True))
        except ConflictError as error:
            self._lost(work, key, applied=False)
            sentence = f"{error}; nothing else of it is changed meanwhile: continueOnConflict would"
            return Claimed(key, refused=ConflictError(sentence))

    def unclaim(self, work: Work, key: Identity) -> None:
        """Give back what was claimed and not applied."""
        before = work.claimed[key].before
        self._claims.give_back(work.cluster.key, key, work.profile, before)

    def _lost(self, work: Work, key: Identity, *, applied: bool) -> None:
        """Tell who has an object instead of us if we may have overwritten it."""
        before = work.before.get(key)
        if applied or (before and not before.digest):
            self._claims.tell_owner(work.cluster.key, key)

    def _let_go(self, work: Work, key: Identity, taken: Taken | None) -> Held | None:
        """Return how an object is held that was refused: as it was before.

        Where a claim is not new, an earlier try may have applied it.
        """
        if taken and not taken.new:
            return work.held[key]
        if taken:
            self._claims.give_back(work.cluster.key, key, work.profile, taken.before)
        return work.before.get(key)

    def _make_namespace(self, kube: Kube, key: ObjectKey) -> bool:
        """Create the namespace of an object, as Sveltos does; say whether it was missing."""
        gvk = GVK("", "v1", "Namespace")
        if not key.namespace or kube.get(gvk, "", key.namespace) is not None:
            return False
        manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": key.namespace}}
        with suppress(StaleError):  # Another object's thread was quicker.
            kube.apply(manifest)
        return True

    def _clear(self, kube: Kube, key: ObjectKey) -> None:
        """Remove what stands where an object is to be made anew."""
        there = kube.get(*key)
        if there is not None:
            kube.remove(*key, uid=_uid(there))

    def remove(self, kube: Kube, work: Work, key: Identity) -> Upshot:
        """Remove what we applied; what somebody made in its place since is not ours.

        What we hold and nobody has is ours: the claim may have been forgotten with the cluster's
        former life, while we were at work.
        """
        cluster, name = work.cluster.key, work.profile.name
        owner = self._claims.owner(cluster, key)
        if not taken_from(name, owner):
            secret = key.kind == SECRET or work.held[key].secret
            try:
                with _overtaken(), unquoted(f"cannot remove {_named(work, key)}", secret=secret):
                    gone = self._remove_ours(kube, work, key)
            except MissingError:
                gone = True  # The kind itself is gone, and its objects with it.
            except PermanentError as error:
                return Upshot(key, work.held[key], refused=error)
            if not self._claims.give_up(cluster, key, name, owner):
                # It was taken between the question and the removal.
                self._claims.tell_owner(cluster, key)
            return Upshot(key, None, changed=gone)
        if not work.before[key].digest:
            # An earlier try may have removed it for good after it was taken.
            self._claims.tell_owner(cluster, key)
        return Upshot(key, None)

    def _remove_ours(self, kube: Kube, work: Work, key: Identity) -> bool:
        held = work.held[key]
        gvk, namespace, name = key.at(held.version)
        if not work.wanted and work.profile.leaves_policies:
            # It stays, and is nobody's: with our marks it would be taken for a stray.
            there = kube.get(gvk, namespace, name)
            if there is not None and _owner(there) == work.profile.name:
                kube.merge(gvk, namespace, name, undecorate(there))
            return False
        uid = held.uid
        if not uid:
            # Nobody came back to say whether it was applied: its marks tell.
            there = kube.get(gvk, namespace, name)
            if there is None or _owner(there) != work.profile.name:
                return False
            uid = _uid(there)
        return kube.remove(gvk, namespace, name, uid=uid)


@contextmanager
def _overtaken() -> Iterator[None]:
    """Tell what a cluster says was overtaken from a write of ours that was: it is an outcome."""
    try:
        yield
    except StaleError as error:
        raise TemporaryError(str(error), delay=error.delay) from None


def _may_go(each: Desired) -> bool:
    """Say whether an object is made anew where a change of it is refused; a definition never is."""
    annotations = (each.manifest.get("metadata") or {}).get("annotations") or {}
    asked = each.how.force or annotations.get(FORCE_RECREATE) not in (None, "false")
    return asked and each.key.gvk.kind != "CustomResourceDefinition"


def _uid(manifest: Mapping[str, Any]) -> str:
    return str((manifest.get("metadata") or {}).get("uid") or "")


def _owner(manifest: Mapping[str, Any]) -> str:
    annotations = (manifest.get("metadata") or {}).get("annotations") or {}
    return str(annotations.get(OWNER) or "")


def _named(work: Work, key: Identity) -> str:
    place = "/".join(filter(None, (key.namespace, key.name)))
    return f"{key.kind} '{place}' on cluster '{work.cluster.key}'"
