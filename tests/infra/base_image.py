"""A stand-in for the base of both images: this Python with pip, and the libraries that it needs.

No test reaches the registry of the real one.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

_STANDARD = Path("lib", f"python{sys.version_info.major}.{sys.version_info.minor}")
_LEFT_OUT = shutil.ignore_patterns(
    "site-packages", "test", "tests", "__pycache__", "config-*", "ensurepip", "idlelib", "tkinter"
)
_OF_DEBIAN = ("libgcc_s.so.1", "libstdc++.so.6")
"""Libraries that each image of Debian has, since its package manager needs them."""

_OF_GLIBC = ("dl.so.2", "m.so.6", "pthread.so.0", "rt.so.1", "util.so.1")
_DOCKERFILE = """\
FROM scratch
COPY root /
ENV PATH=/usr/local/bin LD_LIBRARY_PATH=/usr/local/lib PIP_RETRIES=2
"""


def build_base_image(archive: Path) -> str:
    """Write the image as an OCI archive, and return the name by which buildah finds it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _fill(folder / "root")
        (folder / "Dockerfile").write_text(_DOCKERFILE)
        tag = f"oci-archive:{archive}"
        buildah(folder, "build", "--isolation=chroot", "--timestamp=0", f"--tag={tag}", name)
    return tag


def buildah(store: Path, *arguments: str) -> str:
    """Run buildah on a store of its own, and return what it prints."""
    place = (f"--root={store}/store", f"--runroot={store}/run")
    done = subprocess.run(
        ["buildah", "--storage-driver=vfs", *place, *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def _fill(root: Path) -> None:
    python = Path(sys.base_prefix)
    local = root / "usr/local"
    (local / "bin").mkdir(parents=True)
    shutil.copy(Path(sys.executable).resolve(), local / "bin/python")
    shutil.copytree(python / _STANDARD, local / _STANDARD, ignore=_LEFT_OUT)
    shutil.copytree(
        python / _STANDARD / "site-packages/pip",
        local / _STANDARD / "site-packages/pip",
        ignore=_LEFT_OUT,
    )
    for library in _libraries([local / "bin/python", *(local / _STANDARD).rglob("*.so")]):
        place = root / library.relative_to("/")
        if library.is_relative_to(python):
            place = local / "lib" / library.name
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library, place)
    for each in ("etc/ssl/certs", "tmp"):
        (root / each).mkdir(parents=True)
    (root / "tmp").chmod(0o1777)
    shutil.copy("/etc/ssl/certs/ca-certificates.crt", root / "etc/ssl/certs")


def _libraries(programs: list[Path]) -> set[Path]:
    listed = subprocess.run(
        ["/usr/bin/ldd", *programs], capture_output=True, text=True, check=False
    ).stdout
    found = {Path(each) for each in re.findall(r"(?:=> |^\s+)(/\S+)", listed, re.MULTILINE)}
    # Wheels name the parts that glibc had before 2.34.
    libc = next(each for each in found if each.name == "libc.so.6")
    beside = (*_OF_DEBIAN, *(f"lib{each}" for each in _OF_GLIBC))
    return found | {libc.with_name(each) for each in beside}
