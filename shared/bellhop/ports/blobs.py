"""The blob store: bytes that are too large for an item or a message."""

from __future__ import annotations

from typing import Protocol


class Blobs(Protocol):
    """Immutable bytes by name."""

    def get(self, name: str) -> bytes:
        """Read a blob.

        Raises:
            MissingError: there is none of that name.
        """
        ...

    def put(self, name: str, value: bytes) -> None:
        """Write a blob, whole or not at all; writing it again replaces it."""
        ...

    def delete(self, name: str) -> None:
        """Delete a blob; one that is not there is fine."""
        ...
