"""Ownership of objects: one profile owns an object in a cluster; the lower tier wins.

A profile that replaces the owner, by `transitionFrom`, wins whatever the tiers.

    owner: first ──second claims it──► owner: second, outbox: first ──published──► owner: second
    owner: first ──releases it──► no owner, outbox: waiters ──published──► no record

A change of owner is stored with the profiles that it concerns, and they are deleted once they are
published. So the next worker, even a week later, publishes them for one that died.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from msgspec import Struct
from msgspec.structs import replace

from bellhop.core.gvk import Identity
from bellhop.errors import ConflictError, LostWriteError, StaleError
from bellhop.ports.store import ABSENT
from bellhop.state.concurrency import until_written
from bellhop.state.deployment import Owner
from bellhop.state.messages import Apply, Publisher
from bellhop.state.profile import Profile
from bellhop.state.records import Records
from bellhop.state.table import Stored

_MOST_WAITING = 32
"""Waiters of an object that are stored; those before them try at their next retry."""


class Taken(Struct, frozen=True):
    """A claim that was won: whether it is new, and the owner before.

    Another profile claims a `disputed` object, too.
    """

    new: bool
    before: Owner | None = None
    disputed: bool = False


class Ownership:
    """Ownership of the objects in clusters, decided by conditional writes."""

    def __init__(self, records: Records, publisher: Publisher) -> None:
        self._records = records
        self._publisher = publisher

    def claim(self, cluster: str, key: Identity, profile: Profile, *, free: bool = False) -> Taken:
        """Claim an object, and publish the profile that loses it.

        An owner of the same tier keeps the object, as in Sveltos, unless it is replaced. A profile
        that does not get it is stored as a waiter. For an object that is probably `free` the write
        is tried without a read.

        Raises:
            ConflictError: a profile of the same or a lower tier owns it.
        """
        if free:
            with suppress(LostWriteError):
                return self._claim_from(None, cluster, key, profile)
        return self._claim_stored(cluster, key, profile)

    @until_written("claim '{key}' in '{cluster}'")
    def _claim_stored(self, cluster: str, key: Identity, profile: Profile) -> Taken:
        return self._claim_from(self._records.owners.get(cluster, key), cluster, key, profile)

    def _claim_from(
        self, found: Stored[Owner] | None, cluster: str, key: Identity, profile: Profile
    ) -> Taken:
        me = (profile.trigger, profile.cluster, profile.name)
        owner, token = (found.value, found.token) if found else (None, ABSENT)
        if owner is None or not owner.profile:
            mine = _owned(profile, owner)
            self._put(cluster, key, mine, token)
            return Taken(new=True, disputed=bool(mine.waiting))
        if owner.profile == profile.name:
            moved = owner.tier != profile.tier
            to_notify = _with(owner.tell, *owner.waiting) if moved else owner.tell
            mine = replace(owner, tier=profile.tier, tell=to_notify)
            if mine != owner or to_notify:
                self._put(cluster, key, mine, token)
            return Taken(new=False, disputed=bool(mine.waiting))
        if self._wins(cluster, profile, owner):
            loser = _place_of(owner)
            mine = _owned(profile, owner)
            mine = replace(mine, waiting=_with(mine.waiting, loser), tell=_with(mine.tell, loser))
            self._put(cluster, key, mine, token)
            return Taken(new=True, before=owner, disputed=True)
        if me not in owner.waiting:
            self._put(cluster, key, replace(owner, waiting=_with(owner.waiting, me)), token)
            # The owner may be about to remove it, and keeps it until another profile waits.
            self._publisher.publish([Apply(*_place_of(owner), cluster)])
        raise self._refused(cluster, key, profile, owner)

    def notify_owner(self, cluster: str, key: Identity) -> None:
        """Notify the owner of an object that another profile may have overwritten it."""
        found = self._records.owners.get(cluster, key)
        if found and found.value.profile:
            self._publisher.publish([Apply(*_place_of(found.value), cluster, contested=str(key))])

    def check(self, cluster: str, key: Identity, profile: Profile) -> None:
        """Raise the error that `claim` would raise, and write nothing.

        Raises:
            ConflictError: a profile of the same or a lower tier owns it.
        """
        found = self._records.owners.get(cluster, key)
        if not found or not is_owned_by_other(profile.name, found):
            return
        if not self._wins(cluster, profile, found.value):
            raise self._refused(cluster, key, profile, found.value)

    def read(self, cluster: str, key: Identity) -> Stored[Owner] | None:
        return self._records.owners.get(cluster, key)

    def return_claim(
        self, cluster: str, key: Identity, profile: Profile, before: Owner | None
    ) -> None:
        """Undo a claim that had no effect, and publish the owner before."""
        if before is None:
            self.release(cluster, key, profile.name)
            return
        found = self._records.owners.get(cluster, key)
        if found is None or found.value.profile != profile.name:
            return
        had = _place_of(before)
        waiting = _with(found.value.waiting, (profile.trigger, profile.cluster, profile.name))
        again = replace(
            before,
            waiting=tuple(each for each in waiting if each != had),
            tell=_with(found.value.tell, had),
        )
        self._put(cluster, key, again, found.token)

    def release(
        self, cluster: str, key: Identity, profile: str, known: Stored[Owner] | None = None
    ) -> bool:
        """Release an object, and publish its waiters; False if another profile owns it.

        A `known` owner is not read again unless the conditional write is refused.
        """
        if known:
            with suppress(LostWriteError):
                return self._release(cluster, key, profile, known)
        return self._release_stored(cluster, key, profile)

    @until_written("give up '{key}' in '{cluster}'")
    def _release_stored(self, cluster: str, key: Identity, profile: str) -> bool:
        return self._release(cluster, key, profile, self._records.owners.get(cluster, key))

    def _release(
        self, cluster: str, key: Identity, profile: str, found: Stored[Owner] | None
    ) -> bool:
        if found is None or is_owned_by_other(profile, found):
            return found is None
        owner, token = found.value, found.token
        to_notify = _with(owner.tell, *owner.waiting)
        if not to_notify:
            self._records.owners.delete(cluster, key, expect=token)
        else:
            self._put(cluster, key, Owner("", "", "", 0, (), to_notify), token)
        return True

    def _wins(self, cluster: str, profile: Profile, owner: Owner) -> bool:
        """Say whether a profile takes an object from its owner.

        It does not from a profile that replaces it: both would claim it in turns without end. An
        owner that leaves the cluster keeps nothing.
        """
        stays = self._staying(cluster, owner)
        if stays is None:
            return True
        replaces = not owner.trigger and owner.profile in profile.rollout.replaces
        wins = replaces or profile.tier < owner.tier
        return wins and profile.name not in stays.rollout.replaces

    def _staying(self, cluster: str, owner: Owner) -> Profile | None:
        """Return the owning profile, unless it leaves the cluster."""
        head = self._records.profiles.head(*_place_of(owner))
        return head.value if head and cluster in head.value.destinations else None

    def _refused(
        self, cluster: str, key: Identity, profile: Profile, owner: Owner
    ) -> ConflictError:
        why = f"profile '{owner.profile}' of tier {owner.tier} has it"
        cure = f"give '{profile.shown}' a lower tier than {owner.tier}, or remove one of the two"
        stays = self._staying(cluster, owner)
        if stays and profile.name in stays.rollout.replaces:
            why = f"profile '{owner.profile}' has it, and replaces '{profile.shown}'"
            why += " by transitionFrom"
            cure = "have only one of the two select the cluster"
        return ConflictError(
            f"cannot apply {key.kind} '{key.namespace}/{key.name}' to '{cluster}': {why}; {cure}"
        )

    def _put(self, cluster: str, key: Identity, owner: Owner, token: str) -> None:
        """Write an owner, publish its outbox, and clear the outbox.

        Raises:
            StaleError: another worker was quicker.
        """
        token = self._records.owners.put(cluster, key, owner, expect=token)
        if not owner.tell:
            return
        self._publisher.publish(Apply(*each, cluster, contested=str(key)) for each in owner.tell)
        with suppress(StaleError):
            # A worker that wrote it since has found the outbox, and publishes it again.
            if owner.profile:
                self._records.owners.mark_published(cluster, key, owner, expect=token)
            else:
                self._records.owners.delete(cluster, key, expect=token)


def is_owned_by_other(profile: str, owner: Stored[Owner] | None) -> bool:
    """Say whether another profile than this one owns an object."""
    return owner is not None and owner.value.profile not in ("", profile)


def _place_of(owner: Owner) -> tuple[str, str, str]:
    """Return the identity of the owning profile, as messages have it."""
    return owner.trigger, owner.source, owner.profile


def _owned(profile: Profile, before: Owner | None) -> Owner:
    """Return a profile as owner, with the waiters and the outbox of the owner before."""
    waiting = before.waiting if before else ()
    me = (profile.trigger, profile.cluster, profile.name)
    return Owner(
        profile=profile.name,
        trigger=profile.trigger,
        source=profile.cluster,
        tier=profile.tier,
        waiting=tuple(each for each in waiting if each != me),
        tell=before.tell if before else (),
    )


def _with(
    profiles: Sequence[tuple[str, str, str]], *more: tuple[str, str, str]
) -> tuple[tuple[str, str, str], ...]:
    return tuple(dict.fromkeys((*profiles, *more)))[-_MOST_WAITING:]
