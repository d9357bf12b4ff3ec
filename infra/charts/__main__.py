"""Pack both charts into `dist/charts`: `python -m infra.charts`."""

from __future__ import annotations

import sys
from pathlib import Path

from infra.charts.build import write_charts


def main() -> int:
    """Pack, and list the archives."""
    for path in write_charts(Path("dist/charts")):
        sys.stdout.write(f"{path}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
