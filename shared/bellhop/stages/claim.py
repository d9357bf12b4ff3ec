"""Who may apply an object: one profile owns it in a cluster, the lower tier wins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from bellhop.errors import ConflictError, StaleError
from bellhop.model.gvk import ObjectKey
from bellhop.model.record import Owner, Profile
from bellhop.ports.queue import Message
from bellhop.ports.store import ABSENT
from bellhop.records import Records, messages

_RETRIES = 8
_MOST_WAITING = 32
"""Profiles that are told when an object is given up; those before them try at the next sweep."""


@dataclass(frozen=True, slots=True)
class Taken:
    """A claim that was won: whether it is new, who had it before, and what to publish."""

    new: bool
    before: Owner | None = None
    messages: Sequence[Message] = ()


class Claims:
    """Ownership of the objects in clusters, decided by conditional writes."""

    def __init__(self, records: Records) -> None:
        self._records = records

    def take(self, cluster: str, key: ObjectKey, profile: Profile, *, again: bool = False) -> Taken:
        """Own an object from now on, and have told who loses it.

        A try that comes `again` tells once more: the one before may have died before it did.

        An owner of the same tier keeps what it has, as in Sveltos; whoever does not get the
        object is remembered and told when it is given up.

        Raises:
            ConflictError: a profile of the same or a lower tier has it.
        """
        mine = Owner(profile.name, profile.trigger, profile.cluster, profile.tier)
        for _ in range(_RETRIES):
            found = self._records.owners.get(cluster, key)
            try:
                if found is None:
                    self._records.owners.put(cluster, key, mine, expect=ABSENT)
                    return Taken(new=True)
                owner, token = found.value, found.token
                if owner.profile == profile.name:
                    if owner.tier != profile.tier:
                        kept = replace(owner, tier=profile.tier)
                        self._records.owners.put(cluster, key, kept, expect=token)
                    tell = owner.waiting if again or owner.tier != profile.tier else ()
                    return Taken(new=False, messages=_contests(tell, cluster, key))
                if profile.tier < owner.tier:
                    loser = (owner.trigger, owner.source, owner.profile)
                    new = replace(mine, waiting=_with(owner.waiting, loser))
                    self._records.owners.put(cluster, key, new, expect=token)
                    return Taken(new=True, before=owner, messages=_contests([loser], cluster, key))
                waiter = (profile.trigger, profile.cluster, profile.name)
                if waiter not in owner.waiting:
                    queued = replace(owner, waiting=_with(owner.waiting, waiter))
                    self._records.owners.put(cluster, key, queued, expect=token)
            except StaleError:
                continue
            raise ConflictError(
                f"cannot apply {key.gvk.kind} '{key.namespace}/{key.name}' to '{cluster}':"
                f" profile '{owner.profile}' of tier {owner.tier} has it; give"
                f" '{profile.name}' a lower tier than {owner.tier}, or remove one of the two"
            )
        raise StaleError(f"cannot claim '{key}' in '{cluster}': other writers keep winning")

    def owns(self, cluster: str, key: ObjectKey, profile: str) -> bool:
        """Say whether a profile has an object."""
        found = self._records.owners.get(cluster, key)
        return found is not None and found.value.profile == profile

    def give_back(
        self, cluster: str, key: ObjectKey, profile: Profile, before: Owner | None
    ) -> list[Message]:
        """Undo a claim that led to nothing; return what to publish for who has it again."""
        if before is None:
            return self.give_up(cluster, key, profile.name)
        found = self._records.owners.get(cluster, key)
        if found is None or found.value.profile != profile.name:
            return []
        waiting = _with(found.value.waiting, (profile.trigger, profile.cluster, profile.name))
        had = (before.trigger, before.source, before.profile)
        again = replace(before, waiting=tuple(each for each in waiting if each != had))
        self._records.owners.put(cluster, key, again, expect=found.token)
        return _contests([had], cluster, key)

    def give_up(self, cluster: str, key: ObjectKey, profile: str) -> list[Message]:
        """Own an object no longer; return what to publish for those who waited for it."""
        for _ in range(_RETRIES):
            found = self._records.owners.get(cluster, key)
            if found is None or found.value.profile != profile:
                return []
            try:
                self._records.owners.delete(cluster, key, expect=found.token)
            except StaleError:
                continue
            return _contests(found.value.waiting, cluster, key)
        raise StaleError(f"cannot give up '{key}' in '{cluster}': other writers keep winning")


def _contests(
    profiles: Sequence[tuple[str, str, str]], cluster: str, key: ObjectKey
) -> list[Message]:
    return [messages.contest(profile, cluster, key) for profile in profiles]


def _with(
    waiting: tuple[tuple[str, str, str], ...], one: tuple[str, str, str]
) -> tuple[tuple[str, str, str], ...]:
    return waiting if one in waiting else (*waiting, one)[-_MOST_WAITING:]
