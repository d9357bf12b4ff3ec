"""Survey: whether what profiles hold in a cluster is there, and what is there beside it.

A kind at a time, what bears our label is listed beside what is owned. What a read confirms as
gone is taken for unsure in its inventory, and so is what a backup brought back as another object
of the same name and marks; its profile is asked to be applied: applying what is there after all
changes nothing. What bears our marks and nobody owns is a stray, unless the cluster belongs
to another installation; it is noted and shown, and stays until somebody asks for its removal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from functools import cache, partial
from itertools import islice, takewhile
from typing import Any, NamedTuple

from msgspec.structs import replace

from bellhop.clusters.installation_mark import other
from bellhop.core.gvk import GVK, Identity, ObjectKey, Resource
from bellhop.core.identity import MANAGER, REASON, REASONS
from bellhop.core.sveltos_annotations import OWNER
from bellhop.deploy.drift import has_drifted
from bellhop.deploy.records.inventories import Noted
from bellhop.deploy.release_records import is_superseded
from bellhop.errors import MissingError, PermanentError, StaleError, TemporaryError
from bellhop.logs import Log
from bellhop.ports.access import Access
from bellhop.ports.kube import Kube, Manifest, Page
from bellhop.settings import Settings
from bellhop.state.chart import RELEASE
from bellhop.state.messages import Apply, Publisher
from bellhop.state.messages import ScanDrift as Message
from bellhop.state.record import Held, Orphan, Owner
from bellhop.state.records import Records

PAGE = 500
"""Objects of one page; a turn ends between two."""

_ASKED = 100
"""Objects that are read one by one, where they may not be listed, before a turn may end."""

_LABEL = f"{REASON} in ({','.join(REASONS)})"
_END = "\U0010ffff"
_RESTARTS = 3
_SLACK = timedelta(minutes=1)

_USUAL = (
    "/ConfigMap",
    "/Namespace",
    "/Secret",
    "/Service",
    "/ServiceAccount",
    "apiextensions.k8s.io/CustomResourceDefinition",
    "apps/DaemonSet",
    "apps/Deployment",
    "apps/StatefulSet",
    "batch/CronJob",
    "batch/Job",
    "networking.k8s.io/Ingress",
    "networking.k8s.io/NetworkPolicy",
    "rbac.authorization.k8s.io/ClusterRole",
    "rbac.authorization.k8s.io/ClusterRoleBinding",
    "rbac.authorization.k8s.io/Role",
    "rbac.authorization.k8s.io/RoleBinding",
)
"""What add-ons consist of: a full survey looks for strays of these kinds, owned or not."""


_RELEASE = f"{RELEASE.group}/{RELEASE.kind}"

_Who = tuple[str, str, str]
"""A profile's trigger, source cluster and name."""

_HeldBy = Callable[[str], Mapping[Identity, Held]]
"""What a profile holds in the cluster, by its name."""


class _Stretch(NamedTuple):
    """A part of a kind: what is listed there, unless it could not be, and where it ends."""

    listed: Mapping[Identity, Manifest] | None
    after: str
    last: str


