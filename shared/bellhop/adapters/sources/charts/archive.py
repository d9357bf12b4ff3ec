"""Archives of charts, which are checked before Helm reads them, and repacked.

Two readers may read different files from one tar archive, so that a checked archive says nothing of
what Helm unpacks. Helm gets the files that were checked, in an archive that is written here.
"""

from __future__ import annotations

import gzip
import io
import json
import posixpath
import re
import tarfile
import zlib
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

import yaml
from msgspec import Struct

from bellhop.documents import tarball
from bellhop.errors import InvalidError, MissingError, TooLargeError

_SCHEMA_FILE = "values.schema.json"

_REFERENCES = frozenset({"$ref", "$dynamicRef", "$recursiveRef"})
# Helm bundles these and fetches any other.
_KNOWN = re.compile(
    r"https?://json-schema\.org/(draft-0[467]/|draft/2019-09/|draft/2020-12/|)schema#?"
)
_SHOWN = 200


def find_schema_problem(schema: bytes) -> str:
    """Return why a schema is refused; empty if it refers only to itself.

    Helm resolves any reference, `file://` and `http://` alike, with the rights and the network of
    the worker that runs it.

    A reference counts anywhere: another one may point to a value that is no schema by itself.
    """
    problems: list[str] = []

    def note(pairs: list[tuple[str, Any]]) -> None:
        problems.extend(
            f"refers by {name!r} to {value[:_SHOWN]!r}"
            for name, value in pairs
            if isinstance(value, str) and _is_remote(name, value)
        )

    try:
        json.loads(schema, object_pairs_hook=note)
    except (ValueError, RecursionError):
        return "is not JSON"
    return problems[0] if problems else ""


def _is_remote(name: str, value: str) -> bool:
    if name == "$schema":
        return not _KNOWN.fullmatch(value)
    return name in _REFERENCES and not value.startswith("#")


_FILE = ".helmignore"
_ALWAYS = "templates/.?*"
_MOST_COMPARED = 2_000_000
"""Lines times files and folders, which take about two seconds."""

_COMPILED = 1_000
"""Comparisons that take as long as to compile the pattern of a line."""


class _Rule(Struct, frozen=True):
    """One line: a pattern for names, or with a slash for paths."""

    pattern: str
    negated: bool
    folders: bool

    @classmethod
    def of(cls, line: str) -> _Rule:
        pattern = line.removeprefix("!")
        return cls(pattern.removesuffix("/"), pattern != line, pattern.endswith("/"))

    def ignores(self, path: str, *, folder: bool) -> bool:
        if self.folders and not folder:
            # So Helm has it: a negated rule ignores whatever it does not match.
            return self.negated
        return self._matches(path) != self.negated

    def _matches(self, path: str) -> bool:
        if "/" not in self.pattern:
            return fnmatchcase(posixpath.basename(path), self.pattern)
        parts, patterns = path.split("/"), self.pattern.removeprefix("/").split("/")
        return len(parts) == len(patterns) and all(map(fnmatchcase, parts, patterns))


