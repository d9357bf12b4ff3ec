"""What ended in reports and is not withdrawn: a hold for each report, and what it is about.

    ended/CLUSTER  SOURCE/OBJECT   ended a moment ago, and was withdrawn, or is about to be held
    held/CLUSTER   SOURCE/OBJECT   ended, and stays for now, under a lot; what it was like then
    hold           CLUSTER/SOURCE  which lot stays, since when, and whether it was too much

An object has one record however often it is told of, so what is counted is objects; and no two who
note that their objects ended write the same record. What an object was like is what profiles are
made of while it is held, however long: it lies apart, since what is held is counted often.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from bellhop.core.gvk import ObjectKey
from bellhop.errors import MissingError
from bellhop.ports.store import ABSENT, ANY, Item, Store
from bellhop.state.payloads import Payloads
from bellhop.state.record import HeldDeletion, Match
from bellhop.state.table import Stored, Table

_HOLD = "hold"


class Staying(NamedTuple):
    """An object that is held: under which lot, and the token of its record."""

    key: ObjectKey
    lot: str
    token: str


class HeldDeletions:
    """Holds by cluster and source, and what is held by object."""

    def __init__(self, store: Store, payloads: Payloads) -> None:
        self._store = store
        self._payloads = payloads
        self._table = Table(store, HeldDeletion, in_key=("cluster", "source"))

    # What ended a moment ago --------------------------------------------------------------------

    def end(self, match: Match, until: datetime) -> None:
        """Note until when a match counts among those that ended at once."""
        self._store.put(Item(f"ended/{match.cluster}", _place(match), {}, expires_at=until))

    def ended(self, cluster: str, source: str, most: int) -> int:
        """Count what ended in a report a moment ago, as far as `most`."""
        return _count(self._store.query(f"ended/{cluster}", prefix=f"{source}/", limit=most))

    # What is held -------------------------------------------------------------------------------

    def stay(self, match: Match, lot: str, state: Mapping[str, Any] | None, *, anew: bool) -> str:
        """Note that a match is held, `anew` or unless that was noted before; return the token.

        `state` is what the object was like, as far as that is known.

        Raises:
            StaleError: it was noted before.
        """
        place = f"held/{match.cluster}", _place(match)
        return self._payloads.put(*place, {"lot": lot}, state, expect=ANY if anew else ABSENT)

    def state(self, cluster: str, source: str, key: ObjectKey) -> Mapping[str, Any] | None:
        """Read what an object that is held was like; None where it is not held, or unknown."""
        try:
            found = self._payloads.get(f"held/{cluster}", f"{source}/{key}")
        except MissingError:
            return None
        state: Mapping[str, Any] | None = found.payload if found else None
        return state

    def staying(self, cluster: str, source: str, *, after: str = "") -> Iterator[Staying]:
        """Yield what is held in a report, by object, beyond the one that is `after`."""
        prefix = f"{source}/"
        place = prefix + after if after else ""
        for item in self._store.query(f"held/{cluster}", prefix=prefix, after=place):
            key = ObjectKey.parse(item.sort.removeprefix(prefix))
            yield Staying(key, item.value["lot"], item.token)

    def token(self, match: Match) -> str:
        """Return the token of what says that a match is held; ABSENT where nothing does."""
        item = self._store.get(f"held/{match.cluster}", _place(match))
        return item.token if item else ABSENT

    def count(self, cluster: str, source: str, most: int | None = None) -> int:
        """Count what is held in a report, as far as `most`."""
        return _count(self._store.query(f"held/{cluster}", prefix=f"{source}/", limit=most))

    def leave(self, cluster: str, source: str, key: ObjectKey, *, expect: str | None = ANY) -> None:
        """Note that an object is held no more.

        Raises:
            StaleError: it is held anew since it was looked at, or not at all.
        """
        self._payloads.delete(f"held/{cluster}", f"{source}/{key}", expect=expect)

    # The hold of a report -----------------------------------------------------------------------

    def get(self, cluster: str, source: str) -> Stored[HeldDeletion] | None:
        """Read the hold of a report."""
        return self._table.get(_HOLD, f"{cluster}/{source}", cluster=cluster, source=source)

    def all(self, cluster: str = "", *, most: int | None = None) -> Iterator[HeldDeletion]:
        """Yield the holds of a cluster, or of all, by cluster and source, as far as `most`."""
        for item in self._table.items(_HOLD, f"{cluster}/" if cluster else "", limit=most):
            where, _, source = item.sort.rpartition("/")
            yield self._table.read(item.value, cluster=where, source=source)

    def put(self, hold: HeldDeletion, *, expect: str | None = ANY) -> str:
        """Write the hold of a report and return its token.

        Raises:
            StaleError: something else than `expect` is there.
        """
        return self._table.put(_HOLD, f"{hold.cluster}/{hold.source}", hold, expect=expect)

    def delete(self, cluster: str, source: str, *, expect: str | None = ANY) -> None:
        """Delete the hold of a report.

        Raises:
            StaleError: something else than `expect` is there.
        """
        self._store.delete(_HOLD, f"{cluster}/{source}", expect=expect)

    def forget(self, cluster: str, source: str = "") -> None:
        """Delete all of a cluster, or of one source in it."""
        prefix = f"{source}/" if source else ""
        for item in self._store.query(f"ended/{cluster}", prefix=prefix):
            self._store.delete(item.partition, item.sort)
        for item in self._store.query(f"held/{cluster}", prefix=prefix):
            self._payloads.delete(item.partition, item.sort)
        if not source:
            self._payloads.forget(f"held/{cluster}")
        for hold in list(self.all(cluster)):
            if source in ("", hold.source):
                self.delete(cluster, hold.source)


def _place(match: Match) -> str:
    return f"{match.source}/{match.key}"


def _count(items: Iterator[Item]) -> int:
    return sum(1 for _ in items)