class OwnedKinds:
    """Compares a cluster with what profiles hold in it."""

    def __init__(
        self,
        records: Records,
        access: Access,
        publisher: Publisher,
        settings: Settings,
        log: Log,
    ) -> None:
        self._records = records
        self._access = access
        self._publisher = publisher
        self._settings = settings
        self._log = log

    def handle(self, message: Message) -> None:
        """Go on with a survey for as long as a turn lasts; the next message does the rest.

        What a cluster that does not answer leaves open, the survey after its next sweep sees.
        """
        record = self._records.clusters.get(message.cluster)
        if record is None:
            return
        kube = self._access.open(message.cluster, version=record.value.credentials)
        begun = self._records.clock.now()
        while True:
            if not message.kind or message.last == _END:
                kind = self._next_kind(message)
                if not kind:
                    return
                message = replace(message, kind=kind, after="", last="", restarts=0)
            try:
                message = self._step(kube, message)
            except TemporaryError as error:
                self._log.warning("Left a survey", cluster=message.cluster, error=str(error))
                return
            except PermanentError as error:
                # A kind of which nothing may be known keeps no other from being looked at.
                self._log.warning("Skipped a kind", cluster=message.cluster, error=str(error))
                message = replace(message, last=_END)
            if self._records.clock.now() - begun >= self._settings.turn:
                self._publisher.publish([message])
                return

    def _next_kind(self, message: Message) -> str:
        """Find the next kind that somebody owns, or of which something was found."""
        cluster, after = message.cluster, f"{message.kind}/{_END}" if message.kind else ""
        nexts = (
            next(self._records.owners.of(cluster, after=after), None),
            next(self._records.findings.of(cluster, after=after), None),
        )
        kinds = [f"{found[0].group}/{found[0].kind}" for found in nexts if found]
        if message.full:
            kinds += [kind for kind in _USUAL if f"{kind}/" > after]
        found_kind = min(kinds, key=lambda kind: f"{kind}/", default="")
        # Of a release no API server knows: it is there as long as what it consists of.
        return (
            self._next_kind(replace(message, kind=found_kind))
            if found_kind == _RELEASE
            else found_kind
        )

    def _step(self, kube: Kube, message: Message) -> Message:
        group, _, kind = message.kind.rpartition("/")
        resource = kube.served(group, kind)
        try:
            stretch = self._stretch(kube, resource, message)
        except StaleError:
            if message.restarts >= _RESTARTS:
                return replace(message, last=_END)
            return replace(message, after="", last="", restarts=message.restarts + 1)
        owned = dict(_within(self._owners(message), stretch.last))
        listed = stretch.listed or {}
        noted = dict(_within(self._noted(message), stretch.last))
        found: dict[Identity, Orphan] = {}
        unsure: dict[_Who, list[Identity]] = {}
        held = cache(partial(self._held, message.cluster))
        watched, touched = self._watched(message), list[Apply]()
        superseded = cache(lambda profile, place: is_superseded(kube, held(profile), place))
        for key, owner in owned.items():
            if not owner.profile:
                continue
            # With a kind that is not served any more went every object of it.
            there = listed.get(key) or (self._read(kube, resource, key) if resource else None)
            another = _is_another(key, owner, there or {}, held)
            # What a backup brought back is ours, and not as it was applied.
            there = None if another and _bears_marks_of(owner, there or {}) else there
            if there is None:
                unsure.setdefault(_who(owner), []).append(key)
            elif another:
                found[key] = self._finding("foreign", there, owner.profile)
            elif owner.profile in watched and (
                has_drifted(there, known := held(owner.profile).get(key))
                or (known and superseded(owner.profile, known.part_of))
            ):
                touched.append(Apply(*_who(owner), message.cluster, touched=str(key)))
        for who, keys in unsure.items():
            self._put_back(message.cluster, who, keys)
        self._publisher.publish(touched)
        loose = {key: there for key, there in listed.items() if key not in owned}
        for key in self._strays(kube, message.cluster, loose, noted):
            found[key] = self._finding("stray", loose[key])
        self._note(message.cluster, stretch, noted, found)
        return replace(message, after=stretch.after, last=stretch.last)

    def _owners(self, message: Message) -> Iterator[tuple[Identity, Owner]]:
        after = f"{message.kind}/{message.last}" if message.last else ""
        return self._records.owners.of(message.cluster, f"{message.kind}/", after=after)

    def _noted(self, message: Message) -> Iterator[tuple[Identity, Noted]]:
        after = f"{message.kind}/{message.last}" if message.last else ""
        return self._records.findings.noted(message.cluster, f"{message.kind}/", after=after)

    def _stretch(self, kube: Kube, resource: Resource | None, message: Message) -> _Stretch:
        """Read the next page of a kind; where it may not be listed, take some that are owned."""
        if resource is not None and (message.after or not message.last):
            try:
                page = kube.page(resource.gvk, limit=PAGE, after=message.after, labels=_LABEL)
            except PermanentError:
                page = None
            if page is not None and _ascends(page, message.last):
                listed = {ObjectKey.of(each).identity: each for each in page.items}
                last = max(map(_place, listed), default=message.last) if page.after else _END
                return _Stretch(listed, page.after, last)
        owned = list(islice(self._owners(message), _ASKED))
        return _Stretch(None, "", _place(owned[-1][0]) if len(owned) == _ASKED else _END)

    # What is gone -------------------------------------------------------------------------------

    def _read(self, kube: Kube, resource: Resource, key: Identity) -> Manifest | None:
        try:
            return kube.get(*key.at(resource.gvk.version))
        except MissingError:
            return None
        except PermanentError:
            # Who may not read it cannot say that it is gone.
            return {}

    def _held(self, cluster: str, profile: str) -> Mapping[Identity, Held]:
        kept = self._records.inventories.get(cluster, profile)
        return kept.value.held if kept else {}

    def _put_back(self, cluster: str, who: _Who, keys: list[Identity]) -> None:
        """Have a profile applied that lost objects, unless somebody is at it right now.

        What is brought once is not put back: what becomes of it is its cluster's own affair.
        """
        trigger, source, profile = who
        head = self._records.profiles.head(*who)
        if head and head.value.sync == "OneTime":
            return
        now = self._records.clock.now()
        if self._records.inventories.doubt(cluster, profile, now, keys):
            names = ", ".join(f"{key.kind} {key.namespace}/{key.name}" for key in keys[:3])
            self._log.warning(
                "Missed what was applied", cluster=cluster, profile=profile, objects=names
            )
            self._publisher.publish([Apply(trigger, source, profile, cluster)])

    def _watched(self, message: Message) -> set[str]:
        """Return the profiles whose objects are to stay as they were applied."""
        found = self._records.watches.of(message.cluster) if message.held else ()
        return {each.value.profile for each in found}

    # What is there beside it --------------------------------------------------------------------

    def _strays(
        self,
        kube: Kube,
        cluster: str,
        loose: Mapping[Identity, Manifest],
        noted: Mapping[Identity, Noted],
    ) -> Iterator[Identity]:
        """Yield those that are ours and nobody's; one that is known is not looked at again.

        In a cluster of another installation there are none, and no object of it is read.
        """
        if any(map(_is_ours, loose.values())) and other(self._records.installations, kube):
            # What another installation's cluster holds is that one's to know.
            return
        for key, listed in loose.items():
            known = _is_known(noted.get(key), listed)
            if known or self._is_stray(kube, cluster, key, listed):
                yield key

    def _is_stray(self, kube: Kube, cluster: str, key: Identity, listed: Manifest) -> bool:
        """Say whether an object of ours is nobody's: not since a moment ago, nor for a moment.

        An object is owned before it is applied, and removed before it is given up.
        """
        if not _is_ours(listed) or self._records.owners.get(cluster, key):
            return False
        there = kube.get(*key.at(GVK.of(listed).version))
        if there is None or _uid(there) != _uid(listed) or not _owner(there):
            return False
        ending = (there.get("metadata") or {}).get("deletionTimestamp")
        return not ending and self._records.owners.get(cluster, key) is None

    def _note(
        self,
        cluster: str,
        stretch: _Stretch,
        noted: Mapping[Identity, Noted],
        found: Mapping[Identity, Orphan],
    ) -> None:
        """Note what was found in a stretch, and forget what is not there any more."""
        for key, known in noted.items():
            # What may not be listed says nothing about strays.
            if key not in found and (stretch.listed is not None or known.finding.what == "foreign"):
                self._records.findings.delete(cluster, key)
        for key, finding in found.items():
            former = noted.get(key)
            if not former or not former.lasts or not _is_same(former.finding, finding):
                self._records.findings.put(cluster, key, finding)

    def _finding(self, what: Any, there: Manifest, profile: str = "") -> Orphan:
        now = self._records.clock.now()
        return Orphan(what, profile or _owner(there), _uid(there), GVK.of(there).version, now)


