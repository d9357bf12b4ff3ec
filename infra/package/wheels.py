"""Get the wheels that the lock file names, for Lambda's Python on either architecture.

pip fetches them from wherever it is told to on this machine, and only what has a locked hash is
taken. What was fetched once is kept, and then no registry is asked.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from bellhop.errors import InvalidError, UnreachableError

PYTHON = "3.13"
"""What the functions run on: google-re2's wheels need a glibc that Lambda has since 3.12."""

ARCHITECTURES: Mapping[str, str] = {"x86_64": "x86_64", "arm64": "aarch64"}
"""AWS' names, and those in the names of wheels."""

LOCK = Path(__file__).parents[2] / "requirements.lock"

_GLIBC = range(17, 35)  # Amazon Linux 2023 has 2.34; 2.17 is the oldest that wheels are made for.
_PIN = re.compile(r"^([a-z0-9-]+)==([^\s;]+)(.*?[^\\])$", re.MULTILINE | re.DOTALL)
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


@dataclass(frozen=True)
class Pin:
    """One distribution as it is locked."""

    name: str
    version: str
    hashes: frozenset[str]

    def named(self, wheel: Path) -> bool:
        """Say whether a wheel is this distribution's, by its name."""
        name, version, *_ = wheel.name.split("-")
        return (_canonical(name), version) == (self.name, self.version)

    def requirement(self) -> str:
        """Write the pin as pip reads it."""
        return " ".join([f"{self.name}=={self.version}", *self.options()])

    def options(self) -> list[str]:
        """Write the hashes as pip reads them."""
        return [f"--hash=sha256:{each}" for each in sorted(self.hashes)]


def machine_architecture() -> str:
    """Tell AWS' name of the architecture of this machine."""
    machine = platform.machine()
    return next((ours for ours, theirs in ARCHITECTURES.items() if theirs == machine), machine)


def pins(lock: Path = LOCK) -> Mapping[str, Pin]:
    """Read all pins of a lock file."""
    found = {}
    for name, version, rest in _PIN.findall(lock.read_text("utf-8")):
        found[name] = Pin(name, version, frozenset(_HASH.findall(rest)))
    return found


def fetch(
    names: Iterable[str], architecture: str, *, lock: Path = LOCK, cache: Path | None = None
) -> Mapping[str, Path]:
    """Return the wheel of each distribution, by its name.

    Raises:
        InvalidError: a distribution is not locked.
        UnreachableError: pip cannot get a wheel that is locked.
    """
    locked = pins(lock)
    if missing := ", ".join(sorted(set(names) - locked.keys())):
        raise InvalidError(f"cannot package {missing}: not in {lock.name}; run `make lock`")
    folder = (cache or _cache()) / f"{PYTHON}-{architecture}"
    folder.mkdir(parents=True, exist_ok=True)
    wanted = [locked[name] for name in sorted(set(names))]
    absent = [pin for pin in wanted if _kept(pin, folder) is None]
    if absent:
        _download(absent, architecture, folder)
    found = {pin.name: _kept(pin, folder) for pin in wanted}
    return {name: wheel for name, wheel in found.items() if wheel}


def _kept(pin: Pin, folder: Path) -> Path | None:
    for wheel in sorted(folder.glob("*.whl")):
        if pin.named(wheel) and hashlib.sha256(wheel.read_bytes()).hexdigest() in pin.hashes:
            return wheel
    return None


def _download(absent: Iterable[Pin], architecture: str, folder: Path) -> None:
    """Have pip fetch into a folder of its own; what is whole is moved, each file in one step."""
    machine = ARCHITECTURES[architecture]
    platforms = [f"manylinux_2_{minor}_{machine}" for minor in reversed(_GLIBC)]
    with tempfile.TemporaryDirectory(dir=folder) as fresh:
        asked = Path(fresh) / "requirements.txt"
        asked.write_text("\n".join(pin.requirement() for pin in absent), "utf-8")
        done = subprocess.run(  # noqa: S603 - pip, with arguments of ours
            [
                *(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"),
                *("--disable-pip-version-check", "--only-binary", ":all:", "--require-hashes"),
                *("--implementation", "cp", "--python-version", PYTHON),
                *(f"--platform={name}" for name in (*platforms, f"manylinux2014_{machine}")),
                *("--dest", fresh, "--requirement", str(asked)),
            ],
            check=False,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            said = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
            raise UnreachableError(
                f"cannot get wheels for {architecture}: {' '.join(said) or done.stderr}"
            )
        for wheel in Path(fresh).glob("*.whl"):
            wheel.replace(folder / wheel.name)


def _cache() -> Path:
    root = os.environ.get("XDG_CACHE_HOME") or ""
    base = Path(root) if root.startswith("/") else Path.home() / ".cache"
    return base / "bellhop" / "wheels"


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
