"""What the stages tell each other: identity only; who handles it reads the current state.

Groups decide what waits for what: one object's evaluations, one profile's instantiations, one
profile's applications in one cluster, and one cluster's sweeps come one after the other.
"""

from __future__ import annotations

from datetime import timedelta

from bellhop.model.gvk import ObjectKey
from bellhop.ports.queue import Message

_WORK = timedelta(minutes=2)
"""Longer than work on one message takes."""


def evaluate(cluster: str, key: ObjectKey, *, trace: str, rang: str = "") -> Message:
    """Ask for the sources to be run over an object's newest observation.

    `rang` is when the cluster noticed, in ISO 8601, for the ledger's total.
    """
    body = {"cluster": cluster, "object": str(key), "trace": trace, "rang": rang}
    return Message(body, f"{cluster}/{key}")


def instantiate(
    trigger: str, cluster: str, key: str = "", *, trace: str = "", rang: str = ""
) -> Message:
    """Ask for a trigger's profile in a source cluster, for one object or, with no key, for all."""
    body = {
        "do": "instantiate",
        "trigger": trigger,
        "cluster": cluster,
        "object": key,
        "trace": trace,
        "rang": rang,
    }
    return Message(body, f"{trigger}/{cluster}/{key}")


def resolve(profile: str) -> Message:
    """Ask for a user's own profile to be taken to the clusters it selects."""
    return Message({"do": "resolve", "profile": profile}, f"profile/{profile}")


def apply(
    trigger: str, cluster: str, profile: str, destination: str, *, trace: str = "", rang: str = ""
) -> Message:
    """Ask for a profile to be applied to, or withdrawn from, one cluster."""
    body = {
        "do": "apply",
        "trigger": trigger,
        "cluster": cluster,
        "profile": profile,
        "destination": destination,
        "trace": trace,
        "rang": rang,
    }
    return Message(body, f"{destination}/{profile}")


def contest(owner: tuple[str, str, str], destination: str, key: ObjectKey) -> Message:
    """Tell a profile (trigger, source cluster, name) that an object changed hands, or may."""
    message = apply(*owner, destination)
    return Message({**message.body, "contested": str(key)}, message.group)


def sweep(cluster: str, *, full: bool = False) -> Message:
    """Ask for a cluster to be listed; `full` evaluates all objects, not only those that changed."""
    return Message({"do": "sweep", "cluster": cluster, "full": full}, cluster)


def tidy(cluster: str) -> Message:
    """Ask for the traces of a forgotten cluster, once nobody is at work on it any more."""
    return Message({"do": "tidy", "cluster": cluster}, f"{cluster}/tidy", delay=_WORK)


def confirm(
    cluster: str, key: ObjectKey, *, uid: str, before: int, trace: str, rang: str = ""
) -> Message:
    """Ask for one object to be read back, after a hint that it is about to change.

    `before` is its resource version as the hint had it: seeing it again says that the change
    is not stored yet, or never will be.
    """
    body = {
        "do": "confirm",
        "cluster": cluster,
        "object": str(key),
        "uid": uid,
        "before": before,
        "trace": trace,
        "rang": rang,
    }
    # The API server stores only after its webhooks have answered.
    return Message(body, f"{cluster}/{key}", delay=timedelta(milliseconds=20))
