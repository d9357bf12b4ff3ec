"""Build a release: `python -m infra.release [--no-packages]`, without the functions' packages."""

from __future__ import annotations

import sys
from pathlib import Path

from bellhop.errors import BellhopError
from infra.release.release import release

_NO_PACKAGES = "--no-packages"


def main(arguments: list[str]) -> int:
    """Build, and list the files."""
    if unknown := set(arguments) - {_NO_PACKAGES}:
        sys.stderr.write(f"a release has no option {', '.join(sorted(unknown))}\n")
        return 2
    try:
        files = release(Path("dist"), packages=_NO_PACKAGES not in arguments)
    except BellhopError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    for path in files:
        sys.stdout.write(f"{path}  {path.stat().st_size / 1e6:.1f} MB\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
