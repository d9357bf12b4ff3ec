"""Notifications of cluster health, as ClusterHealthChecks request them.

    a resync ended, a manifest changed, a pause is over, another resource is unhealthy
        ─► the condition is written
        ─► each notification that is due: claimed ─► sent ─► recorded as sent, or as failed

A notification is due as long as the last one says something else; that is recorded before anything
is sent, so a death loses none. A worker claims it first, on condition of the record, for a minute:
a redelivery, or a second worker, sends nothing, and a cluster that changes all the time notifies
once a minute, or as seldom as a policy says. If a worker dies after sending and before recording,
the notification is sent again.

People get one notification of a cause that is the same in several clusters, with their number: the
worker reads the other clusters of the check, and claims their notifications, too. Programs and
Events get one of each cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

from bellhop.adapters import notices
from bellhop.api.health_check import ClusterHealthCheck, LivenessCheck, Notification
from bellhop.api.manifest import Secret
from bellhop.api.names import health_source
from bellhop.catalog.catalog import Catalog
from bellhop.errors import BellhopError, MissingError, StaleError
from bellhop.extras.health import state as liveness
from bellhop.extras.health import texts
from bellhop.extras.health.records import Condition, Notice
from bellhop.gotemplate import Limits
from bellhop.installation import Installation
from bellhop.logs import Log
from bellhop.ports.kube import Kube
from bellhop.ports.store import ABSENT
from bellhop.state.cluster import MANAGEMENT, Cluster
from bellhop.state.delays import notice_timer
from bellhop.state.messages import CheckHealth
from bellhop.state.table import Stored

_PEOPLE = frozenset({"Slack", "Webex", "Discord", "Teams", "Telegram", "SMTP"})
"""The types of notifications that are read by people."""

_MOST_CLUSTERS = 256
"""Clusters of a check that are looked at for one notice."""

Send = Callable[[str, Mapping[str, str], str, str, Mapping[str, Any]], None]
"""Sends a notice of a type, by what its Secret says, with a subject, a text and the facts."""


class HealthNotifier:
    """Evaluates the health checks of a cluster, and sends the notifications that are due."""

    def __init__(self, here: Installation, log: Log, *, send: Send | None = None) -> None:
        self._here = here
        self._log = log
        self._send = send or notices.Sender(here.reach).send
        self._limits = Limits(
            seconds=here.settings.template_seconds, output=here.settings.template_output
        )

    def handle(self, message: CheckHealth) -> None:
        """Update the conditions of a cluster, and notify of changes."""
        cluster = message.cluster
        try:
            catalog = self._here.catalogs.current()
        except MissingError:
            # A missing catalog deletes nothing.
            return
        checks = catalog.checks_of(cluster)
        kept = self._here.records.conditions.of(cluster)
        for name in kept.keys() - {each.name for each in checks}:
            self._here.records.conditions.delete(cluster, name)
        if not checks:
            return
        waiting: list[datetime] = []
        for check in checks:
            states = self._evaluate_checks(catalog, cluster, check)
            waiting += [each.until for each in states.values() if each and each.until]
            with suppress(StaleError):
                # A worker that was quicker knows the same, and sends what is due.
                found = self._update_condition(cluster, check, states, kept.get(check.name))
                waiting += self._notify(catalog, cluster, check, found) if found else []
        if waiting:
            body = CheckHealth(cluster).message().body
            now = self._here.records.clock.now()
            self._here.records.timers.set_by(notice_timer(cluster), min(waiting), body, now=now)

    def _update_condition(
        self,
        cluster: str,
        check: ClusterHealthCheck,
        checks: Mapping[str, liveness.State | None],
        kept: Stored[Condition] | None,
    ) -> Stored[Condition] | None:
        """Write the condition of a cluster if it changed; None if it has none yet.

        While the health of the cluster is unknown, its condition stays.

        Raises:
            StaleError: another worker has written it meanwhile.
        """
        old = kept.value if kept else None
        state = liveness.together(checks)
        if state is None:
            if old is None:
                return None
            state = liveness.State(old.healthy, old.message)
        names = [each.name for each in check.notifications]
        new = liveness.condition(old, state, names, self._here.records.clock.now(), checks)
        if kept and new == kept.value:
            return kept
        return Stored(new, self._put(cluster, check, Stored(new, kept.token if kept else ABSENT)))

    def _evaluate_checks(
        self, catalog: Catalog, cluster: str, check: ClusterHealthCheck
    ) -> dict[str, liveness.State | None]:
        """Return how a cluster is by each liveness check of a ClusterHealthCheck."""
        asked = check.spec.liveness_checks
        return {each.name: self._evaluate_check(catalog, cluster, each) for each in asked}

    def _evaluate_check(
        self, catalog: Catalog, cluster: str, asked: LivenessCheck
    ) -> liveness.State | None:
        """Return the state of a cluster by one liveness check; None if it is unknown."""
        records = self._here.records
        if not asked.health_check:
            return liveness.addons(records.outcomes.of(cluster))
        if asked.health_check not in catalog.health_checks:
            return None
        try:
            found = records.selections.get(cluster, health_source(asked.health_check))
        except MissingError:
            # A lost selection is computed again, and requests this again.
            return None
        patience = catalog.health_checks[asked.health_check].patience
        kept, now = found.value if found else None, records.clock.now()
        return liveness.resources(asked.health_check, kept, patience, now)

    def _notify(
        self, catalog: Catalog, cluster: str, check: ClusterHealthCheck, found: Stored[Condition]
    ) -> list[datetime]:
        """Send the notifications that are due now; return when the others are.

        Raises:
            StaleError: another worker has written the condition meanwhile.
        """
        target, clock = catalog.clusters[cluster], self._here.records.clock
        asked = {each.name: each for each in check.notifications}
        begun = clock.now()
        for due_at, notice in liveness.owed(found.value, check.policies, check.repeated):
            if due_at > begun:
                continue
            claimed = liveness.claimed(notice, clock.now())
            found = self._record(cluster, check, found, claimed)
            beside = (
                list(self._beside(catalog, cluster, check, found.value, notice.name))
                if asked[notice.name].type in _PEOPLE
                else []
            )
            others = [key for key, _ in beside]
            done = self._try(target, check, asked[notice.name], found.value, claimed, others)
            found = self._record(cluster, check, found, done)
            for other, kept in beside:
                with suppress(StaleError):
                    # Another worker has written a newer condition, and sends what is due by it.
                    self._record(other, check, kept, done)
        left = liveness.owed(found.value, check.policies, check.repeated)
        return [due_at for due_at, _ in left]

    def _beside(
        self,
        catalog: Catalog,
        cluster: str,
        check: ClusterHealthCheck,
        found: Condition,
        name: str,
    ) -> Iterator[tuple[str, Stored[Condition]]]:
        """Claim the same notice about other clusters that are alike; yield these clusters."""
        records, selects = self._here.records, check.cluster_selector.matches
        others = (
            key for key, each in catalog.clusters.items() if key != cluster and selects(each.labels)
        )
        for key in islice(others, _MOST_CLUSTERS):
            kept = records.conditions.of(key).get(check.name)
            with suppress(StaleError):
                now = self._update_condition(
                    key, check, self._evaluate_checks(catalog, key, check), kept
                )
                if now is None or not texts.alike(found, cluster, now.value, key):
                    continue
                for due_at, notice in liveness.owed(now.value, check.policies):
                    if notice.name == name and due_at <= records.clock.now():
                        claimed = liveness.claimed(notice, records.clock.now())
                        yield key, self._record(key, check, now, claimed)

    def _try(
        self,
        cluster: Cluster,
        check: ClusterHealthCheck,
        asked: Notification,
        found: Condition,
        notice: Notice,
        others: Sequence[str] = (),
    ) -> Notice:
        """Send one notice, of other clusters too; return it as sent, or as failed."""
        subject, text = texts.words(check, cluster, found, self._limits, others)
        try:
            if asked.type == "KubernetesEvent":
                event = texts.event(check, cluster.key, found, text)
                self._open_cluster(cluster).apply(event)
            else:
                facts = texts.facts(check, cluster, found)
                self._send(asked.type, self._credentials(asked), subject, text, facts)
        except BellhopError as error:
            self._log.warning(
                "Cannot send a notice", cluster=cluster.key, notice=notice.name, error=str(error)
            )
            return liveness.failed(notice, str(error), repeats=asked.repeats)
        self._log.info("Sent a notice", cluster=cluster.key, notice=notice.name, check=check.name)
        repeats = asked.repeats and not found.healthy
        interval = timedelta(0) if repeats else asked.policy.interval
        until = self._here.records.clock.now() + interval
        return liveness.sent(notice, healthy=found.healthy, until=until)

    def _open_cluster(self, cluster: Cluster) -> Kube:
        """Open the cluster that has the Events: the one that manages others, or itself.

        Raises:
            BellhopError: it cannot be called.
        """
        management = self._here.records.clusters.get(MANAGEMENT)
        home = management.value if management else cluster
        return self._here.access.open(home.key, version=home.credentials)

    def _credentials(self, asked: Notification) -> dict[str, str]:
        """Read the Secret that a notification names.

        Raises:
            MissingError: it was not applied.
        """
        ref = asked.notification_ref
        assert ref
        holder = self._here.catalogs.holder("Secret", ref.namespace, ref.name)
        if not isinstance(holder, Secret):
            raise MissingError(
                f"cannot send notice '{asked.name}': there is no Secret"
                f" '{ref.namespace}/{ref.name}', which it names; apply it"
            )
        return {key: value.decode("utf-8", "replace") for key, value in holder.decoded().items()}

    def _record(
        self, cluster: str, check: ClusterHealthCheck, found: Stored[Condition], notice: Notice
    ) -> Stored[Condition]:
        new = liveness.with_notice(found.value, notice)
        return Stored(new, self._put(cluster, check, Stored(new, found.token)))

    def _put(self, cluster: str, check: ClusterHealthCheck, new: Stored[Condition]) -> str:
        conditions = self._here.records.conditions
        return conditions.put(cluster, check.name, new.value, expect=new.token)
