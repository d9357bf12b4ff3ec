"""Owned kinds: one kind of one cluster, page by page, compared with the inventories of profiles.

Objects with our label are listed beside their owners. An object that a read confirms as deleted
becomes uncertain in its inventory, and so does one that a backup restored as another object of the
same name and marks; then its profile is applied, which changes nothing if the object exists. An
object with our marks and no owner is an orphan, unless the cluster belongs to another
installation. Orphans are recorded and shown, and removed only on request.
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
from bellhop.deploy.records import Noted
from bellhop.errors import MissingError, PermanentError, StaleError, TemporaryError
from bellhop.logs import Log
from bellhop.ports.kube import Access, Kube, Manifest
from bellhop.resync.kind_lister import END, KindLister, is_ordered, place_of
from bellhop.settings import Settings
from bellhop.state.chart import RELEASE
from bellhop.state.deployment import Held, Orphan, Owner
from bellhop.state.messages import Apply, Publisher
from bellhop.state.messages import ScanDrift as Message
from bellhop.state.records import Records

_BATCH = 100
"""Objects that are read one by one, if they may not be listed, before a turn may end."""

_LABEL = f"{REASON} in ({','.join(REASONS)})"
_SLACK = timedelta(minutes=1)
"""Difference of an API server's clocks between two of its timestamps."""

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
"""Usual kinds of add-ons: a full scan looks for orphans of these, whether or not any is owned."""


_RELEASE = f"{RELEASE.group}/{RELEASE.kind}"

_Profile = tuple[str, str, str]
"""A profile's trigger, source cluster and name."""

_HasDrifted = Callable[[Manifest, Held | None], bool]

_IsSuperseded = Callable[[Kube, Mapping[Identity, Held], str], bool]

_HeldBy = Callable[[str], Mapping[Identity, Held]]
"""Returns the inventory of a profile in the cluster, by the profile's name."""


class _Section(NamedTuple):
    """A section of a kind: its objects, or None if they may not be listed, and its end."""

    listed: Mapping[Identity, Manifest] | None
    after: str
    last: str


