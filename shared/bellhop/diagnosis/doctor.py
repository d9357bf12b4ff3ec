"""Checks of the connection to a cluster and back, each with its cure.

 credentials ─► API server ─► permissions           outbound: resyncs, and what is applied
 API server ─► webhook ─► forwarder ─► ingest       inbound: events
                  │           │
           dry-run call    heartbeat

The dry-run call changes nothing of an object that the webhook sends: the API server calls the
forwarder as for any write, and returns its answer as a warning. Nothing is written, here or in the
cluster.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta

from bellhop.adapters.kube.client import KubeClient
from bellhop.adapters.kube.errors import UntrustedError
from bellhop.core.gvk import Resource
from bellhop.diagnosis import cluster_status
from bellhop.diagnosis.calls import ask_all
from bellhop.diagnosis.condition import Condition, failed, passed, unknown
from bellhop.diagnosis.webhook_checks import REGISTER_AGAIN, WebhookChecks, run_checks
from bellhop.errors import BellhopError, DeniedError, UnreachableError
from bellhop.installation import Installation
from bellhop.registration import senders
from bellhop.registration.forwarder_manifests import (
    MESSAGING_NAME,
    MESSAGING_NAMESPACE,
    is_audited,
    is_direct,
)
from bellhop.registration.permissions import (
    check_applying,
    check_impersonation,
    check_releases,
    check_watching,
    list_deployed_kinds,
    list_release_namespaces,
    list_watched,
)
from bellhop.registration.removal import find_uid, read_uid
from bellhop.registration.renewal import find_expiry
from bellhop.state.cluster import Cluster

PATIENCE = 25.0
"""Seconds for all clusters together."""

_SKEW = timedelta(minutes=2)
_SOON = timedelta(days=30)
_OLDEST = (1, 20)
_VERSION = re.compile(r"v(\d+)\.(\d+)")


MoreChecks = Callable[[Installation, Cluster, KubeClient], Iterator[Condition]]
"""Checks of another feature in a cluster whose API server answers."""


def _check_nothing_more(*_: object) -> Iterator[Condition]:
    return iter(())


def check_clusters(
    here: Installation, keys: Sequence[str], more: MoreChecks = _check_nothing_more
) -> Iterator[tuple[str, Sequence[Condition]]]:
    """Check several clusters in parallel; yield the results in their order."""
    clusters = here.catalogs.known().clusters

    def ask(key: str) -> Sequence[Condition]:
        return list(_ClusterCheck(here, clusters[key], more).run())

    found = ask_all(keys, ask, PATIENCE)
    for key in keys:
        late = failed(
            "API server",
            f"not all of it could be examined within {PATIENCE:g} s",
            "see whether it is very slow; examine only this cluster",
        )
        yield key, found.get(key, [late])


class _ClusterCheck:
    """The checks of one cluster."""

    def __init__(self, here: Installation, cluster: Cluster, more: MoreChecks) -> None:
        self._here = here
        self._cluster = cluster
        self._more = more
        self._record = cluster.forwarder
        self._direct = is_direct(cluster.forwarder)
        self._audited = is_audited(cluster.forwarder)
        self._now = here.records.clock.now()
        self._kube: KubeClient
        self._resources: list[Resource] = []

    def run(self) -> Iterator[Condition]:
        """Yield the results, and the recorded health if nothing failed but it is unhealthy."""
        found = []
        for sign in self._run_all():
            found.append(sign)
            yield sign
        health = cluster_status.read_health(self._here, self._cluster.key)
        if health.message and not any(each.status == "failed" for each in found):
            cure = f"`bellhop resync {self._cluster.key}` checks it again"
            yield failed("last resync", health.message, cure)

    def _run_all(self) -> Iterator[Condition]:
        met = list(self._check_api_server())
        yield from met
        answers = any((each.type, each.status) == ("API server", "yes") for each in met)
        if answers:
            yield from run_checks(
                ("credentials", self._check_credentials),
                ("clock", self._check_clock),
                ("identity", self._check_identity),
                ("sources", self._check_sources),
                ("rights", self._check_permissions),
            )
            yield from self._more(self._here, self._cluster, self._kube)
        if not self._record:
            yield passed("forwarder", "it has none: only resyncs find changes")
            yield from self._check_senders()
            return
        if cluster_status.sends_heartbeats(self._cluster):
            yield from self._check_certificate()
        if answers and not self._audited:
            webhook = WebhookChecks(self._here, self._cluster, self._kube, self._resources)
            yield from webhook.run()
        yield from self._check_heartbeat()
        yield from self._check_senders()

    def _check_api_server(self) -> Iterator[Condition]:
        key = self._cluster.key
        try:
            kube = self._here.access.open(key, version=self._cluster.credentials)
        except BellhopError as error:
            yield failed("credentials", str(error), REGISTER_AGAIN)
            return
        if not isinstance(kube, KubeClient):
            yield unknown("API server", "it is not called by Bellhop's own client")
            return
        self._kube = kube
        try:
            version = self._kube.version()
        except UntrustedError as error:
            cure = f"if its certificate authority has changed, {self._registration_cure()}"
            yield failed("certificate", str(error), cure)
            return
        except UnreachableError as error:
            cure = "see whether it runs, and is reached from here; what waits for it then goes on"
            yield failed("API server", str(error), cure)
            return
        except DeniedError as error:
            cure = f"{self._registration_cure()}, with credentials that it accepts"
            yield failed("credentials", str(error), cure)
            return
        except BellhopError as error:
            yield failed("API server", str(error), "see whether an API server is at its address")
            return
        yield passed("API server", f"it answers: Kubernetes {version}")
        found = _VERSION.match(version)
        if found and (int(found[1]), int(found[2])) < _OLDEST:
            yield failed("version", f"{version} is older than v1.20", "upgrade the cluster")

    def _registration_cure(self) -> str:
        if self._cluster.managed:
            return REGISTER_AGAIN
        return f"`bellhop register cluster {self._cluster.key} --kubeconfig FILE`"

    def _check_credentials(self) -> Iterator[Condition]:
        # Those of a managed cluster are made again by themselves.
        ends = None if self._cluster.managed else self._kube.ends_at
        if ends and ends - self._now < cluster_status.EXPIRY_NOTICE:
            yield failed(
                "credentials",
                cluster_status.describe_expiry(ends, self._now),
                self._registration_cure(),
            )

    def _check_clock(self) -> Iterator[Condition]:
        skew = self._kube.skew
        if skew is None:
            yield unknown("clock", "its API server does not report the time")
        elif abs(skew) >= _SKEW:
            yield failed(
                "clock", f"its clock is {_format_skew(skew)} ours", "set the one that is wrong"
            )
        else:
            yield passed("clock", "it agrees with ours")

    def _check_identity(self) -> Iterator[Condition]:
        known, uid = find_uid(self._here, self._cluster), read_uid(self._kube)
        if known and uid and uid != known:
            cure = f"{REGISTER_AGAIN}, or put back the cluster that was there"
            yield failed("identity", "its address leads to another cluster than it did", cure)

    def _check_sources(self) -> Iterator[Condition]:
        catalog = self._here.catalogs.known()
        self._resources = list_watched(self._kube, catalog, self._cluster)
        sources = catalog.sources_in(self._cluster.key)
        if sources:
            yield passed("sources", f"in force: {', '.join(sources)}")
        else:
            yield unknown(
                "sources",
                "no EventSource is in force in it, so that no event is needed",
                "an EventTrigger whose sourceClusterSelector selects the cluster puts one in force",
            )
        served = {each.gvk for each in self._resources}
        for gvk in catalog.kinds_in(self._cluster.key):
            if gvk not in served:
                cure = "install its definition, or name a version that is served"
                names = (each for each in sources if gvk in catalog.sources[each].kinds)
                said = f"the cluster does not serve {gvk}, which {next(names, 'one')} names"
                yield failed("sources", said, cure)

    def _list_accounts(self) -> set[str]:
        """Return the service accounts that Bellhop impersonates in the cluster."""
        catalog = self._here.catalogs.known()
        accounts = {account for account, _ in catalog.accounts_in(self._cluster.key)}
        rules = (*catalog.triggers.values(), *catalog.profiles.values())
        return accounts | {each.account for each in rules if each.account}

    def _check_permissions(self) -> Iterator[Condition]:
        missing = check_watching(
            self._kube,
            self._resources,
            webhook=bool(self._record) and not self._audited,
            direct=self._direct,
        )
        if check_applying(self._kube):
            # Credentials need no more than the kinds that are deployed there.
            kinds = list_deployed_kinds(self._here, self._cluster.key)
            missing += check_applying(self._kube, kinds)
            missing += check_releases(
                self._kube, list_release_namespaces(self._here, self._cluster.key)
            )
        missing += check_impersonation(self._kube, self._list_accounts())
        cure = (
            "grant them to the user of the kubeconfig; the how-to 'Register a cluster' lists them"
        )
        for each in missing:
            yield failed("rights", f"its credentials {each}", cure)
        if not missing:
            yield passed("rights", "its credentials may do all that is asked of them")

    def _check_certificate(self) -> Iterator[Condition]:
        ends = find_expiry(self._cluster)
        if ends is None:
            yield failed("certificate", "the forwarder's cannot be read", REGISTER_AGAIN)
        elif ends - self._now < _SOON:
            yield failed(
                "certificate", f"the forwarder's ends on {ends:%Y-%m-%d %H:%M} UTC", REGISTER_AGAIN
            )
        else:
            yield passed("certificate", f"the forwarder's is valid until {ends:%Y-%m-%d}")

    def _check_heartbeat(self) -> Iterator[Condition]:
        key = self._cluster.key
        beat = self._here.records.hearings.get(key)
        said = cluster_status.describe_silence(self._here, key)
        if said:
            cure = "see what else is wrong here; if nothing is, read the forwarder's log"
            yield failed("heartbeat", said, cure)
        elif not cluster_status.sends_heartbeats(self._cluster):
            return
        elif beat is None:
            yield unknown("heartbeat", "no heartbeat yet")
        else:
            yield passed(
                "heartbeat",
                f"at {beat.at:%Y-%m-%d %H:%M:%S} UTC, {_describe_forwarder(beat.version)}",
            )
        if beat and abs(beat.ahead) >= _SKEW.total_seconds():
            apart = _format_skew(timedelta(seconds=beat.ahead))
            cure = "set the one that is wrong"
            yield failed("clock", f"the forwarder's clock is {apart} ours", cure)
        if unsubscribed := cluster_status.describe_subscription(self._here, key):
            place = f"{MESSAGING_NAMESPACE}/{MESSAGING_NAME}"
            cure = f"see what the Secret '{place}' says, and whether that server runs"
            yield failed("NATS", unsubscribed, cure)
        if (
            beat
            and beat.owed
            and beat.since
            and self._now - beat.since > cluster_status.HEARTBEAT_TIMEOUT
        ):
            cure = "its log says why; it keeps them, and sends them once it can"
            owed = f"it owes {beat.owed} objects since {beat.since:%Y-%m-%d %H:%M} UTC"
            yield failed("heartbeat", owed, cure)

    def _check_senders(self) -> Iterator[Condition]:
        known = list(senders.list_senders(self._here, self._cluster.key))
        refused = [
            each
            for each in known
            if each.refused and each.refused.count >= cluster_status.REFUSAL_THRESHOLD
        ]
        for each in refused:
            yield failed("senders", *_describe_refused(each, self._now))
        if known and not refused:
            names = ", ".join(each.sender.name for each in known)
            yield passed("senders", f"{names}: nothing was refused lately")


def _describe_refused(seen: senders.SenderStatus, now: datetime) -> tuple[str, str]:
    sender, refusals = seen.sender, seen.refused
    assert refusals
    since = f"{refusals.since:%Y-%m-%d %H:%M} UTC"
    said = f"'{sender.name}' from outside was refused {refusals.count} times since {since}"
    until = sender.former_until
    if until and until <= now:
        said += f"; its former secret ended at {until:%Y-%m-%d %H:%M} UTC"
    rotate = f"`bellhop sender rotate {sender.cluster} {sender.name}`"
    return said, f"give it its present secret and set its clock, or draw a new one: {rotate}"


def _format_skew(skew: timedelta) -> str:
    minutes = round(abs(skew) / timedelta(minutes=1))
    return f"{minutes} minutes {'ahead of' if skew > timedelta(0) else 'behind'}"


def _describe_forwarder(version: str) -> str:
    return f"by forwarder {version}" if version else "by a sender that does not report its version"
