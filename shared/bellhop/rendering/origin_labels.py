"""Labels that name the trigger and the event of a generated object."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any

from bellhop.core.gvk import ObjectKey
from bellhop.core.names import label_value_problem
from bellhop.state.profile import Profile

_PREFIX = "eventtrigger.lib.projectsveltos.io/"
_TRIGGER = "eventtriggername"
_ILLEGAL = re.compile(r"[^A-Za-z0-9_.-]")
_READABLE, _DIGEST = 50, 12


def origin_labels(profile: Profile, source: str) -> dict[str, str]:
    """Return the labels by which users of Sveltos find what a trigger generated.

    A text that is no valid label value, as the name of a ClusterRole may be, is cut to its valid
    part, with a digest of the whole.
    """
    namespace, _, name = profile.cluster.partition("/")
    named = {
        _TRIGGER: profile.trigger,
        "clusterNamespace": namespace,
        "clustername": name,
        "clustertype": "Sveltos",
        "eventreportname": source,
        "eventsourcename": source,
    }
    if profile.object:
        key = ObjectKey.parse(profile.object)
        named |= {"resourcenamespace": key.namespace, "resourcename": key.name}
    return {f"{_PREFIX}{label}": label_value(text) for label, text in named.items() if text}


def is_generated(metadata: Mapping[str, Any]) -> bool:
    """Return whether a trigger generated an object, be it one of Bellhop or of Sveltos."""
    return f"{_PREFIX}{_TRIGGER}" in (metadata.get("labels") or {})


def instance_labels(profile: Profile, source: str, namespace: str, name: str) -> dict[str, str]:
    """Return the labels of what was instantiated of a ConfigMap or Secret."""
    ref = {"refnamespace": namespace, "refname": name}
    own = {f"{_PREFIX}{label}": label_value(text) for label, text in ref.items()}
    return {**origin_labels(profile, source), **own}


def label_value(text: str) -> str:
    """Return a text as the value of a label; one that is none is cut, with a digest of it."""
    if not label_value_problem(text):
        return text
    readable = _ILLEGAL.sub("-", text)[:_READABLE].strip("-_.")
    return f"{readable}-{hashlib.sha256(text.encode()).hexdigest()[:_DIGEST]}".lstrip("-")


GENERATED = {f"{_PREFIX}fromgenerator": "ok"}
"""The label of what a generator wrote."""
