"""From the files that users name to validated kinds, with every mistake of all files at once."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from bellhop.api.kinds import (
    Classifier,
    ClusterHealthCheck,
    ClusterProfile,
    ConfigMap,
    Declaration,
    EventSource,
    EventTrigger,
    HealthCheck,
    Secret,
    parse,
)
from bellhop.cli.files import explained
from bellhop.core.sveltos_annotations import LUA, NOTICE
from bellhop.documents.document import Document, InvalidDocuments, read_documents
from bellhop.errors import InvalidError, MissingError

STDIN = "-"
_SUFFIXES = (".yaml", ".yml", ".json")


def files(paths: Iterable[str], *, recursive: bool, allow_empty: bool = False) -> Iterator[str]:
    """Yield the files that paths mean; a folder's in the order of their names.

    Raises:
        MissingError: a path is not there, or a folder holds no manifest and may not be empty.
        InvalidError: a folder cannot be read.
    """
    for given in paths:
        if given == STDIN or not Path(given).is_dir():
            yield given
            continue
        with explained(f"'{given}'"):
            found = sorted(_inside(given, recursive=recursive))
        if not (found or allow_empty):
            hint = "" if recursive else "; -R looks into its folders too"
            raise MissingError(
                f"cannot read '{given}': the folder has no {', '.join(_SUFFIXES)} file{hint}"
            )
        yield from map(str, found)


def _inside(folder: str, *, recursive: bool) -> Iterator[Path]:
    """Yield the manifests of a folder, also those that cannot be read: reading them says why.

    A folder that was skipped for it would look as if its objects were to be deleted.
    """

    def fail(error: OSError) -> None:
        raise error

    for root, folders, names in os.walk(folder, onerror=fail):
        if not recursive:
            folders.clear()
        yield from (path for name in names if _is_manifest(path := Path(root, name)))


def _is_manifest(path: Path) -> bool:
    if path.suffix not in _SUFFIXES:
        return False
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except OSError:
        return True


def documents(
    paths: Iterable[str], *, validate: bool = True, whole: bool = False
) -> list[Document]:
    """Read the documents of all files; when one cannot be read, tell what else is wrong, too.

    Files that are a `whole` set must not be empty: a program that failed may have left one so, and
    the objects that it had would be deleted.

    Raises:
        InvalidDocuments: with what is wrong in each file.
        MissingError: a file is not there.
    """
    found: list[Document] = []
    problems: list[InvalidError] = []
    for path in paths:
        try:
            content = _content(path)
            found.extend(read_documents(content, source=_source(path)))
        except InvalidError as error:
            problems.append(error)
            continue
        if whole and path != STDIN and not content.strip():
            said = f"cannot read '{path}': it is empty; if it is to have nothing, delete it"
            problems.append(InvalidError(said))
    if problems:
        if validate:
            _collect(found, problems)
        raise InvalidDocuments(problems)
    return found


def declarations(read: Sequence[Document]) -> list[Declaration]:
    """Validate documents, and refuse them all when one has a mistake.

    Raises:
        InvalidDocuments: with every mistake.
    """
    problems: list[InvalidError] = []
    found = _collect(read, problems)
    if problems:
        raise InvalidDocuments(problems)
    return found


def _collect(read: Sequence[Document], problems: list[InvalidError]) -> list[Declaration]:
    found: list[Declaration] = []
    for document in read:
        try:
            declaration = parse(document)
        except InvalidDocuments as error:
            problems.extend(error.problems)
            continue
        if isinstance(declaration, EventSource | Classifier | HealthCheck):
            problems.extend(_scripts(declaration, document))
        elif isinstance(declaration, EventTrigger | ClusterProfile):
            problems.extend(_checks(declaration, document))
            problems.extend(_patches(declaration, document))
        elif isinstance(declaration, ConfigMap | Secret):
            problems.extend(_written(declaration, document))
        elif isinstance(declaration, ClusterHealthCheck) and NOTICE in declaration.annotations:
            problems.extend(_worded(declaration, document))
        found.append(declaration)
    return found


def _scripts(
    source: EventSource | Classifier | HealthCheck, document: Document
) -> Iterator[InvalidError]:
    """Yield what Lua has against the scripts of a source, a classifier or a health check."""
    from bellhop.events.scripts import objections

    for place, said in objections(source):
        yield InvalidError(said, where=document.where(place))


def _checks(
    declaration: EventTrigger | ClusterProfile, document: Document
) -> Iterator[InvalidError]:
    """Yield what Lua and CEL have against the checks of a trigger or profile."""
    if not declaration.checks:
        return
    from bellhop.events.scripts import check_objections

    spec = declaration.asked if isinstance(declaration, ClusterProfile) else declaration.spec
    for place, said in check_objections(spec):
        yield InvalidError(said, where=document.where(place))


def _patches(
    declaration: EventTrigger | ClusterProfile, document: Document
) -> Iterator[InvalidError]:
    """Yield which patches of a trigger or profile are none."""
    spec = declaration.asked if isinstance(declaration, ClusterProfile) else declaration.spec
    if not spec.patches:
        return
    from bellhop.rendering.patches.texts import objections

    for number, said in objections([each.record("") for each in spec.patches]):
        yield InvalidError(said, where=document.where(("spec", "patches", number, "patch")))


def _written(holder: ConfigMap | Secret, document: Document) -> Iterator[InvalidError]:
    """Yield what is wrong with what is to be deployed: scripts of Lua, and declarations."""
    from bellhop.events.scripts import declaring, of_holder

    written = of_holder(holder) if LUA in holder.annotations else declaring(holder)
    for place, said in written:
        yield InvalidError(said, where=document.where(place))


def _worded(check: ClusterHealthCheck, document: Document) -> Iterator[InvalidError]:
    """Yield what Go's templates have against what is to word a check's notices."""
    from bellhop.extras.health.texts import objections

    for place, said in objections(check):
        yield InvalidError(said, where=document.where(place))


def last_of_each(
    read: Sequence[Document], found: Sequence[Declaration]
) -> tuple[list[Document], list[Declaration], list[str]]:
    """Keep the last of objects that come twice, as kubectl does; say in sentences which did."""
    last: dict[tuple[str, str, str], tuple[Document, Declaration]] = {}
    told: list[str] = []
    for document, declaration in zip(read, found, strict=True):
        key = declaration.key
        if key in last:
            first = last.pop(key)[0]
            told.append(
                f"{key} is at {first.where()} and at {document.where()}; the last one counts"
            )
        last[key] = document, declaration
    kept = list(last.values())
    return [each for each, _ in kept], [each for _, each in kept], told


def text(path: str) -> str:
    """Read one file as text.

    Raises:
        InvalidError: it is not UTF-8, or cannot be read.
        MissingError: it is not there.
    """
    try:
        return _content(path).decode()
    except UnicodeDecodeError as error:
        raise InvalidError(f"cannot read '{_source(path)}': it is not UTF-8") from error


def _content(path: str) -> bytes:
    if path == STDIN:
        return sys.stdin.buffer.read()
    with explained(f"'{path}'"):
        return Path(path).read_bytes()


def _source(path: str) -> str:
    return "standard input" if path == STDIN else path
