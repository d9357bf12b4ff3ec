"""Decide first, act later: what a profile wants in a cluster against what it holds there.

Here and in `adoption` steps are decided; nothing in either reads or writes anything.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain, takewhile
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from bellhop.core.apply_order import moved, phases, rank
from bellhop.core.digest import digest
from bellhop.core.generated_names import profile_kind
from bellhop.core.gvk import Identity, ObjectKey
from bellhop.core.identity import MANAGER, REASON
from bellhop.core.sveltos_annotations import ADOPT, ADOPTED, MADE_BY, OWNER, WRITTEN_BY_SVELTOS
from bellhop.errors import ConflictError
from bellhop.rendering.secrecy import holds_values
from bellhop.state.file_ref import ref_parts
from bellhop.state.record import PLAIN, Content, FeatureName, Handling, Held

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
    """One object as a profile wants it, and where it is written.

    The digest covers all that applying it writes down: the object, its ref and the tiers. What an
    API server says of a `secret` one may quote a Secret. One that is Local is wanted for a cluster:
    its `guest`. Which `feature` brings it is written on it.
    """

    key: ObjectKey
    manifest: Mapping[str, Any]
    digest: str
    ref: str
    secret: bool = False
    how: Handling = PLAIN
    guest: str = ""
    feature: FeatureName = "Resources"


class Apply(Struct, frozen=True):
    """Write an object as it is wanted, and the namespace that it needs and lacks.

    `held` says how it was held so far; None of one that is new. It is written to the `life` of the
    object that has this uid, and only where there is none if that is empty. One that was `adopted`
    is marked with who had made it.
    """

    wanted: Desired
    held: Held | None
    life: str = ""
    adopted: str = ""

    @property
    def key(self) -> Identity:
        """Name the object, whatever its version."""
        return self.wanted.key.identity


class Adopt(Struct, frozen=True):
    """Take over the life of an object that `maker` made, as it is wanted.

    One that is taken over `for_good` is from now on as if a profile had made it.
    """

    wanted: Desired
    held: Held | None
    life: str
    maker: str
    for_good: bool = False

    @property
    def key(self) -> Identity:
        """Name the object, whatever its version."""
        return self.wanted.key.identity

    @property
    def adopted(self) -> str:
        """Say with whom it is marked as having made it."""
        return "" if self.for_good else self.maker


class Remove(Struct, frozen=True):
    """Delete what we applied."""

    key: Identity
    held: Held


class Release(Struct, frozen=True):
    """Leave what we applied as it is, and nobody's; if `untouched`, with our marks on it."""

    key: Identity
    held: Held
    untouched: bool = False


Step = Apply | Remove | Release
S = TypeVar("S", Apply, Remove | Release)


class Plan(Struct, frozen=True):
    """Steps in phases: those of a phase need nothing of each other, and all of the one before.

    Nothing is taken `back` unless all `forth` was taken. `unchanged` are held already as they are
    wanted. `rivals` says which objects two refs want in two forms: the first one's is planned.
    """

    forth: tuple[tuple[Apply, ...], ...]
    back: tuple[tuple[Remove | Release, ...], ...]
    unchanged: tuple[Identity, ...]
    rivals: tuple[ConflictError, ...] = ()

    @property
    def applies(self) -> tuple[Apply, ...]:
        """Return the steps forth, in order."""
        return tuple(chain.from_iterable(self.forth))

    @property
    def leaves(self) -> tuple[Remove | Release, ...]:
        """Return the steps back, in order."""
        return tuple(chain.from_iterable(self.back))

    @property
    def removes(self) -> list[Remove]:
        """Return those of them that delete something."""
        return [each for each in self.leaves if isinstance(each, Remove)]

    @property
    def idle(self) -> bool:
        """Say whether there is nothing to do."""
        return not self.forth and not self.back

    def begun(self, held: Mapping[Identity, Held]) -> dict[Identity, Held]:
        """Say what is held from the moment on in which the first step may have been taken."""
        unsure = dict(held)
        for step in self.applies:
            old = step.held or _new(step.wanted)
            # Another life may begin: if the one we knew is gone, applying makes the next.
            unsure[step.key] = replace(old, digest="", uid="", secret=True)
        for leave in self.leaves:
            unsure[leave.key] = replace(leave.held, digest="")
        return unsure


def desired(contents: Iterable[Content], *, tier: int, guest: str = "") -> tuple[Desired, ...]:
    """Return the objects of contents, in the order of their refs, for a profile of a tier.

    What is Local is wanted for a cluster, the `guest`, or for all by none.
    """
    return tuple(
        Desired(
            ObjectKey.of(manifest),
            manifest,
            _digest(manifest, content, tier),
            content.ref,
            secret=content.secret or holds_values(manifest),
            how=content.how,
            guest=guest,
            feature=content.feature,
        )
        for content in contents
        for manifest in content.manifests
    )


def _digest(manifest: Mapping[str, Any], content: Content, tier: int) -> str:
    # The usual tier is left out: what was applied before refs had any is unchanged.
    own = [content.how.tier] if content.how.tier != PLAIN.tier else []
    return digest([manifest, content.ref, tier, *own])


