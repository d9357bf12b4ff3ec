"""Previews of plans, by the cluster's own dry run; nothing is written.

They make the same decisions as `operation.py`, in the same order.
"""

from __future__ import annotations

from collections.abc import Mapping

from bellhop.core.gvk import GVK, Identity
from bellhop.deploy.context import ReconcileContext
from bellhop.deploy.features.resources.adoption import (
    SveltosDeploysError,
    left,
    meet,
    takes_over,
    written_over,
)
from bellhop.deploy.features.resources.operation import format_object, is_replaced, owner_of, uid_of
from bellhop.deploy.features.resources.planning import (
    Adopt,
    Apply,
    Desired,
    Release,
    Remove,
    decorate,
)
from bellhop.deploy.object_diff import OWNERSHIP_ONLY, compare
from bellhop.deploy.ownership import Ownership, is_owned_by_other
from bellhop.errors import ConflictError, InvalidError, MissingError, PermanentError
from bellhop.ports.kube import Kube, Manifest
from bellhop.rendering.drift_exclusions import paths, withheld
from bellhop.rendering.secrecy import KIND as SECRET
from bellhop.rendering.secrecy import withhold_quotes
from bellhop.state.deployment import Action, Change

_DEFINITION = "CustomResourceDefinition"


class Preview:
    """Asks a cluster what steps would do."""

    def __init__(self, ownership: Ownership, *, always: bool) -> None:
        """Make what asks for one process; `always` adopts what others made, asked or not."""
        self._ownership = ownership
        self._always = always

    def apply(
        self,
        kube: Kube,
        context: ReconcileContext,
        applied_first: Mapping[Identity, Desired],
        step: Apply,
    ) -> Change:
        """Return the change of an object, after the others that the plan applies first."""
        key, each = step.key, step.desired
        try:
            self._ownership.check(context.cluster.key, key, context.profile)
            doing = f"cannot apply {format_object(context, key)}"
            with withhold_quotes(doing, secret=each.secret):
                if _defined(applied_first, each):
                    return Change(key, "Create", "its kind is defined by this profile")
                there = kube.get(*each.key)
            try:
                meant, why = meet(step, there, always=self._always), ""
            except SveltosDeploysError as error:
                taken = takes_over(context.profile, there or {})
                meant, why = written_over(step, there or {}), "" if taken else str(error)
            with withhold_quotes(doing, secret=each.secret):
                change = self._applied(kube, context, applied_first, meant, there)
            return _not_yet(change, why) if why else change
        except ConflictError as error:
            if each.how.shared:
                return Change(key, "No Action", "another profile has it")
            return Change(key, "Conflict", str(error))
        except PermanentError as error:
            return Change(key, "Error", str(error))

    def _applied(
        self,
        kube: Kube,
        context: ReconcileContext,
        applied_first: Mapping[Identity, Desired],
        step: Apply | Adopt,
        there: Manifest | None,
    ) -> Change:
        key, each = step.key, step.desired
        manifest = decorate(each, context.profile.name, context.profile.tier, step.adopted)
        excluded = paths(each.how.excluded, manifest)
        manifest = withheld(manifest, there, excluded) if there and excluded else manifest
        try:
            then = kube.apply(manifest, dry_run=True)
        except MissingError:
            space = each.key.namespace
            if not space or kube.get(GVK("", "v1", "Namespace"), "", space) is not None:
                raise
            if (
                Identity("", "Namespace", "", space) not in applied_first
                and each.how.skip_namespace
            ):
                raise
            return Change(key, "Create", f"in namespace '{space}', which is made for it")
        except InvalidError as error:
            if there is None or not is_replaced(each, error):
                raise
            said = "it is deleted and re-created, as no other change is accepted"
            return _adopting(step, Change(key, "Update", said))
        # The existing object may have values of a Secret, whatever replaces it.
        secret = each.secret or (step.held is not None and step.held.secret)
        return _adopting(step, _change(key, there, then, secret=secret))

    def leave(self, kube: Kube, context: ReconcileContext, step: Remove | Release) -> Change:
        """Return the change of an object that is removed or released."""
        key = step.key
        secret = key.kind == SECRET or step.held.secret
        if is_owned_by_other(context.profile.name, self._ownership.read(context.cluster.key, key)):
            return Change(key, "No Action", "another profile has it by now")
        try:
            with withhold_quotes(f"cannot read {format_object(context, key)}", secret=secret):
                there = kube.get(*key.at(step.held.version))
        except MissingError:
            there = None  # The kind itself was deleted.
        except PermanentError as error:
            return Change(key, "Error", str(error))
        return _left(context, step, there)


def _adopting(step: Apply | Adopt, change: Change) -> Change:
    """Name the former owner of an adopted object, and what would change."""
    if isinstance(step, Apply):
        return change
    said = f"from {step.maker}; what changes: {_changes(change)}"
    return Change(change.key, "Adopt", said, change.diff)


def _not_yet(change: Change, why: str) -> Change:
    """Say why a change waits until Sveltos releases the object, and what would change."""
    changes = _changes(change)
    return Change(change.key, "Conflict", f"{why}; what changes then: {changes}", change.diff)


def _changes(change: Change) -> str:
    """Say what a change of an object that is there consists of."""
    return OWNERSHIP_ONLY if change.action == "No Action" else change.message or "nothing"


def _change(key: Identity, there: Manifest | None, then: Manifest, *, secret: bool) -> Change:
    if there is None:
        return Change(key, "Create")
    differs, said, diff = compare(there, then, secret=secret)
    if not differs and owner_of(there) == owner_of(then):
        return Change(key, "No Action", "it is as it is wanted")
    return Change(key, "Update", said, diff)


def _left(context: ReconcileContext, step: Remove | Release, there: Manifest | None) -> Change:
    if there is None:
        return Change(step.key, "No Action", "it is gone already")
    ours = owner_of(there) == context.profile.name
    if isinstance(left(step, there), Release):
        said = "it stays, " + (
            "without Bellhop's labels and annotations" if ours else "and is not ours"
        )
        action: Action = "Update" if ours else "No Action"
        return Change(step.key, action, said)
    if uid_of(there) == step.held.uid if step.held.uid else ours:
        return Change(step.key, "Delete")
    return Change(step.key, "No Action", "somebody made another in its place")


def _defined(applied_first: Mapping[Identity, Desired], each: Desired) -> bool:
    """Say whether the plan itself creates the definition of an object's kind."""
    for key, other in applied_first.items():
        if key.kind == _DEFINITION:
            spec = other.manifest.get("spec") or {}
            names = spec.get("names") or {}
            if (spec.get("group", ""), names.get("kind", "")) == (
                each.key.gvk.group,
                each.key.gvk.kind,
            ):
                return True
    return False
