"""Applysets: named sets of what users apply, so that what left a folder can be deleted.

An object belongs to the set that its label names; nothing else says so. Hence an object that is
applied without a set leaves the set it was in, and is not pruned.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from bellhop.api.kinds import KINDS, Declaration, DeclarationKey
from bellhop.core.names import label_value_problem
from bellhop.core.sveltos_annotations import APPLYSET
from bellhop.declarations.records import LEASE
from bellhop.documents.document import Document
from bellhop.errors import ConflictError, InvalidError, MissingError, StaleError
from bellhop.installation import Installation

Membership = Mapping[DeclarationKey, str]
"""The applyset of each declared object that has one."""


class LeasedSet:
    """An applyset of any members, applied by one process at a time."""

    def __init__(self, here: Installation, name: str) -> None:
        self.here = here
        self.name = name
        self._token = ""

    @contextmanager
    def leased(self) -> Iterator[None]:
        """Hold the lease of this set meanwhile.

        Raises:
            BusyError: another process applies it.
        """
        leases = self.here.records.applysets
        self._token = leases.acquire(self.name)
        try:
            yield
        finally:
            leases.release(self.name, self._token)

    def renew(self, cure: str) -> None:
        """Renew the lease.

        Raises:
            StaleError: it was lost; ends with the `cure`.
        """
        try:
            self._token = self.here.records.applysets.renew(self.name, self._token)
        except StaleError as error:
            raise StaleError(
                f"cannot prune applyset '{self.name}': to apply it took longer than"
                f" {LEASE.seconds // 60} minutes; {cure}"
            ) from error


class ApplySet(LeasedSet):
    """The members of an applyset that `bellhop apply` stores."""

    def left(self, found: Sequence[Declaration]) -> list[DeclarationKey]:
        """Return the objects of this set that are not among the given ones, in the order of kinds.

        Raises:
            ConflictError: a given one belongs to another set.
        """
        before = _read_memberships(self.here)
        found_keys = {each.key for each in found}
        for key in (each.key for each in found):
            other = before.get(key, self.name)
            if other != self.name:
                raise ConflictError(
                    f"cannot apply {key} to applyset '{self.name}': it is in applyset '{other}';"
                    " take it out of the files of that set, or out of the set by `bellhop apply -f"
                    " FILE` without --applyset"
                )
        return [key for key, of in before.items() if of == self.name and key not in found_keys]

    def prune(self, keys: Collection[DeclarationKey]) -> list[DeclarationKey]:
        """Delete an object that still belongs to this set, as `bellhop delete` does.

        Raises:
            StaleError: the lease was lost; nothing is deleted.
        """
        if not keys:
            return []
        self.renew("all of it is stored, and nothing deleted: apply it again")
        leaving = [key for key in keys if self._has(key)]
        if leaving:
            self.here.declare.delete(leaving)
        return leaving

    def _has(self, key: DeclarationKey) -> bool:
        try:
            kept = self.here.records.manifests.get(*key)
        except MissingError:
            return False
        return kept is not None and _set_of(kept.value) == self.name


def label_documents(documents: Sequence[Document], name: str) -> list[Document]:
    """Return documents with the label of their applyset; those without metadata unchanged.

    Raises:
        InvalidError: the name cannot be a label, or a document names another set.
    """
    check_name(name)
    return [_labelled(each, name) for each in documents]


def check_name(name: str) -> None:
    """Refuse a name that cannot be a label."""
    if problem := label_value_problem(name) or ("" if name else "it is empty"):
        raise InvalidError(f"cannot use --applyset '{name}': {problem}")


def _labelled(document: Document, name: str) -> Document:
    data: Any = document.data if isinstance(document.data, dict) else {}
    metadata = data.get("metadata")
    labels = (metadata.get("labels") or {}) if isinstance(metadata, dict) else None
    if metadata is None or not isinstance(labels, dict):
        # Validation says what is wrong with it.
        return document
    other = labels.get(APPLYSET, name)
    if other != name:
        raise InvalidError(
            f"its label says applyset '{other}', and it is applied as '{name}'; remove the label",
            where=document.where(("metadata", "labels", APPLYSET)),
        )
    marked = {**metadata, "labels": {**labels, APPLYSET: name}}
    return replace(document, data={**data, "metadata": marked})


def _read_memberships(here: Installation) -> Membership:
    """Yield the applyset of each object; a lost one belongs to none."""
    found: dict[DeclarationKey, str] = {}
    for kind in KINDS:
        for sort, manifest in here.records.manifests.listed(kind):
            if name := _set_of(manifest or {}):
                namespace, _, rest = sort.partition("/")
                found[DeclarationKey(kind, namespace, rest)] = name
    return found


def _set_of(manifest: Mapping[str, Any]) -> str:
    labels = (manifest.get("metadata") or {}).get("labels") or {}
    return str(labels.get(APPLYSET, ""))
