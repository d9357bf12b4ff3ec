"""The folder that an import writes: one file for each object, for people to read and to apply.

Files are readable by their owner only, since some have Secrets. A file that is there with other
contents is somebody's work, and is never overwritten.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from bellhop.adapters.local.files import read_at_most, write_whole
from bellhop.cli.options import wrap_file_errors
from bellhop.cli.sveltos.conversion import CLUSTER, Converted
from bellhop.documents.document import LARGEST, dump
from bellhop.errors import ConflictError

CLUSTERS, MANIFESTS = "clusters", "manifests"

_MOST_NAMES = 3


def choose_path(each: Converted) -> str:
    """Return the file of an object, relative to the folder."""
    parent = CLUSTERS if each.kind == CLUSTER else MANIFESTS
    parts = (each.kind.lower(), each.namespace, each.name)
    return f"{parent}/{'.'.join(filter(None, parts))}.yaml"


def write(folder: Path, objects: Iterable[Converted]) -> int:
    """Write the objects that are not refused; return how many files have Secrets.

    It may be interrupted and run again: existing files with the same contents stay.

    Raises:
        ConflictError: a file exists with other contents; nothing is written then.
    """
    taken = [each for each in objects if each.manifests]
    texts = {folder / choose_path(each): _format_file(each) for each in taken}
    there = {path: _read_content(path) for path in texts}
    if other := [path for path, text in there.items() if text not in (None, texts[path])]:
        names = ", ".join(f"'{path}'" for path in other[:_MOST_NAMES])
        more = f" and {len(other) - _MOST_NAMES} more" if len(other) > _MOST_NAMES else ""
        raise ConflictError(
            f"cannot write {names}{more}: the file is there with other contents; choose another"
            " folder and compare the two, or delete it"
        )
    with wrap_file_errors(f"'{folder}'", "write"):
        for parent in {path.parent for path in texts}:
            parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    for path, text in texts.items():
        if there[path] is None:
            write_whole(path, text)
    return sum(any(part["kind"] == "Secret" for part in each.manifests) for each in taken)


def _format_file(each: Converted) -> bytes:
    head = f"# {each.head}\n" if each.head else ""
    return (head + "---\n".join(map(dump, each.manifests))).encode()


def _read_content(path: Path) -> bytes | None:
    if not path.exists():
        return None
    with wrap_file_errors(f"'{path}'"):
        return read_at_most(path, LARGEST)
