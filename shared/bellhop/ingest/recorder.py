"""The recorder keeps observations and publishes what follows from them, a few at a time.

A process that dies between the two has not answered: the sender repeats itself, and an observation
that is equal to the one that is kept is published again.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import NamedTuple

from msgspec.structs import replace

from bellhop.core.gvk import CLOUD_EVENT, ObjectKey
from bellhop.deploy.subscribers import list_affected
from bellhop.ingest.admission import RelevantKinds
from bellhop.state.event_recorder import Note, write
from bellhop.state.match import Observation
from bellhop.state.messages import Apply, Evaluate, Publisher, ReadBack
from bellhop.state.records import Records

FEW = 16
"""Observations that are kept before they are published: one transaction costs little more than
one message, and the first of a long batch is not to wait for its last."""


class Change(NamedTuple):
    """A message that follows from an observation, and the line of the event log about it."""

    message: Evaluate | ReadBack | Apply
    note: Note | None = None


class Recorder:
    """Keeps observations for one process of ingest; shared between threads."""

    def __init__(self, records: Records, publisher: Publisher) -> None:
        self._records = records
        self._publisher = publisher

    def store(self, observed: Iterable[tuple[Observation, str]]) -> None:
        """Keep observations, each with the time when the cluster noticed, and publish them."""
        each = iter(observed)
        while few := list(islice(each, FEW)):
            with self.publishing() as changes:
                for observation, event_at in few:
                    changes.extend(self.put(observation, event_at))

    @contextmanager
    def publishing(self) -> Iterator[list[Change]]:
        """Publish at the end what was added, also where something after it could not be kept."""
        changes: list[Change] = []
        try:
            yield changes
        finally:
            self._publisher.publish(message for message, _ in changes)
        for message, note in changes:
            if note and isinstance(message, Evaluate):
                write(self._records, message, message.cluster, message.object, note)

    def put(self, observation: Observation, event_at: str) -> Iterator[Change]:
        """Keep an observation, and yield what follows if it is news or contradicts the record."""
        place = observation.cluster, str(observation.key)
        if self._records.observations.put(observation):
            note = Note("gone" if observation.gone else "rang")
            yield Change(Evaluate(*place, trace(), event_at), note)
        elif self._contradicts(observation):
            yield Change(ReadBack(*place, observation.uid, 0, event_at=event_at))

    def concern(
        self, cluster: str, key: ObjectKey, event_at: str, kinds: RelevantKinds
    ) -> Iterator[Change]:
        """Yield messages to the profiles that own an object which another writer changed.

        And to those whose workloads or templates read it. One read finds the owner, and one the
        readers; their own reconciliation decides what to do.
        """
        held, followed = kinds.are_owned(key), kinds.are_read(key)
        if not (held or followed):
            return
        for each in list_affected(
            self._records, cluster, key.identity, held=held, followed=followed
        ):
            yield Change(replace(each, trace=trace(), event_at=event_at))

    def _contradicts(self, seen: Observation) -> bool:
        """Return whether a sender saw an object alive, no earlier than it is recorded as deleted.

        No uid comes back: either the record is wrong or the message is late. A read of the object
        decides.
        """
        if seen.gone or seen.key.gvk == CLOUD_EVENT:
            return False
        head = self._records.observations.head(seen.cluster, seen.key)
        return (
            head is not None
            and head.gone
            and head.uid == seen.uid
            and head.resource_version <= seen.resource_version
        )


def trace() -> str:
    """Return a new mark by which an event is followed through the event log."""
    return os.urandom(6).hex()
