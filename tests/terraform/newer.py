"""Packages of a version that is newer than those that are there, and does the same."""

from __future__ import annotations

import hashlib
import re
import zipfile
from pathlib import Path

from infra.package.files import build_id

VERSION = "9.9.9"

_MARK = "bellhop/__init__.py"
_COMPILED = re.compile(r"bellhop/__pycache__/__init__\.[\w-]+\.pyc")


def make_newer(checkout: Path, packages: Path, version: str = VERSION) -> None:
    """Put another version into a checkout, and its package in the place of the one in a folder."""
    source = checkout / "shared" / _MARK
    before = build_id("functions", checkout)
    source.write_bytes(_newer(source.read_bytes(), version))
    for package in packages.glob(f"functions-*-{before}.zip"):
        name = package.name.replace(before, build_id("functions", checkout))
        with zipfile.ZipFile(package) as old, zipfile.ZipFile(packages / name, "w") as new:
            for entry in old.infolist():
                content = old.read(entry)
                # Nobody looks whether what is compiled fits its source: it has to go.
                if not _COMPILED.fullmatch(entry.filename):
                    marked = entry.filename == _MARK
                    new.writestr(entry, _newer(content, version) if marked else content)
        package.unlink()
    lines = [
        f"{hashlib.sha256(each.read_bytes()).hexdigest()}  {each.name}\n"
        for each in sorted(packages.glob("*.zip"))
    ]
    (packages / "SHA256SUMS").write_text("".join(lines))


def _newer(content: bytes, version: str) -> bytes:
    changed, times = re.subn(rb'(__version__ = )"[^"]+"', rb'\1"%s"' % version.encode(), content)
    assert times == 1
    return changed
