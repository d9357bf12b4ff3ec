"""Deletions that are held until confirmed or released: of a report, or of a changed manifest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import chain, islice
from typing import NamedTuple

from bellhop.core.gvk import Identity, ObjectKey
from bellhop.core.identity import ROLE_REQUEST, profile_kind
from bellhop.declarations.deletion_guard import RemovalGuard
from bellhop.declarations.records import HeldRemoval
from bellhop.diagnosis.condition import Condition, failure
from bellhop.diagnosis.names import object_name
from bellhop.errors import ConflictError, MissingError
from bellhop.events.deletion_guard import release_batch
from bellhop.events.transfer import Foreseen
from bellhop.installation import Installation
from bellhop.state.concurrency import until_written
from bellhop.state.delays import hold_timer
from bellhop.state.deployment import Held
from bellhop.state.match import Cause, HeldDeletion
from bellhop.state.messages import CheckDeletionGuard

_EXAMPLES = 3
_CAUSES: Mapping[Cause, str] = {
    "rings": "were deleted or changed",
    "sweep": "were found deleted or changed by a resync",
    "declaration": "do not match the EventSource as it is written now",
}


class HeldReport(NamedTuple):
    """The held part of a source's report in a cluster."""

    hold: HeldDeletion
    number: int
    examples: tuple[str, ...]
    resyncs: int
    """Resyncs that must agree before deleted objects are released without a command."""

    @property
    def why(self) -> str:
        hold, missing = self.hold, self.number + self.hold.gone
        cause = _CAUSES[hold.cause]
        if hold.held_at is None:
            return f"{missing} objects {cause}; they are counted until {hold.until:%H:%M:%S} UTC"
        agree = f" {self.resyncs} resyncs agree that they are deleted," if self.resyncs else ""
        return (
            f"{missing} of {hold.of} objects {cause} at once; add-ons stay until they match again,"
            f"{agree} or `bellhop release {hold.cluster} {hold.source}` releases them"
        )

    @property
    def named(self) -> str:
        more = self.number - len(self.examples)
        return ", ".join(self.examples) + (f" and {more} more" if more > 0 else "")


def list_held_reports(here: Installation, cluster: str = "") -> Iterator[HeldReport]:
    for hold in here.records.holds.all(cluster):
        found = read_held_report(here, hold)
        if found.number:
            yield found


def read_held_report(here: Installation, hold: HeldDeletion) -> HeldReport:
    first = islice(list_held_objects(here, hold), _EXAMPLES)
    number = here.records.holds.count(hold.cluster, hold.source)
    names = tuple(object_name(each) for each in first)
    return HeldReport(hold, number, names, here.settings.hold_agreement)


def list_held_objects(here: Installation, hold: HeldDeletion) -> Iterator[ObjectKey]:
    return (each.key for each in here.records.holds.staying(hold.cluster, hold.source))


@until_written("release '{source}' in '{cluster}'")
def release_report(here: Installation, cluster: str, source: str) -> HeldReport:
    """Release what is held of a report now, and no more; return what that is.

    A timer is set before, so that a killed process does not leave it undone.

    Raises:
        MissingError: nothing is held there.
    """
    holds, now = here.records.holds, here.records.clock.now()
    message = CheckDeletionGuard(cluster, source)
    kept = holds.get(cluster, source)
    found = read_held_report(here, kept.value) if kept else None
    if kept is None or found is None or not found.number:
        raise MissingError(
            f"cannot release EventSource '{source}' in cluster '{cluster}': nothing of it is"
            " held there; `bellhop get held` lists what is"
        )
    here.records.timers.set(hold_timer(cluster, source), now, message.message().body)
    holds.put(release_batch(kept.value, now, here.settings.hold_window), expect=kept.token)
    here.publisher.publish([message])
    return found


_RULES = 3
_SHOWN_CLUSTERS = 3


class HeldChange(NamedTuple):
    """The held removals of one changed manifest."""

    name: str
    cause: str
    since: datetime | None
    removals: tuple[HeldRemoval, ...]

    @property
    def addons(self) -> int:
        """The number of held add-ons: one profile in one cluster is one."""
        return sum(each.addons for each in self.removals)

    @property
    def of(self) -> int:
        """The number of add-ons that the same triggers and profiles had before the change."""
        return sum(each.of for each in self.removals)

    @property
    def clusters(self) -> tuple[str, ...]:
        """The clusters with held removals; of very many, the first ones."""
        return tuple(sorted({key for each in self.removals for key in each.clusters}))

    @property
    def release(self) -> str:
        return f"bellhop release --change {self.name}"

    @property
    def why(self) -> str:
        first = "; ".join(map(describe_removal, self.removals[:_RULES]))
        more = len(self.removals) - _RULES
        others = f"; and {more} more lose add-ons" if more > 0 else ""
        return (
            f"{self.cause}: {first}{others}; they stay until the change is taken back, or"
            f" `{self.release}` removes them"
        )


