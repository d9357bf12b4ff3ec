"""Tells people when a cluster is well or not, as ClusterHealthChecks ask.

    a sweep ended, something was declared, a pause is over, another resource is not well
        ─► the condition is written
        ─► each notice that is owed: claimed ─► sent ─► noted as told, or as failed

A notice is owed as long as what it told last is not so: that is on record before anything is sent,
so that a death loses none. Who sends it claims it first, on condition of the record, for a minute:
a message that comes twice, or two workers, send it once, and a cluster that changes all the time is
told of once a minute, or as seldom as a policy says. Who dies after it was sent and before that is
noted has it sent again.

People are told once of a cause that is the same in several clusters, with these counted: who is
about to send looks at the other clusters of the check, and claims their notices, too. Programs and
Events are told of each cluster.
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
from bellhop.api.source_names import health_source
from bellhop.catalog.catalog import Catalog
from bellhop.errors import BellhopError, MissingError, StaleError
from bellhop.extras.health import state as liveness
from bellhop.extras.health import texts
from bellhop.gotemplate import Limits
from bellhop.installation.installation import Installation
from bellhop.logs import Log
from bellhop.ports.kube import Kube
from bellhop.ports.store import ABSENT
from bellhop.state.condition import Condition, Notice
from bellhop.state.consumer import Stage
from bellhop.state.delays import notice_timer
from bellhop.state.management_cluster import MANAGEMENT
from bellhop.state.messages import CheckHealth, Envelope
from bellhop.state.record import Cluster
from bellhop.state.table import Stored

_PEOPLE = frozenset({"Slack", "Webex", "Discord", "Teams", "Telegram", "SMTP"})
"""The types of notifications that are read by people."""

_MOST_CLUSTERS = 256
"""Clusters of a check that are looked at for one notice."""

Send = Callable[[str, Mapping[str, str], str, str, Mapping[str, Any]], None]
"""Sends a notice of a type, by what its Secret says, with a subject, a text and the facts."""


class HealthNotifier:
    """The sweep stage, and beside it the notices: they leave the house, which is no stage's."""

    def __init__(
        self, here: Installation, sweep: Stage, log: Log, *, send: Send | None = None
    ) -> None:
        self._here = here
        self._sweep = sweep
        self._log = log
        self._send = send or notices.Sender(here.reach).send
        self._limits = Limits(
            seconds=here.settings.template_seconds, output=here.settings.template_output
        )

    def handle(self, message: Envelope) -> None:
        """Do one message's work, as the sweep stage says."""
        if isinstance(message, CheckHealth):
            self._examine(message.cluster)
        else:
            self._sweep.handle(message)

    def _examine(self, cluster: str) -> None:
        """Bring the conditions of a cluster up to date, and tell of them."""
        try:
            catalog = self._here.catalogs.current()
        except MissingError:
            # What is not known is not taken for deleted.
            return
        checks = catalog.checks_of(cluster)
        kept = self._here.records.conditions.of(cluster)
        for name in kept.keys() - {each.name for each in checks}:
            self._here.records.conditions.delete(cluster, name)
        if not checks:
            return
        waiting: list[datetime] = []
        for check in checks:
            states = self._states(catalog, cluster, check)
            waiting += [each.until for each in states.values() if each and each.until]
            with suppress(StaleError):
                # Whoever was quicker knows no less, and sends what is owed.
                found = self._judge(cluster, check, states, kept.get(check.name))
                waiting += self._tell(catalog, cluster, check, found) if found else []
        if waiting:
            body = CheckHealth(cluster).message().body
            now = self._here.records.clock.now()
            self._here.records.timers.set_by(notice_timer(cluster), min(waiting), body, now=now)

    def _judge(
        self,
        cluster: str,
        check: ClusterHealthCheck,
        checks: Mapping[str, liveness.State | None],
        kept: Stored[Condition] | None,
    ) -> Stored[Condition] | None:
        """Write the condition of a cluster if it is another one; None where it has none yet.

        While nobody knows how the cluster is, it is as it was.

        Raises:
            StaleError: somebody else has written it meanwhile.
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

    def _states(
        self, catalog: Catalog, cluster: str, check: ClusterHealthCheck
    ) -> dict[str, liveness.State | None]:
        """Say how a cluster is by each liveness check of a ClusterHealthCheck."""
        asked = check.spec.liveness_checks
        return {each.name: self._state(catalog, cluster, each) for each in asked}

    def _state(self, catalog: Catalog, cluster: str, asked: LivenessCheck) -> liveness.State | None:
        """Say how a cluster is by one liveness check; None where nobody knows."""
        records = self._here.records
        if not asked.health_check:
            return liveness.addons(records.outcomes.of(cluster))
        if asked.health_check not in catalog.health_checks:
            return None
        try:
            found = records.selections.get(cluster, health_source(asked.health_check))
        except MissingError:
            # What is lost is made anew, and asks for this again.
            return None
        patience = catalog.health_checks[asked.health_check].patience
        kept, now = found.value if found else None, records.clock.now()
        return liveness.resources(asked.health_check, kept, patience, now)

    def _tell(
        self, catalog: Catalog, cluster: str, check: ClusterHealthCheck, found: Stored[Condition]
    ) -> list[datetime]:
        """Send what is owed and may be sent; return when the rest may be.

        Raises:
            StaleError: somebody else has written the condition meanwhile.
        """
        told_of, clock = catalog.clusters[cluster], self._here.records.clock
        asked = {each.name: each for each in check.notifications}
        begun = clock.now()
        for due_at, notice in liveness.owed(found.value, check.policies, check.repeated):
            if due_at > begun:
                continue
            claimed = liveness.claimed(notice, clock.now())
            found = self._noted(cluster, check, found, claimed)
            beside = (
                list(self._beside(catalog, cluster, check, found.value, notice.name))
                if asked[notice.name].type in _PEOPLE
                else []
            )
            others = [key for key, _ in beside]
            done = self._try(told_of, check, asked[notice.name], found.value, claimed, others)
            found = self._noted(cluster, check, found, done)
            for other, kept in beside:
                with suppress(StaleError):
                    # Somebody else writes how it is now, and owes what is not so any more.
                    self._noted(other, check, kept, done)
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
                now = self._judge(key, check, self._states(catalog, key, check), kept)
                if now is None or not texts.alike(found, cluster, now.value, key):
                    continue
                for due_at, notice in liveness.owed(now.value, check.policies):
                    if notice.name == name and due_at <= records.clock.now():
                        claimed = liveness.claimed(notice, records.clock.now())
                        yield key, self._noted(key, check, now, claimed)

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
                self._where(cluster).apply(event)
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

    def _where(self, cluster: Cluster) -> Kube:
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

    def _noted(
        self, cluster: str, check: ClusterHealthCheck, found: Stored[Condition], notice: Notice
    ) -> Stored[Condition]:
        new = liveness.with_notice(found.value, notice)
        return Stored(new, self._put(cluster, check, Stored(new, found.token)))

    def _put(self, cluster: str, check: ClusterHealthCheck, new: Stored[Condition]) -> str:
        conditions = self._here.records.conditions
        return conditions.put(cluster, check.name, new.value, expect=new.token)
