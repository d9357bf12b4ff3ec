"""The manager of an existing object, from its own labels, annotations and managed fields.

An object is written without a read, to the uid of the inventory, or only where there is none. If
the cluster refuses that, the existing object is read, and this module decides.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from bellhop.core.identity import MANAGER, profile_kind, profile_place
from bellhop.core.sveltos_annotations import ADOPT, ADOPTED, MADE_BY, OWNER, WRITTEN_BY_SVELTOS
from bellhop.deploy.features.resources.planning import (
    Adopt,
    Apply,
    Desired,
    Release,
    Remove,
    adoption,
)
from bellhop.errors import ConflictError
from bellhop.state.profile import Profile

_MOST_MANAGERS = 3
_LONGEST = 64

_TOOLS = {
    "Helm release": ("meta.helm.sh/release-namespace", "meta.helm.sh/release-name"),
    "Flux Kustomization": (
        "kustomize.toolkit.fluxcd.io/namespace",
        "kustomize.toolkit.fluxcd.io/name",
    ),
    "Flux HelmRelease": ("helm.toolkit.fluxcd.io/namespace", "helm.toolkit.fluxcd.io/name"),
}
"""Annotations or labels by which tools find again what they made: its namespace and its name."""

_SVELTOS = "application/apply-patch"
"""The field manager by which Sveltos applies objects."""

_OWNER_KIND = "projectsveltos.io/owner-kind"
_GENERATED_PREFIX = "sveltos-"

_ARGO = "argocd.argoproj.io/tracking-id"
_ARGO_LABEL = "argocd.argoproj.io/instance"


class NotOursError(ConflictError):
    """No profile made what is there, and nobody asked that it be taken over."""


class SveltosDeploysError(NotOursError):
    """Sveltos itself deploys what is there, and nobody asked that it be taken over."""


def meet(step: Apply, there: Mapping[str, Any] | None, *, always: bool) -> Apply | Adopt:
    """Decide how an object is written to a cluster that may have it already.

    A profile created an object with ownership annotations, also with those of Sveltos, and its
    owner record says which. By `always` all others are adopted, as Sveltos does, except those that
    Sveltos deploys.

    Raises:
        NotOursError: another manager created it, and its manifest does not ask for adoption.
        SveltosDeploysError: Sveltos has not released it, and its manifest does not ask for it.
    """
    if there is None:
        return replace(step, life="", adopted="")
    life = str((there.get("metadata") or {}).get("uid") or "")
    if step.life == life:
        return step
    asked = adoption(step.desired)
    wished = asked or step.desired.how.force
    if _is_a_profiles(there):
        if _is_deployed_by_sveltos(there) and not wished:
            raise SveltosDeploysError(_not_released(step.desired, there))
        return written_over(step, there)
    maker = _maker(there)
    if wished or always:
        return Adopt(step.desired, step.held, life, maker, for_good=asked == "own")
    raise NotOursError(_refusal(step.desired, maker))


def take_fields(profile: Profile, there: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return the patch by which a profile gets what Sveltos deployed for it; None if it does not.

    The fields that Sveltos applied become Bellhop's, so that it can remove them, too.
    """
    if there is None or not takes_over(profile, there):
        return None
    fields = [
        {**each, "manager": MANAGER} if _is_sveltos(each) else dict(each)
        for each in _managed(there)
    ]
    version = (there.get("metadata") or {}).get("resourceVersion")
    return {"metadata": {"resourceVersion": version, "managedFields": fields}}


def takes_over(profile: Profile, there: Mapping[str, Any]) -> bool:
    """Return whether Sveltos deployed an object for the declaration that a profile is of.

    Sveltos names what a trigger generates at random behind a prefix, unless the trigger names it.
    """
    if not profile.adopts_sveltos or not _is_deployed_by_sveltos(there):
        return False
    marks = _of(there, "annotations")
    kind, name = _text(marks, _OWNER_KIND), str(marks[OWNER])
    if profile.trigger:
        return kind == "ClusterProfile" and (
            name == profile.title or name.startswith(_GENERATED_PREFIX)
        )
    own = profile_place(profile.name).rpartition("/")[2]
    return (kind, name) == (profile_kind(profile.name), own)


def written_over(step: Apply, there: Mapping[str, Any]) -> Apply:
    """Return the step that writes to an object that a profile made."""
    life = str((there.get("metadata") or {}).get("uid") or "")
    return replace(step, life=life, adopted=adopted_from(there))


