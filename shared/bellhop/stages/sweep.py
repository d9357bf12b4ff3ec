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
from bellhop.engine.wiring import forwarder_role, webhook_configuration
from bellhop.errors import BellhopError, InvalidError, PermanentError, TemporaryError
from bellhop.logs import Log
from bellhop.messages import Apply, Confirm, Envelope, Evaluate, Instantiate, Publisher, Tidy
from bellhop.messages import Sweep as Message
from bellhop.model.gvk import GVK, ObjectKey, Resource
from bellhop.model.record import Cluster, Gate, Health, Observation, WatchedKind
from bellhop.ports.access import Access
from bellhop.ports.kube import Kube
from bellhop.ports.store import ABSENT
from bellhop.records import Records
from bellhop.records.catalogs import Catalogs
from bellhop.settings import Settings
from bellhop.stages.ledger import Nobody, Note, write

_SETTLED = timedelta(seconds=10)
"""How long after its hint a change that cannot be seen is taken not to have happened."""

_SOON = timedelta(milliseconds=20)
_QUICK = 4
"""Tries that follow each other quickly; then a cluster that is away is left to the schedule."""

_INPUTS = frozenset({"Template", "Script"})
"""Failures that only a change of what users declared can cure."""


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
            case _:
                raise InvalidError(f"cannot {message.do}: it is not the sweep stage's work")

    # Hints ------------------------------------------------------------------------------------

    def _confirm(self, message: Confirm) -> None:
        cluster, key = message.cluster, ObjectKey.parse(message.object)
        now = self._records.clock.now()
        record = self._records.clusters.get(cluster)
        if record is None:
            return
        kube = self._access.open(cluster, version=record.value.credentials)
        old = self._records.observations.head(cluster, key)
        manifest = kube.get(key.gvk, key.namespace, key.name)
        if manifest is not None:
            seen = observe(cluster, manifest, now)
            pending = seen.uid == message.uid and seen.resource_version == message.before
        else:
            uid = message.uid or (old.uid if old else "")
            seen = bury(cluster, key, uid, message.before, now)
            # A creation that is not stored yet, or never will be, has nothing to bury.
            pending = old is None
        if pending:
            self._wait(message, now)
            if manifest is None:
                return
        self._keep(seen, old.token if old else ABSENT, message)

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

    def _keep(self, seen: Observation, asked: str, hint: Confirm) -> None:
        if not self._records.observations.put(seen, asked=asked):
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
                message="; ".join(look.problems),
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
        before = {each.key: each for each in self._records.observations.heads(cluster, gvk)}
        seen: set[ObjectKey] = set()
        news: list[Observation] = []
        for manifest in kube.list(gvk):
            now = observe(cluster, manifest, self._records.clock.now())
            seen.add(now.key)
            old = before.get(now.key)
            if old is None or old[1:4] != (now.uid, now.resource_version, False):
                news.append(now)
        known = {
            key: (each.uid, each.resource_version) for key, each in before.items() if not each.gone
        }
        news += self._gone(kube, cluster, gvk, known, seen)
        fresh = [
            each
            for each in news
            if self._records.observations.put(
                each, asked=before[each.key].token if each.key in before else ABSENT
            )
        ]
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
        kinds = tuple(WatchedKind(each.gvk, each.plural) for each in resources)
        self._records.gates.put(cluster.key, Gate(cluster.token_digest, kinds, revision))
        if not cluster.forwarder:
            return
        try:
            kube.apply(forwarder_role(resources))
            kube.apply(webhook_configuration(resources, cluster.forwarder))
        except PermanentError as error:
            # Sweeps go on without the push; the cluster's health says what is missing.
            look.problems.append(str(error))
            self._log.warning("Cannot set up ringing", cluster=cluster.key, error=str(error))

    def _try_again(self, cluster: str) -> None:
        """Publish what failed in this cluster and may go better now that it answers."""
        self._publisher.publish(
            [
                Apply(outcome.trigger, outcome.source, outcome.profile, cluster)
                for outcome in self._records.outcomes.of(cluster)
                if outcome.phase in {"Failed", "FailedNonRetriable"}
                and outcome.reason not in _INPUTS
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
