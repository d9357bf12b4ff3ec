"""What ended in reports and is not withdrawn: to be shown, and let go if asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import NamedTuple

from bellhop.core.gvk import ObjectKey
from bellhop.diagnosis.overview import object_name
from bellhop.errors import MissingError
from bellhop.events.deletion_guard import released
from bellhop.installation.installation import Installation
from bellhop.state.concurrency import until_written
from bellhop.state.delays import hold_timer
from bellhop.state.messages import CheckDeletionGuard
from bellhop.state.record import Cause, HeldDeletion

_EXAMPLES = 3

_CAUSES: Mapping[Cause, str] = {
    "rings": "were deleted or changed",
    "sweep": "were found deleted or changed by a resync",
    "declaration": "do not match the EventSource as it is written now",
}


class HeldReport(NamedTuple):
    """The report of a source in a cluster of which something is held, and how many objects."""

    hold: HeldDeletion
    number: int
    examples: tuple[str, ...]
    sweeps: int
    """How many must agree before what is gone is let go without anybody asking for it."""

    @property
    def why(self) -> str:
        """Say what happened, and what comes of it, in a sentence."""
        hold, ended = self.hold, self.number + self.hold.gone
        cause = _CAUSES[hold.cause]
        if hold.held_at is None:
            return f"{ended} objects {cause}; they are counted until {hold.until:%H:%M:%S} UTC"
        agree = f" {self.sweeps} resyncs agree that they are deleted," if self.sweeps else ""
        return (
            f"{ended} of {hold.of} objects {cause} at once; add-ons stay until they match again,"
            f"{agree} or `bellhop release {hold.cluster} {hold.source}` releases them"
        )

    @property
    def named(self) -> str:
        """Name some of the objects."""
        more = self.number - len(self.examples)
        return ", ".join(self.examples) + (f" and {more} more" if more > 0 else "")


def held(here: Installation, cluster: str = "") -> Iterator[HeldReport]:
    """Yield what is held in a cluster, or in all, by cluster and source."""
    for hold in here.records.holds.all(cluster):
        found = reported(here, hold)
        if found.number:
            yield found


def reported(here: Installation, hold: HeldDeletion) -> HeldReport:
    """Return how much of a report is held, and some of it."""
    first = islice(objects(here, hold), _EXAMPLES)
    number = here.records.holds.count(hold.cluster, hold.source)
    names = tuple(object_name(each) for each in first)
    return HeldReport(hold, number, names, here.settings.hold_agreement)


def objects(here: Installation, hold: HeldDeletion) -> Iterator[ObjectKey]:
    """Yield the objects of a report that are held."""
    return (each.key for each in here.records.holds.staying(hold.cluster, hold.source))


@until_written("release '{source}' in '{cluster}'")
def release(here: Installation, cluster: str, source: str) -> HeldReport:
    """Let go what is held of a report now, and no more; return what that is.

    A timer is set before: who dies in between has it done all the same.

    Raises:
        MissingError: nothing is held there.
    """
    holds, now = here.records.holds, here.records.clock.now()
    message = CheckDeletionGuard(cluster, source)
    kept = holds.get(cluster, source)
    found = reported(here, kept.value) if kept else None
    if kept is None or found is None or not found.number:
        raise MissingError(
            f"cannot release EventSource '{source}' in cluster '{cluster}': nothing of it is"
            " held there; `bellhop get held` lists what is"
        )
    here.records.timers.set(hold_timer(cluster, source), now, message.message().body)
    holds.put(released(kept.value, now, here.settings.hold_window), expect=kept.token)
    here.publisher.publish([message])
    return found
