"""Look: one kind of one cluster, page by page, beside what is kept of it.

  page ─► what is newer is written and told ─► what is kept and not on it is suspected ─► next page
  last page ─► suspiciously much is held ─► each suspect that a read confirms as gone is buried

Pages of a list show one state, while events go on: what a page has may be older than what is
kept. Where versions say so, the object itself is read before the page is believed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice, takewhile
from types import MappingProxyType
from typing import Any, NamedTuple

from msgspec.structs import replace

from bellhop.core.gvk import CLOUD_EVENT, GVK, ObjectKey
from bellhop.core.sveltos_annotations import OWNER
from bellhop.errors import MissingError, StaleError, TooLargeError, UnreachableError
from bellhop.ingest.records.observations import Seen
from bellhop.logs import Log
from bellhop.ports.kube import Kube, Manifest, Page, Unread
from bellhop.rendering.observation import bury, observe
from bellhop.resync.progress import MOST_UNSERVED, ResyncSession
from bellhop.settings import Settings
from bellhop.state.event_recorder import Nobody, Note, write
from bellhop.state.messages import Evaluate, Publisher
from bellhop.state.record import Observation
from bellhop.state.records import Records

PAGE = 500
"""Objects of one page; a turn ends between two."""

_BATCH = 100
"""Suspects that are looked at before others may have their turn."""

_RESTARTS = 3
_MOST = 1_000_000
_BARREN = 1_000
_END = "\U0010ffff"
"""What no place comes after."""

_ANEW: Mapping[str, Any] = {
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
"""A walk at the beginning of a kind."""


class _Reach(NamedTuple):
    """How far a page reaches: where the list goes on, its last place, and whether it was cut.

    And how many bytes its list has up to there.
    """

    after: str
    last: str
    cut: bool = False
    size: int = 0


class ObservedKinds:
    """Takes a walk through one kind, a step at a time."""

    def __init__(
        self, records: Records, publisher: Publisher, settings: Settings, log: Log
    ) -> None:
        self._records = records
        self._publisher = publisher
        self._settings = settings
        self._log = log

    def step(self, course: ResyncSession, gvk: GVK, *, whole: bool) -> None:
        """Take the next step in a kind; of a `whole` one every object is evaluated, known or not.

        Raises:
            StaleError: the list changes faster than it can be read.
            TooLargeError: the list is larger than the setting says.
            UnreachableError: the list has no end.
        """
        match course.walk.step:
            case "read":
                self._read(course, gvk, whole=whole)
            case "judge":
                self._judge(course, gvk)
            case "bury":
                self._bury_some(course, gvk)

    def begin(self, course: ResyncSession, gvk: GVK, *, unseen: bool = False) -> None:
        """Begin with a kind: see whether it is served at all.

        The list of one that the last sweep left `unseen` is read to its end before any of it is
        kept: it may have none, and other names each time.
        """
        if not self._drop_suspects(course.name, gvk):
            return
        fresh: dict[str, Any] = {"kind": gvk, "restarts": 0, **_ANEW}
        if gvk == CLOUD_EVENT:
            course.keep(step="read", absent=False, **fresh)
            return
        there = course.kube.resource(gvk) is not None
        served = None if there else course.kube.served(gvk.group, gvk.kind)
        if there or served is None:
            unserved = course.walk.unserved if there else (*course.walk.unserved, gvk)
            fresh |= {"trial": there and unseen, "unserved": unserved[:MOST_UNSERVED]}
            course.keep(step="read", absent=not there, **fresh)
            return
        # Its objects are there, and this version of them is not to be seen.
        self._log.warning("Skipped a kind", cluster=course.name, kind=str(gvk))
        sentence = (
            f"cannot look at {gvk}: the cluster serves {gvk.kind} as {served.gvk.version};"
            " name that version in the EventSource"
        )
        course.keep(step="next", problems=course.problem(sentence), **fresh)

    def _read(self, course: ResyncSession, gvk: GVK, *, whole: bool) -> None:
        """Look at the next page."""
        walk = course.walk
        if gvk == CLOUD_EVENT:
            self._hear_again(course, whole=whole)
            return
        if walk.absent:
            heads = list(islice(self._heads(course.name, gvk, walk.last), PAGE))
            last = _place(heads[-1].key) if len(heads) == PAGE else _END
            reach = _Reach("more" if last != _END else "", last)
            self._take(course, gvk, heads, {}, reach, whole=whole)
            return
        try:
            page = course.kube.page(gvk, limit=PAGE, after=walk.after)
        except StaleError:
            if not walk.after or walk.restarts >= _RESTARTS:
                raise
            course.keep(restarts=walk.restarts + 1, **{**_ANEW, "trial": walk.trial})
            return
        for each in page.unread:
            self._log.warning("Left out an object", cluster=course.name, object=str(each.key))
        barren = 0 if page.items or page.unread else walk.barren + 1
        if walk.read > _MOST or barren > _BARREN:
            raise UnreachableError(f"cannot list {gvk.kind} in '{course.name}': it has no end")
        size = walk.size + (0 if walk.cut else page.size)
        self._check_size(course, gvk, size)
        if walk.trial:
            on = {"after": page.after, "size": size, "barren": barren}
            course.keep(**(on if page.after else _ANEW))
            return
        limit = 2 * PAGE
        if not _ascends(page, "" if walk.cut else walk.last):
            # Only a list in the order of our keys tells by what is on a page what is on none.
            course.keep(**_ANEW)
            page, limit, size = self._whole(course, gvk), _MOST, 0
        if barren != walk.barren:
            course.keep(barren=barren)
        page = page._replace(size=size)
        self._compare(course, gvk, page, limit, whole=whole)

    def _whole(self, course: ResyncSession, gvk: GVK) -> Page:
        """Read a list as one page."""
        items: list[Manifest] = []
        unread: list[Unread] = []
        after, size = "", 0
        for _ in range(_MOST // PAGE):
            page = course.kube.page(gvk, limit=PAGE, after=after)
            size += page.size
            self._check_size(course, gvk, size)
            items += page.items
            unread += page.unread
            after = page.after
            if not after:
                return Page(items, "", unread)
        raise UnreachableError(f"cannot list {gvk.kind} in '{course.name}': it has no end")

    def _check_size(self, course: ResyncSession, gvk: GVK, size: int) -> None:
        """Refuse a list that would fill the state's disk.

        Raises:
            TooLargeError: it is larger than the setting says.
        """
        most = self._settings.sweep_bytes
        if size > most:
            raise TooLargeError(
                f"cannot list {gvk.kind} in '{course.name}': the list is larger than"
                f" {most / 1024**2:.3g} MiB, and nothing is taken for deleted; raise the setting"
                " BELLHOP_SWEEP_BYTES if the cluster is meant to hold so much"
            )

    def _hear_again(self, course: ResyncSession, *, whole: bool) -> None:
        """Have the CloudEvents that are kept judged again where sources changed.

        No cluster has them, so that nothing here says that one is gone.
        """
        found = self._heads(course.name, CLOUD_EVENT, course.walk.last) if whole else ()
        heads = list(islice(found, PAGE))
        self._tell(course.name, (each.key for each in heads if not each.gone))
        last = _place(heads[-1].key) if heads else _END
        course.keep(step="read" if len(heads) == PAGE else "next", last=last)

    # A page -------------------------------------------------------------------------------------

    def _compare(
        self, course: ResyncSession, gvk: GVK, page: Page, limit: int, *, whole: bool
    ) -> None:
        """Set what is kept beside a page; of its places only so many as keep `limit` objects.

        Its `size` is that of the list up to its end.
        """
        now, begin = self._records.clock.now(), course.walk.last
        seen = [observe(course.name, manifest, now) for manifest in page.items]
        found = {each.key: each for each in seen if each.key.gvk == gvk}
        unread = {each.key: each for each in page.unread}
        last = max(map(_place, (*found, *unread)), default=begin) if page.after else _END
        heads = list(
            islice(
                takewhile(
                    lambda each: _place(each.key) <= last, self._heads(course.name, gvk, begin)
                ),
                limit + 1,
            )
        )
        cut = len(heads) > limit
        if cut:
            # Very many are gone at once: the same page is read again for the rest of them.
            heads.pop()
            last = _place(heads[-1].key)
        found = {key: each for key, each in found.items() if begin < _place(key) <= last}
        reach = _Reach(course.walk.after if cut else page.after, last, cut, page.size)
        self._take(course, gvk, heads, found, reach, whole=whole, unread=unread)

    def _take(
        self,
        course: ResyncSession,
        gvk: GVK,
        heads: Iterable[Seen],
        found: dict[ObjectKey, Observation],
        reach: _Reach,
        *,
        whole: bool,
        unread: Mapping[ObjectKey, Unread] = MappingProxyType({}),
    ) -> None:
        """Take a page for what it is, and go beyond it; `heads` are what is kept of its places.

        An object that is `unread` is there: what is kept of it stays as it is.
        """
        walk, last = course.walk, reach.last
        before = {each.key: each for each in heads}
        living = [key for key, each in before.items() if not each.gone]
        missing = [key for key in living if key not in found and key not in unread]
        # What only the sender has ever shown proves nothing against a list.
        claims = 0 if walk.absent else sum(before[key].unconfirmed for key in missing)
        news = [seen for key, seen in found.items() if _is_news(seen, before.get(key))]
        mark = walk.untold.get(str(gvk), "")
        if news and mark < last:
            # Whoever comes after a death tells all up to here, whatever it finds written.
            course.keep(untold={**walk.untold, str(gvk): last})
        fresh = [key for seen in news for key in self._write(course.kube, seen)]
        for key in found.keys() & before.keys():
            if before[key].unconfirmed and not _is_news(found[key], before[key]):
                self._records.observations.confirm(course.name, before[key])
        due = {*found, *before} if whole else {key for key in found if _place(key) <= mark}
        self._tell(course.name, {*fresh, *due})
        self._records.walks.suspect(course.name, missing)
        problems = [str(each) for key, each in unread.items() if _place(key) <= last]
        untold = course.walk.untold
        if untold.get(str(gvk), "") <= last:
            untold = {kind: place for kind, place in untold.items() if kind != str(gvk)}
        course.keep(
            step="read" if reach.after or reach.cut else "judge",
            **reach._asdict(),
            read=walk.read + len(found) + len(problems),
            known=walk.known + len(living) - claims,
            missing=walk.missing + len(missing) - claims,
            claims=walk.claims + claims,
            found=walk.found + len(found),
            # A kind of which a source is new, or was written anew, is listed for the first time:
            # nobody was to send what was there before.
            missed=walk.missed
            + (0 if whole else sum(not _is_ours(found.get(key)) for key in fresh)),
            untold=untold,
            problems=course.problem(*problems),
        )

    def _write(self, kube: Kube, seen: Observation) -> Iterator[ObjectKey]:
        """Write what a page has, and yield its key if it was news."""
        if self._records.observations.put(seen):
            yield seen.key
            return
        # What is kept is newer, or of another life of the cluster: the object itself tells.
        head = self._records.observations.head(seen.cluster, seen.key)
        try:
            manifest = kube.get(*seen.key)
        except TooLargeError:
            # It has grown since the page was made: the next sweep names it.
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

    def _tell(self, cluster: str, keys: Iterable[ObjectKey]) -> None:
        self._publisher.publish([Evaluate(cluster, str(key)) for key in sorted(keys)])

    # What is gone -------------------------------------------------------------------------------

    def _judge(self, course: ResyncSession, gvk: GVK) -> None:
        """Have suspects buried; of a list that is doubted those that only the sender has shown."""
        doubted = not self._believed(course, gvk)
        skips = doubted and not course.walk.claims
        course.keep(step="next" if skips else "bury", doubted=doubted)

    def _believed(self, course: ResyncSession, gvk: GVK) -> bool:
        """Hold back a deletion of suspiciously much until sweeps in a row agree."""
        walk, settings = course.walk, self._settings
        missing, known = walk.missing, walk.known
        if walk.absent:
            reason = f"the kind is not served any more, and {missing} objects of it were seen"
            suspicious = missing > 0
        else:
            reason = f"{missing} of {known} are missing from a list"
            suspicious = missing > settings.deletion_floor and missing > (
                settings.deletion_share * known
            )
        if not suspicious:
            self._records.strikes.clear(course.name, gvk)
            return True
        strikes = self._records.strikes.add(course.name, gvk, walk.id)
        if strikes >= settings.deletion_agreement:
            return True
        detail = f"{reason}; held until {settings.deletion_agreement} resyncs agree"
        self._log.warning("Held a deletion", cluster=course.name, kind=str(gvk), detail=detail)
        key = str(ObjectKey(gvk, "", "*"))
        write(self._records, Nobody(), course.name, key, Note("held", detail))
        course.keep(problems=course.problem(f"{gvk.kind}: {detail}"))
        return False

    def _bury_some(self, course: ResyncSession, gvk: GVK) -> None:
        """Look for the next suspects, and bury those that are gone."""
        suspects = list(islice(self._records.walks.suspects(course.name, gvk), _BATCH))
        buried = self._bury(course, suspects)
        if len(suspects) < _BATCH:
            if not course.walk.doubted:
                self._records.strikes.clear(course.name, gvk)
            course.keep(step="next", missed=course.walk.missed + buried)
        elif buried:
            course.keep(missed=course.walk.missed + buried)

    def _bury(self, course: ResyncSession, suspects: Sequence[ObjectKey]) -> int:
        """Bury those that a read confirms as not there, tell, and suspect them no longer."""
        cluster, told = course.name, list[ObjectKey]()
        buried = 0
        for key in suspects:
            head = self._records.observations.head(cluster, key)
            if head and not head.gone and course.walk.doubted and not head.unconfirmed:
                continue
            if head and not head.gone and self._is_gone(course.kube, cluster, key):
                now = self._records.clock.now()
                tomb = bury(cluster, key, head.uid, head.resource_version, now)
                tomb = replace(tomb, unconfirmed=head.unconfirmed)
                if self._records.observations.put(tomb, asked=head.token):
                    buried += 1
                    told.append(key)
            elif head and head.gone:
                told.append(key)
        self._tell(cluster, told)
        self._records.walks.clear(cluster, suspects)
        return buried

    def _is_gone(self, kube: Kube, cluster: str, key: ObjectKey) -> bool:
        try:
            return kube.get(*key) is None
        except TooLargeError:
            # It is there, whatever it is.
            return False
        except MissingError:
            agreed = self._records.strikes.get(cluster, key.gvk).value
            if agreed >= self._settings.deletion_agreement:
                # With the kind's definition went every object of it.
                return True
            raise

    def _drop_suspects(self, cluster: str, gvk: GVK) -> bool:
        """Suspect some no more, and tell of who was buried untold; say whether that was all."""
        suspects = list(islice(self._records.walks.suspects(cluster, gvk), _BATCH))
        heads = [self._records.observations.head(cluster, key) for key in suspects]
        self._tell(cluster, [each.key for each in heads if each and each.gone])
        self._records.walks.clear(cluster, suspects)
        return len(suspects) < _BATCH


def _is_news(seen: Observation, head: Seen | None) -> bool:
    return head is None or head[1:4] != (seen.uid, seen.resource_version, False)


def _is_ours(seen: Observation | None) -> bool:
    """Say whether an object bears our mark: what we apply does not ring, and is not missed."""
    metadata = (seen.manifest or {}).get("metadata") if seen else None
    return OWNER in ((metadata or {}).get("annotations") or {})


def _place(key: ObjectKey) -> str:
    return f"{key.namespace}/{key.name}"


def _ascends(page: Page, last: str) -> bool:
    for manifest in page.items:
        place = _place(ObjectKey.of(manifest))
        if place <= last:
            return False
        last = place
    return True
