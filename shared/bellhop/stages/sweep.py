"""Sweep: what a cluster really holds, asked through its API server.

At registration, on a schedule, when sources change, and to confirm a hint. It heals what the
push missed and counts it. It never takes an error, or one surprising answer, for emptiness.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from bellhop.engine.catalog import Catalog
from bellhop.engine.observe import bury, observe
from bellhop.engine.pacing import spread, sweep_timer
from bellhop.engine.wiring import concealed, forwarder_role, webhook_configuration
from bellhop.errors import BellhopError, InvalidError, PermanentError, TemporaryError
from bellhop.logs import Log
from bellhop.messages import Apply, Confirm, Envelope, Evaluate, Instantiate, Keep, Publisher, Tidy
from bellhop.messages import Sweep as Message
from bellhop.model.gvk import GVK, ObjectKey, Resource
from bellhop.model.record import Cluster, Health, Observation, WatchedKind
from bellhop.ports.access import Access
from bellhop.ports.kube import Kube
from bellhop.records import Records
from bellhop.records.catalogs import Catalogs
from bellhop.settings import Settings
from bellhop.stages.ledger import Nobody, Note, write

_SETTLED = timedelta(seconds=10)
"""How long after its hint a change that cannot be seen is taken not to have happened."""

_SKEW = timedelta(minutes=2)
"""How far clocks may be apart before it is said."""

_SOON = timedelta(milliseconds=20)
_QUICK = 4
"""Tries that follow each other quickly; then a cluster that is away is left to the schedule."""


@dataclass
class _Look:
    """What one look at a cluster found: its uid, objects, changes, and what it could not do.

    Of kinds that are `unseen` it could not look at the objects.
    """

    uid: str
    found: int = 0
    missed: int = 0
    problems: list[str] = field(default_factory=list)
    unseen: set[GVK] = field(default_factory=set)
    remark: str = ""


def _clocks(skew: timedelta | None) -> str:
    """Say that a cluster's clock and ours differ, in a sentence; empty if they agree."""
    if skew is None or abs(skew) < _SKEW:
        return ""
    minutes = round(abs(skew) / timedelta(minutes=1))
    where = "ahead of" if skew > timedelta(0) else "behind"
    return (
        f"its clock is {minutes} minutes {where} ours; sweeps and events go on, but times are off"
        " and tokens may end too early: set the one that is wrong"
    )


