"""A walk in the hands of one worker: where it is, and the right to say so.

Each write of a walk is conditional on the one before. Of two workers on one walk the one whose
write fails ends quietly: the other goes on.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

from bellhop.catalog.catalog import Catalog
from bellhop.errors import StaleError
from bellhop.ports.kube import Kube
from bellhop.state.record import Cluster, ResyncProgress
from bellhop.state.records import Records

MOST_PROBLEMS = 10
"""Sentences about one walk that are kept."""

MOST_UNSEEN = 100
"""Kinds that a walk passes over because they cannot be looked at; beyond that, who could?"""

MOST_UNSERVED = 5
"""Kinds that a cluster does not serve, of which it is kept: those who wait for them say so."""

_LONGEST = 512
"""Characters of a sentence that are kept."""


class OvertakenError(Exception):
    """Another worker goes on with the walk, or it has ended."""


class ResyncSession:
    """A walk under way, as this worker last wrote it."""

    def __init__(
        self,
        records: Records,
        cluster: Cluster,
        catalog: Catalog,
        kube: Kube,
        walk: ResyncProgress,
        token: str,
    ) -> None:
        self.cluster = cluster
        self.catalog = catalog
        self.kube = kube
        self.walk = walk
        self._token = token
        self._records = records
        self._hand = uuid.uuid4().hex[:12]

    @property
    def name(self) -> str:
        """Name the cluster."""
        return self.cluster.key

    def keep(self, **changes: Any) -> None:
        """Write how far the walk has come.

        Raises:
            OvertakenError: another worker was quicker.
        """
        walk = replace(self.walk, **changes, hand=self._hand)
        try:
            self._token = self._records.walks.put(self.name, walk, expect=self._token)
        except StaleError as error:
            # A store's client that was not answered may have repeated a write that was done.
            now = self._records.walks.get(self.name)
            if now is None or now.value != walk:
                raise OvertakenError(self.name) from error
            self._token = now.token
        self.walk = walk

    def end(self) -> None:
        """End the walk.

        Raises:
            OvertakenError: another worker was quicker.
        """
        try:
            self._records.walks.delete(self.name, expect=self._token)
        except StaleError as error:
            raise OvertakenError(self.name) from error

    def problem(self, *sentences: str) -> tuple[str, ...]:
        """Return the walk's problems with some more."""
        return problems((*self.walk.problems, *sentences))


def problems(sentences: Iterable[str]) -> tuple[str, ...]:
    """Return the first of some sentences, each once, as they are kept of a walk."""
    cut = (each if len(each) <= _LONGEST else each[:_LONGEST] + " …" for each in sentences)
    return tuple(dict.fromkeys(cut))[:MOST_PROBLEMS]
