"""All benchmarks, each in a process of its own: `python -m tests.benchmarks`."""

from __future__ import annotations

import subprocess
import sys

from tests.benchmarks.figures import ROOT, benchmarks


def main() -> int:
    """Run them; answer 1 where one failed, after all have run."""
    failed = []
    for name in benchmarks():
        print(f"\n== {name}", flush=True)
        argv = [sys.executable, "-m", f"tests.benchmarks.{name}"]
        if subprocess.run(argv, cwd=ROOT, check=False).returncode:
            failed.append(name)
    if failed:
        print(f"\nfailed, or missed an aim: {', '.join(failed)}", file=sys.stderr)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
