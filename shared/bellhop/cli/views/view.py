"""What a view is: the columns, rows, manifests and story of one kind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from bellhop.cli.output import Column, Row
from bellhop.cli.story import Story
from bellhop.fleet.installation import Installation

if TYPE_CHECKING:
    from bellhop.model.selector import Selector

Manifest = Mapping[str, Any]


class Query(Struct, frozen=True):
    """Which objects; what is empty asks nothing."""

    namespace: str = ""
    name: str = ""
    selector: Selector | None = None
    show_secrets: bool = False

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
