"""Build a release: `python -m infra.release [--no-packages] [--no-image]`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from bellhop.errors import BellhopError
from infra.release.release import release


def main(arguments: Sequence[str]) -> int:
    """Build, and list the files."""
    parser = argparse.ArgumentParser("python -m infra.release", allow_abbrev=False)
    parser.add_argument("--no-packages", action="store_true", help="leave out those of functions")
    parser.add_argument("--no-image", action="store_true", help="leave out both images")
    asked = parser.parse_args(arguments)
    try:
        files = release(Path("dist"), packages=not asked.no_packages, image=not asked.no_image)
    except BellhopError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    for path in files:
        sys.stdout.write(f"{path}  {path.stat().st_size / 1e6:.1f} MB\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
