"""From a command line to what is to be deleted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import click

from bellhop.cli.kinds import kind_named
from bellhop.cli.reading import documents, files
from bellhop.errors import InvalidError
from bellhop.model.kinds import KINDS, key_of

Named = tuple[tuple[str, ...], str, str]
"""The kinds of manifests it may be, namespace and name."""


def named(kind: str, names: Sequence[str], namespace: str) -> Iterator[Named]:
    """Read KIND NAME..., or KIND/NAME; a name may have its namespace before it.

    Raises:
        InvalidError: there is no such kind, or it is none that users declare, or a namespace is
            named where there is none, or two are.
    """
    first, slash, name = kind.partition("/")
    known = kind_named(first)
    names = [name, *names] if slash else names
    if not known.stored:
        hint = (
            "`bellhop deregister cluster` takes a cluster out"
            if known.singular == "cluster"
            else "Bellhop writes them itself"
        )
        raise InvalidError(f"cannot delete {known.plural}; {hint}")
    if not names:
        raise click.UsageError(f"name the {known.plural} to delete")
    for each in names:
        place, _, name = each.rpartition("/")
        if place and not known.namespaced:
            raise InvalidError(f"cannot delete '{each}': {known.plural} have no namespace")
        if place and namespace not in ("", place):
            raise InvalidError(f"'{each}' and -n {namespace} name two namespaces")
        place = (place or namespace or "default") if known.namespaced else ""
        yield known.stored, place, name


def listed(paths: Sequence[str], *, recursive: bool) -> Iterator[Named]:
    """Read identities alone: what is no longer valid can still be deleted."""
    for document in documents(files(paths, recursive=recursive), validate=False):
        data: Any = document.data if isinstance(document.data, dict) else {}
        metadata = data.get("metadata")
        kind = data.get("kind")
        name = metadata.get("name") if isinstance(metadata, dict) else None
        if kind not in KINDS or not isinstance(name, str):
            raise InvalidError(
                "cannot determine what to delete: it takes a known kind, and metadata.name",
                where=document.where(),
            )
        key = key_of(data)
        # An EventTrigger and an EventBasedAddOn are one kind.
        yield kind_named(kind).stored or (kind,), key.namespace, key.name
