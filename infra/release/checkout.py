"""The commit that is released: its version, its time and its files, as git has them.

A file that git does not know, or knows otherwise, would be in no other build of the same commit.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from bellhop import __version__
from bellhop.errors import InvalidError, MissingError
from infra.package.files import ROOT

_REMOTE = re.compile(r"(?:https://|ssh://git@|git@)([\w.-]+)[:/]([\w.-]+/[\w.-]+?)(?:\.git)?/?")


class Checkout(Struct, frozen=True):
    """A clean checkout: `time` in seconds since 1970; `tagged` if its commit is `v` and version.

    `url` is the page of its repository, empty without a remote.
    """

    root: Path
    version: str
    time: int
    tagged: bool
    url: str = ""

    @property
    def name(self) -> str:
        """Return the folder that archives unpack to."""
        return f"bellhop-{self.version}"

    def archive(self, paths: Sequence[str]) -> bytes:
        """Pack committed files, below a folder of the release's name, as tar.gz."""
        prefix = f"--prefix={self.name}/"
        return _git(self.root, "archive", "--format=tar.gz", prefix, "HEAD", "--", *paths)


def repository_url(remote: str) -> str:
    """Return the page of a repository that git reaches over https or ssh; empty for any other."""
    found = _REMOTE.fullmatch(remote.strip())
    return f"https://{found[1]}/{found[2]}" if found else ""


def check_out(root: Path = ROOT, version: str = __version__) -> Checkout:
    """Return the checkout of a version.

    Raises:
        InvalidError: it has uncommitted changes, or its commit is tagged as another version.
        MissingError: it is no checkout, or there is no git.
    """
    if changed := _git(root, "status", "--porcelain").decode().splitlines():
        raise InvalidError(
            f"cannot release {root}: {len(changed)} files are not committed, such as"
            f" '{changed[0][3:]}'; commit or remove them"
        )
    tags = _git(root, "tag", "--points-at", "HEAD", "--list", "v*").decode().split()
    if tags and f"v{version}" not in tags:
        raise InvalidError(
            f"cannot release {tags[0]}: bellhop.__version__ is {version}; tag the commit whose"
            " version is the tag's"
        )
    time = int(_git(root, "log", "-1", "--format=%ct"))
    remote = _git(root, "config", "--default", "", "--get", "remote.origin.url").decode()
    url = repository_url(remote)
    return Checkout(root=root, version=version, time=time, tagged=bool(tags), url=url)


def _git(root: Path, *arguments: str) -> bytes:
    try:
        return subprocess.run(  # noqa: S603 - git, with arguments of ours
            ["git", "-C", str(root), *arguments],  # noqa: S607 - that of PATH
            check=True,
            capture_output=True,
        ).stdout
    except FileNotFoundError as error:
        raise MissingError("cannot release: git is not on PATH; install it") from error
    except subprocess.CalledProcessError as error:
        said = error.stderr.decode(errors="replace").strip()
        raise MissingError(f"cannot release {root}: git cannot read it: {said}") from error