class Sweep:
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

    def handle(self, message: Envelope) -> None:
        """Do one message's work.

        Raises:
            InvalidError: the message is another stage's.
            TemporaryError: the cluster does not answer, or does not show a change yet.
        """
        match message:
            case Confirm():
                self._confirm(message)
            case Message():
                self._sweep(message.cluster, full=message.full)
            case Tidy():
                # Work that was under way when the cluster was forgotten may have left traces.
                if self._records.clusters.get(message.cluster) is None:
                    self._records.forget_traces(message.cluster)
            case Keep():
                self._keep_house()
            case _:
                raise InvalidError(f"cannot {message.do}: it is not the sweep stage's work")

    def _keep_house(self) -> None:
        """Collect what nobody names, and set the sweeps of clusters that have none set."""
        now = self._records.clock.now()
        self._records.collect(now)
        for cluster in self._records.clusters.all():
            name = sweep_timer(cluster.key)
            if self._records.timers.get(name) is None:
                due = now + spread(name, self._settings.sweep_interval)
                self._records.timers.set(name, due, Message(cluster.key).message().body)

    # Hints ------------------------------------------------------------------------------------

    def _confirm(self, message: Confirm) -> None:
        cluster, key = message.cluster, ObjectKey.parse(message.object)
        now = self._records.clock.now()
        record = self._records.clusters.get(cluster)
        if record is None:
            return
        kube = self._access.open(cluster, version=record.value.credentials)
        manifest = kube.get(key.gvk, key.namespace, key.name)
        if manifest is not None:
            seen = observe(cluster, manifest, now)
            pending = seen.uid == message.uid and seen.resource_version == message.before
        else:
            old = self._records.observations.get(cluster, key)
            uid = message.uid or (old.value.uid if old else "")
            seen = bury(cluster, key, uid, message.before, now)
            # A creation that is not stored yet, or never will be, has nothing to bury.
            pending = old is None
        if pending:
            self._wait(message, now)
            if manifest is None:
                return
        self._keep(seen, message)

    def _wait(self, message: Confirm, now: datetime) -> None:
        """Look again a little later, as long as the change may still be on its way.

        The API server stores only after its webhooks have answered.

        Raises:
            TemporaryError: it is not long since the hint came.
        """
        age = now - datetime.fromisoformat(message.rang) if message.rang else _SETTLED
        if age < _SETTLED:
            raise TemporaryError(
                f"the change of '{message.object}' in '{message.cluster}' is not to be seen yet",
                delay=max(age, _SOON),
            )

    def _keep(self, seen: Observation, hint: Confirm) -> None:
        if not self._records.observations.put(seen, asked_at=seen.seen_at):
            return
        message = Evaluate(seen.cluster, str(seen.key), hint.trace, hint.rang)
        self._publisher.publish([message])
        note = Note("gone" if seen.gone else "rang")
        write(self._records, message, seen.cluster, str(seen.key), note)

    # The whole cluster ----------------------------------------------------------------------

    def _sweep(self, name: str, *, full: bool) -> None:
        catalog = self._catalogs.current()
        cluster = catalog.clusters.get(name)
        if cluster is None:
            return
        health = self._records.health.get(name).value
        judged = catalog.judgement(name)
        # What the sources were when all was evaluated last says more than what was asked for: a
        # message may have been given up while the cluster was away. And a sweep that was begun
        # and not ended may have written what it did not tell.
        full = full or health.begun or health.swept_at is None
        fresh = {each for each in judged if full or health.judgement.get(each) != judged[each]}
        self._records.health.put(name, replace(health, begun=True))
        try:
            look = self._look(cluster, catalog, health.uid, fresh)
        except BellhopError as error:
            self._down(name, health, error)
            return
        left = set(health.judgement) - set(judged)
        if full or left or fresh:
            self._reconcile(catalog, name, None if full or left else fresh)
        first = health.swept_at is None
        self._records.health.put(
            name,
            Health(
                state="Healthy",
                message="; ".join(filter(None, (*look.problems, look.remark))),
                swept_at=self._records.clock.now(),
                seen=health.seen + look.found,
                missed=health.missed + (0 if first or full else look.missed),
                judgement={
                    source: judged[source]
                    for source in judged
                    if look.unseen.isdisjoint(catalog.sources[source].kinds)
                },
                uid=look.uid,
            ),
        )
        if health.state != "Healthy":
            self._try_again(name)

    def _down(self, name: str, health: Health, error: BellhopError) -> None:
        """Note that a cluster cannot be looked at; soon after it began, try again.

        Raises:
            BellhopError: as it was given.
        """
        health = replace(
            health, state="Down", message=str(error), begun=True, failures=health.failures + 1
        )
        self._records.health.put(name, health)
        if isinstance(error, TemporaryError) and health.failures > _QUICK:
            self._log.warning("Left a cluster to the schedule", cluster=name, error=str(error))
            return
        raise error

    def _look(self, cluster: Cluster, catalog: Catalog, uid: str, fresh: set[str]) -> _Look:
        """Look at all kinds that count; of those that `fresh` sources name, judge every object."""
        kube = self._access.open(cluster.key, version=cluster.credentials)
        look = _Look(self._identify(kube, cluster.key, uid))
        resources: list[Resource] = []
        for gvk in catalog.kinds_in(cluster.key):
            resource = kube.resource(gvk)
            if resource is None:
                # A kind that is not served says nothing about objects we have seen of it.
                self._log.warning("Skipped a kind", cluster=cluster.key, kind=str(gvk))
                continue
            resources.append(resource)
        # Ringing is set up before looking, so that nothing falls between the two.
        self._wire(kube, cluster, resources, catalog.revision, look)
        refused = []
        due = {gvk for source in fresh for gvk in catalog.sources[source].kinds}
        for resource in resources:
            try:
                self._look_at(kube, cluster.key, resource.gvk, look, full=resource.gvk in due)
            except PermanentError as error:
                # A kind that may not be listed keeps no other from being looked at.
                refused.append(error)
                look.unseen.add(resource.gvk)
        if refused and len(refused) == len(resources):
            raise refused[0]
        look.problems += map(str, refused)
        look.remark = _clocks(kube.skew)
        return look

    def _identify(self, kube: Kube, cluster: str, known: str) -> str:
        """Read which cluster this is; in one made anew under an old name we own nothing yet.

        It is also the one question that is put to a cluster with no source in force.
        """
        try:
            manifest = kube.get(GVK("", "v1", "Namespace"), "", "kube-system")
        except PermanentError:
            # Credentials need not reach so far: the cluster is taken for what it was.
            return known
        uid = str(((manifest or {}).get("metadata") or {}).get("uid") or known)
        if known and uid != known:
            self._log.warning("Met another cluster under an old name", cluster=cluster)
            self._records.forget_holdings(cluster)
            self._publisher.publish(
                [
                    Apply(each.trigger, each.source, each.profile, cluster)
                    for each in self._records.outcomes.of(cluster)
                ]
            )
        return uid

    def _look_at(self, kube: Kube, cluster: str, gvk: GVK, look: _Look, *, full: bool) -> None:
        asked_at = self._records.clock.now()
        before = {
            key: (uid, rv, gone)
            for key, uid, rv, gone in self._records.observations.heads(cluster, gvk)
        }
        seen: set[ObjectKey] = set()
        news: list[Observation] = []
        for manifest in kube.list(gvk):
            now = observe(cluster, manifest, self._records.clock.now())
            seen.add(now.key)
            if before.get(now.key) != (now.uid, now.resource_version, False):
                news.append(now)
        known = {key: (uid, rv) for key, (uid, rv, gone) in before.items() if not gone}
        news += self._gone(kube, cluster, gvk, known, seen)
        fresh = [each for each in news if self._records.observations.put(each, asked_at=asked_at)]
        due = {each.key for each in fresh} | ({*seen, *before} if full else set())
        self._publisher.publish([Evaluate(cluster, str(key)) for key in sorted(due)])
        look.found += len(seen)
        look.missed += len(fresh)

    def _gone(
        self,
        kube: Kube,
        cluster: str,
        gvk: GVK,
        known: Mapping[ObjectKey, tuple[str, int]],
        seen: set[ObjectKey],
    ) -> list[Observation]:
        """Return tombstones for what a list no longer has and a read confirms as not there."""
        missing = [key for key in sorted(known) if key not in seen]
        if not self._believed(cluster, gvk, len(missing), len(known)):
            return []
        now = self._records.clock.now()
        return [
            bury(cluster, key, *known[key], now)
            for key in missing
            if kube.get(gvk, key.namespace, key.name) is None
        ]

    def _believed(self, cluster: str, gvk: GVK, missing: int, known: int) -> bool:
        """Hold back a deletion of suspiciously much until sweeps in a row agree."""
        share = missing / known if known else 0.0
        if missing <= self._settings.deletion_floor or share <= self._settings.deletion_share:
            self._records.strikes.put(cluster, gvk, 0)
            return True
        strikes = self._records.strikes.get(cluster, gvk).value + 1
        agreed = strikes >= self._settings.deletion_agreement
        self._records.strikes.put(cluster, gvk, 0 if agreed else strikes)
        if not agreed:
            detail = (
                f"{missing} of {known} are missing from a list; held until"
                f" {self._settings.deletion_agreement} sweeps agree"
            )
            self._log.warning("Held a deletion", cluster=cluster, kind=str(gvk), detail=detail)
            note = Note("held", detail)
            write(self._records, Nobody(), cluster, str(ObjectKey(gvk, "", "*")), note)
        return agreed

    # What follows from a look ---------------------------------------------------------------

    def _wire(
        self,
        kube: Kube,
        cluster: Cluster,
        resources: list[Resource],
        revision: int,
        look: _Look,
    ) -> None:
        """Have the API server ring for these kinds, and the gate let them in."""
        kinds = [WatchedKind(each.gvk, each.plural) for each in resources]
        self._records.gates.put(cluster.key, cluster.gate(kinds, revision))
        if not cluster.forwarder:
            return
        try:
            kube.apply(forwarder_role(resources))
            kube.apply(webhook_configuration(resources, cluster.forwarder))
        except PermanentError as error:
            # Sweeps go on without the push; the cluster's health says what is missing.
            said = concealed(str(error), cluster.forwarder)
            look.problems.append(said)
            self._log.warning("Cannot set up ringing", cluster=cluster.key, error=said)

    def _try_again(self, cluster: str) -> None:
        """Publish what failed in this cluster and may go better now that it answers."""
        self._publisher.publish(
            [
                Apply(outcome.trigger, outcome.source, outcome.profile, cluster)
                for outcome in self._records.outcomes.of(cluster)
                if outcome.retry_at
            ]
        )

    def _reconcile(self, catalog: Catalog, cluster: str, sources: set[str] | None) -> None:
        """Let go of matches and objects that no source in force asks for; ask triggers.

        Those of some sources, or of all that there are. Where a trigger cannot say which source
        it means, nothing is let go.
        """
        if not catalog.problems_in(cluster):
            self._forget(catalog, cluster)
        triggers = (
            set(catalog.triggers)
            if sources is None
            else {name for each in sources for name in catalog.triggers_on(cluster, each)}
        )
        self._publisher.publish(Instantiate(name, cluster) for name in sorted(triggers))

    def _forget(self, catalog: Catalog, cluster: str) -> None:
        matches = list(self._records.matches.of(cluster))
        kinds = set(catalog.kinds_in(cluster))
        seen: set[ObjectKey] = set()
        for key, *_ in list(self._records.observations.heads(cluster)):
            seen.add(key)
            if key.gvk not in kinds:
                self._records.observations.delete(cluster, key)
        for match in matches:
            sources = {source.name for source in catalog.sources_for(cluster, match.key.gvk)}
            if match.source not in sources or match.key not in seen:
                self._records.matches.delete(cluster, match.source, match.key)
