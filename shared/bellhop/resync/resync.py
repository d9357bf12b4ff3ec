"""Sweep: what a cluster really holds, asked through its API server.

At registration, on a schedule, when sources change, and to confirm a hint. It heals what the
push missed and counts it. It never takes an error, or one surprising answer, for emptiness.

A sweep is a walk through the kinds that count, in turns. How far it has come is a record, which
every step writes on condition of the one before, so that whoever gets its message, be it after a
death, goes on where it is. A sweep that is asked for meanwhile follows; one that has to judge by
other sources begins the walk anew.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from typing import TypeVar

from msgspec.structs import replace

from bellhop.catalog.cache import Catalogs
from bellhop.catalog.catalog import Catalog
from bellhop.catalog.records.manifests import UPGRADED_FROM
from bellhop.clusters.circuit_breaker import Circuits
from bellhop.clusters.installation_mark import marked, other
from bellhop.core.digest import digest
from bellhop.core.gvk import CLOUD_EVENT, GVK, ObjectKey, Resource
from bellhop.declarations.cluster_selection import SetSelector
from bellhop.declarations.deletion_guard import RemovalGuard
from bellhop.declarations.fan_out import ChangeFanOut
from bellhop.deploy.dependencies import TemplateDependencies
from bellhop.deploy.records.dependencies import Kind
from bellhop.deploy.watches import DriftWatches
from bellhop.errors import (
    AwayError,
    BellhopError,
    InvalidError,
    PermanentError,
    StaleError,
    TemporaryError,
    UnauthorizedError,
    UnreachableError,
)
from bellhop.events.access_reviews import AccessReviewer
from bellhop.events.deletion_guard import DeletionGuard
from bellhop.extras.classifiers.classifier import LabelClassifier
from bellhop.extras.nats.access import let_subscribe
from bellhop.ingest.read_back import Hints
from bellhop.ingest.service_accounts import learn
from bellhop.logs import Log
from bellhop.ports.access import Access
from bellhop.ports.kube import Kube
from bellhop.ports.store import ABSENT
from bellhop.registration.forwarder_manifests import (
    concealed,
    direct,
    forwarder_role,
    is_audited,
    is_callable,
    is_direct,
    webhook_configuration,
)
from bellhop.rendering.leave_policy import departing
from bellhop.resync.observed_kinds import ObservedKinds
from bellhop.resync.owned_kinds import OwnedKinds as Holdings
from bellhop.resync.progress import MOST_UNSEEN, OvertakenError, ResyncSession, problems
from bellhop.settings import Settings
from bellhop.state.delays import RENEWAL_PAUSE, renewal_timer, spread, sweep_timer
from bellhop.state.event_recorder import Nobody, Note, write
from bellhop.state.management_cluster import MANAGEMENT
from bellhop.state.messages import (
    Aggregate,
    Apply,
    CheckHealth,
    CollectGarbage,
    Envelope,
    Evaluate,
    Instantiate,
    Probe,
    Publisher,
    PurgeCluster,
    ReadBack,
    RefreshTokenKeys,
    Renew,
    ReviewAccess,
    ScanDrift,
    UpdateLabels,
)
from bellhop.state.messages import Resync as Message
from bellhop.state.miss_rate import tallied
from bellhop.state.record import (
    Cluster,
    DeploymentStatus,
    Health,
    Match,
    ResyncProgress,
    WatchedKind,
)
from bellhop.state.records import Records
from bellhop.state.table import Stored

_QUICK = 4
"""Tries that follow each other quickly; then a cluster that is away is left to the schedule."""

_SKEW = timedelta(minutes=2)
"""How far clocks may be apart before it is said."""

_REGISTERING = timedelta(minutes=1)
"""How long a registration that has begun is taken to be at work still."""

_UNCALLABLE = (
    "its webhook has a path of an earlier version, at which no API server calls a Service; it is"
    " being renewed, and until then only resyncs find changes"
)

_TOKENLESS = (
    "the API server's token is missing, and only resyncs find events;"
    " `bellhop rotate` gives it another"
)

_TAKEN = (
    "it was taken over by {taken}, and only resyncs find events: deregister it here, or register it"
    " again with --take-over"
)

_UNSETTLED = ("Provisioning", "Removing", "Failed")
"""Phases of a deployment that goes on."""

_END = "\U0010ffff"


T = TypeVar("T")
_Calls = ReadBack | ReviewAccess | Message | ScanDrift | RefreshTokenKeys


class Resyncer:
    """Brings the observations of a cluster up to date."""

    def __init__(
        self,
        records: Records,
        catalogs: Catalogs,
        access: Access,
        publisher: Publisher,
        settings: Settings,
        log: Log,
    ) -> None:
        self._records = records
        self._catalogs = catalogs
        self._access = access
        self._publisher = publisher
        self._settings = settings
        self._log = log
        self._circuits = Circuits(records, access, publisher, settings, log)
        self._permitting = AccessReviewer(records, catalogs, access, publisher)
        self._hints = Hints(records, catalogs, access, publisher)
        self._guard = DeletionGuard(records, catalogs, publisher, settings, log)
        self._look = ObservedKinds(records, publisher, settings, log)
        follow = ChangeFanOut(records, publisher, settings)
        removals = RemovalGuard(records, settings)
        self._choosing = SetSelector(records, catalogs, follow, removals)
        self._classifying = LabelClassifier(records, catalogs, follow, self._choosing, removals)
        self._holdings = Holdings(records, access, publisher, settings, log)
        self._watching = DriftWatches(records, publisher)
        self._elsewhere = TemplateDependencies(records, publisher, settings)

    def handle(self, message: Envelope) -> None:
        """Do one message's work.

        Raises:
            InvalidError: the message is another stage's.
            TemporaryError: the cluster does not answer, or does not show a change yet.
        """
        match message:
            case ReadBack() | ReviewAccess() | Message() | ScanDrift() | RefreshTokenKeys():
                self._call(message)
            case Probe():
                self._circuits.probe(message)
                self._choosing.heed(message.cluster)
            case UpdateLabels():
                self._classifying.settle(message.cluster)
            case PurgeCluster():
                # Work that was under way when the cluster was forgotten may have left traces.
                if self._records.clusters.get(message.cluster) is None:
                    self._records.forget_traces(message.cluster)
            case CollectGarbage():
                self._keep_house()
            case _:
                raise InvalidError(f"cannot {message.do}: it is not work of the `sweep` stage")

    def _call(self, message: _Calls) -> None:
        """Do what calls a cluster, where it answers; once it does again, it is swept.

        Raises:
            TemporaryError: it answers, and not to this.
        """
        try:
            self._circuits.refuse_away(message.cluster)
            try:
                self._ask(message)
            except UnreachableError:
                self._circuits.doubt(message.cluster)
                raise
            except UnauthorizedError as error:
                self._circuits.note_refusal(message.cluster, error)
                raise
        except AwayError:
            if isinstance(message, Message):
                # Somebody wants to know now.
                self._publisher.publish([Probe(message.cluster)])
            elif isinstance(message, ReviewAccess):
                self._permitting.owe(message)

    def _ask(self, message: _Calls) -> None:
        match message:
            case ReadBack():
                self._hints.confirm(message)
            case ReviewAccess():
                self._permitting.handle(message)
            case Message():
                try:
                    self._sweep(message)
                finally:
                    self._choosing.heed(message.cluster)
            case ScanDrift():
                self._holdings.handle(message)
            case RefreshTokenKeys():
                kept = self._records.clusters.get(message.cluster)
                if kept:
                    kube = self._access.open(message.cluster, version=kept.value.credentials)
                    learn(self._records, kube, kept.value, known=timedelta(0))

    def _keep_house(self) -> None:
        """Collect what nobody names, and set the timers of clusters that have none set."""
        now = self._records.clock.now()
        if not self._records.pulses.doubts(now):
            self._records.collect(now)
        for cluster in self._records.clusters.all():
            self._keep_timer(sweep_timer(cluster.key), Message(cluster.key))
            if cluster.forwarder or cluster.abandoned:
                self._keep_timer(renewal_timer(cluster.key), Renew(cluster.key))

    def _keep_timer(self, name: str, message: Envelope) -> None:
        if self._records.timers.get(name) is None:
            due = self._records.clock.now() + spread(name, self._settings.sweep_interval)
            self._records.timers.set(name, due, message.message().body)

    # Turns --------------------------------------------------------------------------------------

    def _sweep(self, message: Message) -> None:
        catalog = self._catalogs.current()
        cluster = catalog.clusters.get(message.cluster)
        if cluster is None:
            return
        kept = self._records.walks.get(cluster.key)
        if message.walk and (kept is None or kept.value.id != message.walk):
            return
        met = self._records.health.get(cluster.key)
        try:
            course = self._take_up(message, cluster, catalog, kept, met.value)
            self._go_on(course, met.value)
        except OvertakenError:
            self._log.info("Left a walk to another worker", cluster=cluster.key)
        except BellhopError as error:
            self._down(cluster.key, met, error)

    def _take_up(
        self,
        message: Message,
        cluster: Cluster,
        catalog: Catalog,
        kept: Stored[ResyncProgress] | None,
        health: Health,
    ) -> ResyncSession:
        """Take up the walk that is under way, or begin one."""
        judged = digest(dict(catalog.judgement(cluster.key)))
        old = kept.value if kept else None
        full = message.full or health.swept_at is None
        anew = ResyncProgress(uuid.uuid4().hex, judged, cluster.credentials, full=full)
        if old and ((judged, cluster.credentials) != _by(old) or full > old.full):
            full = full or old.full or len(old.untold) > MOST_UNSEEN
            # Who evaluates everything need not know what was not told.
            anew = replace(anew, full=full, untold={} if full else old.untold)
            old = None
        kube = self._access.open(cluster.key, version=cluster.credentials)
        token = kept.token if kept else ABSENT
        course = ResyncSession(self._records, cluster, catalog, kube, old or anew, token)
        if old is None:
            course.keep()
        elif not message.walk and not health.failures:
            # It may be this very message that comes again; to look once more does no harm.
            course.keep(again="full" if message.full or old.again == "full" else "look")
        return course

    def _go_on(self, course: ResyncSession, health: Health) -> None:
        """Go on with a walk until it ends, or for as long as a turn lasts."""
        begun = self._records.clock.now()
        due = _due(course.catalog, course.name, health, course.walk)
        if course.walk.kind is None and course.walk.step == "next":
            self._meet(course, health)
        while not self._step(course, health, due):
            if self._records.clock.now() - begun >= self._settings.turn:
                self._publisher.publish([Message(course.name, walk=course.walk.id)])
                return

    def _step(self, course: ResyncSession, health: Health, due: Collection[GVK]) -> bool:
        """Take one step; say whether the walk has ended."""
        walk = course.walk
        if walk.step == "forget":
            return self._forget(course, health)
        gvk = walk.kind
        if walk.step == "next":
            kinds = course.catalog.kept_in(course.name)
            gvk = next((each for each in kinds if walk.kind is None or each > walk.kind), None)
        if gvk is None:
            course.keep(step="forget", last="")
            return False
        try:
            if walk.step == "next":
                self._look.begin(course, gvk, unseen=gvk in health.unseen)
            else:
                self._look.step(course, gvk, whole=gvk in due)
        except UnauthorizedError:
            raise
        except BellhopError as error:
            tried = gvk in health.unseen or health.failures >= _QUICK
            if isinstance(error, TemporaryError) and not tried:
                raise
            if len(walk.unseen) >= MOST_UNSEEN:
                # Of a cluster like this one nobody can say that it was swept.
                raise
            # A kind that may not be listed, or is away, keeps no other from being looked at.
            course.keep(
                step="next",
                kind=gvk,
                unseen=(*walk.unseen, gvk),
                problems=course.problem(str(error)),
            )
        return False

    def _down(self, name: str, met: Stored[Health], error: BellhopError) -> None:
        """Note that a cluster cannot be looked at; soon after it began, try again.

        Raises:
            BellhopError: as it was given.
        """
        failures, refused = met.value.failures + 1, isinstance(error, UnauthorizedError)
        health = replace(met.value, state="Down", message=str(error), failures=failures)
        if refused:
            health = replace(health, state="Unauthorized")
        health = replace(health, since=self._since(met.value, health))
        with suppress(StaleError):
            # Who wrote it meanwhile has met the cluster later.
            self._records.health.put(name, health, expect=met.token)
        if refused or (isinstance(error, TemporaryError) and failures > _QUICK):
            self._log.warning("Left a cluster to the schedule", cluster=name, error=str(error))
            return
        raise error

    # The beginning ------------------------------------------------------------------------------

    def _meet(self, course: ResyncSession, health: Health) -> None:
        """See which cluster this is, and have it ring for the kinds that count."""
        uid = self._identify(course.kube, course.name, health.uid)
        self._renew_version(course)
        self._permitting.ask_again(course.catalog, course.name)
        with suppress(TemporaryError):
            # There are other ways for a sender to prove itself, and the next sweep asks again.
            learn(self._records, course.kube, course.cluster)
        lacking: list[str] = []
        serves, read = course.kube.resource, self._read_kinds(course)
        asked = _served(serves, course.catalog.kinds_in(course.name), lacking)
        watched, charts = self._watching.kinds(course.name)
        held = _served(serves, watched, lacking)
        followed = _served(lambda kind: course.kube.served(*kind), read, lacking)
        # Ringing is set up before looking, so that nothing falls between the two.
        mute = [] if lacking else self._wire(course, asked, held, followed, charts)
        heard = health.followed if uid == health.uid and not mute else ()
        if course.name == MANAGEMENT and not lacking and not mute:
            heard = self._follow(course, read, tuple(each.gvk for each in followed), heard)
        said = problems([*lacking, *mute])
        course.keep(uid=uid, problems=said, mute=bool(mute), held=bool(held), followed=heard)

    def _read_kinds(self, course: ResyncSession) -> list[Kind]:
        return self._elsewhere.kinds() if course.name == MANAGEMENT else []

    def _follow(
        self,
        course: ResyncSession,
        read: list[Kind],
        rings: tuple[GVK, ...],
        heard: tuple[GVK, ...],
    ) -> tuple[GVK, ...]:
        """Have those read again who read a kind that rings from now on; return the kinds that do.

        Who noted a kind that was about to ring no more may have found that it did; and who knows
        of a later catalog may have written the gate as it was.
        """
        gate = self._records.gates.known(course.name)
        let_in = {each.gvk for each in gate.value.followed} if gate else set()
        if set(self._read_kinds(course)) - set(read) or set(rings) != let_in:
            self._publisher.publish([Message(course.name)])
        if not course.cluster.forwarder:
            return ()
        self._elsewhere.tell(each[::2] for each in rings if each not in heard)
        return rings

    def _identify(self, kube: Kube, cluster: str, known: str) -> str:
        """Read which cluster this is; in one made anew under an old name we own nothing yet.

        It is also the one question that is put to a cluster with no source in force.
        """
        try:
            manifest = kube.get(GVK("", "v1", "Namespace"), "", "kube-system")
        except UnauthorizedError:
            raise
        except PermanentError:
            # Credentials need not reach so far: the cluster is taken for what it was.
            return known
        uid = str(((manifest or {}).get("metadata") or {}).get("uid") or known)
        if known and uid != known:
            self._log.warning("Met another cluster under an old name", cluster=cluster)
            self._records.doubt_holdings(cluster)
            self._publisher.publish(
                [
                    Apply(each.trigger, each.source, each.profile, cluster)
                    for each in self._records.outcomes.of(cluster)
                ]
            )
        return uid

    def _renew_version(self, course: ResyncSession) -> None:
        """Note the version that the API server has by now: templates read it.

        What follows from it is left to who finishes changes that were begun and abandoned, and is
        told what was there before: a fleet that is upgraded asks for what it has, once.
        """
        try:
            version = course.kube.version()
        except PermanentError:
            return
        kept = self._records.clusters.get(course.name)
        if version == "unknown" or kept is None or kept.value.kubernetes == version:
            return
        old, cluster = kept.value.kubernetes, replace(kept.value, kubernetes=version)
        begun = uuid.uuid4().hex
        change = {"keys": [["Cluster", cluster.namespace, cluster.name]], UPGRADED_FROM: old}
        self._records.pending.put(begun, change)
        try:
            self._records.clusters.put(cluster, expect=kept.token)
        except StaleError:
            # Whoever changed it meanwhile knows no less, or the next sweep sees it.
            self._records.pending.delete(begun)

    def _wire(
        self,
        course: ResyncSession,
        asked: list[Resource],
        held: list[Resource],
        followed: list[Resource],
        charts: Collection[GVK],
    ) -> list[str]:
        """Have the API server ring for these kinds, and the gate let them in; say what cannot.

        What sources ask for rings, and what templates read, whoever holds it; of the rest what is
        ours does.
        """
        cluster, catalog = course.cluster, course.catalog
        own, listeners = catalog.own_kinds_in(course.name), catalog.listeners_in(course.name)
        kinds = [WatchedKind(each.gvk, each.plural, each.gvk in own) for each in asked]
        keeps, reads = (
            [WatchedKind(each.gvk, each.plural) for each in some] for some in (held, followed)
        )
        gate = cluster.gate(kinds, catalog.revision, listeners, keeps, reads)
        self._records.gates.put(cluster.key, gate)
        if not cluster.forwarder or is_audited(cluster.forwarder):
            return []
        forwarder = cluster.forwarder
        if is_direct(forwarder):
            token = self._records.callers.get(cluster.key)
            if not token:
                return [] if self._is_beginning(cluster) else [_TOKENLESS]
            forwarder = direct(forwarder, token)
        if taken := other(self._records.installations, course.kube):
            # Two that write one webhook configuration in turn would each lose events.
            return [_TAKEN.format(taken=taken)]
        if not is_callable(forwarder):
            self._hasten_renewal(cluster.key)
            return [_UNCALLABLE]
        if listeners and not is_direct(forwarder):
            let_subscribe(course.kube, course.name, self._log)
        ringing = [*asked, *_beside(asked, followed)]
        rest = _beside(ringing, held)
        try:
            if not is_direct(forwarder):
                course.kube.apply(forwarder_role([*ringing, *rest]))
            of_charts = [each for each in rest if each.gvk in charts]
            rings = webhook_configuration(ringing, forwarder, rest, of_charts)
            course.kube.apply(marked(rings, self._records.installations.get()))
        except UnauthorizedError:
            raise
        except PermanentError as error:
            # Sweeps go on without the push; the cluster's health says what is missing.
            said = concealed(str(error), forwarder)
            self._log.warning(
                "Cannot install the webhook configuration", cluster=course.name, error=said
            )
            what = "its webhook configuration cannot be installed, and only resyncs find events"
            return [f"{what}: {said}"]
        return []

    def _is_beginning(self, cluster: Cluster) -> bool:
        """Say whether a registration is under way, which stores the token after the record."""
        begun = cluster.forwarder.get("begun")
        if not begun:
            return False
        return abs(self._records.clock.now() - datetime.fromisoformat(begun)) < _REGISTERING

    def _hasten_renewal(self, cluster: str) -> None:
        """Have a cluster renewed now, unless it is tried already."""
        name, now = renewal_timer(cluster), self._records.clock.now()
        timer = self._records.timers.get(name)
        if timer is None or timer.value.at > now + RENEWAL_PAUSE:
            self._records.timers.set(name, now, Renew(cluster).message().body)

    # The end ------------------------------------------------------------------------------------

    def _forget(self, course: ResyncSession, health: Health) -> bool:
        """Let go of what no source in force asks for, ask triggers, and end the walk.

        Of some sources, or of all that there are. Where a trigger cannot say which source it
        means, nothing is let go.
        """
        kinds = course.catalog.kinds_in(course.name)
        judgement = _judgement(course.catalog, course.name, health, course.walk)
        if kinds and set(kinds) <= set(course.walk.unseen):
            down = replace(health, state="Down", failures=health.failures + 1)
            self._end(course, health, replace(down, judgement=judgement))
            return True
        touched = _touched(course.catalog, course.name, health, course.walk)
        if touched is None or touched:
            self._doubt(course.name, touched)
            if not course.catalog.problems_in(course.name) and not self._let_go(course):
                return False
            names = _triggers(course.catalog, course.name, touched)
            self._publisher.publish(Instantiate(name, course.name) for name in names)
        self._try_again(course.name, health)
        self._publisher.publish(
            [ScanDrift(course.name, full=course.walk.full, held=course.walk.held)]
        )
        first = health.swept_at is None
        now, counted = self._records.clock.now(), health.walk == course.walk.id
        missed = 0 if counted or first or course.walk.full else course.walk.missed
        tallies = tallied(health.tallies, now, 0 if counted else course.walk.found, missed)
        self._end(
            course,
            health,
            Health(
                state="Healthy",
                swept_at=now,
                seen=sum(each.seen for each in tallies),
                missed=sum(each.missed for each in tallies),
                judgement=judgement,
                tallies=tallies,
            ),
        )
        if missed:
            detail = f"{missed} of {course.walk.found} objects that a resync read had no event"
            note = Note("missed", detail, context={"objects": missed})
            write(self._records, Nobody(), course.name, "", note)
        return True

    def _doubt(self, cluster: str, touched: set[str] | None) -> None:
        """Note, before matches end, that sources are to be evaluated again: some, or all.

        Raises:
            OvertakenError: another worker has ended a walk meanwhile.
        """
        try:
            self._records.health.doubt(cluster, touched)
        except StaleError as error:
            raise OvertakenError(cluster) from error

    def _since(self, old: Health, new: Health) -> datetime:
        """Return since when a cluster is in its state, and whether anything was wrong there."""
        same = (old.state, bool(old.message)) == (new.state, bool(new.message))
        return old.since if same and old.since else self._records.clock.now()

    def _end(self, course: ResyncSession, old: Health, health: Health) -> None:
        """Write how the cluster is, and do what was asked for meanwhile."""
        walk = course.walk
        health = replace(
            health,
            message="; ".join(filter(None, (*walk.problems, _clocks(course.kube.skew)))),
            uid=walk.uid,
            walk=walk.id,
            unseen=walk.unseen,
            mute=walk.mute,
            followed=walk.followed,
            unserved=walk.unserved,
            ends_at=None if course.cluster.managed else course.kube.ends_at,
        )
        health = replace(health, since=self._since(old, health))
        token = self._records.health.token(course.name)
        # Whoever ends the walk after this has written something else by then.
        course.keep()
        try:
            self._records.health.put(course.name, health, expect=token)
        except StaleError as error:
            raise OvertakenError(course.name) from error
        catalog = course.catalog
        self._publisher.publish(
            Aggregate(course.name, each)
            for each in catalog.sources_in(course.name)
            if catalog.sources[each].aggregation
        )
        if catalog.classifiers or course.cluster.given:
            self._publisher.publish([UpdateLabels(course.name)])
        if catalog.checks:
            self._publisher.publish([CheckHealth(course.name)])
        if walk.again:
            self._publisher.publish([Message(course.name, full=walk.again == "full")])
        course.end()

    def _let_go(self, course: ResyncSession) -> bool:
        """Delete what is kept of kinds and matches that count no more; say whether that was all."""
        begun, catalog = self._records.clock.now(), course.catalog
        stays = self._is_held(course.name, catalog)
        if not stays:
            self._forget_kinds(course.name, catalog)
        for match in self._records.matches.of(course.name, after=course.walk.last):
            sources = {each.name for each in catalog.sources_of(course.name, match.key)}
            known = self._records.observations.token(course.name, match.key)
            counts = match.source in sources
            if not counts and stays:
                continue
            if not counts or not known:
                self._end_match(catalog, match)
            if self._records.clock.now() - begun > self._settings.turn:
                # Only what was looked at is behind us: time may have passed before the first.
                course.keep(last=f"{match.source}/{match.key}")
                return False
        if not stays:
            self._forget_reports(course.name, catalog)
        return True

    def _is_held(self, cluster: str, catalog: Catalog) -> bool:
        """Say whether profiles stay that were made of a cluster's objects and are not declared.

        Their matches stay, too: else a change that is taken back would find nothing that matches.
        """
        return any(
            departing(catalog, head)
            for each in self._records.removals.all()
            if each.value.trigger
            for head in self._records.profiles.heads(each.value.trigger, cluster)
        )

    def _forget_reports(self, cluster: str, catalog: Catalog) -> None:
        """Delete what is known of the reports of sources that count no more."""
        for selection in self._records.selections.heads(cluster):
            if selection.source not in catalog.sources_in(cluster) or (
                not catalog.sources[selection.source].aggregation
            ):
                self._records.selections.delete(cluster, selection.source)
        for hold in list(self._records.holds.all(cluster)):
            if hold.source not in catalog.sources_in(cluster):
                self._records.holds.forget(cluster, hold.source)

    def _end_match(self, catalog: Catalog, match: Match) -> None:
        """End a match, or hold it; where rules have changed meanwhile, have it judged by those."""
        if not self._is_retained(catalog, match):
            self._records.matches.delete(match.cluster, match.source, match.key)
        if self._catalogs.current().revision != catalog.revision:
            self._publisher.publish([Evaluate(match.cluster, str(match.key))])

    def _is_retained(self, catalog: Catalog, match: Match) -> bool:
        """Say whether a match stays, since too much ended of a source that is in force still."""
        there = match.source in catalog.sources_in(match.cluster)
        return there and self._guard.retain(match, "declaration")

    def _end_matches(self, catalog: Catalog, cluster: str, key: ObjectKey) -> None:
        """End an object's matches, or hold them as it is known, before it is forgotten.

        After that it is news again to whoever finds it, should its source be mended meanwhile.
        """
        trail = self._records.trails.get(cluster, key).value
        for source in filter(trail.may_name, catalog.sources_in(cluster)):
            kept = self._records.matches.get(cluster, source, key)
            if kept:
                self._end_match(catalog, kept.value)

    def _forget_kinds(self, cluster: str, catalog: Catalog) -> None:
        """Delete the observations of kinds that count no more, without reading the others.

        Of CloudEvents those go that were kept for a source that takes them no more.
        """
        kinds = catalog.kinds_in(cluster)
        listeners = {each.source for each in catalog.listeners_in(cluster)}
        after = ""
        while True:
            head = next(self._records.observations.heads(cluster, after=after), None)
            if head is None:
                return
            if head.key.gvk == CLOUD_EVENT and head.key.namespace in listeners:
                after = "/".join((*CLOUD_EVENT, head.key.namespace, _END))
            elif head.key.gvk in kinds:
                after = "/".join((*head.key.gvk, _END))
            else:
                self._end_matches(catalog, cluster, head.key)
                self._records.observations.delete(cluster, head.key)
                self._records.trails.end(cluster, head.key)
                after = str(head.key)

    def _try_again(self, cluster: str, before: Health) -> None:
        """Publish what was rendered with objects of which nobody tells when they change.

        And what failed in this cluster, which may go better where it has not answered before, or
        has not accepted our credentials. And what should have gone on before now: its message may
        have been lost.
        """
        failed, denied = before.state != "Healthy", before.state == "Unauthorized"
        self._publisher.publish(
            [
                Apply(outcome.trigger, outcome.source, outcome.profile, cluster)
                for outcome in self._records.outcomes.of(cluster)
                if outcome.reads
                or (failed and outcome.retry_at)
                or (denied and outcome.reason == UnauthorizedError.code)
                or self._is_overdue(outcome)
            ]
        )

    def _is_overdue(self, outcome: DeploymentStatus) -> bool:
        """Say whether a deployment should have gone on, or been tried again, some time ago."""
        late = self._records.clock.now() - self._settings.visibility
        if outcome.retry_at:
            return outcome.retry_at < late
        return outcome.phase in _UNSETTLED and outcome.at < late


def _served(
    serves: Callable[[T], Resource | None], kinds: Iterable[T], lacking: list[str]
) -> list[Resource]:
    """Return the resources of kinds that are served; those that are away now are `lacking`."""
    found = []
    for kind in kinds:
        try:
            resource = serves(kind)
        except TemporaryError as error:
            # An API that is away for a while is not one that is gone: leave all as it is.
            lacking.append(str(error))
            continue
        if resource is not None:
            found.append(resource)
    return found


def _clocks(skew: timedelta | None) -> str:
    """Say that a cluster's clock and ours differ, in a sentence; empty if they agree."""
    if skew is None or abs(skew) < _SKEW:
        return ""
    minutes = round(abs(skew) / timedelta(minutes=1))
    where = "ahead of" if skew > timedelta(0) else "behind"
    return (
        f"its clock is {minutes} minutes {where} ours; resyncs and events go on, but times are off"
        " and tokens may end too early: set the one that is wrong"
    )


