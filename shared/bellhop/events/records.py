"""Tables of events: matches, selections, held deletions, access reviews, slow scripts."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from msgspec.structs import replace

from bellhop.core.gvk import GVK, ObjectKey
from bellhop.errors import MissingError, StaleError
from bellhop.ingest.records import TOMBSTONE
from bellhop.ports.clock import Clock
from bellhop.ports.store import ABSENT, ANY, Item, Store
from bellhop.state.concurrency import until_written
from bellhop.state.match import (
    AccessReview,
    HeldDeletion,
    Match,
    Selection,
    SlowScript,
    SourceIndex,
)
from bellhop.state.payloads import Payloads
from bellhop.state.table import SealedTable, Stored, Table

# Matches and selections ---------------------------------------------------------------------------


class Matches(Table[Match, str, str, ObjectKey]):
    """Objects that match sources, by cluster, source and object; EventReports are views of them."""

    kind = Match
    partition, sort = "match/{cluster}", "{source}/{key}"
    in_key = ("cluster", "source", "key")

    def key_fields(self, item: Item) -> dict[str, Any]:
        """Return cluster, source and object."""
        source, _, key = item.sort.partition("/")
        cluster = item.partition.removeprefix("match/")
        return {"cluster": cluster, "source": source, "key": ObjectKey.parse(key)}

    def of(self, cluster: str, source: str = "", *, after: str = "") -> Iterator[Match]:
        """Yield the matches of a cluster, or of one source in it, by object.

        Only those `after` a SOURCE/OBJECT, where it is given.
        """
        prefix = f"{source}/" if source else ""
        return map(self.read_item, self.items(cluster, prefix=prefix, after=after))

    def marks(self, cluster: str, source: str) -> Iterator[tuple[str, str]]:
        """Yield the objects that match a source now, and the digest of each, by object.

        As text and little else: an aggregation reads this each time one of them changes.
        """
        prefix = f"{source}/"
        for item in self.items(cluster, prefix=prefix):
            if item.value["matching"]:
                yield item.sort.removeprefix(prefix), item.value["digest"]

    def count(self, cluster: str, source: str, most: int | None = None) -> int:
        """Count the objects that match a source now; at most `most` records are read."""
        items = self.items(cluster, prefix=f"{source}/", limit=most)
        return sum(bool(item.value["matching"]) for item in items)


class Selections(SealedTable[Selection, str, str]):
    """Objects that an aggregatedSelection selects of a source's matches, by cluster and source.

    One record holds the whole of a source's report in a cluster, so that two workers that make it
    at once overwrite nothing: one conditional write says all.
    """

    kind = Selection
    partition, sort = "selection/{cluster}", "{source}"
    in_key = ("cluster", "source")
    sealed = ("selected",)
    remembered = 8  # Each object that is selected asks for all of its selection.

    def heads(self, cluster: str) -> Iterator[Selection]:
        """Yield the selections of a cluster, by source, without the objects."""
        return map(self.read_item, self.items(cluster))

    def seal(self, record: Selection) -> Any:
        """Seal the objects; nothing where there is none."""
        return super().seal(record) if record.selected else None


# Held deletions -----------------------------------------------------------------------------------


class Staying(NamedTuple):
    """An object whose deletion is held: its batch, and the token of its record."""

    key: ObjectKey
    lot: str
    token: str


class HeldDeletions(Table[HeldDeletion, str, str]):
    """Held deletions by cluster and source, and their objects.

        ended/CLUSTER  SOURCE/OBJECT   ended a moment ago, and was withdrawn, or is about to be held
        held/CLUSTER   SOURCE/OBJECT   ended, and is held under a batch; the object's last state
        hold           CLUSTER/SOURCE  the batch that is held, since when, whether it was too much

    An object has one record however often it is reported, so what is counted is objects; and no two
    workers whose objects ended write the same record. Profiles are rendered from the last state of
    an object while its deletion is held, however long: it lies apart, since objects are counted
    often.
    """

    kind = HeldDeletion
    partition, sort = "hold", "{cluster}/{source}"
    in_key = ("cluster", "source")

    def __init__(self, store: Store, payloads: Payloads) -> None:
        super().__init__(store)
        self._payloads = payloads

    def key_fields(self, item: Item) -> dict[str, Any]:
        """Return cluster and source."""
        cluster, _, source = item.sort.rpartition("/")
        return {"cluster": cluster, "source": source}

    def all(self, cluster: str = "", *, most: int | None = None) -> Iterator[HeldDeletion]:
        """Yield what is held in a cluster, or in all, by cluster and source, as far as `most`."""
        return map(self.read_item, self.items(prefix=f"{cluster}/" if cluster else "", limit=most))

    # Objects that ended a moment ago ------------------------------------------------------------

    def end(self, match: Match, until: datetime) -> None:
        """Record until when a match counts among those that ended at once."""
        self._store.put(Item(f"ended/{match.cluster}", _place(match), {}, expires_at=until))

    def ended(self, cluster: str, source: str, most: int) -> int:
        """Count what ended in a report a moment ago, as far as `most`."""
        return _count(self._store.query(f"ended/{cluster}", prefix=f"{source}/", limit=most))

    # Objects that are held ----------------------------------------------------------------------

    def stay(self, match: Match, lot: str, state: Mapping[str, Any] | None, *, again: bool) -> str:
        """Record that a match is held, `again` or unless it is already; return the token.

        `state` is the last state of the object, if that is known.

        Raises:
            StaleError: it is held already.
        """
        place = f"held/{match.cluster}", _place(match)
        return self._payloads.put(*place, {"lot": lot}, state, expect=ANY if again else ABSENT)

    def state(self, cluster: str, source: str, key: ObjectKey) -> Mapping[str, Any] | None:
        """Read the last state of an object that is held; None if it is not held, or unknown."""
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

    def token(self, match: Match) -> str:  # type: ignore[override]
        """Return the token of the record of a match that is held; ABSENT if it is not."""
        item = self._store.get(f"held/{match.cluster}", _place(match))
        return item.token if item else ABSENT

    def count(self, cluster: str, source: str, most: int | None = None) -> int:
        """Count what is held in a report, as far as `most`."""
        return _count(self._store.query(f"held/{cluster}", prefix=f"{source}/", limit=most))

    def leave(self, cluster: str, source: str, key: ObjectKey, *, expect: str | None = ANY) -> None:
        """Record that an object is held no more.

        Raises:
            StaleError: it is held again since it was read, or not at all.
        """
        self._payloads.delete(f"held/{cluster}", f"{source}/{key}", expect=expect)

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


# Sources ------------------------------------------------------------------------------------------

MOST_NAMED = 1000
"""Sources that one index names: with the longest names they fit into an item."""


class SourceIndexes(Table[SourceIndex, str, ObjectKey]):
    """Sources that an object has matched, so that an event need not read a match of each source.

      the index names the source ─► its match is written
      the object is deleted ─► its matches are deleted ─► the index ends, and expires a week later

    An index only grows while its object is there. One that a slow worker ends although the object
    is there is found within the week: a worker that ends an index reads the object again.
    """

    kind = SourceIndex
    partition, sort = "trail/{cluster}", "{key}"
    in_key = ("cluster", "key")

    def __init__(self, store: Store, clock: Clock) -> None:
        super().__init__(store)
        self._clock = clock

    def key_fields(self, item: Item) -> dict[str, Any]:
        """Return cluster and object."""
        cluster = item.partition.removeprefix("trail/")
        return {"cluster": cluster, "key": ObjectKey.parse(item.sort)}

    def expiry(self, index: SourceIndex) -> datetime | None:
        """Expire a week after the end."""
        return self._clock.now() + TOMBSTONE if index.ended else None

    def get(self, cluster: str, key: ObjectKey) -> Stored[SourceIndex]:
        """Read the index of an object; an empty one where it has matched nothing."""
        return super().get(cluster, key) or Stored(SourceIndex(cluster, key), ABSENT)

    def name(self, kept: Stored[SourceIndex], sources: Iterable[str]) -> SourceIndex:
        """Have an index that was read name sources before their matches are written; return it.

        Raises:
            StaleError: other writers keep winning.
        """
        names = {*sources}
        with suppress(StaleError):
            return self._extend(kept, names)
        return self._extend_stored(kept.value.cluster, kept.value.key, names)

    def end(self, cluster: str, key: ObjectKey) -> bool:
        """End the index of an object that is deleted; say whether there was one that had not."""
        kept = self.get(cluster, key)
        if not kept.token or kept.value.ended:
            return False
        # Where it was written meanwhile, another worker evaluates the object.
        with suppress(StaleError):
            self.put(replace(kept.value, ended=True), expect=kept.token)
        return True

    @until_written("write the trail of '{key}'")
    def _extend_stored(self, cluster: str, key: ObjectKey, names: Collection[str]) -> SourceIndex:
        return self._extend(self.get(cluster, key), names)

    def _extend(self, kept: Stored[SourceIndex], names: Collection[str]) -> SourceIndex:
        old = kept.value
        named = (*old.sources, *sorted({*names} - {*old.sources}))
        if len(named) > MOST_NAMED:
            new = replace(old, endless=True, ended=False)
        else:
            new = replace(old, sources=named, ended=False)
        if new != old:
            self.put(new, expect=kept.token)
        return new


FORGOTTEN = timedelta(days=1)
"""After how long a source whose script was fast counts as slow no more: it may be deleted."""


class SlowScripts(Table[SlowScript, str]):
    """Sources whose scripts are slow, so that no process has to find that out again."""

    kind = SlowScript
    partition, sort = "pace", "{source}"
    in_key = ("source",)

    def __init__(self, store: Store, clock: Clock) -> None:
        super().__init__(store)
        self._clock = clock

    def expiry(self, _: SlowScript) -> datetime:
        """Expire in a day."""
        return self._clock.now() + FORGOTTEN

    def all(self) -> Iterator[SlowScript]:
        """Yield all sources whose scripts are slow."""
        return map(self.read_item, self.items())

    def slow(self, source: str, digest: str, times: int) -> bool:
        """Record that a script was too slow so many times more; say whether that is news.

        Of two records at once one may be lost: it is written again as long as it lasts.
        """
        kept = self.get(source)
        old = kept.value if kept and kept.value.digest == digest else None
        new = SlowScript(source, digest, times, self._clock.now())
        if old:
            new = SlowScript(source, digest, old.times + times, old.since)
        try:
            self.put(new, expect=kept.token if kept else ABSENT)
        except StaleError:
            return False
        return old is None

    def quick(self, source: str) -> None:
        """Delete the record of a source."""
        self.delete(source)


class AccessReviews(Table[AccessReview, str, str, GVK, str]):
    """Access reviews by cluster, service account, kind and namespace; "" is all namespaces."""

    kind = AccessReview
    partition, sort = "permit/{cluster}", "{account}/{gvk}/{namespace}"
    in_key = ("cluster",)

    def place(self, cluster: str, account: str, gvk: GVK, namespace: str) -> tuple[str, str]:
        """Return the place of an access review."""
        return f"permit/{cluster}", f"{account}/{'/'.join(gvk)}/{namespace}"

    def of(self, cluster: str, account: str = "") -> Iterator[AccessReview]:
        """Yield the access reviews of a cluster, or of one account, by account, kind, namespace."""
        return map(self.read_item, self.items(cluster, prefix=f"{account}/" if account else ""))

    def delete(self, review: AccessReview) -> bool:  # type: ignore[override]
        """Delete an access review: nobody asks for it any more."""
        return super().delete(*self.key(review))
