"""Find the Python that functions run on."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from bellhop.errors import MissingError
from infra.package.wheels import PYTHON


def find_interpreter(version: str = PYTHON) -> Path:
    """Find a Python of Lambda's version, wherever it is installed on this machine.

    Raises:
        MissingError: there is none.
    """
    # pyenv answers for a version that it has only if it is told to.
    told = {**os.environ, "PYENV_VERSION": version}
    done = subprocess.run(  # noqa: S603 - uv, with arguments of ours
        [sys.executable, "-m", "uv", "python", "find", "--no-project", "--offline", version],
        check=False,
        capture_output=True,
        text=True,
        env=told,
    )
    if done.returncode:
        raise MissingError(
            f"cannot find Python {version}, which functions run on; install it, for example with"
            f" `uv python install {version}`"
        )
    return Path(done.stdout.strip())
