"""Kubernetes Events about users' objects that are not in force, as `kubectl describe` shows them.

EventSources, ConfigMaps and all other kinds without a status show nowhere else why they are
refused, nor does any kind of Sveltos' own definitions, whose status has no conditions.
"""

from __future__ import annotations

from datetime import datetime

from bellhop.core.digest import digest
from bellhop.ports.kube import Manifest

_NAMESPACE = "default"
"""The only one in which an API server takes Events about cluster-scoped objects."""

_MOST_BYTES = 1024
_DIGEST = 32


def make_event(about: Manifest, uid: str, reason: str, message: str, since: datetime) -> Manifest:
    """Return the Event that says why an object with a `uid` is not in force.

    Its name follows from uid, reason and message: to write it again makes no second one.
    """
    at = f"{since:%Y-%m-%dT%H:%M:%SZ}"
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {
            "name": f"bellhop-{digest([uid, reason, message])[:_DIGEST]}",
            "namespace": about["metadata"].get("namespace", _NAMESPACE),
        },
        "involvedObject": {
            "apiVersion": about["apiVersion"],
            "kind": about["kind"],
            **about["metadata"],
            "uid": uid,
        },
        "type": "Warning",
        "reason": reason,
        "message": message.encode()[:_MOST_BYTES].decode("utf-8", "ignore"),
        "source": {"component": "bellhop"},
        "firstTimestamp": at,
        "lastTimestamp": at,
        "count": 1,
    }
