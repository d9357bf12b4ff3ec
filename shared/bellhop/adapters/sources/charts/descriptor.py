"""The descriptor of an archive: where it is, and its digest."""

from __future__ import annotations

import hashlib

from msgspec import Struct


class Descriptor(Struct, frozen=True):
    """The archive of one version; `digest` is its SHA-256, empty if the index has none."""

    chart: str
    version: str
    url: str
    digest: str = ""


def digest_of(content: bytes) -> str:
    """Return the SHA-256 of an archive."""
    return hashlib.sha256(content).hexdigest()
