"""The Python that functions run on: its version, its architectures, and one on this machine."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from bellhop.errors import MissingError

PYTHON = "3.13"
"""The Python of the functions: google-re2's wheels need a glibc that Lambda has since 3.12."""

ARCHITECTURES: Mapping[str, str] = {"x86_64": "x86_64", "arm64": "aarch64"}
"""AWS' names, and those in the names of wheels."""


def machine_architecture() -> str:
    """Return AWS' name of the architecture of this machine."""
    machine = platform.machine()
    return next((ours for ours, theirs in ARCHITECTURES.items() if theirs == machine), machine)


def find_interpreter(version: str = PYTHON) -> Path:
    """Find a Python of Lambda's version on this machine; uv downloads one where there is none.

    Raises:
        MissingError: there is none, and uv cannot download it.
    """
    ask = ("python", "-c", "import sys; print(sys.executable)")
    done = subprocess.run(  # noqa: S603 - uv, with arguments of ours
        [sys.executable, "-m", "uv", "run", "--no-project", "--quiet", "--python", version, *ask],
        check=False,
        capture_output=True,
        text=True,
        # pyenv answers for a version that it has only if it is named to it.
        env={**os.environ, "PYENV_VERSION": version},
    )
    if done.returncode:
        raise MissingError(
            f"cannot find Python {version}, which functions run on, and uv cannot download it;"
            f" install it, for example with `uv python install {version}`"
        )
    return Path(done.stdout.strip())
