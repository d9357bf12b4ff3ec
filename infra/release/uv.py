"""Runs uv, which builds the distribution and lists its dependencies."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from bellhop.errors import PermanentError


def run_uv(folder: Path, *arguments: str, environment: Mapping[str, str] | None = None) -> bytes:
    """Run uv in a folder, and return what it prints.

    Raises:
        PermanentError: it failed; the message ends with its words.
    """
    done = subprocess.run(  # noqa: S603 - uv, with arguments of ours
        [sys.executable, "-m", "uv", "--quiet", *arguments],
        check=False,
        capture_output=True,
        cwd=folder,
        env={**os.environ, **(environment or {})},
    )
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip()
        raise PermanentError(f"cannot release: `uv {arguments[0]}` failed: {said}")
    return done.stdout
