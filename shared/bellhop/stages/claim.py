"""Who may apply an object: one profile owns it in a cluster, the lower tier wins."""

from __future__ import annotations

from dataclasses import replace

from bellhop.errors import ConflictError, StaleError
from bellhop.model.gvk import ObjectKey
from bellhop.model.record import Owner, Profile
from bellhop.ports.queue import Message
from bellhop.ports.store import ABSENT
from bellhop.records import Records, messages

_RETRIES = 8


class Claims:
    """Ownership of the objects in clusters, decided by conditional writes."""

    def __init__(self, records: Records) -> None:
        self._records = records

    def take(self, cluster: str, key: ObjectKey, profile: Profile) -> list[Message]:
        """Own an object from now on; return what to publish for an owner that lost it.

        An owner of the same tier keeps what it has, as in Sveltos; whoever does not get the
        object is remembered and told when it is given up.

        Raises:
            ConflictError: a profile of the same or a lower tier has it.
        """
        mine = Owner(profile.name, profile.trigger, profile.cluster, profile.tier)
        for _ in range(_RETRIES):
            found = self._records.owner(cluster, key)
            try:
                if found is None:
                    self._records.put_owner(cluster, key, mine, expect=ABSENT)
                    return []
                owner, version = found
                if owner.profile == profile.name:
                    if owner.tier != profile.tier:
                        kept = replace(owner, tier=profile.tier)
                        self._records.put_owner(cluster, key, kept, expect=version)
                    return []
                if profile.tier < owner.tier:
                    loser = (owner.trigger, owner.source, owner.profile)
                    new = replace(mine, waiting=_with(owner.waiting, loser))
                    self._records.put_owner(cluster, key, new, expect=version)
                    return [messages.contest(loser, cluster, key)]
                waiter = (profile.trigger, profile.cluster, profile.name)
                if waiter not in owner.waiting:
                    queued = replace(owner, waiting=_with(owner.waiting, waiter))
                    self._records.put_owner(cluster, key, queued, expect=version)
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
        found = self._records.owner(cluster, key)
        return found is not None and found[0].profile == profile

    def give_up(self, cluster: str, key: ObjectKey, profile: str) -> list[Message]:
        """Own an object no longer; return what to publish for those who waited for it."""
        for _ in range(_RETRIES):
            found = self._records.owner(cluster, key)
            if found is None or found[0].profile != profile:
                return []
            try:
                self._records.delete_owner(cluster, key, expect=found[1])
            except StaleError:
                continue
            return [messages.contest(waiter, cluster, key) for waiter in found[0].waiting]
        raise StaleError(f"cannot give up '{key}' in '{cluster}': other writers keep winning")


def _with(
    waiting: tuple[tuple[str, str, str], ...], one: tuple[str, str, str]
) -> tuple[tuple[str, str, str], ...]:
    return waiting if one in waiting else (*waiting, one)