def _new(wanted: Desired) -> Held:
    kustomized, version = wanted.feature == "Kustomize", wanted.key.gvk.version
    return Held("", wanted.ref, version=version, kustomized=kustomized)


def plan(
    objects: Sequence[Desired],
    held: Mapping[Identity, Held],
    *,
    feature: FeatureName = "Resources",
    releases: bool = False,
    staying: Collection[str] = (),
    continues: bool = False,
    untouched: bool = False,
) -> Plan:
    """Plan a feature's part of the way from what is held to what is wanted.

    Objects are those of all features: what one of them held, and another one brings from now on, is
    that one's to write, and nobody's to remove.
    An object that is wanted in another version of its kind is the same object. Where two refs want
    one, that of the lower tier has it, and of one tier the first; unless the profile `continues`
    with a conflict, the plan ends before the other form of it, and nothing is taken back. Where a
    profile `releases`, nothing is removed, and what was adopted never is; nor what is Local of refs
    that are `staying`, since it may have been for a cluster that is left. What is released stays
    `untouched` where no cluster may be written to.

    Objects are applied in the order in which they were written, but for the kinds that
    `ordering.moved` names; removals go by kind.
    """
    unique, rivals = _unique(objects)
    same = {key for key, each in unique.items() if _is_held(each, held.get(key))}
    ahead = objects if continues else _before(objects, [other for _, other in rivals])
    wanted = [
        _apply(each, held.get(each.key.identity))
        for each in ahead
        if unique[each.key.identity] is each and each.key.identity not in same
        if each.feature == feature
    ]
    unwanted = [
        Release(key, each, untouched) if releases or _stays(each, staying) else Remove(key, each)
        for key, each in held.items()
        if key not in unique and each.feature == feature
    ]
    return Plan(
        forth=_phases(sorted(wanted, key=lambda step: moved(step.key))),
        back=() if rivals else _phases(sorted(unwanted, key=_late, reverse=True)),
        unchanged=tuple(sorted(key for key in same if unique[key].feature == feature)),
        rivals=tuple(
            _in_two_forms(one, other) for one, other in rivals if other.feature == feature
        ),
    )


def _is_held(wanted: Desired, held: Held | None) -> bool:
    """Say whether an object is held as it is wanted, by the feature that brings it."""
    if held is None or held.feature != wanted.feature:
        return False
    return held.digest == wanted.digest


def _before(objects: Sequence[Desired], losers: Sequence[Desired]) -> Iterable[Desired]:
    """Return the objects that stand before the first one that is not to be applied."""
    return takewhile(lambda each: not any(each is one for one in losers), objects)


def disputed(objects: Iterable[Desired]) -> dict[Identity, ConflictError]:
    """Say of which objects clusters want two forms, as each is Local for one of them, and why not.

    Of what is the profile's own, planning decides.
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
    """Return each object as the ref of the lowest tier wants it, and which two want it otherwise.

    Of those that want it alike, or by a higher tier, nothing is told.
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
    if one.ref == other.ref and one.guest and other.guest not in ("", one.guest):
        return ConflictError(
            f"{what}it is Local, and {one.ref} makes it otherwise for cluster '{one.guest}' than"
            f" for '{other.guest}'; render the cluster's name into its name, to have one for each"
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
    return f" for cluster '{each.guest}'" if each.guest else ""


def _apply(wanted: Desired, held: Held | None) -> Apply:
    """Write to the life that was applied last; of one that nobody knows its marks will tell."""
    if held is None or not held.uid:
        return Apply(wanted, held)
    return Apply(wanted, held, held.uid, "" if adoption(wanted) == "own" else held.adopted)


def adoption(wanted: Desired) -> str:
    """Say whether an object of others is to be taken over, and for good; empty if it is not."""
    asked = ((wanted.manifest.get("metadata") or {}).get("annotations") or {}).get(ADOPT)
    return asked if asked in ("true", "own") else ""


def _late(step: Step) -> int:
    return rank(step.key)


def _phases(steps: Iterable[S]) -> tuple[tuple[S, ...], ...]:
    return tuple(tuple(phase) for phase in phases(steps, lambda each: each.key))


def decorate(each: Desired, profile: str, tier: int, adopted: str = "") -> dict[str, Any]:
    """Return an object as it is applied: with Sveltos' marks that tell where it comes from.

    One that was `adopted` says from whom.
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
    told = (own, kind, namespace, name, ref_tier, profile_kind(profile), profile, str(tier))
    metadata["annotations"] = {
        **(metadata.get("annotations") or {}),
        **dict(zip(_ANNOTATIONS, told, strict=True)),
        **({ADOPTED: adopted} if adopted else {}),
    }
    metadata["annotations"].pop(ADOPT, None)
    manifest["metadata"] = metadata
    return manifest


def undecorate(there: Mapping[str, Any]) -> dict[str, Any]:
    """Return the patch that makes an object nobody's, in just the state that it is in.

    It takes away our marks, those that Sveltos itself may have written before us, and that we
    manage any field: whoever applies it next meets no conflict. Of what was not adopted it says
    which profile made it, since no other maker is known: the next profile need not adopt it.
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
