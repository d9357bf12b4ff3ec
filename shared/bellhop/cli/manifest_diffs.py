"""What applying files would change of what is stored, object by object and line by line."""

from __future__ import annotations

import base64
import difflib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from bellhop.api.kinds import Declaration, DeclarationKey
from bellhop.cli.output import Column, Row
from bellhop.cli.redaction import HIDDEN, hidden
from bellhop.core.digest import same
from bellhop.documents.document import dump
from bellhop.errors import MissingError
from bellhop.installation.installation import Installation
from bellhop.operations.applysets import ApplySet

COLUMNS = (
    Column("KIND", "kind"),
    Column("NAMESPACE", "namespace"),
    Column("NAME", "name"),
    Column("CHANGE", "change"),
)


class Difference(Struct, frozen=True):
    """One object that would be created, configured or pruned, and its lines as diff -u has them."""

    key: DeclarationKey
    change: str
    lines: Sequence[str]

    @property
    def row(self) -> Row:
        """The difference for programs."""
        named = dict(zip(("kind", "namespace", "name"), self.key, strict=True))
        return {**named, "change": self.change, "diff": "\n".join(self.lines)}


def differences(
    here: Installation, found: Sequence[Declaration], pruned: Sequence[DeclarationKey]
) -> Iterator[Difference]:
    """Yield each object that would change, in the order of the files; what is pruned comes last.

    Values of Secrets are hidden; which of them differ is shown.
    """
    for each in found:
        old = _stored(here, each.key)
        if old is None:
            yield Difference(each.key, "created", _lines(each.key, {}, each.written))
        elif not same(old, each.written):
            yield Difference(each.key, "configured", _lines(each.key, old, each.written))
    for key in pruned:
        yield Difference(key, "pruned", _lines(key, _stored(here, key) or {}, {}))


def left(
    here: Installation, applyset: str | None, found: Sequence[Declaration], *, prune: bool
) -> list[DeclarationKey]:
    """Return what applying files as a set would delete.

    Raises:
        ConflictError: an object belongs to another set.
    """
    if applyset is None:
        return []
    keys = ApplySet(here, applyset).left(found)
    return keys if prune else []


def _stored(here: Installation, key: DeclarationKey) -> Mapping[str, Any] | None:
    try:
        kept = here.records.manifests.get(*key)
    except MissingError:
        # What was declared is lost, and applying creates it again.
        return None
    return kept.value if kept else None


def _lines(key: DeclarationKey, old: Mapping[str, Any], new: Mapping[str, Any]) -> Sequence[str]:
    texts = [_text(old, new, " (before)"), _text(new, old, " (after)")]
    before, after = (text.splitlines() for text in texts)
    names = f"stored {key}", f"files {key}"
    found = list(difflib.unified_diff(before, after, *names, lineterm=""))
    # As where a Secret's values are the same, and only written as data instead of stringData.
    return found or [f"--- {names[0]}", f"+++ {names[1]}"]


def _text(one: Mapping[str, Any], other: Mapping[str, Any], mark: str) -> str:
    """Write a manifest with its keys sorted; a hidden value that the other has not is marked."""
    if not one:
        return ""
    shown = hidden(one)
    if one.get("kind") == "Secret":
        values, others = _values(one), _values(other)
        differing = {key for key in values.keys() & others.keys() if values[key] != others[key]}
        shown["data"] = {key: HIDDEN + mark * (key in differing) for key in values}
    return dump(_sorted(shown))


def _values(secret: Mapping[str, Any]) -> dict[str, str]:
    texts = secret.get("stringData") or {}
    encoded = {
        key: base64.b64encode((value or "").encode()).decode() for key, value in texts.items()
    }
    return {**(secret.get("data") or {}), **encoded}


def _sorted(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _sorted(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return [_sorted(each) for each in value]
    return value
