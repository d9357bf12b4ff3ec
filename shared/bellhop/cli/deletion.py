"""From a command line to what is to be deleted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from bellhop.api.kinds import KINDS, key_of
from bellhop.api.sveltos_cluster import KIND as CLUSTER
from bellhop.cli.kinds import KindName, kind_named
from bellhop.cli.manifest_files import documents, files
from bellhop.cli.selection import Selection, select_applied
from bellhop.errors import InvalidError

if TYPE_CHECKING:
    from bellhop.installation.installation import Installation

Named = tuple[tuple[str, ...], str, str]
"""The kinds of manifests it may be, namespace and name."""

Find: TypeAlias = Callable[["Installation"], Sequence[Named]]
"""Find the objects that a command line names in an installation."""


def read_kind(kind: str, names: Sequence[str], namespace: str, selection: Selection) -> Find:
    """Read KIND and NAME..., -l or --all: names first, so that mistakes are reported at once.

    Raises:
        InvalidError: as `named` and `selected` do.
    """
    if selection:
        return lambda here: list(selected(here, kind, selection, namespace))
    found = list(named(kind, names, namespace))
    return lambda _: found


def read_files(paths: Sequence[str], *, recursive: bool) -> Find:
    """Read the identities in files.

    Raises:
        InvalidError: a document has none.
    """
    found = list(listed(paths, recursive=recursive))
    return lambda _: found


def named(kind: str, names: Sequence[str], namespace: str) -> Iterator[Named]:
    """Read KIND NAME..., or KIND/NAME; a name may have its namespace before it.

    Raises:
        InvalidError: there is no such kind, or it is none that users declare, or a namespace is
            named where there is none, or two are.
    """
    first, slash, name = kind.partition("/")
    known = kind_named(first)
    names = [name, *names] if slash else names
    _refuse_not_stored(known)
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


def selected(
    here: Installation, kind: str, selection: Selection, namespace: str
) -> Iterator[Named]:
    """Yield the objects that users applied and that -l or --all selects.

    Raises:
        InvalidError: there is no such kind, or users do not apply it.
        MissingError: there is no such object.
    """
    known = kind_named(kind)
    _refuse_not_stored(known)
    for row in select_applied(here, kind, selection, namespace):
        place = str(row["namespace"]) if known.namespaced else ""
        yield known.stored, place, str(row["name"])


def _refuse_not_stored(known: KindName) -> None:
    if not known.stored:
        hint = (
            "`bellhop deregister cluster` takes a cluster out"
            if known.singular == "cluster"
            else "Bellhop writes them itself"
        )
        raise InvalidError(f"cannot delete {known.plural}; {hint}")


def listed(paths: Sequence[str], *, recursive: bool) -> Iterator[Named]:
    """Read identities alone: what is no longer valid can still be deleted."""
    for document in documents(files(paths, recursive=recursive), validate=False):
        data: Any = document.data if isinstance(document.data, dict) else {}
        metadata = data.get("metadata")
        kind = data.get("kind")
        name = metadata.get("name") if isinstance(metadata, dict) else None
        if kind == CLUSTER and isinstance(name, str):
            place = metadata.get("namespace") or "default"
            raise InvalidError(
                f"cannot delete {CLUSTER} '{place}/{name}'; `bellhop deregister cluster"
                f" {place}/{name}` takes the cluster out",
                where=document.where(),
            )
        if kind not in KINDS or not isinstance(name, str):
            raise InvalidError(
                "cannot determine what to delete: it takes a known kind, and metadata.name",
                where=document.where(),
            )
        key = key_of(data)
        # An EventTrigger and an EventBasedAddOn are one kind.
        yield kind_named(kind).stored or (kind,), key.namespace, key.name
