"""Observed kinds: one kind of one cluster, page by page, compared with its observations.

  page ─► newer objects are stored and published ─► missing ones are suspected ─► next page
  last page ─► too many missing: held ─► each suspect that a read confirms as deleted is buried

The pages of a list show one state while events continue, so an object on a page may be older than
its observation. If versions say so, the object itself is read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import islice, takewhile
from types import MappingProxyType
from typing import Any, NamedTuple

from bellhop.core.gvk import CLOUD_EVENT, GVK, ObjectKey
from bellhop.core.sveltos_annotations import OWNER
from bellhop.errors import TooLargeError
from bellhop.ingest.records import Seen
from bellhop.logs import Log
from bellhop.ports.kube import Kube, Page, Unread
from bellhop.rendering.observation import observe
from bellhop.resync.hooks import FindLost
from bellhop.resync.kind_lister import (
    END,
    MOST_OBJECTS,
    PAGE,
    KindLister,
    is_ordered,
    place_of,
)
from bellhop.resync.missing_objects import MissingObjects, publish_evaluations
from bellhop.resync.progress import MOST_UNSERVED, ResyncSession
from bellhop.settings import Settings
from bellhop.state.match import Observation
from bellhop.state.messages import Publisher
from bellhop.state.records import Records

_START: Mapping[str, Any] = {
    "after": "",
    "last": "",
    "cut": False,
    "read": 0,
    "size": 0,
    "trial": False,
    "known": 0,
    "missing": 0,
    "claims": 0,
    "doubted": False,
    "barren": 0,
}
"""The progress at the beginning of a kind."""


class _Extent(NamedTuple):
    """Extent of a page: the next continue token, the last place, and whether it was cut there.

    `size` counts the bytes of the list up to there.
    """

    after: str
    last: str
    cut: bool = False
    size: int = 0


class ObservedKinds:
    """Compares a kind with its observations, a step at a time."""

    def __init__(
        self,
        records: Records,
        publisher: Publisher,
        settings: Settings,
        log: Log,
        find_lost: Callable[[ResyncSession], FindLost],
    ) -> None:
        self._records = records
        self._publisher = publisher
        self._settings = settings
        self._log = log
        self._find_lost = find_lost
        self._missing = MissingObjects(records, publisher, settings, log)

    def step(self, session: ResyncSession, gvk: GVK, *, whole: bool) -> None:
        """Take the next step; if `whole`, every object is evaluated, changed or not.

        Raises:
            StaleError: the list changes faster than it can be read.
            TooLargeError: the list is larger than the setting allows.
            UnreachableError: the list has no end.
        """
        match session.progress.step:
            case "read":
                self._read(session, gvk, whole=whole)
            case "judge":
                self._missing.check(session, gvk)
            case "bury":
                self._missing.bury_some(session, gvk)

    def begin(self, session: ResyncSession, gvk: GVK, *, unseen: bool = False) -> None:
        """Begin a kind: find out whether it is served.

        If the last resync left it `unseen`, its list is read to the end before any of it is
        stored: it may have no end, and other names each time.
        """
        if not self._missing.drop(session.name, gvk):
            return
        fresh: dict[str, Any] = {"kind": gvk, "restarts": 0, **_START}
        if gvk == CLOUD_EVENT:
            session.write(step="read", absent=False, **fresh)
            return
        there = session.kube.resource(gvk) is not None
        served = None if there else session.kube.served(gvk.group, gvk.kind)
        if there or served is None:
            known = session.progress.unserved
            unserved = known if there else (*known, gvk)
            fresh |= {"trial": there and unseen, "unserved": unserved[:MOST_UNSERVED]}
            session.write(step="read", absent=not there, **fresh)
            return
        # Its objects exist, but not in this version.
        self._log.warning("Skipped a kind", cluster=session.name, kind=str(gvk))
        sentence = (
            f"cannot look at {gvk}: the cluster serves {gvk.kind} as {served.gvk.version};"
            " name that version in the EventSource"
        )
        session.write(step="next", problems=session.join_problems(sentence), **fresh)

    def _read(self, session: ResyncSession, gvk: GVK, *, whole: bool) -> None:
        progress = session.progress
        if gvk == CLOUD_EVENT:
            self._evaluate_cloud_events(session, whole=whole)
            return
        if progress.absent:
            heads = list(islice(self._heads(session.name, gvk, progress.last), PAGE))
            last = place_of(heads[-1].key) if len(heads) == PAGE else END
            extent = _Extent("more" if last != END else "", last)
            self._store(session, gvk, heads, {}, extent, whole=whole)
            return
        most = self._settings.sweep_bytes
        lister = KindLister(session.kube, session.name, gvk, most_bytes=most)
        page = lister.read_page(progress.after, progress.restarts)
        if page is None:
            start = {**_START, "trial": progress.trial}
            session.write(restarts=progress.restarts + 1, **start)
            return
        for each in page.unread:
            self._log.warning("Left out an object", cluster=session.name, object=str(each.key))
        empty = 0 if page.items or page.unread else progress.barren + 1
        lister.check_end(progress.read, empty)
        size = progress.size + (0 if progress.cut else page.size)
        lister.check_size(size)
        if progress.trial:
            on = {"after": page.after, "size": size, "barren": empty}
            session.write(**(on if page.after else _START))
            return
        limit = 2 * PAGE
        if not is_ordered(page, "" if progress.cut else progress.last):
            session.write(**_START)
            page, limit, size = lister.read_all(), MOST_OBJECTS, 0
        if empty != progress.barren:
            session.write(barren=empty)
        self._compare(session, gvk, page._replace(size=size), limit, whole=whole)

    def _evaluate_cloud_events(self, session: ResyncSession, *, whole: bool) -> None:
        """Publish the stored CloudEvents where sources changed.

        They are in no cluster, so nothing here shows that one was deleted.
        """
        found = self._heads(session.name, CLOUD_EVENT, session.progress.last) if whole else ()
        heads = list(islice(found, PAGE))
        publish_evaluations(
            self._publisher, session.name, (each.key for each in heads if not each.gone)
        )
        last = place_of(heads[-1].key) if heads else END
        session.write(step="read" if len(heads) == PAGE else "next", last=last)

    # A page -------------------------------------------------------------------------------------

    def _compare(
        self, session: ResyncSession, gvk: GVK, page: Page, limit: int, *, whole: bool
    ) -> None:
        """Compare a page with the observations of its places, of which at most `limit` are read.

        Its `size` is that of the list up to its end.
        """
        now, begin = self._records.clock.now(), session.progress.last
        seen = [observe(session.name, manifest, now) for manifest in page.items]
        found = {each.key: each for each in seen if each.key.gvk == gvk}
        unread = {each.key: each for each in page.unread}
        last = max(map(place_of, (*found, *unread)), default=begin) if page.after else END
        stored = self._heads(session.name, gvk, begin)
        heads = list(islice(takewhile(lambda each: place_of(each.key) <= last, stored), limit + 1))
        cut = len(heads) > limit
        if cut:
            # Very many are missing at once: the same page is read again for the rest of them.
            heads.pop()
            last = place_of(heads[-1].key)
        found = {key: each for key, each in found.items() if begin < place_of(key) <= last}
        extent = _Extent(session.progress.after if cut else page.after, last, cut, page.size)
        self._store(session, gvk, heads, found, extent, whole=whole, unread=unread)

    def _store(
        self,
        session: ResyncSession,
        gvk: GVK,
        heads: Iterable[Seen],
        found: dict[ObjectKey, Observation],
        extent: _Extent,
        *,
        whole: bool,
        unread: Mapping[ObjectKey, Unread] = MappingProxyType({}),
    ) -> None:
        """Store a page and advance; `heads` are the observations of its places.

        An `unread` object exists, and its observation is left unchanged.
        """
        progress, last = session.progress, extent.last
        before = {each.key: each for each in heads}
        living = [key for key, each in before.items() if not each.gone]
        missing = [key for key in living if key not in found and key not in unread]
        # Objects that only the sender has shown prove nothing against a list.
        claims = 0 if progress.absent else sum(before[key].unconfirmed for key in missing)
        news = [seen for key, seen in found.items() if _is_news(seen, before.get(key))]
        unpublished = progress.untold.get(str(gvk), "")
        if news and unpublished < last:
            # After a death the next worker publishes all objects up to here, changed or not.
            session.write(untold={**progress.untold, str(gvk): last})
        fresh = [key for seen in news for key in self._write(session.kube, seen)]
        for key in found.keys() & before.keys():
            if before[key].unconfirmed and not _is_news(found[key], before[key]):
                self._records.observations.confirm(session.name, before[key])
        due = {*found, *before} if whole else {key for key in found if place_of(key) <= unpublished}
        publish_evaluations(self._publisher, session.name, {*fresh, *due})
        self._publish_lost(session, before, found, besides={*fresh, *due})
        self._records.walks.suspect(session.name, missing)
        problems = [str(each) for key, each in unread.items() if place_of(key) <= last]
        remaining = session.progress.untold
        if remaining.get(str(gvk), "") <= last:
            remaining = {kind: place for kind, place in remaining.items() if kind != str(gvk)}
        session.write(
            step="read" if extent.after or extent.cut else "judge",
            **extent._asdict(),
            read=progress.read + len(found) + len(problems),
            known=progress.known + len(living) - claims,
            missing=progress.missing + len(missing) - claims,
            claims=progress.claims + claims,
            found=progress.found + len(found),
            # If a source of the kind is new or changed, the kind is listed for the first time:
            # no event of its objects was to be sent before.
            missed=progress.missed
            + (0 if whole else sum(not _is_ours(found.get(key)) for key in fresh)),
            untold=remaining,
            problems=session.join_problems(*problems),
        )

    def _publish_lost(
        self,
        session: ResyncSession,
        heads: Mapping[ObjectKey, Seen],
        found: Mapping[ObjectKey, Observation],
        *,
        besides: Collection[ObjectKey],
    ) -> None:
        """Publish messages again whose work is missing, for objects that changed.

        These are the changes since the last resync. The messages of younger ones may be in
        flight, and the next resync checks them.
        """
        if session.since is None:
            return
        grace = self._settings.visibility
        since, until = session.since - grace, self._records.clock.now() - grace
        find = self._find_lost(session)
        for key, head in heads.items():
            if key in besides or not since < head.at <= until:
                continue
            seen = found.get(key)
            if head.gone:
                self._publisher.publish(find(key, None))
            elif seen and not _is_news(seen, head):
                self._publisher.publish(find(key, seen.manifest))

    def _write(self, kube: Kube, seen: Observation) -> Iterator[ObjectKey]:
        """Write an object of a page, and yield its key if that changed its observation."""
        if self._records.observations.put(seen):
            yield seen.key
            return
        # The observation is newer, or of another incarnation of the cluster: read the object.
        head = self._records.observations.head(seen.cluster, seen.key)
        try:
            manifest = kube.get(*seen.key)
        except TooLargeError:
            # It has grown since the page was made: the next resync names it.
            return
        if head is None or manifest is None:
            return
        now = observe(seen.cluster, manifest, self._records.clock.now())
        newer = now.key == seen.key and _is_news(now, head)
        if newer and self._records.observations.put(now, asked=head.token):
            yield now.key

    def _heads(self, cluster: str, gvk: GVK, last: str) -> Iterator[Seen]:
        after = "/".join((*gvk, last)) if last else ""
        return self._records.observations.heads(cluster, gvk, after=after)


def _is_news(seen: Observation, head: Seen | None) -> bool:
    return head is None or head[1:4] != (seen.uid, seen.resource_version, False)


def _is_ours(seen: Observation | None) -> bool:
    """Return whether an object bears our ownership annotation: no event of it is sent or missed."""
    metadata = (seen.manifest or {}).get("metadata") if seen else None
    return OWNER in ((metadata or {}).get("annotations") or {})
