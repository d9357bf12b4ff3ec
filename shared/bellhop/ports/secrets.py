"""The secret store: kubeconfigs and the keys that seal records."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol


class Secrets(Protocol):
    """Named secrets; the last value written is the one that is read."""

    def read(self, name: str) -> bytes:
        """Read a secret.

        Raises:
            MissingError: there is none of that name.
        """
        ...

    def put(self, name: str, value: bytes) -> None:
        """Write a secret, new or over an older one, whole or not at all."""
        ...

    def delete(self, name: str) -> None:
        """Forget a secret, with all its older values; one that is not there is fine."""
        ...

    def names(self, prefix: str = "") -> Iterator[str]:
        """Yield the names that start with `prefix`, in order."""
        ...
