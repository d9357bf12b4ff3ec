"""Sweep: what a cluster really holds, asked through its API server.

At registration, on a schedule, when sources change, and to confirm a hint. It heals what the
push missed and counts it. It never takes an error, or one surprising answer, for emptiness.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from bellhop.engine.observe import bury, observe
from bellhop.engine.wiring import forwarder_role, webhook_configuration
from bellhop.errors import BellhopError, InvalidError, PermanentError, TemporaryError
from bellhop.logs import Log
from bellhop.model.gvk import GVK, ObjectKey, Resource
from bellhop.model.record import Cluster, Gate, Observation, WatchedKind
from bellhop.ports.access import Access
from bellhop.ports.kube import Kube
from bellhop.ports.queue import Message, Queue
from bellhop.records import Records, messages
from bellhop.records.catalogs import Catalogs
from bellhop.settings import Settings
from bellhop.stages.ledger import Note, write

_SETTLED = 4
"""Tries after which a hinted change that cannot be seen is taken not to have happened."""

_INPUTS = frozenset({"Template", "Script"})
"""Failures that only a change of what users declared can cure."""


class Sweep:
    """Brings the observations of a cluster up to date."""

    def __init__(
        self,
        records: Records,
        catalogs: Catalogs,
        access: Access,
        evaluate: Queue,
        deploy: Queue,
        settings: Settings,
        log: Log,
    ) -> None:
        self._records = records
        self._catalogs = catalogs
        self._access = access
        self._evaluate = evaluate
        self._deploy = deploy
        self._settings = settings
        self._log = log

    def handle(self, body: Mapping[str, Any], attempt: int) -> None:
        """Do one message's work.

        Raises:
            InvalidError: the message is of a kind nobody sends.
            TemporaryError: the cluster does not answer.
        """
        match body.get("do"):
            case "confirm":
                self._confirm(body, attempt)
            case "sweep":
                self._sweep(body["cluster"], full=body["full"] or attempt > 1)
            case other:
                raise InvalidError(f"cannot do '{other}': the sweep stage knows no such message")

    # Hints ------------------------------------------------------------------------------------

    def _confirm(self, body: Mapping[str, Any], attempt: int) -> None:
        cluster, key = body["cluster"], ObjectKey.parse(body["object"])
        manifest = self._access.open(cluster).get(key.gvk, key.namespace, key.name)
        now = self._records.clock.now()
        if manifest is not None:
            seen = observe(cluster, manifest, now)
            pending = seen.uid == body["uid"] and seen.resource_version == body["before"]
        else:
            old = self._records.observation(cluster, key)
            uid = body["uid"] or (old.uid if old else "")
            seen = bury(cluster, key, uid, body["before"], now)
            # A creation that is not stored yet, or never will be, has nothing to bury.
            pending = old is None
        if pending and attempt < _SETTLED:
            raise TemporaryError(f"the change of '{key}' in '{cluster}' is not to be seen yet")
        if pending and manifest is None:
            return
        self._keep(seen, body)

    def _keep(self, seen: Observation, body: Mapping[str, Any]) -> None:
        if not self._records.put_observation(seen):
            return
        trace, rang = str(body.get("trace") or ""), str(body.get("rang") or "")
        message = messages.evaluate(seen.cluster, seen.key, trace=trace, rang=rang)
        self._evaluate.publish([message])
        note = Note("gone" if seen.gone else "rang")
        write(self._records, message.body, seen.cluster, str(seen.key), note)

    # The whole cluster ----------------------------------------------------------------------

    def _sweep(self, name: str, *, full: bool) -> None:
        cluster = self._records.cluster(name)
        if cluster is None:
            return
        try:
            found, missed = self._look(cluster, full=full)
        except BellhopError as error:
            health = replace(self._records.health(name), state="Down", message=str(error))
            self._records.put_health(name, health)
            raise
        old = self._records.health(name)
        first = old.swept_at is None
        self._records.put_health(
            name,
            replace(
                old,
                state="Healthy",
                message="",
                swept_at=self._records.clock.now(),
                seen=old.seen + found,
                missed=old.missed + (0 if first or full else missed),
            ),
        )
        self._try_again(name)
        if full:
            self._reconcile(name)

    def _look(self, cluster: Cluster, *, full: bool) -> tuple[int, int]:
        kube = self._access.open(cluster.key)
        catalog = self._catalogs.current()
        resources: list[Resource] = []
        found = missed = 0
        for gvk in catalog.kinds_in(cluster.key):
            resource = kube.resource(gvk)
            if resource is None:
                # A kind that is not served says nothing about objects we have seen of it.
                self._log.warning("Skipped a kind", cluster=cluster.key, kind=str(gvk))
                continue
            resources.append(resource)
        # Ringing is set up before looking, so that nothing falls between the two.
        self._wire(kube, cluster, resources, catalog.revision)
        for resource in resources:
            seen, news = self._look_at(kube, cluster.key, resource.gvk, full=full)
            found, missed = found + seen, missed + news
        return found, missed

    def _look_at(self, kube: Kube, cluster: str, gvk: GVK, *, full: bool) -> tuple[int, int]:
        before = {
            observation.key: observation for observation in self._records.observations(cluster, gvk)
        }
        known = {key: old for key, old in before.items() if not old.gone}
        seen: set[ObjectKey] = set()
        news: list[Observation] = []
        for manifest in kube.list(gvk):
            now = observe(cluster, manifest, self._records.clock.now())
            seen.add(now.key)
            old = known.get(now.key)
            if old is None or old.resource_version != now.resource_version or old.uid != now.uid:
                news.append(now)
        gone = self._gone(kube, cluster, gvk, known, seen)
        fresh = [each for each in (*news, *gone) if self._records.put_observation(each)]
        due = {each.key for each in fresh} | ({*seen, *before} if full else set())
        self._evaluate.publish([messages.evaluate(cluster, key, trace="") for key in sorted(due)])
        return len(seen), len(fresh)

    def _gone(
        self,
        kube: Kube,
        cluster: str,
        gvk: GVK,
        known: Mapping[ObjectKey, Observation],
        seen: set[ObjectKey],
    ) -> list[Observation]:
        """Return tombstones for what a list no longer has and a read confirms as not there."""
        missing = [known[key] for key in sorted(known) if key not in seen]
        if not self._believed(cluster, gvk, len(missing), len(known)):
            return []
        now = self._records.clock.now()
        return [
            bury(cluster, old.key, old.uid, old.resource_version, now)
            for old in missing
            if kube.get(gvk, old.key.namespace, old.key.name) is None
        ]

    def _believed(self, cluster: str, gvk: GVK, missing: int, known: int) -> bool:
        """Hold back a deletion of suspiciously much until sweeps in a row agree."""
        share = missing / known if known else 0.0
        if missing <= self._settings.deletion_floor or share <= self._settings.deletion_share:
            self._records.put_strikes(cluster, gvk, 0)
            return True
        strikes = self._records.strikes(cluster, gvk) + 1
        agreed = strikes >= self._settings.deletion_agreement
        self._records.put_strikes(cluster, gvk, 0 if agreed else strikes)
        if not agreed:
            detail = (
                f"{missing} of {known} are missing from a list; held until"
                f" {self._settings.deletion_agreement} sweeps agree"
            )
            self._log.warning("Held a deletion", cluster=cluster, kind=str(gvk), detail=detail)
            note = Note("held", detail)
            write(self._records, {}, cluster, str(ObjectKey(gvk, "", "*")), note)
        return agreed

    # What follows from a look ---------------------------------------------------------------

    def _wire(self, kube: Kube, cluster: Cluster, resources: list[Resource], revision: int) -> None:
        """Have the API server ring for these kinds, and the gate let them in."""
        kinds = tuple(WatchedKind(each.gvk, each.plural) for each in resources)
        self._records.put_gate(cluster.key, Gate(cluster.token_digest, kinds, revision))
        if not cluster.forwarder:
            return
        try:
            kube.apply(forwarder_role(resources))
            kube.apply(webhook_configuration(resources, cluster.forwarder))
        except PermanentError as error:
            # Sweeps go on without the push; the cluster's health says what is missing.
            self._log.warning("Cannot set up ringing", cluster=cluster.key, error=str(error))

    def _try_again(self, cluster: str) -> None:
        """Publish what failed in this cluster and may go better now that it answers."""
        self._deploy.publish(
            [
                messages.apply(outcome.trigger, outcome.source, outcome.profile, cluster)
                for outcome in self._records.outcomes(cluster)
                if outcome.phase in {"Failed", "FailedNonRetriable"}
                and outcome.reason not in _INPUTS
            ]
        )

    def _reconcile(self, cluster: str) -> None:
        """Let go of matches whose source is no longer in force, and ask for every trigger."""
        catalog = self._catalogs.current()
        sources = set(catalog.sources_in(cluster))
        for match in list(self._records.matches(cluster)):
            if match.source not in sources:
                self._records.delete_match(cluster, match.source, match.key)
        kinds = set(catalog.kinds_in(cluster))
        for key, *_ in list(self._records.observed(cluster)):
            if key.gvk not in kinds:
                self._records.delete_observation(cluster, key)
        follow_up: list[Message] = [
            messages.instantiate(name, cluster) for name in sorted(catalog.triggers)
        ]
        self._deploy.publish(follow_up)
