"""Build packages and layers: `python -m infra.package [aws] [gcp] [--no-charts]`, or for both."""

from __future__ import annotations

import sys
from pathlib import Path

from bellhop.errors import BellhopError
from infra.package.build import build
from infra.package.sources import lay_out

CLOUDS = {"aws": build, "gcp": lay_out}
_NO_CHARTS = "--no-charts"


def main(arguments: list[str]) -> int:
    """Build, and list what was built."""
    clouds = [each for each in arguments if each != _NO_CHARTS]
    if unknown := set(clouds) - CLOUDS.keys():
        sys.stderr.write(f"there are no packages for {', '.join(sorted(unknown))}\n")
        return 2
    for cloud in clouds or CLOUDS:
        try:
            made = CLOUDS[cloud](Path("dist") / cloud, charts=_NO_CHARTS not in arguments)
        except BellhopError as error:
            sys.stderr.write(f"{error}\n")
            return 1
        for path in made.values():
            sys.stdout.write(f"{path}  {path.stat().st_size / 1e6:.1f} MB\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
