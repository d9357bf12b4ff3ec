"""Failures that concern one of several: the others are done, and the first error is raised then."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class Failures:
    """What failed of several, by name; shared between threads."""

    def __init__(self) -> None:
        self._failed: list[tuple[str, Exception]] = []

    @property
    def names(self) -> list[str]:
        """Return the names of what failed."""
        return [name for name, _ in self._failed]

    @contextmanager
    def isolated(self, name: str) -> Iterator[None]:
        """Note the error of a block, and go on after it."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 - one of several fails for itself alone
            self._failed.append((name, error))

    def end(self) -> None:
        """Raise the first error, if there is one."""
        for _, error in self._failed:
            raise error
