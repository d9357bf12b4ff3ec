"""Build all packages: `python -m infra.package [FOLDER]`, which is `dist/aws` by itself."""

from __future__ import annotations

import sys
from pathlib import Path

from bellhop.errors import BellhopError
from infra.package.build import build


def main(arguments: list[str]) -> int:
    """Build, and say what there is."""
    into = Path(arguments[0] if arguments else "dist/aws")
    try:
        made = build(into)
    except BellhopError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    for path in made.values():
        sys.stdout.write(f"{path}  {path.stat().st_size / 1e6:.1f} MB\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
