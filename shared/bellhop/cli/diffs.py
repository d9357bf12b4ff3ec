"""The changes that applying files, or profiles in clusters, would make."""

from __future__ import annotations

import base64
import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from bellhop.api.kinds import Declaration, DeclarationKey
from bellhop.cli.output import Column, Row
from bellhop.core.digest import same
from bellhop.core.gvk import Identity
from bellhop.deploy import object_diff
from bellhop.diagnosis.names import ProfileNames
from bellhop.diagnosis.redaction import HIDDEN, hide_values
from bellhop.documents.document import dump
from bellhop.errors import MissingError
from bellhop.installation import Installation
from bellhop.operations.applysets import ApplySet
from bellhop.operations.previews import PreviewedChange
from bellhop.state.chart import RELEASE_KEY
from bellhop.state.deployment import Change
from bellhop.state.profile import Profile

MANIFEST_COLUMNS = (
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
        named = dict(zip(("kind", "namespace", "name"), self.key, strict=True))
        return {**named, "change": self.change, "diff": "\n".join(self.lines)}


def list_differences(
    here: Installation, found: Sequence[Declaration], pruned: Sequence[DeclarationKey]
) -> Iterator[Difference]:
    """Yield each object that would change, in the order of the files; pruned ones come last.

    Values of Secrets are hidden; a mark shows that they differ.
    """
    for each in found:
        old = _read_stored(here, each.key)
        if old is None:
            yield Difference(each.key, "created", _diff_lines(each.key, {}, each.written))
        elif not same(old, each.written):
            yield Difference(each.key, "configured", _diff_lines(each.key, old, each.written))
    for key in pruned:
        yield Difference(key, "pruned", _diff_lines(key, _read_stored(here, key) or {}, {}))


def list_pruned(
    here: Installation, applyset: str | None, found: Sequence[Declaration], *, prune: bool
) -> list[DeclarationKey]:
    """Return the objects that applying files as a set would delete."""
    if applyset is None:
        return []
    keys = ApplySet(here, applyset).left(found)
    return keys if prune else []


def _read_stored(here: Installation, key: DeclarationKey) -> Mapping[str, Any] | None:
    try:
        kept = here.records.manifests.get(*key)
    except MissingError:
        # What was declared is lost, and applying creates it again.
        return None
    return kept.value if kept else None


def _diff_lines(
    key: DeclarationKey, old: Mapping[str, Any], new: Mapping[str, Any]
) -> Sequence[str]:
    texts = [_dump_marked(old, new, " (before)"), _dump_marked(new, old, " (after)")]
    before, after = (text.splitlines() for text in texts)
    names = f"stored {key}", f"files {key}"
    found = list(difflib.unified_diff(before, after, *names, lineterm=""))
    # As where a Secret's values are the same, and only written as data instead of stringData.
    return found or [f"--- {names[0]}", f"+++ {names[1]}"]


def _dump_marked(one: Mapping[str, Any], other: Mapping[str, Any], mark: str) -> str:
    """Write a manifest with sorted keys; a hidden value that differs is marked."""
    if not one:
        return ""
    shown = hide_values(one)
    if one.get("kind") == "Secret":
        values, others = _read_values(one), _read_values(other)
        differing = {key for key in values.keys() & others.keys() if values[key] != others[key]}
        shown["data"] = {key: HIDDEN + mark * (key in differing) for key in values}
    return dump(_sort_keys(shown))


def _read_values(secret: Mapping[str, Any]) -> dict[str, str]:
    texts = secret.get("stringData") or {}
    encoded = {
        key: base64.b64encode((value or "").encode()).decode() for key, value in texts.items()
    }
    return {**(secret.get("data") or {}), **encoded}


def _sort_keys(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _sort_keys(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return [_sort_keys(each) for each in value]
    return value


PREVIEW_COLUMNS = (
    Column("CLUSTER", "cluster"),
    Column("RESOURCE TYPE", "resourceType"),
    Column("NAMESPACE", "namespace"),
    Column("NAME", "name"),
    Column("ACTION", "action"),
    Column("MESSAGE", "message", prose=True),
    Column("PROFILE", "profile"),
)


_NAMED = 3

SAME, NOT_COMPARED, DIFFERS, REFUSED = "same", "not compared", "differs", "refused"


def classify_change(change: Change) -> str:
    """Return SAME, NOT_COMPARED, DIFFERS or REFUSED."""
    if change.action == "No Action":
        return NOT_COMPARED if change.message == object_diff.NOT_COMPARED else SAME
    return REFUSED if change.action == "Error" else DIFFERS


def explain_no_preview(tried: Sequence[Profile], titled: ProfileNames) -> str:
    """Explain an empty preview: no profile is in DryRun, or none would change anything so far."""
    if not tried:
        return "No profile is in DryRun."
    names = ", ".join(f"'{titled.shown(each.name)}'" for each in tried[:_NAMED])
    more = f" and {len(tried) - _NAMED} more" if len(tried) > _NAMED else ""
    return (
        f"No change is known of {names}{more} in DryRun: nothing would change, or the dry run has"
        " failed or not run yet; `bellhop get clusterprofiles -o wide` shows which"
    )


def make_preview_rows(found: Iterable[PreviewedChange], titled: ProfileNames) -> Iterator[Row]:
    """Yield one row for each change; its diff is not in the table."""
    for cluster, profile, change in found:
        yield {
            "cluster": cluster,
            "resourceType": _format_type(change.key),
            "namespace": change.key.namespace,
            "name": change.key.name,
            "action": change.action,
            "message": change.message,
            "profile": titled.with_kind(profile),
            "diff": change.diff,
        }


def _format_type(key: Identity) -> str:
    """Return the type of an object; a release has sveltosctl's word for it."""
    return "helm release" if key[:2] == RELEASE_KEY[:2] else f"{key.group}:{key.kind}"


def format_previews(found: Iterable[PreviewedChange], titled: ProfileNames) -> Iterator[str]:
    """Yield changes as text: a line for each object, and its diff."""
    for cluster, profile, change in found:
        if change.action == "No Action":
            continue
        place = "/".join(filter(None, (change.key.namespace, change.key.name)))
        said = f": {change.message}" if change.message else ""
        of = f"of '{titled.shown(profile)}'"
        yield f"{cluster}: {change.action} {change.key.kind} '{place}' {of}{said}"
        yield from change.diff.splitlines()