class OwnedKinds:
    """Compares a cluster with the inventories of profiles in it."""

    def __init__(
        self,
        records: Records,
        access: Access,
        publisher: Publisher,
        settings: Settings,
        log: Log,
        *,
        has_drifted: _HasDrifted,
        is_superseded: _IsSuperseded,
    ) -> None:
        self._records = records
        self._access = access
        self._publisher = publisher
        self._settings = settings
        self._log = log
        self._has_drifted = has_drifted
        self._is_superseded = is_superseded

    def handle(self, message: Message) -> None:
        """Scan for as long as a turn lasts; another message continues.

        If the cluster does not answer, the scan ends, and the next resync begins another.
        """
        record = self._records.clusters.get(message.cluster)
        if record is None:
            return
        kube = self._access.open(message.cluster, version=record.value.credentials)
        begun = self._records.clock.now()
        while True:
            if not message.kind or message.last == END:
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
                # A kind that may not be read does not prevent the others from being scanned.
                self._log.warning("Skipped a kind", cluster=message.cluster, error=str(error))
                message = replace(message, last=END)
            if self._records.clock.now() - begun >= self._settings.turn:
                self._publisher.publish([message])
                return

    def _next_kind(self, message: Message) -> str:
        """Find the next kind of which an object is owned, or an orphan is recorded."""
        cluster, after = message.cluster, f"{message.kind}/{END}" if message.kind else ""
        nexts = (
            next(self._records.owners.of(cluster, after=after), None),
            next(self._records.findings.of(cluster, after=after), None),
        )
        kinds = [f"{found[0].group}/{found[0].kind}" for found in nexts if found]
        if message.full:
            kinds += [kind for kind in _USUAL if f"{kind}/" > after]
        found_kind = min(kinds, key=lambda kind: f"{kind}/", default="")
        # No API server knows releases: one exists as long as its objects.
        return (
            self._next_kind(replace(message, kind=found_kind))
            if found_kind == _RELEASE
            else found_kind
        )

    def _step(self, kube: Kube, message: Message) -> Message:
        group, _, kind = message.kind.rpartition("/")
        resource = kube.served(group, kind)
        try:
            section = self._read_section(kube, resource, message)
        except StaleError:
            return replace(message, last=END)
        if section is None:
            return replace(message, after="", last="", restarts=message.restarts + 1)
        owned = dict(_take_until(self._owners(message), section.last))
        listed = section.listed or {}
        noted = dict(_take_until(self._noted(message), section.last))
        found: dict[Identity, Orphan] = {}
        unsure: dict[_Profile, list[Identity]] = {}
        held = cache(partial(self._held, message.cluster))
        watched, touched = self._watched(message), list[Apply]()
        superseded = cache(lambda profile, place: self._is_superseded(kube, held(profile), place))
        for key, owner in owned.items():
            if not owner.profile:
                continue
            # With a kind that is not served any more every object of it was deleted.
            there = listed.get(key) or (self._read(kube, resource, key) if resource else None)
            another = _is_another(key, owner, there or {}, held)
            # An object that a backup restored is ours, and not as it was applied.
            there = None if another and _is_marked_by(owner, there or {}) else there
            if there is None:
                unsure.setdefault(_profile_of(owner), []).append(key)
            elif another:
                found[key] = self._make_orphan("foreign", there, owner.profile)
            elif owner.profile in watched and (
                self._has_drifted(there, known := held(owner.profile).get(key))
                or (known and superseded(owner.profile, known.part_of))
            ):
                touched.append(Apply(*_profile_of(owner), message.cluster, touched=str(key)))
        for who, keys in unsure.items():
            self._put_back(message.cluster, who, keys)
        self._publisher.publish(touched)
        loose = {key: there for key, there in listed.items() if key not in owned}
        for key in self._find_orphans(kube, message.cluster, loose, noted):
            found[key] = self._make_orphan("stray", loose[key])
        self._note(message.cluster, section, noted, found)
        return replace(message, after=section.after, last=section.last)

    def _owners(self, message: Message) -> Iterator[tuple[Identity, Owner]]:
        after = f"{message.kind}/{message.last}" if message.last else ""
        return self._records.owners.of(message.cluster, f"{message.kind}/", after=after)

    def _noted(self, message: Message) -> Iterator[tuple[Identity, Noted]]:
        after = f"{message.kind}/{message.last}" if message.last else ""
        return self._records.findings.noted(message.cluster, f"{message.kind}/", after=after)

    def _read_section(
        self, kube: Kube, resource: Resource | None, message: Message
    ) -> _Section | None:
        """Read the next page of a kind, or some of its owners if it may not be listed.

        None means that the list has to begin again.
        """
        if resource is not None and (message.after or not message.last):
            lister = KindLister(kube, message.cluster, resource.gvk, labels=_LABEL)
            try:
                page = lister.read_page(message.after, message.restarts)
            except PermanentError:
                pass
            else:
                if page is None:
                    return None
                if is_ordered(page, message.last):
                    listed = {ObjectKey.of(each).identity: each for each in page.items}
                    last = max(map(place_of, listed), default=message.last) if page.after else END
                    return _Section(listed, page.after, last)
        owned = list(islice(self._owners(message), _BATCH))
        return _Section(None, "", place_of(owned[-1][0]) if len(owned) == _BATCH else END)

    # Deleted objects ----------------------------------------------------------------------------

    def _read(self, kube: Kube, resource: Resource, key: Identity) -> Manifest | None:
        try:
            return kube.get(*key.at(resource.gvk.version))
        except MissingError:
            return None
        except PermanentError:
            # Without the permission to read it nothing is known of it.
            return {}

    def _held(self, cluster: str, profile: str) -> Mapping[Identity, Held]:
        kept = self._records.inventories.get(cluster, profile)
        return kept.value.held if kept else {}

    def _put_back(self, cluster: str, who: _Profile, keys: list[Identity]) -> None:
        """Have a profile applied that lost objects, unless a worker is applying it right now.

        A profile of mode OneTime is not applied again.
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
        """Return the profiles whose drift is corrected."""
        found = self._records.watches.of(message.cluster) if message.held else ()
        return {each.value.profile for each in found}

    # Orphans ------------------------------------------------------------------------------------

    def _find_orphans(
        self,
        kube: Kube,
        cluster: str,
        loose: Mapping[Identity, Manifest],
        noted: Mapping[Identity, Noted],
    ) -> Iterator[Identity]:
        """Yield the objects with our marks and no owner; a known orphan is not read again.

        In a cluster of another installation nothing is read: its orphans are not ours.
        """
        if any(map(_is_ours, loose.values())) and other(self._records.installations, kube):
            return
        for key, listed in loose.items():
            known = _is_known(noted.get(key), listed)
            if known or self._is_orphan(kube, cluster, key, listed):
                yield key

    def _is_orphan(self, kube: Kube, cluster: str, key: Identity, listed: Manifest) -> bool:
        """Return whether an object with our marks has no owner, before and after a read of it.

        An object is owned before it is applied, and removed before its ownership is released.
        """
        if not _is_ours(listed) or self._records.owners.get(cluster, key):
            return False
        there = kube.get(*key.at(GVK.of(listed).version))
        if there is None or _uid_of(there) != _uid_of(listed) or not _owner_of(there):
            return False
        ending = (there.get("metadata") or {}).get("deletionTimestamp")
        return not ending and self._records.owners.get(cluster, key) is None

    def _note(
        self,
        cluster: str,
        section: _Section,
        noted: Mapping[Identity, Noted],
        found: Mapping[Identity, Orphan],
    ) -> None:
        """Record the orphans and conflicts of a section, and delete those that are over."""
        for key, known in noted.items():
            # A kind that may not be listed shows no orphans.
            if key not in found and (section.listed is not None or known.finding.what == "foreign"):
                self._records.findings.delete(cluster, key)
        for key, orphan in found.items():
            former = noted.get(key)
            if not former or not former.lasts or not _is_same(former.finding, orphan):
                self._records.findings.put(cluster, key, orphan)

    def _make_orphan(self, what: Any, there: Manifest, profile: str = "") -> Orphan:
        now = self._records.clock.now()
        return Orphan(what, profile or _owner_of(there), _uid_of(there), GVK.of(there).version, now)


def _is_same(known: Orphan, found: Orphan) -> bool:
    return replace(known, since=found.since) == found


def _is_known(noted: Noted | None, listed: Manifest) -> bool:
    """Return whether an object was recorded as an orphan before."""
    ending = (listed.get("metadata") or {}).get("deletionTimestamp")
    return noted is not None and noted.finding.what == "stray" and not ending and _is_ours(listed)


def _take_until(rows: Iterator[tuple[Identity, Any]], last: str) -> Iterator[tuple[Identity, Any]]:
    return takewhile(lambda row: place_of(row[0]) <= last, rows)


def _is_ours(manifest: Manifest) -> bool:
    """Return whether we applied it: Sveltos itself writes the same marks."""
    ours = any(each.get("manager") == MANAGER for each in _managers(manifest))
    return ours and bool(_owner_of(manifest))


def _managers(manifest: Manifest) -> list[Manifest]:
    found = (manifest.get("metadata") or {}).get("managedFields") or []
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _is_another(key: Identity, owner: Owner, there: Manifest, held: _HeldBy) -> bool:
    """Return whether an object is not the one that was applied; False if its content is unknown."""
    if not there or (_is_marked_by(owner, there) and _was_applied(there)):
        return False
    known = held(owner.profile).get(key)
    return known is not None and known.uid not in ("", _uid_of(there))


def _profile_of(owner: Owner) -> _Profile:
    return owner.trigger, owner.source, owner.profile


def _is_marked_by(owner: Owner, there: Manifest) -> bool:
    return _owner_of(there) == owner.profile


def _was_applied(there: Manifest) -> bool:
    """Return whether we applied an object since it was created, by its own metadata.

    An object that a backup restored has no manager, or one from before its creation.
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


def _owner_of(manifest: Manifest) -> str:
    annotations = (manifest.get("metadata") or {}).get("annotations") or {}
    return str(annotations.get(OWNER) or "")


def _uid_of(manifest: Manifest) -> str:
    return str((manifest.get("metadata") or {}).get("uid") or "")
