"""The plan of a profile's objects in a cluster: the desired ones against those of the inventory.

This module and `adoption` decide operations; neither reads or writes anything.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain, takewhile
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from bellhop.core.digest import digest
from bellhop.core.gvk import Identity, ObjectKey, moved, phases, rank
from bellhop.core.identity import MANAGER, REASON, profile_kind
from bellhop.core.sveltos_annotations import ADOPT, ADOPTED, MADE_BY, OWNER, WRITTEN_BY_SVELTOS
from bellhop.errors import ConflictError
from bellhop.rendering.secrecy import holds_values
from bellhop.state.content import PLAIN, Content, FeatureName, Handling, ref_parts
from bellhop.state.deployment import Held

_ANNOTATIONS = (
    "projectsveltos.io/hash",
    "projectsveltos.io/reference-kind",
    "projectsveltos.io/reference-namespace",
    "projectsveltos.io/reference-name",
    "projectsveltos.io/reference-tier",
    "projectsveltos.io/owner-kind",
    OWNER,
    "projectsveltos.io/owner-tier",
)


class Desired(Struct, frozen=True):
    """One desired object of a profile.

    The digest covers all that is stored with it: the object, its ref and the tiers. An API server's
    error about a `secret` one may quote a Secret. One that is Local is for a cluster, its `target`.
    A label has its `feature`.
    """

    key: ObjectKey
    manifest: Mapping[str, Any]
    digest: str
    ref: str
    secret: bool = False
    how: Handling = PLAIN
    target: str = ""
    feature: FeatureName = "Resources"


class Apply(Struct, frozen=True):
    """Apply a desired object, and create the namespace that it lacks.

    `held` is its entry in the inventory so far; None for a new one. It is written to the object
    that has `life` as its uid, or, if that is empty, only where there is none. An annotation of one
    that was `adopted` names its former manager.
    """

    desired: Desired
    held: Held | None
    life: str = ""
    adopted: str = ""

    @property
    def key(self) -> Identity:
        """Name the object, whatever its version."""
        return self.desired.key.identity


class Adopt(Struct, frozen=True):
    """Adopt an object that `maker` created.

    One that is adopted `for_good` is from now on as if a profile had created it.
    """

    desired: Desired
    held: Held | None
    life: str
    maker: str
    for_good: bool = False

    @property
    def key(self) -> Identity:
        """Name the object, whatever its version."""
        return self.desired.key.identity

    @property
    def adopted(self) -> str:
        """Name the creator that its annotation is to have."""
        return "" if self.for_good else self.maker


class Remove(Struct, frozen=True):
    """Delete an object that the profile applied."""

    key: Identity
    held: Held


class Release(Struct, frozen=True):
    """Leave an object without an owner; an `untouched` one keeps its ownership annotations."""

    key: Identity
    held: Held
    untouched: bool = False


Step = Apply | Remove | Release
S = TypeVar("S", Apply, Remove | Release)


class Plan(Struct, frozen=True):
    """Operations in phases: those of a phase are independent, and depend on the phase before.

    Removals begin only after all applies. `unchanged` objects are applied already. `rivals` are
    objects of which two refs have different forms: that of the first ref is planned.
    """

    apply_phases: tuple[tuple[Apply, ...], ...]
    removal_phases: tuple[tuple[Remove | Release, ...], ...]
    unchanged: tuple[Identity, ...]
    rivals: tuple[ConflictError, ...] = ()

    @property
    def applies(self) -> tuple[Apply, ...]:
        return tuple(chain.from_iterable(self.apply_phases))

    @property
    def removals(self) -> tuple[Remove | Release, ...]:
        return tuple(chain.from_iterable(self.removal_phases))

    @property
    def deletions(self) -> list[Remove]:
        return [each for each in self.removals if isinstance(each, Remove)]

    @property
    def idle(self) -> bool:
        return not self.apply_phases and not self.removal_phases

    def uncertain(self, held: Mapping[Identity, Held]) -> dict[Identity, Held]:
        unsure = dict(held)
        for step in self.applies:
            old = step.held or _new(step.desired)
            # The uid may change: if the object was deleted, applying creates another one.
            unsure[step.key] = replace(old, digest="", uid="", secret=True)
        for leave in self.removals:
            unsure[leave.key] = replace(leave.held, digest="")
        return unsure


def desired_objects(
    contents: Iterable[Content], *, tier: int, target: str = ""
) -> tuple[Desired, ...]:
    """Return the objects of contents, in the order of their refs, for a profile of a tier.

    Objects that are Local are for the cluster `target`, or for all if it is empty.
    """
    return tuple(
        Desired(
            ObjectKey.of(manifest),
            manifest,
            _digest(manifest, content, tier),
            content.ref,
            secret=content.secret or holds_values(manifest),
            how=content.how,
            target=target,
            feature=content.feature,
        )
        for content in contents
        for manifest in content.manifests
    )


def _digest(manifest: Mapping[str, Any], content: Content, tier: int) -> str:
    # The default tier is left out: objects that were applied before refs had one are unchanged.
    own = [content.how.tier] if content.how.tier != PLAIN.tier else []
    return digest([manifest, content.ref, tier, *own])


def _new(desired: Desired) -> Held:
    kustomized, version = desired.feature == "Kustomize", desired.key.gvk.version
    return Held("", desired.ref, version=version, kustomized=kustomized)


def plan(
    objects: Sequence[Desired],
    held: Mapping[Identity, Held],
    *,
    feature: FeatureName = "Resources",
    releases: bool = False,
    staying: Collection[str] = (),
    despite_rivals: bool = False,
    untouched: bool = False,
) -> Plan:
    """Plan a feature's operations from the inventory to the desired objects.

    `objects` are those of all features: one that moves from this feature to another is applied by
    the other, and not removed.
    An object in another version of its kind is the same object. If two refs have one, the ref with
    the lower tier wins, and within a tier the first; unless the profile continues
    `despite_rivals`, the plan ends before the other form, without removals. Nothing is deleted if a
    profile `releases`, nor is an adopted object, nor a Local one of refs that are `staying`, since
    it may have been for a cluster that is left. Released objects stay `untouched` if the cluster
    may not be written to.

    Objects are applied in the order in which they were written, but for the kinds that
    `ordering.moved` names; removals go by kind.
    """
    unique, rivals = _unique(objects)
    same = {key for key, each in unique.items() if _is_held(each, held.get(key))}
    ahead = objects if despite_rivals else _before(objects, [other for _, other in rivals])
    desired = [
        _apply(each, held.get(each.key.identity))
        for each in ahead
        if unique[each.key.identity] is each and each.key.identity not in same
        if each.feature == feature
    ]
    unneeded = [
        Release(key, each, untouched) if releases or _stays(each, staying) else Remove(key, each)
        for key, each in held.items()
        if key not in unique and each.feature == feature
    ]
    return Plan(
        apply_phases=_phases(sorted(desired, key=lambda step: moved(step.key))),
        removal_phases=() if rivals else _phases(sorted(unneeded, key=_late, reverse=True)),
        unchanged=tuple(sorted(key for key in same if unique[key].feature == feature)),
        rivals=tuple(
            _in_two_forms(one, other) for one, other in rivals if other.feature == feature
        ),
    )


def _is_held(desired: Desired, held: Held | None) -> bool:
    """Say whether the inventory has a desired object, by the same feature."""
    if held is None or held.feature != desired.feature:
        return False
    return held.digest == desired.digest


def _before(objects: Sequence[Desired], losers: Sequence[Desired]) -> Iterable[Desired]:
    """Return the objects before the first one that is not to be applied."""
    return takewhile(lambda each: not any(each is one for one in losers), objects)


def disputed(objects: Iterable[Desired]) -> dict[Identity, ConflictError]:
    """Return the error of each Local object of which two clusters have different forms.

    For the other objects the plan decides.
    """
    _, rivals = _unique(objects)
    found: dict[Identity, ConflictError] = {}
    for one, other in rivals:
        if one.how.local or other.how.local:
            found.setdefault(one.key.identity, _in_two_forms(one, other))
    return found


def _unique(
    objects: Iterable[Desired],
) -> tuple[dict[Identity, Desired], list[tuple[Desired, Desired]]]:
    """Return each object by its ref of the lowest tier, and the pairs of different forms.

    Equal forms, and forms of a higher tier, are no pairs.
    """
    unique: dict[Identity, Desired] = {}
    rivals = []
    for each in sorted(objects, key=lambda each: each.how.tier):
        twin = unique.setdefault(each.key.identity, each)
        alike = twin is each or twin.how.tier != each.how.tier
        if not alike and digest(twin.manifest) != digest(each.manifest):
            rivals.append((twin, each))
    return unique, rivals


def _stays(held: Held, staying: Collection[str]) -> bool:
    return bool(held.adopted and held.uid) or (held.local and held.ref in staying)


def _in_two_forms(one: Desired, other: Desired) -> ConflictError:
    what = f"cannot apply {one.key.gvk.kind} '{one.key.namespace}/{one.key.name}': "
    if one.ref == other.ref and one.target and other.target not in ("", one.target):
        return ConflictError(
            f"{what}it is Local, and {one.ref} makes it otherwise for cluster '{one.target}' than"
            f" for '{other.target}'; render the cluster's name into its name, to have one for each"
        )
    local = one.how.local or other.how.local
    which = "" if local else ", of which the first is deployed"
    if one.ref == other.ref:
        return ConflictError(
            f"{what}{one.ref}{_for(one)} holds it twice, in two forms{which}; take one of them out"
        )
    whose, others = (f"{each.ref}{_for(each)}" for each in (one, other))
    return ConflictError(
        f"{what}{whose} and {others} of one profile want it in two forms{which}; give the ref that"
        " is to win a lower tier"
    )


def _for(each: Desired) -> str:
    return f" for cluster '{each.target}'" if each.target else ""


def _apply(desired: Desired, held: Held | None) -> Apply:
    """Apply to the uid that was applied last; an object without one is read first."""
    if held is None or not held.uid:
        return Apply(desired, held)
    return Apply(desired, held, held.uid, "" if adoption(desired) == "own" else held.adopted)


def adoption(desired: Desired) -> str:
    """Return the value of the annotation that has an object adopted: `true`, `own` or empty."""
    asked = ((desired.manifest.get("metadata") or {}).get("annotations") or {}).get(ADOPT)
    return asked if asked in ("true", "own") else ""


def _late(step: Step) -> int:
    return rank(step.key)


def _phases(steps: Iterable[S]) -> tuple[tuple[S, ...], ...]:
    return tuple(tuple(phase) for phase in phases(steps, lambda each: each.key))


def decorate(each: Desired, profile: str, tier: int, adopted: str = "") -> dict[str, Any]:
    """Return an object as it is applied: with Sveltos' ownership labels and annotations.

    An annotation of an `adopted` one names its creator.
    """
    manifest = dict(each.manifest)
    metadata = dict(manifest.get("metadata") or {})
    kind, namespace, name = ref_parts(each.ref)
    metadata["namespace"] = each.key.namespace
    if not each.key.namespace:
        del metadata["namespace"]
    metadata["labels"] = {
        **(metadata.get("labels") or {}),
        REASON: each.feature,
    }
    own, ref_tier = f"sha256:{each.digest}", str(each.how.tier)
    values = (own, kind, namespace, name, ref_tier, profile_kind(profile), profile, str(tier))
    metadata["annotations"] = {
        **(metadata.get("annotations") or {}),
        **dict(zip(_ANNOTATIONS, values, strict=True)),
        **({ADOPTED: adopted} if adopted else {}),
    }
    metadata["annotations"].pop(ADOPT, None)
    manifest["metadata"] = metadata
    return manifest


def undecorate(there: Mapping[str, Any]) -> dict[str, Any]:
    """Return the patch that removes the ownership of an object and changes nothing else.

    It removes Bellhop's labels, annotations and managed fields, and those of Sveltos: the next
    client to apply it meets no conflict. An annotation of an object that was not adopted names its
    profile, so that the next profile need not adopt it.
    """
    metadata = there.get("metadata") or {}
    annotations = metadata.get("annotations") or {}
    made = {} if ADOPTED in annotations else {MADE_BY: annotations.get(OWNER)}
    managers = metadata.get("managedFields") or []
    marks: dict[str, Any] = {
        "labels": dict.fromkeys(WRITTEN_BY_SVELTOS),
        "annotations": {**dict.fromkeys((*WRITTEN_BY_SVELTOS, ADOPTED)), **made},
    }
    if managers:
        others = [each for each in managers if each.get("manager") != MANAGER]
        # An API server takes an empty list for one that was left out.
        marks["managedFields"] = others or [{}]
    return {"metadata": {"resourceVersion": metadata.get("resourceVersion"), **marks}}
