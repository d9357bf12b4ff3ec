"""Who may apply an object: one profile owns it in a cluster, the lower tier wins.

A profile that replaces the owner, by `transitionFrom`, wins whatever the tiers.

    owner: first ──second takes it──► owner: second, to tell: first ──told──► owner: second
    owner: first ──gives it up──► nobody, to tell: those who wait ──told──► no record

Whom a change of owner concerns is written down with the change and struck out once they are
told, so that whoever comes next, be it in a week, tells them for one who died before.
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
from bellhop.state.messages import Apply, Publisher
from bellhop.state.record import Owner, Profile
from bellhop.state.records import Records
from bellhop.state.table import Stored

_MOST_WAITING = 32
"""Profiles that are told when an object is given up; those before them try at their next turn."""


class Taken(Struct, frozen=True):
    """A claim that was won: whether it is new, and who had the object before.

    One that is `disputed` another profile wants, too.
    """

    new: bool
    before: Owner | None = None
    disputed: bool = False


class Ownership:
    """Ownership of the objects in clusters, decided by conditional writes."""

    def __init__(self, records: Records, publisher: Publisher) -> None:
        self._records = records
        self._publisher = publisher

    def take(self, cluster: str, key: Identity, profile: Profile, *, free: bool = False) -> Taken:
        """Own an object from now on, and tell who loses it.

        An owner of the same tier keeps what it has, as in Sveltos, unless it is replaced; a profile
        that does not get the object is remembered, and notified when it is given up. Where it is
        probably `free`, a write finds out, and not a read before it.

        Raises:
            ConflictError: a profile of the same or a lower tier has it.
        """
        if free:
            with suppress(LostWriteError):
                return self._take_from(None, cluster, key, profile)
        return self._take_stored(cluster, key, profile)

    @until_written("claim '{key}' in '{cluster}'")
    def _take_stored(self, cluster: str, key: Identity, profile: Profile) -> Taken:
        return self._take_from(self._records.owners.get(cluster, key), cluster, key, profile)

    def _take_from(
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
            tell = _with(owner.tell, *owner.waiting) if moved else owner.tell
            mine = replace(owner, tier=profile.tier, tell=tell)
            if mine != owner or tell:
                self._put(cluster, key, mine, token)
            return Taken(new=False, disputed=bool(mine.waiting))
        if self._wins(cluster, profile, owner):
            loser = _who(owner)
            mine = _owned(profile, owner)
            mine = replace(mine, waiting=_with(mine.waiting, loser), tell=_with(mine.tell, loser))
            self._put(cluster, key, mine, token)
            return Taken(new=True, before=owner, disputed=True)
        if me not in owner.waiting:
            self._put(cluster, key, replace(owner, waiting=_with(owner.waiting, me)), token)
            # It may be about to give it up, and keeps it until another profile waits.
            self._publisher.publish([Apply(*_who(owner), cluster)])
        raise self._refused(cluster, key, profile, owner)

    def tell_owner(self, cluster: str, key: Identity) -> None:
        """Tell who owns an object that it may not be what it was applied as."""
        found = self._records.owners.get(cluster, key)
        if found and found.value.profile:
            self._publisher.publish([Apply(*_who(found.value), cluster, contested=str(key))])

    def refuse(self, cluster: str, key: Identity, profile: Profile) -> None:
        """Refuse what `take` would refuse, and write nothing.

        Raises:
            ConflictError: a profile of the same or a lower tier has it.
        """
        found = self._records.owners.get(cluster, key)
        if not found or not taken_from(profile.name, found):
            return
        if not self._wins(cluster, profile, found.value):
            raise self._refused(cluster, key, profile, found.value)

    def owner(self, cluster: str, key: Identity) -> Stored[Owner] | None:
        """Read who has an object."""
        return self._records.owners.get(cluster, key)

    def give_back(
        self, cluster: str, key: Identity, profile: Profile, before: Owner | None
    ) -> None:
        """Undo a claim that led to nothing, and tell who has the object again."""
        if before is None:
            self.give_up(cluster, key, profile.name)
            return
        found = self._records.owners.get(cluster, key)
        if found is None or found.value.profile != profile.name:
            return
        had = _who(before)
        waiting = _with(found.value.waiting, (profile.trigger, profile.cluster, profile.name))
        again = replace(
            before,
            waiting=tuple(each for each in waiting if each != had),
            tell=_with(found.value.tell, had),
        )
        self._put(cluster, key, again, found.token)

    def give_up(
        self, cluster: str, key: Identity, profile: str, known: Stored[Owner] | None = None
    ) -> bool:
        """Own an object no longer, and tell those who waited for it; False if another has it.

        What is `known` of its owner is not read again before the write finds out that it is so
        still.
        """
        if known:
            with suppress(LostWriteError):
                return self._give_up(cluster, key, profile, known)
        return self._give_up_stored(cluster, key, profile)

    @until_written("give up '{key}' in '{cluster}'")
    def _give_up_stored(self, cluster: str, key: Identity, profile: str) -> bool:
        return self._give_up(cluster, key, profile, self._records.owners.get(cluster, key))

    def _give_up(
        self, cluster: str, key: Identity, profile: str, found: Stored[Owner] | None
    ) -> bool:
        if found is None or taken_from(profile, found):
            return found is None
        owner, token = found.value, found.token
        tell = _with(owner.tell, *owner.waiting)
        if not tell:
            self._records.owners.delete(cluster, key, expect=token)
        else:
            self._put(cluster, key, Owner("", "", "", 0, (), tell), token)
        return True

    def _wins(self, cluster: str, profile: Profile, owner: Owner) -> bool:
        """Return whether a profile takes an object from another one that owns it.

        Not from one that replaces it: both would take the object back without end. An owner that
        leaves the cluster keeps nothing.
        """
        stays = self._staying(cluster, owner)
        if stays is None:
            return True
        replaces = not owner.trigger and owner.profile in profile.rollout.replaces
        wins = replaces or profile.tier < owner.tier
        return wins and profile.name not in stays.rollout.replaces

    def _staying(self, cluster: str, owner: Owner) -> Profile | None:
        """Return the owner of an object, unless it leaves the cluster."""
        head = self._records.profiles.head(*_who(owner))
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
        """Write who owns an object, tell whom it concerns, and strike out that it was told.

        Raises:
            StaleError: somebody else was quicker.
        """
        token = self._records.owners.put(cluster, key, owner, expect=token)
        if not owner.tell:
            return
        self._publisher.publish(Apply(*each, cluster, contested=str(key)) for each in owner.tell)
        with suppress(StaleError):
            # Who wrote it since has found it untold, and tells them again.
            if owner.profile:
                told = replace(owner, tell=())
                self._records.owners.put(cluster, key, told, expect=token)
            else:
                self._records.owners.delete(cluster, key, expect=token)


def taken_from(profile: str, owner: Stored[Owner] | None) -> bool:
    """Say whether another than a profile has an object."""
    return owner is not None and owner.value.profile not in ("", profile)


def _who(owner: Owner) -> tuple[str, str, str]:
    """Return an owner as messages name it."""
    return owner.trigger, owner.source, owner.profile


def _owned(profile: Profile, before: Owner | None) -> Owner:
    """Return a profile's ownership, with those who wait for it and are to be told still."""
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
