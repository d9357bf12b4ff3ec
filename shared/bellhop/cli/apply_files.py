"""What `apply` does beyond single documents: the files, and what is stored already."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from bellhop.api.fields import nearest
from bellhop.api.kinds import Declaration, EventTrigger, of
from bellhop.cli.manifest_files import declarations, documents, files, last_of_each
from bellhop.cli.output import say
from bellhop.core import sveltos_annotations
from bellhop.declarations.apply import WrittenManifest
from bellhop.diagnosis import catalog_hints
from bellhop.documents.document import Document, InvalidDocuments
from bellhop.errors import InvalidError, MissingError
from bellhop.installation.installation import Installation
from bellhop.operations.rollback_warnings import pinned


def read(
    paths: Sequence[str], applyset: str | None, *, recursive: bool, allow_empty: bool = False
) -> tuple[list[Document], list[Declaration]]:
    """Read what is to be applied, as members of an applyset if one is named; the last of each.

    Raises:
        InvalidError: there is nothing, unless that is allowed, or something is wrong with it.
    """
    given = files(paths, recursive=recursive, allow_empty=allow_empty)
    found = documents(given, whole=applyset is not None and not allow_empty)
    if not (found or allow_empty):
        raise InvalidError(f"cannot apply {', '.join(paths)}: there is no document in it")
    if applyset is not None:
        from bellhop.operations.applysets import labelled

        found = labelled(found, applyset)
    kept, valid, repeated = last_of_each(found, declarations(found))
    for sentence in repeated:
        say(f"warning: {sentence}", err=True)
    return kept, valid


@contextmanager
def refusing_changes(
    here: Installation, read: Sequence[Document], found: Sequence[Declaration]
) -> Iterator[None]:
    """Word a refused change with its place in the files, and all of them at once.

    Raises:
        InvalidDocuments: with every such change, if there is any.
    """
    try:
        yield
    except InvalidError:
        _refuse_changes(here, read, found)
        raise


def _refuse_changes(
    here: Installation, read: Sequence[Document], found: Sequence[Declaration]
) -> None:
    """Refuse changes that may not be; Declare has told the first alone, without its place."""
    problems = []
    for document, new in zip(read, found, strict=True):
        if not isinstance(new, EventTrigger):
            continue
        try:
            kept = here.records.manifests.get(*new.key)
        except MissingError:
            # What was declared is lost: declaring it again is the cure.
            continue
        old = of(kept.value) if kept else None
        if not isinstance(old, EventTrigger):
            continue
        try:
            new.refuse_change(old)
        except InvalidError as error:
            sentence = str(error).removeprefix(f"{error.where}: ")
            where = document.where(tuple(error.where.split(".")))
            problems.append(InvalidError(sentence, where=where))
    if problems:
        raise InvalidDocuments(problems)


def hints(
    here: Installation, found: Sequence[Declaration], results: Sequence[WrittenManifest]
) -> Iterator[str]:
    """Say what is probably misspelt, what templates probably lack, and what reaches no cluster."""
    for new in found:
        for mark in sveltos_annotations.unknown(new.written):
            meant = nearest(mark, sveltos_annotations.MARKS)
            yield f"{new.key} has '{mark}', of which nothing is known{meant}"
    changed = {new.key for new in found}
    yield from catalog_hints.of_changed(here.catalogs.known(), changed, here.catalogs.holder)
    pairs = zip(found, results, strict=True)
    created = {new.key for new, result in pairs if result.change == "created"}
    for each in pinned(here, changed, created):
        yield (
            f"'{each.name}' was rolled back to revision {each.number}, and stays at it until"
            f" `bellhop rollback {each.name} --end`"
        )
