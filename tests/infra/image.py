"""An image of a Dockerfile, made and run without a container engine.

Understands as much of Dockerfiles as ours needs and refuses the rest. What is copied and installed
lies in a folder; a container is a process whose root that folder is, with the machine's libraries
and this Python in the place of the base image, read-only, under the user that the file names.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

_BASE = ("bin", "etc", "lib", "lib64", "usr")
_SITE = f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"
_GIVEN = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    # Images have it in their loader's cache.
    "LD_LIBRARY_PATH": "/usr/local/lib",
}
_PINNED = re.compile(r"^([\w.-]+)==(\S+)", re.MULTILINE)


@dataclass
class Dockerfile:
    """What a Dockerfile says, in the order of its lines where that counts."""

    base: str = ""
    arguments: dict[str, str] = field(default_factory=dict)
    steps: list[tuple[str, list[str]]] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)
    folder: str = "/"
    user: str = ""
    entrypoint: list[str] = field(default_factory=list)

    @classmethod
    def read(cls, path: Path) -> Dockerfile:
        """Read one; what is not understood fails."""
        made = cls()
        for line in path.read_text().splitlines():
            if line and not line.startswith("#"):
                word, _, rest = line.partition(" ")
                made._take(word, rest)
        return made

    @property
    def copied(self) -> list[str]:
        """Return the files that are copied from the checkout."""
        return [words[0] for word, words in self.steps if word == "COPY"]

    def _take(self, word: str, rest: str) -> None:
        match word:
            case "FROM":
                assert not self.base, "one stage is all that is understood"
                self.base = self.arguments.get(rest.strip("${}"), rest)
            case "ARG":
                name, _, value = rest.partition("=")
                self.arguments[name] = value
            case "COPY":
                source, target = rest.split()
                self.steps.append((word, [source, target]))
            case "RUN":
                self.steps.append((word, json.loads(rest)))
            case "ENV":
                name, _, value = rest.partition("=")
                self.environment[name] = value
            case "WORKDIR":
                self.folder = rest
            case "USER":
                self.user = rest
            case "ENTRYPOINT":
                self.entrypoint = json.loads(rest)
            case "EXPOSE" | "VOLUME":
                pass
            case _:
                raise AssertionError(f"no test knows what {word} does")


class Image:
    """What a Dockerfile makes of a checkout, with a folder as its root."""

    def __init__(self, dockerfile: Path, context: Path, root: Path) -> None:
        self.file = Dockerfile.read(dockerfile)
        self.root = root
        self.mounted: list[tuple[Path, str]] = []
        for word, words in self.file.steps:
            placed = [str(self.inside(each)) if each[0] == "/" else each for each in words]
            if word == "COPY":
                _copy(context / words[0], Path(placed[1]))
            else:
                assert words[0] == "python"
                _run([sys.executable, *placed[1:]], self.inside("/app"))

    def inside(self, path: str) -> Path:
        """Return where a path of the image is on this machine."""
        return self.root / path.removeprefix("/")

    def container(
        self, arguments: Sequence[str], volume: tuple[Path, str], **environment: str
    ) -> list[str]:
        """Return the command that runs it, in namespaces of its own; this takes a root.

        The base image's packages are hidden, as they are none of ours. Besides `volume` (a folder,
        and where it is mounted) nothing can be written.
        """
        user, group = self.file.user.split(":")
        kept, place = volume
        os.chown(kept, int(user), int(group))
        empty = self.root.parent / "empty"
        empty.mkdir(exist_ok=True)
        for each in (*_BASE, "dev", "proc", "tmp", place, *(target for _, target in self.mounted)):
            self.inside(each).mkdir(parents=True, exist_ok=True)
        mounts = [
            *((f"/{each}", each) for each in (*_BASE, "dev", "proc")),
            (sys.base_prefix, "usr/local"),
            (str(empty), f"usr/local/{_SITE}"),
            (str(kept), place),
            *self.mounted,
        ]
        given = {**_GIVEN, **self.file.environment, **environment}
        process = [
            *("exec", "chroot", str(self.root)),
            *("setpriv", f"--reuid={user}", f"--regid={group}", "--clear-groups"),
            *("--no-new-privs", "--bounding-set=-all", "--pdeathsig", "keep"),
            *("env", "-i", "-C", self.file.folder),
            *(f"{name}={value}" for name, value in given.items()),
            *(*self.file.entrypoint, *arguments),
        ]
        lines = [
            "set -e",
            "mount --make-rprivate /",
            f"mount --bind {self.root} {self.root}",
            *(f"mount --bind {source} {self.inside(target)}" for source, target in mounts),
            f"mount -o remount,bind,ro {self.root}",
            shlex.join(process),
        ]
        return ["/usr/bin/unshare", "--mount", "/bin/sh", "-c", "\n".join(lines)]


def _copy(source: Path, target: Path) -> None:
    """Copy as `COPY` does, without what the ignore file leaves out."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        shutil.copy(source, target)


def _run(argv: list[str], folder: Path) -> None:
    quick = {**os.environ, "PIP_RETRIES": "0", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    done = subprocess.run(argv, env=quick, capture_output=True, text=True, check=False)
    if done.returncode and "pip" in argv:
        assert "HASHES" not in done.stderr, done.stderr
        # No registry is reached: the packages that are installed here are those that are pinned.
        _install_from_here(folder, Path(argv[-1]))
    else:
        assert done.returncode == 0, done.stderr


def _install_from_here(folder: Path, requirements: Path) -> None:
    for name, version in _PINNED.findall(requirements.read_text()):
        distribution = importlib.metadata.distribution(name)
        assert distribution.version == version
        for file in distribution.files or []:
            if ".." not in file.parts and "__pycache__" not in file.parts:
                place = folder / file
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(str(distribution.locate_file(file)), place)
