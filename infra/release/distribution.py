"""The distribution that pip installs: a wheel, and the sources that it is built of."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

from infra.release.checkout import Checkout
from infra.release.uv import run_uv


def distribution(checkout: Checkout) -> Mapping[str, bytes]:
    """Build the wheel and the source distribution with the locked build tools, by their names.

    Raises:
        PermanentError: uv cannot build them.
    """
    lock = str(checkout.root / "requirements.lock")
    with tempfile.TemporaryDirectory() as folder:
        run_uv(
            checkout.root,
            *("build", "--out-dir", folder, "--no-create-gitignore"),
            *("--build-constraints", lock, "--require-hashes"),
            environment={"SOURCE_DATE_EPOCH": str(checkout.time)},
        )
        return {path.name: path.read_bytes() for path in Path(folder).iterdir()}
