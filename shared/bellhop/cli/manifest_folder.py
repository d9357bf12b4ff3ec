"""A folder of manifests that a command writes: one file for each object, to read and to apply.

Files are readable by their owner only, since some have Secrets. A file that is there with other
contents is somebody's work, and is never overwritten.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from msgspec import Struct

from bellhop.adapters.local.files import read_at_most, write_whole
from bellhop.cli.options import wrap_file_errors
from bellhop.cli.output import format_count, say
from bellhop.documents.document import LARGEST, dump
from bellhop.errors import ConflictError

_MOST_NAMES = 3
_LONGEST_NAME = 255
_DIGEST = 12
_READ_BY_KUBECTL = {".json", ".yaml", ".yml"}


class ManifestFile(Struct, frozen=True):
    """A file with one object, and what belongs to it; `head` is a comment."""

    path: str
    manifests: tuple[Mapping[str, Any], ...]
    head: str = ""

    @property
    def content(self) -> bytes:
        """Return the text of the file."""
        head = f"# {self.head}\n" if self.head else ""
        return (head + "---\n".join(map(dump, self.manifests))).encode()

    @property
    def has_secret(self) -> bool:
        """Return whether it shows values of a Secret."""
        return any(each["kind"] == "Secret" for each in self.manifests)


def name_file(kind: str, namespace: str, name: str) -> str:
    """Return the name of an object's file; one that is too long is cut, with a digest.

    Kind and namespace have no dots and all of it is lower case, so no two objects share one.
    """
    stem = ".".join(filter(None, (kind.lower(), namespace, name)))
    if len(stem) + len(".yaml") > _LONGEST_NAME:
        digest = sha256(stem.encode()).hexdigest()[:_DIGEST]
        stem = f"{stem[: _LONGEST_NAME - _DIGEST - len('-.yaml')]}-{digest}"
    return f"{stem}.yaml"


def write_folder(
    folder: Path, list_files: Callable[[], Iterable[ManifestFile]], *, only: bool = False
) -> int:
    """Write all files, which are listed twice; return how many have Secrets.

    It may be interrupted and run again: existing files with the same contents stay.

    Raises:
        ConflictError: a file exists with other contents, or with `only` other manifests are in the
            folder; nothing is written then.
    """
    paths: set[Path] = set()
    other = []
    for each in list_files():
        path = folder / each.path
        paths.add(path)
        if _read_content(path) not in (None, each.content):
            other.append(path)
    if other:
        raise ConflictError(
            f"cannot write {_list_names(other)}: the file is there with other contents; choose"
            " another folder and compare the two, or delete it"
        )
    if only and (strange := _list_manifests(folder) - paths):
        raise ConflictError(
            f"cannot write into '{folder}': {_list_names(sorted(strange))} would be applied with"
            " what is written; choose an empty folder"
        )
    with wrap_file_errors(f"'{folder}'", "write"):
        for parent in {folder, *(path.parent for path in paths)}:
            parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    secrets = 0
    for each in list_files():
        path = folder / each.path
        if _read_content(path) is None:
            write_whole(path, each.content)
        secrets += each.has_secret
    return secrets


def report_written(folder: Path, files: int, secrets: int, *, quiet: bool = False) -> None:
    """Print how many files were written, and that some have Secrets."""
    say(f"{format_count(files, 'file')} written to {folder}", err=quiet)
    if secrets:
        has = "has a Secret" if secrets == 1 else "have Secrets"
        say(
            f"warning: {format_count(secrets, 'file')} {has} in plain text, readable by you only:"
            " encrypt before you commit",
            err=True,
        )


def _list_names(paths: list[Path]) -> str:
    names = ", ".join(f"'{path}'" for path in paths[:_MOST_NAMES])
    more = len(paths) - _MOST_NAMES
    return f"{names} and {more} more" if more > 0 else names


def _list_manifests(folder: Path) -> set[Path]:
    with wrap_file_errors(f"'{folder}'"):
        found = folder.iterdir() if folder.exists() else ()
        return {path for path in found if path.suffix.lower() in _READ_BY_KUBECTL}


def _read_content(path: Path) -> bytes | None:
    with wrap_file_errors(f"'{path}'"):
        return read_at_most(path, LARGEST) if path.exists() else None
