"""What a rehearsal returns: profiles that a trigger would generate, and what clusters would get."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from bellhop.rendering.charts.releases import Desired as Release
from bellhop.rendering.event_contents import Ref
from bellhop.state.record import Content, Profile


class Placement(Struct, frozen=True):
    """What one cluster would get of a profile; what `releases` consist of Helm tells."""

    cluster: str
    contents: tuple[Content, ...]
    releases: tuple[Release, ...] = ()
    kubernetes: str = ""


class Instantiated(Struct, frozen=True):
    """A ConfigMap or Secret rendered with an event; `origin` is the one with the templates."""

    origin: Ref
    ref: Ref
    manifest: dict[str, Any]


class Generated(Struct, frozen=True):
    """One ClusterProfile that a trigger would generate; its `object` is empty for all together."""

    profile: Profile
    manifest: dict[str, Any]
    instantiated: tuple[Instantiated, ...]
    placements: tuple[Placement, ...]
