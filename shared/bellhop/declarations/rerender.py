"""Asks again for all that was rendered with what has changed since."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from bellhop.state.messages import Apply
from bellhop.state.record import Profile
from bellhop.state.records import Records


def applied_again(
    records: Records, triggers: Iterable[str], profiles: Iterable[str]
) -> Iterator[Apply]:
    """Yield what asks for all profiles of some triggers, and for users' own, in all clusters."""
    for trigger in sorted(triggers):
        for each in records.profiles.heads(trigger):
            yield from _applications(records, each)
    for name in sorted(profiles):
        found = records.profiles.head("", "", name)
        if found:
            yield from _applications(records, found.value)


def _applications(records: Records, profile: Profile) -> Iterator[Apply]:
    place = profile.trigger, profile.cluster, profile.name
    found = records.profiles.head(*place) if profile.vague else None
    for destination in (found.value if found else profile).destinations:
        yield Apply(*place, destination)
