"""What classifiers make of a cluster, for people to see, and for who takes labels away later."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from msgspec import Struct


class Classification(Struct, frozen=True):
    """Which classifiers a cluster satisfies, by name, and what became of it.

    `open` are those of which nobody can say it yet; they change nothing. `leaving` says since when
    those are not satisfied that still give labels, and `lacks` which labels one does not give, as
    `CLASSIFIER LABEL`, and why.
    """

    matching: tuple[str, ...] = ()
    open: tuple[str, ...] = ()
    leaving: Mapping[str, datetime] = {}
    lacks: Mapping[str, str] = {}
