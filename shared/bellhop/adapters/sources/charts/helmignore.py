"""Files of a chart's folder that are not packed, as its `.helmignore` says and Helm reads that.

Helm heeds it only where it packs a folder, which is done here in its place: what is in an archive
is deployed, and counts towards the megabyte that a release may have.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase

from msgspec import Struct

from bellhop.errors import TooLargeError

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
    """Yield the folders that a file is in."""
    return (path[:at] for at, letter in enumerate(path) if letter == "/")
