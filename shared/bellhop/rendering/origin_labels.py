"""The labels that tell which trigger and event something was generated from."""

from __future__ import annotations

import hashlib
import re

from bellhop.core.gvk import ObjectKey
from bellhop.core.names import label_value_problem
from bellhop.state.record import Profile

_PREFIX = "eventtrigger.lib.projectsveltos.io/"
_ILLEGAL = re.compile(r"[^A-Za-z0-9_.-]")
_READABLE, _DIGEST = 50, 12


def origin_labels(profile: Profile, source: str) -> dict[str, str]:
    """Return the labels by which users of Sveltos find what a trigger generated.

    What is no label's value, as the name of a ClusterRole may be, is written as far as it is one,
    with a digest of all of it.
    """
    namespace, _, name = profile.cluster.partition("/")
    told = {
        "eventtriggername": profile.trigger,
        "clusterNamespace": namespace,
        "clustername": name,
        "clustertype": "Sveltos",
        "eventreportname": source,
        "eventsourcename": source,
    }
    if profile.object:
        key = ObjectKey.parse(profile.object)
        told |= {"resourcenamespace": key.namespace, "resourcename": key.name}
    return {f"{_PREFIX}{label}": _value(text) for label, text in told.items() if text}


def instance_labels(profile: Profile, source: str, namespace: str, name: str) -> dict[str, str]:
    """Return the labels of what was instantiated of a ConfigMap or Secret."""
    ref = {"refnamespace": namespace, "refname": name}
    own = {f"{_PREFIX}{label}": _value(text) for label, text in ref.items()}
    return {**origin_labels(profile, source), **own}


def _value(text: str) -> str:
    if not label_value_problem(text):
        return text
    readable = _ILLEGAL.sub("-", text)[:_READABLE].strip("-_.")
    return f"{readable}-{hashlib.sha256(text.encode()).hexdigest()[:_DIGEST]}".lstrip("-")


GENERATED = {f"{_PREFIX}fromgenerator": "ok"}
"""The label of what a generator wrote."""
