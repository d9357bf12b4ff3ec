"""Releases of Helm charts, as people read of them."""

from __future__ import annotations

from urllib.parse import urlsplit

from bellhop.model.record import Held


def public(repository: str) -> str:
    """Return a repository's URL without what may be secret in it."""
    parts = urlsplit(repository)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="").geturl()


def origin(held: Held) -> str:
    """Say which release an object is part of, or which chart a release is of; else nothing."""
    if held.part_of:
        return f"part of release {held.part_of}"
    known = held.release
    if known is None or not known.chart:
        return "removed, as asked" if known and known.removed else ""
    return f"chart {known.chart} {known.version} of {public(known.repository)}"
