"""Who is to hear when an object of `mgmt/mgmt` changes: what is rendered with it, and for whom."""

from __future__ import annotations

from msgspec import Struct


class TemplateDependency(Struct, frozen=True):
    """A profile whose templates read an object where it is brought to a destination.

    It is `settled` once somebody has seen to it that the object rings.
    """

    trigger: str
    source: str
    profile: str
    destination: str
    settled: bool = False
