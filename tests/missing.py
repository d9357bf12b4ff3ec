"""What happens to tests where a service or a program is missing: CI fails, a laptop skips them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import pytest

from bellhop.errors import MissingError
from infra.lab.binaries import look_up


def missing(reason: str) -> NoReturn:
    """Skip the current test for a reason; in CI fail it, where a skipped test proves nothing."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


@contextmanager
def required() -> Iterator[None]:
    """Skip the current test, or fail it in CI, if a MissingError is raised in the block."""
    try:
        yield
    except MissingError as error:
        missing(str(error))


def find_program(name: str, package: str = "") -> Path:
    """Return the path of a program, which a Debian package may have; without it see `missing`."""
    found = look_up(name)
    if found is None:
        missing(f"there is no {name}{f'; on Debian: apt-get install {package}' * bool(package)}")
    return found
