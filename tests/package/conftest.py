"""An installation for each test, on the session's moto server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.functions.lab import Account
from tests.lab.moto import Moto


@pytest.fixture
def account(moto: Moto) -> Iterator[Account]:
    one = Account(moto, charts=True, attempts=3, retry_first=1, retry_longest=1)
    yield one
    one.close()
