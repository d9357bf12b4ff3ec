"""AWS for tests: one moto server in a session, started by the first test that wants it.

Use as a plugin (`pytest_plugins = ["tests.aws_fixtures"]`). Nothing in it is emptied between
tests: each makes what it needs under a name of its own.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from infra.lab.moto import Moto


@pytest.fixture(scope="session")
def _moto(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Moto]:
    with Moto(tmp_path_factory.mktemp("moto")) as moto:
        yield moto


@pytest.fixture
def moto(_moto: Moto) -> Iterator[Moto]:
    """The session's moto server, which fails in no way that another test asked for."""
    yield _moto
    _moto.forgive()
