"""Who is to hear when a ConfigMap or Secret of a cluster changes: whose workloads read it."""

from __future__ import annotations

from msgspec import Struct


class Mount(Struct, frozen=True):
    """A profile that has workloads which read an object."""

    trigger: str
    source: str
    profile: str
