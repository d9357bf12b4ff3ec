"""What a profile held under an earlier declaration: what `bellhop rollback` goes back to."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from msgspec import Struct

from bellhop.state.record import Content, Reading


class Rendering(Struct, frozen=True):
    """One revision of a profile, by its `number`, which no other revision of it has.

    It was rendered at `made_at`, and in force until `until`. The `recipe` names what was declared
    of what it is made, each with a digest: what differs from the one before says why it was made.
    """

    number: int
    digest: str
    until: datetime
    made_at: datetime | None = None
    recipe: Mapping[str, str] = {}
    contents: tuple[Content, ...] = ()
    generated: tuple[Mapping[str, Any], ...] = ()
    reads: tuple[Reading, ...] = ()
