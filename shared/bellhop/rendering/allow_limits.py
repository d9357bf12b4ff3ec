"""Limits that the annotation `bellhop.dev/allow` sets to what triggers and profiles deploy.

Asked twice: of what was rendered, before it becomes a profile; and in each cluster, which knows
what has a namespace, before anything is applied there. The objects of a chart are known only to
Helm: it asks while it renders, before it writes anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from bellhop.api.kinds import Declaration
from bellhop.core.allow import ANNOTATION, ReleaseAllow, read_allow
from bellhop.core.gvk import ObjectKey
from bellhop.core.identity import profile_kind, profile_place
from bellhop.errors import DeniedError
from bellhop.state.chart import RELEASE
from bellhop.state.content import Content
from bellhop.state.profile import Profile

_SHOWN = 80
_DEFINITION = "CustomResourceDefinition"


class NotAllowedError(DeniedError):
    """Its own annotation, or its namespace, does not allow it; no cluster was asked."""


def refuse_rendered(owner: Declaration, contents: Iterable[Content]) -> None:
    """Refuse objects that a trigger or profile may not deploy, whatever the scope of their kind.

    Raises:
        NotAllowedError: it names who may not, the kind and its place.
    """
    for content in contents if owner.allow else ():
        if content.chart and not read_allow(owner.allow).names(RELEASE.group, RELEASE.kind):
            raise _denied(f"{owner.kind} '{owner.place}'", ObjectKey(RELEASE, "", content.ref))
        for key in map(ObjectKey.of, content.manifests):
            if not read_allow(owner.allow).may_admit(key.gvk.group, key.gvk.kind, key.namespace):
                where = f"{content.ref}, {content.entry}: "
                raise _denied(f"{owner.kind} '{owner.place}'", key, where)


def refuse_placed(profile: Profile, keys: Iterable[ObjectKey]) -> None:
    """Refuse objects that a profile may not deploy, by the scope that their cluster has for them.

    Raises:
        NotAllowedError: as `refuse_rendered` does.
    """
    for key in keys if profile.allow else ():
        if not read_allow(profile.allow).admits(key.gvk.group, key.gvk.kind, key.namespace):
            raise _denied(_holder(profile), key)


def release_allow(
    profile: Profile,
    namespace: str,
    name: str,
    is_namespaced: Callable[[str, str], bool] | None = None,
) -> ReleaseAllow | None:
    """Return the objects that a release of a profile may have; None if it may have all.

    `is_namespaced` says of a group and kind whether its objects have namespaces in the cluster;
    without one, each entry counts as it is written.
    """
    if not profile.allow:
        return None
    allow = read_allow(profile.allow)
    scoped = allow.scoped(is_namespaced) if is_namespaced else allow
    return ReleaseAllow(scoped, _holder(profile), namespace, name)


def refuse_charted(limit: ReleaseAllow, manifests: Iterable[Mapping[str, Any]]) -> None:
    """Refuse objects that the chart of a release writes and may not have; hooks count as others.

    Raises:
        NotAllowedError: as `refuse_rendered` does.
    """
    for manifest in manifests:
        for each in _items(manifest):
            key = ObjectKey.of(each)
            namespace = key.namespace or limit.namespace
            if not limit.allow.may_admit(key.gvk.group, key.gvk.kind, namespace):
                raise _denied_chart(limit, key._replace(namespace=namespace))


def _items(manifest: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the objects of a list, whose kind may be any; and what is none.

    Helm takes all with `items` for a list, and what has no kind there for one of the list's.
    """
    items = manifest.get("items")
    if not isinstance(items, list):
        yield manifest
        return
    usual = {
        "apiVersion": manifest.get("apiVersion"),
        "kind": str(manifest.get("kind")).removesuffix("List"),
    }
    for each in items:
        if isinstance(each, Mapping):
            yield from _items(each if each.get("kind") else {**each, **usual})


OWN_NAMESPACE = "can only be in its own namespace"
"""The words by which a Local object in another namespace than its Profile's is refused."""


def refuse_beyond(profile: Profile, keys: Iterable[ObjectKey]) -> None:
    """Refuse what is Local of a Profile and not in its namespace; a ClusterProfile has none.

    Raises:
        NotAllowedError: it names the Profile, the kind and its place.
    """
    for key in keys if profile.namespace else ():
        if key.namespace != profile.namespace:
            raise NotAllowedError(
                f"cannot deploy Local {key.gvk.kind[:_SHOWN]} '{key.name[:_SHOWN]}' {_place(key)}:"
                f" what is Local of Profile '{profile.name}' {OWN_NAMESPACE};"
                f" write it into '{profile.namespace}', or a ClusterProfile"
            )


def _holder(profile: Profile) -> str:
    if profile.trigger:
        return f"trigger '{profile.trigger}'"
    return f"{profile_kind(profile.name)} '{profile_place(profile.name)}'"


def _place(key: ObjectKey) -> str:
    return f"in namespace '{key.namespace[:_SHOWN]}'" if key.namespace else "without a namespace"


def _kind(key: ObjectKey) -> str:
    return (f"{key.gvk.kind}.{key.gvk.group}" if key.gvk.group else key.gvk.kind)[:_SHOWN]


def _denied_chart(limit: ReleaseAllow, key: ObjectKey) -> NotAllowedError:
    # Of a kind that no entry names nothing else matters, and its scope is not known here.
    named = limit.allow.names(key.gvk.group, key.gvk.kind)
    place = f" {_place(key)}" if named else ""
    other = "or change the chart's values"
    if key.gvk.kind == _DEFINITION:
        # It is in the folder crds, which an upgrade may apply on its own, or in a template.
        other = (
            "change the chart's values, or leave out its folder crds: set options.skipCRDs, and not"
            " options.upgradeOptions.upgradeCRDs"
        )
    return NotAllowedError(
        f"cannot deploy the release '{limit.namespace}/{limit.name}': {limit.holder} may not deploy"
        f" a {_kind(key)}{place}, which the chart has: its annotation {ANNOTATION} does not allow"
        f" it; allow it there, {other}"
    )


def _denied(who: str, key: ObjectKey, where: str = "") -> NotAllowedError:
    return NotAllowedError(
        f"{where}{who} may not deploy a {_kind(key)} {_place(key)}: its"
        f" annotation {ANNOTATION} does not allow it; allow it there, or look for a value that the"
        " template does not quote"
    )