def _is_same(known: Orphan, found: Orphan) -> bool:
    return replace(known, since=found.since) == found


def _is_known(noted: Noted | None, listed: Manifest) -> bool:
    """Say whether a stray is one that was looked at before."""
    ending = (listed.get("metadata") or {}).get("deletionTimestamp")
    return noted is not None and noted.finding.what == "stray" and not ending and _is_ours(listed)


def _within(rows: Iterator[tuple[Identity, Any]], last: str) -> Iterator[tuple[Identity, Any]]:
    return takewhile(lambda row: _place(row[0]) <= last, rows)


def _place(key: Identity) -> str:
    return f"{key.namespace}/{key.name}"


def _ascends(page: Page, last: str) -> bool:
    for manifest in page.items:
        place = _place(ObjectKey.of(manifest).identity)
        if place <= last:
            return False
        last = place
    return True


def _is_ours(manifest: Manifest) -> bool:
    """Say whether we applied it: Sveltos itself leaves the same marks."""
    ours = any(each.get("manager") == MANAGER for each in _managers(manifest))
    return ours and bool(_owner(manifest))


def _managers(manifest: Manifest) -> list[Manifest]:
    found = (manifest.get("metadata") or {}).get("managedFields") or []
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _is_another(key: Identity, owner: Owner, there: Manifest, held: _HeldBy) -> bool:
    """Say whether an object lives another life than the one that was applied; not if it is {}."""
    if not there or (_bears_marks_of(owner, there) and _was_applied(there)):
        return False
    known = held(owner.profile).get(key)
    return known is not None and known.uid not in ("", _uid(there))


def _who(owner: Owner) -> _Who:
    return owner.trigger, owner.source, owner.profile


def _bears_marks_of(owner: Owner, there: Manifest) -> bool:
    return _owner(there) == owner.profile


def _was_applied(there: Manifest) -> bool:
    """Say whether we applied an object in the life that it has, as far as it tells by itself.

    One that a backup brought back remembers no manager, or one from before it was made.
    """
    made = _time(there["metadata"].get("creationTimestamp"))
    applied = [
        _time(each.get("time"))
        for each in _managers(there)
        if (each.get("manager"), each.get("operation")) == (MANAGER, "Apply")
    ]
    return any(not made or not time or time + _SLACK >= made for time in applied)


def _time(text: Any) -> datetime | None:
    try:
        found = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return found if found.tzinfo else None


def _owner(manifest: Manifest) -> str:
    annotations = (manifest.get("metadata") or {}).get("annotations") or {}
    return str(annotations.get(OWNER) or "")


def _uid(manifest: Manifest) -> str:
    return str((manifest.get("metadata") or {}).get("uid") or "")