def describe_removal(removal: HeldRemoval, most: int = _SHOWN_CLUSTERS) -> str:
    """Return how many add-ons a trigger or profile loses, and `most` of the clusters."""
    named = ", ".join(removal.clusters[:most])
    more = removal.number - len(removal.clusters[:most])
    where = f"{named} and {more} more clusters" if more > 0 else named
    profiles = "1 profile" if removal.profiles == 1 else f"{removal.profiles} profiles"
    return (
        f"{format_rule(removal)} loses {removal.addons} of {removal.of} add-ons ({profiles}) in"
        f" {where}"
    )


def format_rule(removal: HeldRemoval) -> str:
    if removal.trigger:
        return f"EventTrigger '{removal.trigger}'"
    kind, name = profile_kind(removal.profile), removal.profile
    return f"{kind} '{name.removeprefix(f'{ROLE_REQUEST}:')}'"


def list_held_changes(here: Installation) -> Iterator[HeldChange]:
    """Yield the changes with held removals, the oldest first."""
    guard, catalog = RemovalGuard(here.records, here.settings), here.catalogs.known()
    found = (guard.remaining(catalog, each.value) for each in here.records.removals.all())
    yield from group_by_change(each for each in found if each.addons)


def group_by_change(removals: Iterable[HeldRemoval]) -> Sequence[HeldChange]:
    """Return held removals by their change, the oldest first."""
    by_change: dict[str, list[HeldRemoval]] = {}
    for each in removals:
        by_change.setdefault(each.change, []).append(each)
    changes = (
        HeldChange(name, found[0].cause, found[0].since, tuple(found))
        for name, found in by_change.items()
    )
    return sorted(changes, key=lambda each: (str(each.since), each.name))


OBJECTS = 20
"""Objects that are named for each cluster."""

CLUSTERS = 10
"""Clusters of which objects are named."""


class RemovedObjects(NamedTuple):
    """The first objects and releases that a cluster would lose, and the number of others."""

    cluster: str
    names: tuple[str, ...]
    more: int


def list_removed_objects(
    here: Installation, addons: Mapping[str, Iterable[str]]
) -> Iterator[RemovedObjects]:
    """Yield what add-ons, profiles by cluster, own in the first clusters that have any of it."""
    for cluster in sorted(addons)[:CLUSTERS]:
        names = sorted(_list_names(here, cluster, addons[cluster]))
        if names:
            yield RemovedObjects(cluster, tuple(names[:OBJECTS]), len(names[OBJECTS:]))


def _list_names(here: Installation, cluster: str, profiles: Iterable[str]) -> Iterator[str]:
    # Only a profile in conflict waits for objects: without one, no owner has to be read.
    conflicts = any(each.reason == ConflictError.code for each in here.records.outcomes.of(cluster))
    foreseen = Foreseen(here.records)
    kept = filter(None, (here.records.inventories.get(cluster, each) for each in profiles))
    for key, held in chain.from_iterable(each.value.held.items() for each in kept):
        if not (_is_left(held) or (conflicts and foreseen.has_waiter(cluster, key))):
            yield _format_object(key, held)


def _is_left(held: Held) -> bool:
    """Return whether an object is adopted, not there, or goes with its release."""
    adopted = bool(held.adopted and held.uid)
    return adopted or bool(held.part_of) or bool(held.release and held.release.removed)


def _format_object(key: Identity, held: Held) -> str:
    return f"release {key.namespace}/{key.name}" if held.release else object_name(key)


def list_conditions(here: Installation) -> Iterator[Condition]:
    """Yield the deletions that are held, once it is known that too much was deleted."""
    for each in list_held_reports(here):
        if each.hold.held_at:
            about = f"{each.hold.source} in {each.hold.cluster}"
            said = f"{each.why}; held are {each.named}"
            yield failure("held", about, said, since=each.hold.since, count=each.number)
    for change in list_held_changes(here):
        about, since = f"change {change.name}", change.since
        yield failure("held", about, change.why, since=since, count=change.addons)
