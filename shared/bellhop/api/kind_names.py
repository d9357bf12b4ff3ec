"""The kinds that users declare to Bellhop, by name; `kinds` has what they mean, and loads more."""

from __future__ import annotations

RULES = (
    "EventSource",
    "EventTrigger",
    "EventBasedAddOn",
    "ClusterProfile",
    "Profile",
    "ClusterSet",
    "Set",
    "Classifier",
    "ClusterHealthCheck",
    "HealthCheck",
    "RoleRequest",
)
"""What decides what goes where. No cluster is asked for any of it."""

DECLARED = (*RULES, "ConfigMap", "Secret")
"""The rules, and what holds the contents that they name."""
