"""Names of kinds, and of sources that other kinds have: for readers that need no models.

A Classifier and a HealthCheck have sources as EventSources are, under names that no manifest may
have.
"""

from __future__ import annotations

RULES = (
    "EventSource",
    "EventTrigger",
    "EventBasedAddOn",
    "ClusterProfile",
    "Profile",
    "ClusterPromotion",
    "ClusterSet",
    "Set",
    "Classifier",
    "ClusterHealthCheck",
    "HealthCheck",
    "RoleRequest",
)
"""The kinds that decide what is deployed where; no cluster is read for them."""

DECLARED = (*RULES, "ConfigMap", "Secret")
"""The rules, and the kinds that hold the contents that they name."""

_CLASSIFIER = "classifier:"
_HEALTH_CHECK = "healthcheck:"


def classifier_source(classifier: str, index: int | None = None) -> str:
    """Return the name of a classifier's source for one of its selectors, or for all of them."""
    return f"{_CLASSIFIER}{classifier}" + ("" if index is None else f":{index}")


def health_source(health_check: str) -> str:
    """Return the name of a health check's source."""
    return f"{_HEALTH_CHECK}{health_check}"


def classifier_of(source: str) -> str:
    """Return the classifier that has a source; empty for any other source."""
    found = source.removeprefix(_CLASSIFIER)
    return "" if found == source else found.partition(":")[0]


def health_check_of(source: str) -> str:
    """Return the health check that has a source; empty for any other source."""
    found = source.removeprefix(_HEALTH_CHECK)
    return "" if found == source else found


def asker(source: str) -> str:
    """Return kind and name that have a source, as in `Classifier gpu`; empty for an EventSource."""
    if classifier := classifier_of(source):
        return f"Classifier {classifier}"
    health_check = health_check_of(source)
    return f"HealthCheck {health_check}" if health_check else ""
