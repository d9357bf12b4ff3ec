"""Decide first, act later: what a profile wants in a cluster against what it holds there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bellhop.engine.digest import digest
from bellhop.engine.ordering import rank
from bellhop.engine.secrecy import holds_values
from bellhop.errors import ConflictError
from bellhop.model.gvk import Identity, ObjectKey
from bellhop.model.marks import WRITTEN_BY_SVELTOS
from bellhop.model.record import PLAIN, Content, Handling, Held

OWNER = "projectsveltos.io/owner-name"
"""The annotation that names the profile an object comes from."""

MANAGER = "bellhop"
"""The field manager by which objects are applied."""

_LABELS = ("projectsveltos.io/reason",)
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


@dataclass(frozen=True, slots=True)
class Desired:
    """One object as a profile wants it, and where it is written.

    The digest covers all that applying it writes down: the object, its ref and the tiers. What an
    API server says of a `secret` one may quote a Secret.
    """

    key: ObjectKey
    manifest: Mapping[str, Any]
    digest: str
    ref: str
    secret: bool = False
    how: Handling = PLAIN


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do, in order; `unchanged` are held already as they are wanted."""

    apply: tuple[Desired, ...]
    remove: tuple[Identity, ...]
    unchanged: tuple[Identity, ...]


def desired(contents: Iterable[Content], *, tier: int) -> tuple[Desired, ...]:
    """Return the objects of contents, in the order of their refs, for a profile of a tier."""
    return tuple(
        Desired(
            ObjectKey.of(manifest),
            manifest,
            _digest(manifest, content, tier),
            content.ref,
            secret=content.secret or holds_values(manifest),
            how=content.how,
        )
        for content in contents
        for manifest in content.manifests
    )


def _digest(manifest: Mapping[str, Any], content: Content, tier: int) -> str:
    # The usual tier is left out: what was applied before refs had any is unchanged.
    own = [content.how.tier] if content.how.tier != PLAIN.tier else []
    return digest([manifest, content.ref, tier, *own])


def plan(objects: Sequence[Desired], held: Mapping[Identity, Held]) -> Plan:
    """Plan the way from what is held to what is wanted.

    An object that is wanted in another version of its kind is the same object. Where two refs want
    one, that of the lower tier has it.

    Objects that others need are applied first; removals go the other way round.

    Raises:
        ConflictError: refs of one tier want one object in two forms.
    """
    unique: dict[Identity, Desired] = {}
    for each in sorted(objects, key=lambda each: each.how.tier):
        twin = unique.setdefault(each.key.identity, each)
        rivals = twin is not each and twin.how.tier == each.how.tier
        if rivals and digest(twin.manifest) != digest(each.manifest):
            raise ConflictError(
                f"cannot apply {each.key.gvk.kind} '{each.key.namespace}/{each.key.name}': "
                f"{twin.ref} and {each.ref} of one profile want it in two forms; give the ref that"
                " is to win a lower tier"
            )
    same = {key for key, each in unique.items() if key in held and held[key].digest == each.digest}
    return Plan(
        apply=tuple(sorted((each for key, each in unique.items() if key not in same), key=_late)),
        remove=tuple(sorted((key for key in held if key not in unique), key=rank, reverse=True)),
        unchanged=tuple(sorted(same)),
    )


def _late(each: Desired) -> int:
    return rank(each.key.identity)


def decorate(each: Desired, profile: str, tier: int) -> dict[str, Any]:
    """Return an object as it is applied: with Sveltos' marks that tell where it comes from."""
    manifest = dict(each.manifest)
    metadata = dict(manifest.get("metadata") or {})
    kind, _, place = each.ref.partition(" ")
    namespace, _, name = place.partition("/")
    metadata["namespace"] = each.key.namespace
    if not each.key.namespace:
        del metadata["namespace"]
    metadata["labels"] = {
        **(metadata.get("labels") or {}),
        **dict.fromkeys(_LABELS, "Resources"),
    }
    own, ref_tier = f"sha256:{each.digest}", str(each.how.tier)
    told = (own, kind, namespace, name, ref_tier, "ClusterProfile", profile, str(tier))
    metadata["annotations"] = {
        **(metadata.get("annotations") or {}),
        **dict(zip(_ANNOTATIONS, told, strict=True)),
    }
    manifest["metadata"] = metadata
    return manifest


def undecorate(there: Mapping[str, Any]) -> dict[str, Any]:
    """Return the patch that makes an object nobody's, in just the state that it is in.

    It takes away our marks, those that Sveltos itself may have written before us, and that we
    manage any field: whoever applies it next meets no conflict.
    """
    metadata = there.get("metadata") or {}
    managers = metadata.get("managedFields") or []
    marks: dict[str, Any] = {
        "labels": dict.fromkeys(WRITTEN_BY_SVELTOS),
        "annotations": dict.fromkeys(WRITTEN_BY_SVELTOS),
    }
    if managers:
        others = [each for each in managers if each.get("manager") != MANAGER]
        # An API server takes an empty list for one that was left out.
        marks["managedFields"] = others or [{}]
    return {"metadata": {"resourceVersion": metadata.get("resourceVersion"), **marks}}