def _beside(known: Iterable[Resource], more: Iterable[Resource]) -> list[Resource]:
    """Return the resources of kinds that are not among the known, in whatever version."""
    kinds = {each.gvk[::2] for each in known}
    return [each for each in more if each.gvk[::2] not in kinds]


def _by(walk: ResyncProgress) -> tuple[str, str]:
    return walk.judged, walk.credentials


# What was judged by which source ----------------------------------------------------------------


def _due(catalog: Catalog, cluster: str, health: Health, walk: ResyncProgress) -> set[GVK]:
    """Return the kinds of which every object has to be evaluated.

    What the sources were when all was evaluated last says more than what was asked for: a message
    may have been given up while the cluster was away.
    """
    return {
        gvk
        for source, mark in catalog.judgement(cluster).items()
        for gvk in catalog.sources[source].kinds
        if walk.full or not _is_judged(health.judgement, source, str(gvk), mark)
    }


def _is_judged(judgement: Mapping[str, str], source: str, kind: str, mark: str) -> bool:
    return mark in (judgement.get(source), judgement.get(f"{source} {kind}"))


def _touched(
    catalog: Catalog, cluster: str, health: Health, walk: ResyncProgress
) -> set[str] | None:
    """Return the sources of which something new is known; None says that all are to be asked."""
    judged = catalog.judgement(cluster)
    left = {each.partition(" ")[0] for each in health.judgement} - set(judged)
    if walk.full or left:
        return None
    return {
        source
        for source, mark in judged.items()
        # The name alone stands for the source itself: it may have let go of a kind.
        for kind in ("", *map(str, set(catalog.sources[source].kinds) - set(walk.unseen)))
        if not _is_judged(health.judgement, source, kind, mark)
    }


def _judgement(
    catalog: Catalog, cluster: str, health: Health, walk: ResyncProgress
) -> dict[str, str]:
    """Return by which sources all objects are evaluated now, as `Health` has it.

    A kind that could not be looked at is evaluated as it was, unless something new was written.
    """
    found: dict[str, str] = {}
    for source, mark in catalog.judgement(cluster).items():
        kinds = catalog.sources[source].kinds
        lost = {
            gvk
            for gvk in kinds & {*walk.unseen}
            if walk.full
            or str(gvk) in walk.untold
            or not _is_judged(health.judgement, source, str(gvk), mark)
        }
        if lost:
            found |= {f"{source} {kind}": mark for kind in ("", *map(str, kinds - lost))}
        else:
            found[source] = mark
    return found


def _triggers(catalog: Catalog, cluster: str, sources: set[str] | None) -> list[str]:
    if sources is None:
        return sorted(catalog.triggers)
    return sorted({name for each in sources for name in catalog.triggers_on(cluster, each)})