def left(step: Remove | Release, there: Mapping[str, Any]) -> Remove | Release:
    """Decide whether an object goes, now that it is known what is there: an adopted one stays."""
    return Release(step.key, step.held) if adopted_from(there) else step


def adopted_from(there: Mapping[str, Any]) -> str:
    """Say who made an object that was adopted; empty for any other."""
    return _text(_of(there, "annotations"), ADOPTED)


def _is_a_profiles(there: Mapping[str, Any]) -> bool:
    """Say whether a profile made an object, or we made it for one, as a namespace is made.

    One that a profile has left is anybody's.
    """
    marks = {*_of(there, "labels"), *_of(there, "annotations")}
    return not marks.isdisjoint((*WRITTEN_BY_SVELTOS, MADE_BY)) or any(
        (each.get("manager"), each.get("operation")) == (MANAGER, "Apply")
        for each in _managed(there)
    )


def _is_deployed_by_sveltos(there: Mapping[str, Any]) -> bool:
    """Say whether Sveltos owns an object: when it releases one, it removes the owner.

    One that Bellhop applied since is Bellhop's, whatever Sveltos had written before.
    """
    managers = {each.get("manager") for each in _managed(there) if each.get("operation") == "Apply"}
    return OWNER in _of(there, "annotations") and _SVELTOS in managers and MANAGER not in managers


def _is_sveltos(fields: Mapping[str, Any]) -> bool:
    return (fields.get("manager"), fields.get("operation")) == (_SVELTOS, "Apply")


def _not_released(desired: Desired, there: Mapping[str, Any]) -> str:
    owner = _of(there, "annotations")
    kind, name = _text(owner, _OWNER_KIND) or "profile", _text(owner, OWNER)
    return (
        f"cannot apply {_format_object(desired)}: Sveltos deploys it for its {kind} '{name}';"
        f" release it there first, or annotate it in {desired.ref} with"
        f' {ADOPT}: "true" to take it over'
    )


def _refusal(desired: Desired, maker: str) -> str:
    return (
        f"cannot apply {_format_object(desired)}: it already exists, created by {maker} and"
        f' not by a profile; to take it over, annotate it in {desired.ref} with {ADOPT}: "true",'
        " or set force on that ref"
    )


def _format_object(desired: Desired) -> str:
    place = "/".join(filter(None, (desired.key.namespace, desired.key.name)))
    return f"{desired.key.gvk.kind} '{place}'"


def _maker(there: Mapping[str, Any]) -> str:
    """Say who made an object, by all signs that there are of it."""
    managers = list(dict.fromkeys(_managers(there)))
    shown = ", ".join(f"'{each}'" for each in managers[:_MOST_MANAGERS])
    more = f" and {len(managers) - _MOST_MANAGERS} more" if len(managers) > _MOST_MANAGERS else ""
    fields = f"field manager{'s' if len(managers) > 1 else ''} {shown}{more}" if managers else ""
    who = " and ".join(dict.fromkeys(_makers(there)))
    if who and fields:
        return f"{who} ({fields})"
    return who or fields or "somebody unknown"


def _makers(there: Mapping[str, Any]) -> Iterator[str]:
    known = {**_of(there, "labels"), **_of(there, "annotations")}
    for tool, (namespace, name) in _TOOLS.items():
        if _text(known, name):
            place = "/".join(filter(None, (_text(known, namespace), _text(known, name))))
            yield f"{tool} '{place}'"
    application = _text(known, _ARGO).partition(":")[0] or _text(known, _ARGO_LABEL)
    if application:
        yield f"Argo CD application '{application}'"
    for each in _list(there, "ownerReferences"):
        yield f"its owner {_text(each, 'kind')} '{_text(each, 'name')}'"


def _managers(there: Mapping[str, Any]) -> Iterator[str]:
    for each in _managed(there):
        name = _text(each, "manager")
        if name and name != MANAGER and not each.get("subresource"):
            yield name


def _managed(there: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return _list(there, "managedFields")


def _list(there: Mapping[str, Any], field: str) -> list[Mapping[str, Any]]:
    found = (there.get("metadata") or {}).get(field)
    return [each for each in found if isinstance(each, Mapping)] if isinstance(found, list) else []


def _of(there: Mapping[str, Any], field: str) -> Mapping[str, Any]:
    found = (there.get("metadata") or {}).get(field)
    return found if isinstance(found, Mapping) else {}


def _text(known: Mapping[str, Any], name: str) -> str:
    """Return a value of an object for an error: on one line, and of limited length."""
    text = "".join(letter if letter.isprintable() else " " for letter in str(known.get(name) or ""))
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"
