"""Resync: list what a cluster really holds, correct what its events missed, and count it.

It runs at registration, on a schedule, when sources change, and after an outage. It never takes
an error, or one surprising answer, for an empty list.

A resync visits the kinds in use, in turns of a few seconds. Its progress is a record, and each
write depends on the one before: any worker that gets the message, also after a death, continues
it. A resync that is requested meanwhile follows; if sources have changed, it begins again.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection
from contextlib import suppress
from datetime import datetime

from msgspec.structs import replace

from bellhop.catalog.cache import Catalogs
from bellhop.catalog.catalog import Catalog
from bellhop.core.digest import digest
from bellhop.core.gvk import GVK
from bellhop.errors import (
    BellhopError,
    StaleError,
    TemporaryError,
    UnauthorizedError,
)
from bellhop.logs import Log
from bellhop.ports.kube import Access
from bellhop.ports.store import ABSENT
from bellhop.resync.cleanup import Cleanup
from bellhop.resync.cluster_facts import ClusterFacts, describe_skew
from bellhop.resync.hooks import Hooks
from bellhop.resync.observed_kinds import ObservedKinds
from bellhop.resync.progress import MOST_UNSEEN, ResyncSession, SupersededError
from bellhop.resync.scope import (
    affected_triggers,
    changed_sources,
    evaluated_sources,
    kinds_to_evaluate,
)
from bellhop.settings import Settings
from bellhop.state.cluster import Cluster, Health, add_tally
from bellhop.state.deployment import DeploymentStatus
from bellhop.state.event_recorder import Nobody, Note, write
from bellhop.state.messages import (
    Aggregate,
    Apply,
    CheckHealth,
    Instantiate,
    Publisher,
    ScanDrift,
    UpdateLabels,
)
from bellhop.state.messages import Resync as Message
from bellhop.state.records import Records
from bellhop.state.resync_progress import ResyncProgress
from bellhop.state.table import Stored

_QUICK = 4
"""Quick retries of a cluster that fails; after them the schedule retries it."""

_UNSETTLED = ("Provisioning", "Removing", "Failed")
"""Phases of a deployment that continues."""


class Resyncer:
    """Updates the observations of a cluster from its API server."""

    def __init__(
        self,
        records: Records,
        catalogs: Catalogs,
        access: Access,
        publisher: Publisher,
        settings: Settings,
        log: Log,
        hooks: Hooks,
    ) -> None:
        self._records = records
        self._catalogs = catalogs
        self._access = access
        self._publisher = publisher
        self._settings = settings
        self._log = log
        self._hooks = hooks
        self._kinds = ObservedKinds(records, publisher, settings, log, hooks.find_lost)
        self._facts = ClusterFacts(records, publisher, log)
        self._cleanup = Cleanup(records, catalogs, publisher, settings, hooks.retain)

    def handle(self, message: Message) -> None:
        """Resync a cluster for as long as a turn lasts; another message continues.

        Raises:
            TemporaryError: the cluster does not answer, and may soon.
        """
        try:
            self._resync(message)
        finally:
            self._hooks.end(message.cluster)

    def _resync(self, message: Message) -> None:
        catalog = self._catalogs.current()
        cluster = catalog.clusters.get(message.cluster)
        if cluster is None:
            return
        stored = self._records.walks.get(cluster.key)
        if message.walk and (stored is None or stored.value.id != message.walk):
            return
        health = self._records.health.get(cluster.key)
        try:
            session = self._open(message, cluster, catalog, stored, health.value)
            self._run(session, health.value)
        except SupersededError:
            self._log.info("Left a walk to another worker", cluster=cluster.key)
        except BellhopError as error:
            self._record_failure(cluster.key, health, error)

    # Turns --------------------------------------------------------------------------------------

    def _open(
        self,
        message: Message,
        cluster: Cluster,
        catalog: Catalog,
        stored: Stored[ResyncProgress] | None,
        health: Health,
    ) -> ResyncSession:
        """Continue the resync that is in progress, or begin one."""
        sources = digest(dict(catalog.judgement(cluster.key)))
        old = stored.value if stored else None
        full = message.full or health.swept_at is None
        begun = (uuid.uuid4().hex, sources, cluster.credentials)
        new = ResyncProgress(*begun, full=full, began_at=self._records.clock.now())
        if old and ((sources, cluster.credentials) != _basis(old) or full > old.full):
            full = full or old.full or len(old.untold) > MOST_UNSEEN
            # A full resync evaluates everything, so it need not know what was not published.
            new = replace(new, full=full, untold={} if full else old.untold)
            old = None
        kube = self._access.open(cluster.key, version=cluster.credentials)
        token = stored.token if stored else ABSENT
        progress, since = old or new, health.began_at
        session = ResyncSession(self._records, cluster, catalog, kube, progress, token, since=since)
        if old is None:
            session.write()
        elif not message.walk and not health.failures:
            # This may be a redelivery of the message; another resync does no harm.
            session.write(again="full" if message.full or old.again == "full" else "look")
        return session

    def _run(self, session: ResyncSession, health: Health) -> None:
        """Take steps until the resync or the turn ends."""
        begun = self._records.clock.now()
        due = kinds_to_evaluate(session.catalog, session.name, health, session.progress)
        if session.progress.kind is None and session.progress.step == "next":
            self._begin(session, health)
        while not self._step(session, health, due):
            if self._records.clock.now() - begun >= self._settings.turn:
                self._publisher.publish([Message(session.name, walk=session.progress.id)])
                return

    def _step(self, session: ResyncSession, health: Health, due: Collection[GVK]) -> bool:
        """Take one step; return whether the resync has ended."""
        progress = session.progress
        if progress.step == "forget":
            return self._finish(session, health)
        gvk = progress.kind
        if progress.step == "next":
            kinds = session.catalog.kept_in(session.name)
            gvk = next((each for each in kinds if gvk is None or each > gvk), None)
        if gvk is None:
            session.write(step="forget", last="")
            return False
        try:
            if progress.step == "next":
                self._kinds.begin(session, gvk, unseen=gvk in health.unseen)
            else:
                self._kinds.step(session, gvk, whole=gvk in due)
        except UnauthorizedError:
            raise
        except BellhopError as error:
            tried = gvk in health.unseen or health.failures >= _QUICK
            if isinstance(error, TemporaryError) and not tried:
                raise
            if len(progress.unseen) >= MOST_UNSEEN:
                # Too little of the cluster was listed to call it resynced.
                raise
            # A kind that cannot be listed does not prevent the others from being listed.
            session.write(
                step="next",
                kind=gvk,
                unseen=(*progress.unseen, gvk),
                problems=session.join_problems(str(error)),
            )
        return False

    def _record_failure(self, name: str, known: Stored[Health], error: BellhopError) -> None:
        """Record that a cluster cannot be listed; after a few quick retries leave it to the timer.

        Raises:
            BellhopError: the error itself, if the message is to be retried.
        """
        failures, refused = known.value.failures + 1, isinstance(error, UnauthorizedError)
        health = replace(known.value, state="Down", message=str(error), failures=failures)
        if refused:
            health = replace(health, state="Unauthorized")
        health = replace(health, since=self._since(known.value, health))
        with suppress(StaleError):
            # A worker that wrote it meanwhile has called the cluster later.
            self._records.health.put(name, health, expect=known.token)
        if refused or (isinstance(error, TemporaryError) and failures > _QUICK):
            self._log.warning("Left a cluster to the schedule", cluster=name, error=str(error))
            return
        raise error

    # The beginning ------------------------------------------------------------------------------

    def _begin(self, session: ResyncSession, health: Health) -> None:
        """Identify the cluster, and subscribe to its kinds before any of them is listed."""
        uid = self._facts.identify(session.kube, session.name, health.uid)
        self._facts.update_version(session)
        self._hooks.begin(session)
        done = self._hooks.subscribe(session, health.followed if uid == health.uid else ())
        session.write(
            uid=uid,
            problems=done.problems,
            mute=done.mute,
            held=done.owned,
            followed=done.followed,
        )

    # The end ------------------------------------------------------------------------------------

    def _finish(self, session: ResyncSession, health: Health) -> bool:
        """Delete what no source in force selects, instantiate triggers, and end the resync.

        If some trigger cannot say which source it names, nothing is deleted. Return whether the
        resync has ended.
        """
        catalog, name, progress = session.catalog, session.name, session.progress
        kinds = catalog.kinds_in(name)
        evaluated = evaluated_sources(catalog, name, health, progress)
        if kinds and set(kinds) <= set(progress.unseen):
            down = replace(health, state="Down", failures=health.failures + 1)
            self._end(session, health, replace(down, judgement=evaluated))
            return True
        changed = changed_sources(catalog, name, health, progress)
        if changed is None or changed:
            self._doubt(name, changed)
            if not catalog.problems_in(name) and not self._cleanup.run(session):
                return False
            triggers = affected_triggers(catalog, name, changed)
            self._publisher.publish(Instantiate(trigger, name) for trigger in triggers)
        self._apply_again(name, health)
        progress = session.progress
        self._publisher.publish([ScanDrift(name, full=progress.full, held=progress.held)])
        first = health.swept_at is None
        now, counted = self._records.clock.now(), health.walk == progress.id
        missed = 0 if counted or first or progress.full else progress.missed
        tallies = add_tally(health.tallies, now, 0 if counted else progress.found, missed)
        self._end(
            session,
            health,
            Health(
                state="Healthy",
                swept_at=now,
                seen=sum(each.seen for each in tallies),
                missed=sum(each.missed for each in tallies),
                judgement=evaluated,
                tallies=tallies,
                began_at=progress.began_at,
            ),
        )
        if missed:
            detail = f"{missed} of {progress.found} objects that a resync read had no event"
            note = Note("missed", detail, context={"objects": missed})
            write(self._records, Nobody(), name, "", note)
        return True

    def _doubt(self, cluster: str, sources: set[str] | None) -> None:
        """Record, before matches end, that some sources, or all, are to be evaluated again.

        Raises:
            SupersededError: another worker has ended a resync meanwhile.
        """
        try:
            self._records.health.doubt(cluster, sources)
        except StaleError as error:
            raise SupersededError(cluster) from error

    def _since(self, old: Health, new: Health) -> datetime:
        """Return since when a cluster has its state, with or without a message."""
        same = (old.state, bool(old.message)) == (new.state, bool(new.message))
        return old.since if same and old.since else self._records.clock.now()

    def _end(self, session: ResyncSession, old: Health, health: Health) -> None:
        """Write the cluster's health, publish what waits for it, and begin a requested resync."""
        progress = session.progress
        problems = (*progress.problems, describe_skew(session.kube.skew))
        health = replace(
            health,
            message="; ".join(filter(None, problems)),
            uid=progress.uid,
            walk=progress.id,
            unseen=progress.unseen,
            mute=progress.mute,
            followed=progress.followed,
            unserved=progress.unserved,
            ends_at=None if session.cluster.managed else session.kube.ends_at,
        )
        health = replace(health, since=self._since(old, health))
        token = self._records.health.token(session.name)
        # A worker that ended the resync before this write has changed the progress.
        session.write()
        try:
            self._records.health.put(session.name, health, expect=token)
        except StaleError as error:
            raise SupersededError(session.name) from error
        catalog = session.catalog
        self._publisher.publish(
            Aggregate(session.name, each)
            for each in catalog.sources_in(session.name)
            if catalog.sources[each].aggregation
        )
        if catalog.classifiers or session.cluster.given:
            self._publisher.publish([UpdateLabels(session.name)])
        if catalog.checks:
            self._publisher.publish([CheckHealth(session.name)])
        if progress.again:
            self._publisher.publish([Message(session.name, full=progress.again == "full")])
        session.end()

    def _apply_again(self, cluster: str, before: Health) -> None:
        """Publish the profiles whose deployment in the cluster may end differently now.

        Some were rendered with objects of which no event comes. Some failed while the cluster did
        not answer or refused our credentials. Some are overdue: their message may have been lost.
        """
        failed, denied = before.state != "Healthy", before.state == "Unauthorized"
        self._publisher.publish(
            [
                Apply(status.trigger, status.source, status.profile, cluster)
                for status in self._records.outcomes.of(cluster)
                if status.reads
                or (failed and status.retry_at)
                or (denied and status.reason == UnauthorizedError.code)
                or self._is_overdue(status)
            ]
        )

    def _is_overdue(self, status: DeploymentStatus) -> bool:
        late = self._records.clock.now() - self._settings.visibility
        if status.retry_at:
            return status.retry_at < late
        return status.phase in _UNSETTLED and status.at < late


def _basis(progress: ResyncProgress) -> tuple[str, str]:
    return progress.judged, progress.credentials
