"""The distribution that pip installs: a wheel, and the sources that it is built of."""

from __future__ import annotations

import io
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from infra.release.checkout import Checkout
from infra.release.pages import link_to_repository, name_repository
from infra.release.uv import run_uv

_SOURCES = ("LICENSE", "README.md", "pyproject.toml", "shared/bellhop")
"""The committed files that a distribution is built from."""


def distribution(checkout: Checkout) -> Mapping[str, bytes]:
    """Build the wheel and the source distribution with the locked build tools, by their names.

    They are built from the committed files, in which links lead to the repository.

    Raises:
        PermanentError: uv cannot build them.
    """
    lock = str(checkout.root / "requirements.lock")
    with tempfile.TemporaryDirectory() as folder, _sources(checkout) as sources:
        run_uv(
            sources,
            *("build", "--out-dir", folder, "--no-create-gitignore"),
            *("--build-constraints", lock, "--require-hashes"),
            environment={"SOURCE_DATE_EPOCH": str(checkout.time)},
        )
        return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


@contextmanager
def _sources(checkout: Checkout) -> Iterator[Path]:
    with (
        tempfile.TemporaryDirectory() as folder,
        tarfile.open(fileobj=io.BytesIO(checkout.archive(_SOURCES))) as opened,
    ):
        opened.extractall(folder, filter="data")
        root = Path(folder) / checkout.name
        for name, change in (
            ("README.md", link_to_repository),
            ("pyproject.toml", name_repository),
        ):
            path = root / name
            path.write_text(change(path.read_text("utf-8"), checkout), "utf-8")
        yield root
