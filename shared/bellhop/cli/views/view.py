"""Views: the columns of a kind, and how one of its objects reads as row, manifest and details."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from msgspec import Struct, field

from bellhop.cli.output import Column, Row
from bellhop.cli.printer import Description
from bellhop.installation import Installation

if TYPE_CHECKING:
    from bellhop.core.selector import Selector

T = TypeVar("T")

Manifest = Mapping[str, Any]

_SECONDS = 60.0


class CallCache:
    """The errors of calls of clusters, kept for a minute: `get -w` lists the same ones often."""

    def __init__(self) -> None:
        self._errors: dict[str, str] = {}
        self._keys: set[str] = set()
        self._until = 0.0

    def get(
        self, keys: Sequence[str], call: Callable[[Sequence[str]], Mapping[str, str]]
    ) -> Mapping[str, str]:
        """Return the result of `call` for clusters, or the cached one if it has all of them."""
        if time.monotonic() > self._until or not self._keys.issuperset(keys):
            self._errors, self._keys = dict(call(keys)), set(keys)
            self._until = time.monotonic() + _SECONDS
        return self._errors


class Query(Struct, frozen=True):
    """Conditions on objects; an empty one matches all. `calls` serves the same query again."""

    namespace: str = ""
    name: str = ""
    selector: Selector | None = None
    show_secrets: bool = False
    calls: CallCache = field(default_factory=CallCache)

    def matches(self, namespace: str, name: str, labels: Mapping[str, str]) -> bool:
        return (
            self.namespace in ("", namespace)
            and self.name in ("", name)
            and (self.selector is None or self.selector.admits(labels))
        )


class View(Struct, Generic[T], frozen=True):
    """One kind: `select` finds its objects, and each other function prints one of them."""

    columns: tuple[Column, ...]
    select: Callable[[Installation, Query], Iterable[T]]
    row: Callable[[Installation, T], Row]
    manifest: Callable[[Installation, T], Manifest]
    details: Callable[[Installation, T, Description], None]

    def rows(self, here: Installation, query: Query) -> Iterator[Row]:
        return (self.row(here, each) for each in self.select(here, query))

    def manifests(self, here: Installation, query: Query) -> Iterator[Manifest]:
        return (self.manifest(here, each) for each in self.select(here, query))

    def describe(self, here: Installation, query: Query, description: Description) -> int:
        """Print the details of each object, and return how many objects there are."""
        number = 0
        for number, each in enumerate(self.select(here, query), 1):  # noqa: B007 - it is returned
            self.details(here, each, description)
        return number


def select_applied(here: Installation, query: Query, *kinds: str) -> Iterator[Manifest]:
    """Yield the manifests of some kinds that users applied and that a query matches."""
    from bellhop.api.kinds import key_of

    for kind in kinds:
        for manifest in here.records.manifests.of(kind):
            key = key_of(manifest)
            if query.matches(key.namespace, key.name, labels_of(manifest)):
                yield manifest


def labels_of(manifest: Manifest) -> Mapping[str, str]:
    return (manifest.get("metadata") or {}).get("labels") or {}


def name_of(manifest: Manifest) -> str:
    return str((manifest.get("metadata") or {}).get("name") or "")
