"""Holding triggers and profiles to what their annotation `bellhop.dev/allow` lets them bring.

Asked twice: of what was rendered, before it becomes a profile; and in each cluster, which knows
what has a namespace, before anything is applied there.
"""

from __future__ import annotations

from collections.abc import Iterable

from bellhop.engine.naming import profile_kind, profile_place
from bellhop.errors import DeniedError
from bellhop.model.allow import ANNOTATION, read_allow
from bellhop.model.chart import RELEASE
from bellhop.model.gvk import ObjectKey
from bellhop.model.kinds import Declaration
from bellhop.model.record import Content, Profile

_SHOWN = 80


class NotAllowedError(DeniedError):
    """Its own annotation, or its namespace, does not allow it; no cluster was asked."""


def refuse_rendered(owner: Declaration, contents: Iterable[Content]) -> None:
    """Refuse objects that a trigger or profile may not bring, whatever the scope of their kind.

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
    """Refuse objects that a profile may not bring, as the cluster that they go to has them.

    Raises:
        NotAllowedError: as `refuse_rendered` does.
    """
    for key in keys if profile.allow else ():
        if not read_allow(profile.allow).admits(key.gvk.group, key.gvk.kind, key.namespace):
            trigger, name = profile.trigger, profile.name
            who = (
                f"trigger '{trigger}'"
                if trigger
                else f"{profile_kind(name)} '{profile_place(name)}'"
            )
            raise _denied(who, key)


def refuse_beyond(profile: Profile, keys: Iterable[ObjectKey]) -> None:
    """Refuse what is Local of a Profile and not in its namespace; a ClusterProfile has none.

    Raises:
        NotAllowedError: it names the Profile, the kind and its place.
    """
    for key in keys if profile.namespace else ():
        if key.namespace != profile.namespace:
            raise NotAllowedError(
                f"cannot deploy Local {key.gvk.kind[:_SHOWN]} '{key.name[:_SHOWN]}' {_place(key)}:"
                f" what is Local of Profile '{profile.name}' can only be in its own namespace;"
                f" write it into '{profile.namespace}', or a ClusterProfile"
            )


def _place(key: ObjectKey) -> str:
    return f"in namespace '{key.namespace[:_SHOWN]}'" if key.namespace else "without a namespace"


def _denied(who: str, key: ObjectKey, where: str = "") -> NotAllowedError:
    kind = f"{key.gvk.kind}.{key.gvk.group}" if key.gvk.group else key.gvk.kind
    return NotAllowedError(
        f"{where}{who} may not deploy a {kind[:_SHOWN]} {_place(key)}: its"
        f" annotation {ANNOTATION} does not allow it; allow it there, or look for a value that the"
        " template does not quote"
    )
