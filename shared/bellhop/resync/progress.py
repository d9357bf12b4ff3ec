"""A resync in progress: the worker's last write of it, and the kinds that could not be listed.

Each write of the progress depends on the one before. If two workers run one resync, the write of
one fails; that worker stops, and the other continues.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from bellhop.catalog.catalog import Catalog
from bellhop.errors import StaleError
from bellhop.ports.kube import Kube
from bellhop.state.cluster import Cluster
from bellhop.state.records import Records
from bellhop.state.resync_progress import ResyncProgress

MOST_PROBLEMS = 10
"""Sentences about one resync that are stored."""

MOST_UNSEEN = 100
"""Kinds that a resync skips because they cannot be listed; with more, it fails."""

MOST_UNSERVED = 5
"""Kinds that a cluster does not serve, which its health names for those who wait for them."""

_LONGEST = 512
"""Characters of a sentence that are stored."""


class SupersededError(Exception):
    """Another worker continues the resync, or it has ended."""


class ResyncSession:
    """A resync in progress, as this worker last wrote it."""

    def __init__(
        self,
        records: Records,
        cluster: Cluster,
        catalog: Catalog,
        kube: Kube,
        progress: ResyncProgress,
        token: str,
        *,
        since: datetime | None = None,
    ) -> None:
        self.cluster = cluster
        self.catalog = catalog
        self.kube = kube
        self.progress = progress
        self.since = since
        """The time when the last resync that ended began."""
        self.checked: set[str] = set()
        """The profiles of which a lost message was looked for in this turn."""
        self._token = token
        self._records = records
        self._worker = uuid.uuid4().hex[:12]

    @property
    def name(self) -> str:
        """Return the cluster's key."""
        return self.cluster.key

    def write(self, **changes: Any) -> None:
        """Write changes of the progress.

        Raises:
            SupersededError: another worker has written it.
        """
        progress = replace(self.progress, **changes, hand=self._worker)
        try:
            self._token = self._records.walks.put(self.name, progress, expect=self._token)
        except StaleError as error:
            # A store's client that got no answer may have repeated a write that succeeded.
            now = self._records.walks.get(self.name)
            if now is None or now.value != progress:
                raise SupersededError(self.name) from error
            self._token = now.token
        self.progress = progress

    def end(self) -> None:
        """Delete the progress.

        Raises:
            SupersededError: another worker has written it.
        """
        try:
            self._records.walks.delete(self.name, expect=self._token)
        except StaleError as error:
            raise SupersededError(self.name) from error

    def join_problems(self, *sentences: str) -> tuple[str, ...]:
        """Return the problems of the resync with more sentences."""
        return limit_problems((*self.progress.problems, *sentences))


def limit_problems(sentences: Iterable[str]) -> tuple[str, ...]:
    """Return the first distinct sentences, each cut to the length that is stored."""
    cut = (each if len(each) <= _LONGEST else each[:_LONGEST] + " …" for each in sentences)
    return tuple(dict.fromkeys(cut))[:MOST_PROBLEMS]
