"""Pausing what users declared, and clusters, and having them go on.

Of what was declared it is an annotation of its manifest, of a cluster a field of its spec.
"""

from __future__ import annotations

from bellhop.api.kinds import DeclarationKey
from bellhop.clusters.pause import Window, window_of
from bellhop.core.generated_names import profile_kind, profile_place
from bellhop.core.sveltos_annotations import PROFILE_PAUSED, TRIGGER_PAUSED
from bellhop.declarations.apply import Change
from bellhop.declarations.diff import TRIGGERS
from bellhop.errors import InvalidError, MissingError
from bellhop.installation.installation import Installation
from bellhop.state.record import Cluster


def pausable(here: Installation, trigger: str, profile: str) -> DeclarationKey:
    """Find the trigger, or without one the profile, that is to be paused.

    Raises:
        InvalidError: a trigger makes the profile, and is what can be paused.
        MissingError: there is none of that name.
    """
    if trigger:
        keys = [DeclarationKey(kind, "", trigger) for kind in TRIGGERS]
    else:
        namespace, _, name = profile_place(profile).rpartition("/")
        keys = [DeclarationKey(profile_kind(profile), namespace, name)]
    for key in keys:
        if here.records.manifests.has(*key):
            return key
    if trigger:
        raise MissingError(
            f"cannot pause trigger '{trigger}': there is none; `bellhop get eventtriggers` lists"
            " those that are"
        )
    [key] = keys
    for each in here.catalogs.known().triggers:
        if any(found.name == profile for found in here.records.profiles.heads(each)):
            raise InvalidError(
                f"cannot pause {key.kind} '{profile}': trigger '{each}' makes it; pause that, by"
                f" `bellhop pause trigger {each}`"
            )
    raise MissingError(
        f"cannot pause {key.kind} '{profile}': there is none; `bellhop get {key.kind.lower()}s`"
        " lists those that are"
    )


def mark(here: Installation, key: DeclarationKey, value: str | None) -> Change:
    """Pause what was declared, or with no value have it go on; say whether that is new.

    Raises:
        MissingError: somebody has deleted it.
        StaleError: others change it all the time.
    """
    name = TRIGGER_PAUSED if key.kind in TRIGGERS else PROFILE_PAUSED
    return here.declare.remark(key, {name: value}).change


def pause(here: Installation, cluster: str, *, paused: bool) -> Change:
    """Pause a cluster, or have it go on; say whether that is new.

    Raises:
        MissingError: there is no such cluster.
        StaleError: others change it all the time.
    """
    kept = here.records.clusters.get(cluster)
    if kept and bool(kept.value.spec.get("paused")) == paused:
        return "unchanged"
    here.declare.specify(cluster, "pause" if paused else "resume", {"paused": paused or None})
    return "configured"


def open_in(here: Installation, cluster: str, opens: str, closes: str) -> Cluster:
    """Have a cluster be active in a window alone, by cron expressions in UTC; return the cluster.

    Raises:
        InvalidError: an expression cannot be read, or the window never opens.
        MissingError: there is no such cluster.
        StaleError: others change it all the time.
    """
    window = window_of(opens, closes, here.records.clock.now())
    return here.declare.specify(cluster, "set the window of", specified(window))


def open_always(here: Installation, cluster: str) -> Cluster:
    """Have a cluster be active at any time; return the cluster.

    Raises:
        MissingError: there is no such cluster.
        StaleError: others change it all the time.
    """
    return here.declare.specify(cluster, "set the window of", {"activeWindow": None})


def specified(window: Window) -> dict[str, dict[str, str]]:
    """Return a window as it stands in the spec of a cluster, in the words of Sveltos."""
    return {"activeWindow": {"from": window.opens, "to": window.closes}}
