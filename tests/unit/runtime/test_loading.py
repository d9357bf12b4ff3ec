"""While a function is loaded nobody looks for garbage; afterwards somebody does."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from bellhop.runtime.cloud.loading import undisturbed


@pytest.fixture(autouse=True)
def _unfrozen() -> Iterator[None]:
    """Leave nothing of a test that is never looked at; what was collected stays so (conftest)."""
    yield
    gc.unfreeze()
    gc.collect()
    gc.freeze()


def test_what_is_loaded_is_never_looked_at() -> None:
    """No collection begins within, and what was made there is out of reach of those after it."""
    with undisturbed():
        within = gc.isenabled()
        made = [{} for _ in range(3)]

    assert not within
    assert gc.isenabled()
    assert not any(each is made for each in gc.get_objects())


def test_a_module_that_cannot_be_loaded_leaves_the_collector_at_work() -> None:
    """A process that catches the error to report it goes on as any other."""
    with pytest.raises(ModuleNotFoundError), undisturbed():
        import bellhop.there_is_no_such_module  # type: ignore[import-not-found]  # noqa: F401, PLC0415

    assert gc.isenabled()
