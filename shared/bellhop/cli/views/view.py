"""Views: the columns, rows, manifests and story of one kind."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from bellhop.cli.describe import Story
from bellhop.cli.output import Column, Row
from bellhop.installation.installation import Installation

if TYPE_CHECKING:
    from bellhop.core.selector import Selector

Manifest = Mapping[str, Any]

_SECONDS = 60.0


class Answers:
    """Remembers for a minute what a call of clusters met, for who lists them again and again."""

    def __init__(self) -> None:
        """Remember nothing yet."""
        self._known: dict[str, str] = {}
        self._keys: set[str] = set()
        self._until = 0.0

    def of(
        self, keys: Sequence[str], ask: Callable[[Sequence[str]], Mapping[str, str]]
    ) -> Mapping[str, str]:
        """Return what `ask` says of clusters, or said of the same ones within the minute."""
        if time.monotonic() > self._until or not self._keys.issuperset(keys):
            self._known, self._keys = dict(ask(keys)), set(keys)
            self._until = time.monotonic() + _SECONDS
        return self._known


class Query(Struct, frozen=True):
    """Conditions on objects; an empty one is met by all. `answers` are kept for the next query."""

    namespace: str = ""
    name: str = ""
    selector: Selector | None = None
    show_secrets: bool = False
    answers: Answers = field(default_factory=Answers)

    def takes(self, namespace: str, name: str, labels: Mapping[str, str]) -> bool:
        """Say whether an object is asked for."""
        return (
            self.namespace in ("", namespace)
            and self.name in ("", name)
            and (self.selector is None or self.selector.admits(labels))
        )


class View(Struct, frozen=True):
    """One kind; `describe` tells of every object that a query takes, and says how many."""

    columns: tuple[Column, ...]
    rows: Callable[[Installation, Query], Iterable[Row]]
    manifests: Callable[[Installation, Query], Iterable[Manifest]]
    describe: Callable[[Installation, Query, Story], int]


def labels_of(manifest: Manifest) -> Mapping[str, str]:
    """Read the labels of a manifest."""
    return (manifest.get("metadata") or {}).get("labels") or {}


def name_of(manifest: Manifest) -> str:
    """Read the name of a manifest."""
    return str((manifest.get("metadata") or {}).get("name") or "")
