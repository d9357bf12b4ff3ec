"""Build packages and layers: `python -m infra.package [aws] [gcp]`, or for both."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from bellhop.errors import BellhopError
from infra.package.build import build
from infra.package.parts import LAYERS
from infra.package.sources import lay_out

CLOUDS: Mapping[str, Callable[[Path], Mapping[str, Path]]] = {
    "aws": lambda into: build(into, layers=LAYERS),
    "gcp": lambda into: lay_out(into, layers=LAYERS),
}


def main(arguments: list[str]) -> int:
    """Build, and say what there is."""
    if unknown := set(arguments) - CLOUDS.keys():
        sys.stderr.write(f"there are no packages for {', '.join(sorted(unknown))}\n")
        return 2
    for cloud in arguments or CLOUDS:
        try:
            made = CLOUDS[cloud](Path("dist") / cloud)
        except BellhopError as error:
            sys.stderr.write(f"{error}\n")
            return 1
        for path in made.values():
            sys.stdout.write(f"{path}  {path.stat().st_size / 1e6:.1f} MB\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
