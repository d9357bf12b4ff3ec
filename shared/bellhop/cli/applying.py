"""What `apply` looks at beyond single documents: what is stored already."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bellhop.errors import InvalidError, MissingError
from bellhop.fleet import advising
from bellhop.fleet.installation import Installation
from bellhop.fleet.pinned import pinned
from bellhop.model import marks
from bellhop.model.document import Document, InvalidDocuments
from bellhop.model.kinds import Declaration, EventTrigger, of
from bellhop.model.shape import nearest
from bellhop.stages.declare import Declared


def refuse_changes(
    here: Installation, read: Sequence[Document], found: Sequence[Declaration]
) -> None:
    """Refuse changes that may not be; Declare has told the first alone, without its place.

    Raises:
        InvalidDocuments: with every such change, if there is any.
    """
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
    here: Installation, found: Sequence[Declaration], results: Sequence[Declared]
) -> Iterator[str]:
    """Say what is probably misspelt, what templates probably lack, and what reaches no cluster."""
    for new in found:
        for mark in marks.unknown(new.written):
            meant = nearest(mark, marks.MARKS)
            yield f"{new.key} has '{mark}', of which nothing is known{meant}"
    changed = {new.key for new in found}
    yield from advising.of_changed(here.catalogs.known(), changed, here.catalogs.holder)
    pairs = zip(found, results, strict=True)
    created = {new.key for new, result in pairs if result.change == "created"}
    for each in pinned(here, changed, created):
        yield (
            f"'{each.name}' was rolled back to revision {each.number}, and what it brings stays so"
            f" until `bellhop rollback {each.name} --undo`"
        )
