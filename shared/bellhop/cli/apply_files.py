"""The files of `bellhop apply` and `bellhop diff`, and the changes that stored objects refuse.

This is apart from `rollback`, which loads all that renders a profile.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice

from bellhop.api.fields import nearest
from bellhop.api.kinds import Declaration, DeclarationKey, EventTrigger, of
from bellhop.cli.manifest_files import keep_last, list_files, read_files, validate
from bellhop.cli.output import say
from bellhop.core import sveltos_annotations
from bellhop.declarations.apply import WrittenManifest
from bellhop.diagnosis import catalog_hints
from bellhop.diagnosis.catalog_hints import list_changed_profiles, list_changed_triggers
from bellhop.documents.document import Document, InvalidDocuments
from bellhop.errors import InvalidError, MissingError
from bellhop.installation import Installation
from bellhop.state.profile import Profile


def read_manifests(
    paths: Sequence[str], applyset: str | None, *, recursive: bool, allow_empty: bool = False
) -> tuple[list[Document], list[Declaration]]:
    """Read the manifests to apply, as members of an applyset if one is named; the last of each."""
    given = list_files(paths, recursive=recursive, allow_empty=allow_empty)
    found = read_files(given, whole=applyset is not None and not allow_empty)
    if not (found or allow_empty):
        raise InvalidError(f"cannot apply {', '.join(paths)}: there is no document in it")
    if applyset is not None:
        from bellhop.operations.applysets import label_documents

        found = label_documents(found, applyset)
    kept, valid, repeated = keep_last(found, validate(found))
    for sentence in repeated:
        say(f"warning: {sentence}", err=True)
    return kept, valid


@contextmanager
def locate_refused_changes(
    here: Installation, read: Sequence[Document], found: Sequence[Declaration]
) -> Iterator[None]:
    """Report refused changes with their places in the files, all of them at once.

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
    """Refuse each change that is not allowed, with its place; `apply` reports only the first."""
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


def list_hints(
    here: Installation, found: Sequence[Declaration], results: Sequence[WrittenManifest]
) -> Iterator[str]:
    """Yield probable misspellings, gaps of templates, and changes that reach no cluster."""
    for new in found:
        for mark in sveltos_annotations.unknown(new.written):
            meant = nearest(mark, sveltos_annotations.MARKS)
            yield f"{new.key} has '{mark}', of which nothing is known{meant}"
    changed = {new.key for new in found}
    yield from catalog_hints.list_changed_hints(
        here.catalogs.known(), changed, here.catalogs.holder
    )
    pairs = zip(found, results, strict=True)
    created = {new.key for new, result in pairs if result.change == "created"}
    for each in list_pinned(here, changed, created):
        yield (
            f"'{each.name}' was rolled back to revision {each.number}, and stays at it until"
            f" `bellhop rollback {each.name} --end`"
        )


_LOOKED_AT = 500


def list_pinned(
    here: Installation,
    changed: Collection[DeclarationKey],
    created: Collection[DeclarationKey] = (),
) -> Iterator[Profile]:
    """Yield profiles that were rolled back, and that depend on changed manifests.

    A new trigger has none but those of a deleted one of its name, which are removed. Of a trigger
    with very many only some are read: one is enough for a warning.
    """
    catalog = here.catalogs.known()
    own = (each.rule for each in list_changed_profiles(catalog, changed))
    heads = (here.records.profiles.head("", "", place) for place in own)
    found = [head.value for head in heads if head]
    for trigger in list_changed_triggers(catalog, changed):
        if trigger.key in created:
            continue
        found += islice(here.records.profiles.heads(trigger.name), _LOOKED_AT)
    yield from (each for each in found if each.pinned)
