"""What the sources are called by which other kinds ask for objects.

A Classifier and a HealthCheck ask as EventSources do, under names that no manifest may have. They
are told apart here by their names alone, so that who lists sources needs no models.
"""

from __future__ import annotations

_CLASSIFIER = "classifier:"
_HEALTH_CHECK = "healthcheck:"


def classifier_source(classifier: str, index: int | None = None) -> str:
    """Name the source of a classifier for one of its selectors, or for all of them."""
    return f"{_CLASSIFIER}{classifier}" + ("" if index is None else f":{index}")


def health_source(health_check: str) -> str:
    """Name the source of a health check."""
    return f"{_HEALTH_CHECK}{health_check}"


def classifier_of(source: str) -> str:
    """Name the classifier that a source is of; empty for any other source."""
    found = source.removeprefix(_CLASSIFIER)
    return "" if found == source else found.partition(":")[0]


def health_check_of(source: str) -> str:
    """Name the health check that a source is of; empty for any other source."""
    found = source.removeprefix(_HEALTH_CHECK)
    return "" if found == source else found


def asker(source: str) -> str:
    """Say who asks by a source, as in `Classifier gpu`; empty for one that somebody declared."""
    if classifier := classifier_of(source):
        return f"Classifier {classifier}"
    health_check = health_check_of(source)
    return f"HealthCheck {health_check}" if health_check else ""
