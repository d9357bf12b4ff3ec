"""The blob store: bytes that are too large for an item or a message."""

from __future__ import annotations

import hashlib
import re
from typing import Protocol

_KIND = re.compile(r"[a-z]+(?=/)")


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


def object_key(name: str) -> str:
    """Return the key of a blob in a cloud's bucket: `blobs/KIND/SHA-256 of its name`.

    Every name is safe there, none is too long, and the load spreads. Its kind, the first word of
    the partition of its record, is what a policy can name.
    """
    kind = _KIND.match(name)
    # A lone surrogate is a name like any other here: only its digest is sent.
    digest = hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()
    return f"blobs/{kind[0] if kind else 'other'}/{digest}"
