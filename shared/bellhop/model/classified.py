"""What classifiers make of a cluster, for people to see, and for who takes labels away later.

And what the sources are called by which they ask: so that who lists those needs no models.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime

from bellhop.frozen import frozen

_PREFIX = "classifier:"


@frozen
class Classified:
    """Which classifiers a cluster satisfies, by name, and what became of it.

    `open` are those of which nobody can say it yet; they change nothing. `leaving` says since when
    those are not satisfied that still give labels, and `lacks` which labels one does not give, as
    `CLASSIFIER LABEL`, and why.
    """

    matching: tuple[str, ...] = ()
    open: tuple[str, ...] = ()
    leaving: Mapping[str, datetime] = field(default_factory=dict)
    lacks: Mapping[str, str] = field(default_factory=dict)


def source_name(classifier: str, index: int | None = None) -> str:
    """Name the source of a classifier for one of its selectors, or for all of them."""
    return f"{_PREFIX}{classifier}" + ("" if index is None else f":{index}")


def classifier_of(source: str) -> str:
    """Name the classifier that a source is of; empty for one that somebody declared."""
    return source.removeprefix(_PREFIX).partition(":")[0] if source.startswith(_PREFIX) else ""
