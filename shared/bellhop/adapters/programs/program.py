"""Where a program of others is found: a path that is named, PATH, or a cache that `layer` fills."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from msgspec import Struct

from bellhop.errors import InvalidError, MissingError

VERSION = "4.3.1"
"""The version of Helm in the cache, whose folder is named by it."""

_SECONDS = 20


class Program(Struct, frozen=True):
    """A program, and the oldest version that is taken.

    `variable` names the setting with its path, `asked` the arguments that make it print what
    `version` matches, `doing` what cannot be done without it.
    """

    name: str
    title: str
    variable: str
    least: tuple[int, int]
    asked: Sequence[str]
    version: str
    doing: str

    def find(self, environ: Mapping[str, str] = os.environ) -> Path:
        """Return the path that is named, else that on PATH, else that in the cache.

        A program on PATH that is too old gives way to the one in the cache.

        Raises:
            MissingError: there is none; the message says how to get it.
            InvalidError: what is named, or on PATH, is older than is taken.
        """
        if named := environ.get(self.variable):
            return self._check(Path(named), f"{self.variable} names")
        cached = cache(environ) / self.name
        if found := shutil.which(self.name, path=environ.get("PATH")):
            try:
                return self._check(Path(found), "PATH has")
            except InvalidError:
                if not cached.is_file():
                    raise
        if cached.is_file():
            return cached
        raise MissingError(f"cannot {self.doing}: there is no program '{self.name}'; {self.how}")

    @property
    def how(self) -> str:
        """Say how to get it."""
        least = ".".join(map(str, self.least))
        return (
            f"install {self.title} {least} or newer, or have `bellhop charts get-helm` download"
            f" it; {self.variable} may name its program"
        )

    def _check(self, path: Path, says: str) -> Path:
        changed = path.stat().st_mtime_ns if path.exists() else 0
        version = _version(path, changed, tuple(self.asked), self.version)
        if version is None:
            is_it = f"is not {self.title}"
        elif version < self.least:
            is_it = f"is {self.title} {version[0]}.{version[1]}"
        else:
            return path
        raise InvalidError(f"cannot {self.doing}: {says} '{path}', which {is_it}; {self.how}")


HELM = Program(
    name="helm",
    title="Helm",
    variable="BELLHOP_HELM",
    least=(4, 1),
    asked=("version", "--short"),
    version=r"v(\d+)\.(\d+)\.",
    doing="deploy Helm charts",
)
KUBECTL = Program(
    name="kubectl",
    title="kubectl",
    variable="BELLHOP_KUBECTL",
    least=(1, 27),
    asked=("version", "--client"),
    # kubectl 1.27 still prints a struct of Go's.
    version=r'Client Version: (?:version\.Info\{.*GitVersion:")?v(\d+)\.(\d+)\.',
    doing="build kustomizations",
)


def cache(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the folder that `layer` fills; it need not be there."""
    root = environ.get("XDG_CACHE_HOME") or ""
    # The XDG rules: a relative path is to be ignored.
    base = (
        Path(root)
        if root.startswith("/")
        else Path(environ.get("HOME") or "~").expanduser() / ".cache"
    )
    return base / "bellhop" / "helm" / VERSION


@lru_cache(maxsize=8)
def _version(
    path: Path, _changed: int, asked: tuple[str, ...], pattern: str
) -> tuple[int, int] | None:
    """Ask a program for its version, once as long as its file stays the same."""
    try:
        done = subprocess.run(  # noqa: S603 - it is what somebody named
            [path, *asked],
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
            env={"HOME": "/nonexistent"},
        )
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.match(pattern, done.stdout)
    return (int(found[1]), int(found[2])) if found else None
