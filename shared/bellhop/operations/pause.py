"""Pauses of manifests and clusters.

A manifest is paused by an annotation, a cluster by a field of its spec.
"""

from __future__ import annotations

from bellhop.api.kinds import DeclarationKey
from bellhop.configuration.cluster_objects import CONFIGURATION_UID, PAUSED_BY_COMMAND
from bellhop.core.identity import profile_kind, profile_place
from bellhop.core.sveltos_annotations import PROFILE_PAUSED, TRIGGER_PAUSED
from bellhop.core.windows import Window, read_window
from bellhop.declarations.apply import Change
from bellhop.declarations.diff import TRIGGERS
from bellhop.errors import ConflictError, InvalidError, MissingError
from bellhop.installation import Installation
from bellhop.operations.promotions import refuse_stage_profile
from bellhop.state.cluster import Cluster


def find_pausable(
    here: Installation, trigger: str, profile: str, verb: str = "pause"
) -> DeclarationKey:
    """Return the trigger, or if there is none the profile, of that name.

    `verb` is what is to be done, for errors.

    Raises:
        InvalidError: a trigger or promotion makes the profile, and is to be paused instead.
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
            f"cannot {verb} trigger '{trigger}': there is none; `bellhop get eventtriggers` lists"
            " those that are"
        )
    [key] = keys
    instead = f"{verb} that, by `bellhop {verb} promotion {{promotion}}`"
    refuse_stage_profile(here, profile, verb, instead)
    for each in here.catalogs.known().triggers:
        if any(found.name == profile for found in here.records.profiles.heads(each)):
            raise InvalidError(
                f"cannot {verb} {key.kind} '{profile}': trigger '{each}' makes it; {verb} that, by"
                f" `bellhop {verb} trigger {each}`"
            )
    raise MissingError(
        f"cannot {verb} {key.kind} '{profile}': there is none; `bellhop get {key.kind.lower()}s`"
        " lists those that are"
    )


def pause_manifest(here: Installation, key: DeclarationKey, value: str | None) -> Change:
    """Pause a manifest, or resume it with no value; return whether that changed it.

    Raises:
        MissingError: it was deleted.
        StaleError: other writers keep winning.
    """
    name = TRIGGER_PAUSED if key.kind in TRIGGERS else PROFILE_PAUSED
    return here.declare.remark(key, {name: value}).change


def pause_cluster(here: Installation, cluster: str, *, paused: bool) -> Change:
    """Pause a cluster, or resume it; return whether that changed it.

    A pause of a cluster that a custom resource registered outlasts changes of that.

    Raises:
        ConflictError: the custom resource pauses it, and it is to be resumed.
        MissingError: there is no such cluster.
        StaleError: other writers keep winning.
    """
    kept = here.records.clusters.get(cluster)
    if kept and bool(kept.value.spec.get("paused")) == paused:
        return "unchanged"
    marks: dict[str, str | None] = {}
    if kept and CONFIGURATION_UID in kept.value.annotations:
        if not paused and PAUSED_BY_COMMAND not in kept.value.annotations:
            raise ConflictError(
                f"cannot resume cluster '{cluster}': its SveltosCluster in the configuration"
                " cluster has paused: true; change it there with kubectl"
            )
        marks = {PAUSED_BY_COMMAND: "true" if paused else None}
    verb = "pause" if paused else "resume"
    here.declare.specify(cluster, verb, {"paused": paused or None}, marks)
    return "configured"


def set_window(here: Installation, cluster: str, opens: str, closes: str) -> Cluster:
    """Make a cluster active only in a window of cron expressions in UTC; return the cluster.

    Raises:
        InvalidError: an expression is invalid, or the window never opens.
        MissingError: there is no such cluster.
        StaleError: other writers keep winning.
    """
    window = read_window(opens, closes, here.records.clock.now())
    return here.declare.specify(cluster, "set the window of", format_window(window))


def clear_window(here: Installation, cluster: str) -> Cluster:
    """Make a cluster active at any time; return the cluster.

    Raises:
        MissingError: there is no such cluster.
        StaleError: other writers keep winning.
    """
    return here.declare.specify(cluster, "set the window of", {"activeWindow": None})


def format_window(window: Window) -> dict[str, dict[str, str]]:
    """Return a window as the spec of a cluster has it, in the words of Sveltos."""
    return {"activeWindow": {"from": window.opens, "to": window.closes}}
