"""Manifests from files, validated; the mistakes of all files are reported at once."""

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
from bellhop.cli.options import wrap_file_errors
from bellhop.core.sveltos_annotations import LUA, NOTICE
from bellhop.documents.document import Document, InvalidDocuments, read_documents
from bellhop.errors import InvalidError, MissingError

STDIN = "-"
_SUFFIXES = (".yaml", ".yml", ".json")


def list_files(
    paths: Iterable[str], *, recursive: bool, allow_empty: bool = False
) -> Iterator[str]:
    """Yield the files that paths name; those of a folder by name."""
    for given in paths:
        if given == STDIN or not Path(given).is_dir():
            yield given
            continue
        with wrap_file_errors(f"'{given}'"):
            found = sorted(_list_folder(given, recursive=recursive))
        if not (found or allow_empty):
            hint = "" if recursive else "; -R looks into its folders too"
            raise MissingError(
                f"cannot read '{given}': the folder has no {', '.join(_SUFFIXES)} file{hint}"
            )
        yield from map(str, found)


def _list_folder(folder: str, *, recursive: bool) -> Iterator[Path]:
    """Yield the manifests of a folder, also unreadable ones: reading them reports the reason.

    Objects of a folder that was skipped would look deleted.
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


def read_files(
    paths: Iterable[str], *, validate: bool = True, whole: bool = False
) -> list[Document]:
    """Read the documents of all files; if one cannot be read, report all mistakes of the others.

    Files of a `whole` set must not be empty: a program that failed may have left an empty file,
    and its objects would be deleted.
    """
    found: list[Document] = []
    problems: list[InvalidError] = []
    for path in paths:
        try:
            content = _read_content(path)
            found.extend(read_documents(content, source=_name_source(path)))
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


def validate(read: Sequence[Document]) -> list[Declaration]:
    """Validate documents, and refuse all of them if one has a mistake."""
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
            problems.extend(_check_scripts(declaration, document))
        elif isinstance(declaration, EventTrigger | ClusterProfile):
            problems.extend(_check_health_checks(declaration, document))
            problems.extend(_check_patches(declaration, document))
        elif isinstance(declaration, ConfigMap | Secret):
            problems.extend(_check_content(declaration, document))
        elif isinstance(declaration, ClusterHealthCheck) and NOTICE in declaration.annotations:
            problems.extend(_check_notices(declaration, document))
        found.append(declaration)
    return found


def _check_scripts(
    source: EventSource | Classifier | HealthCheck, document: Document
) -> Iterator[InvalidError]:
    from bellhop.events.scripts import objections

    for place, said in objections(source):
        yield InvalidError(said, where=document.where(place))


def _check_health_checks(
    declaration: EventTrigger | ClusterProfile, document: Document
) -> Iterator[InvalidError]:
    if not declaration.checks:
        return
    from bellhop.events.scripts import check_objections

    spec = declaration.addons
    for place, said in check_objections(spec):
        yield InvalidError(said, where=document.where(place))


def _check_patches(
    declaration: EventTrigger | ClusterProfile, document: Document
) -> Iterator[InvalidError]:
    spec = declaration.addons
    if not spec.patches:
        return
    from bellhop.rendering.patches.texts import objections

    for number, said in objections([each.record("") for each in spec.patches]):
        yield InvalidError(said, where=document.where(("spec", "patches", number, "patch")))


def _check_content(holder: ConfigMap | Secret, document: Document) -> Iterator[InvalidError]:
    """Yield the mistakes in scripts and declarations that a ConfigMap or Secret has."""
    from bellhop.events.scripts import declaring, of_holder

    written = of_holder(holder) if LUA in holder.annotations else declaring(holder)
    for place, said in written:
        yield InvalidError(said, where=document.where(place))


def _check_notices(check: ClusterHealthCheck, document: Document) -> Iterator[InvalidError]:
    """Yield the mistakes in the Go templates of a check's notices."""
    from bellhop.extras.health.texts import objections

    for place, said in objections(check):
        yield InvalidError(said, where=document.where(place))


def keep_last(
    read: Sequence[Document], found: Sequence[Declaration]
) -> tuple[list[Document], list[Declaration], list[str]]:
    """Keep the last of objects that occur twice, as kubectl does; return sentences about these."""
    last: dict[tuple[str, str, str], tuple[Document, Declaration]] = {}
    sentences: list[str] = []
    for document, declaration in zip(read, found, strict=True):
        key = declaration.key
        if key in last:
            first = last.pop(key)[0]
            sentences.append(
                f"{key} is at {first.where()} and at {document.where()}; the last one counts"
            )
        last[key] = document, declaration
    kept = list(last.values())
    return [each for each, _ in kept], [each for _, each in kept], sentences


def read_text(path: str) -> str:
    try:
        return _read_content(path).decode()
    except UnicodeDecodeError as error:
        raise InvalidError(f"cannot read '{_name_source(path)}': it is not UTF-8") from error


def _read_content(path: str) -> bytes:
    if path == STDIN:
        return sys.stdin.buffer.read()
    with wrap_file_errors(f"'{path}'"):
        return Path(path).read_bytes()


def _name_source(path: str) -> str:
    return "standard input" if path == STDIN else path
