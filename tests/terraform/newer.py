"""Packages of a version that is newer than those that are there, and does the same."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

VERSION = "9.9.9"

_MARK = "bellhop/__init__.py"
_COMPILED = re.compile(r"bellhop/__pycache__/__init__\.[\w-]+\.pyc")


def make_newer(packages: Path) -> None:
    """Put newer packages of the functions in the place of those in a folder."""
    for package in [each for each in packages.glob("*.zip") if not each.name.startswith("layer-")]:
        made = package.with_suffix(".newer")
        with zipfile.ZipFile(package) as old, zipfile.ZipFile(made, "w") as new:
            for entry in old.infolist():
                content = old.read(entry)
                if entry.filename == _MARK:
                    content, times = re.subn(
                        rb'(__version__ = )"[^"]+"', rb'\1"%s"' % VERSION.encode(), content
                    )
                    assert times == 1
                # Nobody looks whether what is compiled fits its source: it has to go.
                if not _COMPILED.fullmatch(entry.filename):
                    new.writestr(entry, content)
        made.replace(package)
