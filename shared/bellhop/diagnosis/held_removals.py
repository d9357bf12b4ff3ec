"""Held changes: what one change of the declarations would remove, and does not until released."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

from bellhop.core.generated_names import profile_kind
from bellhop.core.identity import ROLE_REQUEST
from bellhop.declarations.deletion_guard import RemovalGuard
from bellhop.installation.installation import Installation
from bellhop.state.held_removal import HeldRemoval

_RULES = 3
_CLUSTERS = 3


class HeldChange(NamedTuple):
    """One change: which triggers and profiles would lose add-ons, and where."""

    name: str
    cause: str
    since: datetime | None
    removals: tuple[HeldRemoval, ...]

    @property
    def addons(self) -> int:
        """Count what is held: one profile in one cluster is one add-on."""
        return sum(each.addons for each in self.removals)

    @property
    def of(self) -> int:
        """Count what the same triggers and profiles had deployed before the change."""
        return sum(each.of for each in self.removals)

    @property
    def clusters(self) -> tuple[str, ...]:
        """Name the clusters in which something is held, of very many the first ones."""
        return tuple(sorted({key for each in self.removals for key in each.clusters}))

    @property
    def release(self) -> str:
        """Return the command that removes what is held."""
        return f"bellhop release --change {self.name}"

    @property
    def why(self) -> str:
        """Say what is held, because of what, and how it ends, in a sentence."""
        first = "; ".join(map(described, self.removals[:_RULES]))
        more = len(self.removals) - _RULES
        others = f"; and {more} more lose add-ons" if more > 0 else ""
        return (
            f"{self.cause}: {first}{others}; they stay until the change is taken back, or"
            f" `{self.release}` removes them"
        )


def described(removal: HeldRemoval, most: int = _CLUSTERS) -> str:
    """Say which trigger or profile loses how many add-ons in which clusters, `most` of them."""
    named = ", ".join(removal.clusters[:most])
    more = removal.number - len(removal.clusters[:most])
    where = f"{named} and {more} more clusters" if more > 0 else named
    profiles = "1 profile" if removal.profiles == 1 else f"{removal.profiles} profiles"
    return (
        f"{rule_name(removal)} loses {removal.addons} of {removal.of} add-ons ({profiles}) in"
        f" {where}"
    )


def rule_name(removal: HeldRemoval) -> str:
    """Return kind and name of a trigger or profile as sentences name it."""
    if removal.trigger:
        return f"EventTrigger '{removal.trigger}'"
    kind, name = profile_kind(removal.profile), removal.profile
    return f"{kind} '{name.removeprefix(f'{ROLE_REQUEST}:')}'"


def held_changes(here: Installation) -> Iterator[HeldChange]:
    """Yield the changes of which something is held now, the oldest first."""
    guard, catalog = RemovalGuard(here.records, here.settings), here.catalogs.known()
    found = (guard.remaining(catalog, each.value) for each in here.records.removals.all())
    yield from grouped(each for each in found if each.addons)


def grouped(removals: Iterable[HeldRemoval]) -> Sequence[HeldChange]:
    """Return held removals by the change that they belong to, the oldest first."""
    by_change: dict[str, list[HeldRemoval]] = {}
    for each in removals:
        by_change.setdefault(each.change, []).append(each)
    changes = (
        HeldChange(name, found[0].cause, found[0].since, tuple(found))
        for name, found in by_change.items()
    )
    return sorted(changes, key=lambda each: (str(each.since), each.name))