def without_ignored(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the files of a chart's folder that are packed.

    Helm heeds `.helmignore` only where it packs a folder, which is done here in its place: what is
    in an archive is deployed, and counts towards the megabyte that a release may have.

    Raises:
        TooLargeError: it has more lines than are compared with so many files.
    """
    rules = list(_rules(files.get(_FILE, b"").decode(errors="replace")))
    folders = {folder for path in files for folder in _folders(path)}
    if len(rules) * max(len(files) + len(folders), _COMPILED) > _MOST_COMPARED:
        raise TooLargeError(
            f"its {_FILE} has {len(rules):,} lines for {len(files):,} files; shorten it"
        )
    ignored = {each for each in folders if any(rule.ignores(each, folder=True) for rule in rules)}
    return {
        path: content
        for path, content in files.items()
        if not any(rule.ignores(path, folder=False) for rule in rules)
        and ignored.isdisjoint(_folders(path))
    }


def _rules(text: str) -> Iterator[_Rule]:
    for line in (*map(str.strip, text.splitlines()), _ALWAYS):
        if line and not line.startswith("#"):
            yield _Rule.of(line)


def _folders(path: str) -> Iterator[str]:
    return (path[:at] for at, letter in enumerate(path) if letter == "/")


MOST_BYTES = 64 << 20
"""Of a chart with all that it packs; large ones have 20 MB."""

MOST_FILES = 10_000
MOST_NESTED = 4
"""How deep charts may be packed in charts."""

_ABOUT = "Chart.yaml"
_LARGEST_ABOUT = 1 << 20
_GZIP = 31
_PIECE = 1 << 20
_FAST = 1
_Loader: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)


class Chart(Struct, frozen=True):
    """A checked chart; `content` is its archive, repacked."""

    name: str
    version: str
    content: bytes


class RefusedError(InvalidError):
    """An archive is refused; the message says why, but not which archive."""


class _Budget:
    """The bytes and files that a chart may still unpack, with all charts that are packed in it."""

    def __init__(self) -> None:
        self.bytes = MOST_BYTES
        self.files = MOST_FILES

    def take_bytes(self, count: int) -> None:
        self.bytes -= count
        if self.bytes < 0:
            raise TooLargeError(f"it unpacks to more than {MOST_BYTES >> 20} MiB")

    def take_file(self) -> None:
        self.files -= 1
        if self.files < 0:
            raise TooLargeError(f"it has more than {MOST_FILES} files")


def check(content: bytes, of: str) -> Chart:
    """Check a chart's archive and return it repacked; `of` names the chart in errors.

    Raises:
        InvalidError: it is not a chart that may be installed.
        TooLargeError: it unpacks to more than is taken.
    """
    try:
        folder, files = _check(content, _Budget(), 0)
        name, version = _read_chart(files)
    except InvalidError as error:
        raise type(error)(f"cannot take {of}: {error}") from error
    return Chart(name, version, _pack(folder, files))


def pack(files: Mapping[str, bytes], place: str, of: str) -> Chart:
    """Pack the folder of a chart, and check it; `of` names the chart in errors.

    Raises:
        MissingError: there is no chart at the place.
        InvalidError, TooLargeError: as `check` does.
    """
    folder = f"{place}/" if place else ""
    inside = {
        path.removeprefix(folder): content
        for path, content in files.items()
        if path.startswith(folder)
    }
    if _ABOUT not in inside:
        raise MissingError(f"cannot take {of}: there is no {_ABOUT} in that folder")
    try:
        packed = without_ignored(inside)
    except TooLargeError as error:
        raise TooLargeError(f"cannot take {of}: {error}") from error
    return check(_pack("chart", packed), of)


def read(content: bytes) -> Chart:
    """Return the chart in an archive that `check` repacked."""
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:gz") as archive:
        # It is the first one, so that the others are not unpacked.
        member = archive.next()
        assert member
        file = archive.extractfile(member)
        assert file
        name, version = _read_chart({_ABOUT: file.read()})
    return Chart(name, version, content)


def _read_chart(files: Mapping[str, bytes]) -> tuple[str, str]:
    """Return the name and the version of a chart that can be installed."""
    if _ABOUT not in files:
        raise RefusedError("its archive has no Chart.yaml; it is not a chart")
    if len(files[_ABOUT]) > _LARGEST_ABOUT:
        raise TooLargeError(f"its Chart.yaml has more than {_LARGEST_ABOUT >> 20} MiB")
    try:
        about = yaml.load(files[_ABOUT], Loader=_Loader)  # noqa: S506 - it builds only text
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise RefusedError("its Chart.yaml is not YAML") from error
    about = about if isinstance(about, dict) else {}
    name, version = about.get("name"), about.get("version")
    if not (name and version and isinstance(name, str) and isinstance(version, str)):
        raise RefusedError("its Chart.yaml lacks a name or a version")
    if about.get("apiVersion") not in ("v1", "v2"):
        raise RefusedError("its Chart.yaml has another apiVersion than v1 and v2")
    if about.get("type") == "library":
        raise RefusedError(
            "it is a library chart, which cannot be installed; name a chart that depends on it"
        )
    return name, version


def _check(content: bytes, budget: _Budget, depth: int) -> tuple[str, dict[str, bytes]]:
    """Return the top folder of an archive, and the files in it by their paths."""
    folder = ""
    files: dict[str, bytes] = {}
    for member in _members(content, budget):
        top, path = _split(member.name)
        if folder not in ("", top):
            raise RefusedError(f"its archive has more than one folder: {folder!r} and {top!r}")
        folder = top
        if member.kind == tarball.FILE:
            if not path:
                raise RefusedError(f"its archive has the file {top!r} outside of a folder")
            files[path] = _check_file(path, member.content, budget, depth)
    return folder, files


def _split(name: str) -> tuple[str, str]:
    """Split a member's name into the top folder and the path in it."""
    top, *parts = name.split("/")
    if top in ("", ".", "..") or ".." in parts or "\\" in name or "\0" in name:
        raise RefusedError(f"its archive has {name!r}, which leads out of its folder")
    return top, "/".join(part for part in parts if part not in ("", "."))


def _check_file(path: str, file: bytes, budget: _Budget, depth: int) -> bytes:
    """Check a file and return what is repacked; a chart that is packed in it is repacked, too."""
    *folders, name = path.split("/")
    if name == _SCHEMA_FILE and (problem := find_schema_problem(file)):
        raise RefusedError(
            f"its {path!r} {problem}, which Helm would fetch; have the chart's author bundle the"
            " schema, so that it refers only to itself ('#…')"
        )
    # Helm passes over names that begin so.
    if folders[-1:] != ["charts"] or not name.endswith(".tgz") or name[0] in "._":
        return file
    if depth == MOST_NESTED:
        raise RefusedError(f"it packs charts in charts more than {MOST_NESTED} deep")
    try:
        return _pack(*_check(file, budget, depth + 1))
    except RefusedError as error:
        raise RefusedError(f"in its {path!r}, {error}") from error


def _members(content: bytes, budget: _Budget) -> Iterator[tarball.Member]:
    """Yield the files and folders of an archive."""
    try:
        for member in tarball.members(_unpack(content, budget)):
            budget.take_file()
            if member.kind not in (tarball.FILE, tarball.FOLDER):
                raise RefusedError(
                    f"its archive has {member.name!r}, which is a link or a device; a chart has"
                    " only files and folders"
                )
            yield member
    except tarball.TarError as error:
        raise RefusedError("its archive is not a tar file, or is damaged") from error


def _unpack(content: bytes, budget: _Budget) -> bytes:
    pieces = []
    unpack = zlib.decompressobj(_GZIP)
    try:
        while content and not unpack.eof:
            pieces.append(unpack.decompress(content, _PIECE))
            budget.take_bytes(len(pieces[-1]))
            content = unpack.unconsumed_tail
    except zlib.error as error:
        raise RefusedError("it is not a gzip archive") from error
    if not unpack.eof or unpack.unused_data.strip(b"\0"):
        raise RefusedError("it is not a gzip archive, or is damaged")
    return b"".join(pieces)


def _pack(folder: str, files: Mapping[str, bytes]) -> bytes:
    """Pack files, Chart.yaml first: it is read without unpacking the others."""
    packed = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=packed, mode="wb", compresslevel=_FAST, mtime=0) as zipped,
        tarfile.open(fileobj=zipped, mode="w") as archive,
    ):
        for path in sorted(files, key=lambda path: (path != _ABOUT, path)):
            member = tarfile.TarInfo(f"{folder}/{path}")
            member.size = len(files[path])
            archive.addfile(member, io.BytesIO(files[path]))
    return packed.getvalue()
