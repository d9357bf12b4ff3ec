"""The way into a cluster and back, examined piece by piece, each with what to do where it ends.

 credentials ─► API server ─► rights      the way out: sweeps, and what is applied
 API server ─► webhook ─► forwarder ─► ingest      the way in: what rings
                  │           │
              a knock     last heard

A knock is a change of nothing, in a dry run, of an object that would ring: the API server rings
the forwarder for it as for any write, and what the forwarder answers comes back as a warning. All
else is read. Nothing is written, here or in the cluster.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal, NamedTuple

from bellhop.adapters.kube.client import KubeClient
from bellhop.adapters.kube.errors import UntrustedError
from bellhop.core.gvk import GVK, Resource
from bellhop.diagnosis import overview
from bellhop.diagnosis.cluster_calls import at_once
from bellhop.errors import BellhopError, DeniedError, UnreachableError
from bellhop.ingest.admission import INGEST, KNOCKER
from bellhop.installation.installation import Installation
from bellhop.installation.process import Ticking
from bellhop.registration import senders
from bellhop.registration.forwarder_manifests import (
    MESSAGING_NAME,
    MESSAGING_NAMESPACE,
    NAME,
    NAMESPACE,
    is_audited,
    is_direct,
)
from bellhop.registration.instructions import digest_of, entries_of
from bellhop.registration.permissions import (
    brought,
    missing_for_acting,
    missing_for_applying,
    missing_for_releases,
    missing_for_watching,
    released,
    watched,
)
from bellhop.registration.removal import identify, known_uid
from bellhop.registration.renewal import ends_at
from bellhop.state.record import Cluster

PATIENCE = 25.0
"""Seconds for all clusters together."""

_SKEW = timedelta(minutes=2)
_SOON = timedelta(days=30)
_OLDEST = (1, 20)
_VERSION = re.compile(r"v(\d+)\.(\d+)")
_SEGMENT = re.compile(r"[a-z0-9]([-.a-z0-9]*[a-z0-9])?")
_SAMPLE = 20
_WEBHOOKS = GVK("admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration")
_ROLE = GVK("rbac.authorization.k8s.io", "v1", "ClusterRole")
_BINDING = GVK("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding")
_DEPLOYMENT = GVK("apps", "v1", "Deployment")
_AGAIN = "register the cluster again: `bellhop register cluster`"
_INSTALL = "register the cluster again with its forwarder: `bellhop register cluster`"


class CheckResult(NamedTuple):
    """What was found of one piece, and the cure; it is open where nothing could be seen."""

    piece: str
    verdict: Literal["well", "wrong", "open"]
    sentence: str
    cure: str = ""


def well(piece: str, sentence: str) -> CheckResult:
    """Find a piece in order."""
    return CheckResult(piece, "well", sentence)


def wrong(piece: str, sentence: str, cure: str) -> CheckResult:
    """Find that something ends here."""
    return CheckResult(piece, "wrong", sentence, cure)


def unseen(piece: str, sentence: str, cure: str = "") -> CheckResult:
    """Find nothing, for a reason."""
    return CheckResult(piece, "open", sentence, cure)


def house(here: Installation, *, answers: bool) -> Iterator[CheckResult]:
    """Examine the process that does the work; `answers` says whether its listener does."""
    pulse, now = here.records.pulses.get(), here.records.clock.now()
    alive = here.vitals
    if alive is None:
        return
    if isinstance(alive, Ticking):
        yield from _functions(here, answers=answers)
        return
    if not alive.running:
        yield wrong("serve", "`bellhop serve` does not run", "start it")
    elif pulse and abs(now - pulse.at) > overview.PULSELESS and not alive.room.full:
        at = f"{pulse.at:%Y-%m-%d %H:%M:%S} UTC"
        yield wrong("serve", f"it has written nothing since {at}", "read its log, and restart it")
    else:
        yield well("serve", "it runs")
    mebibytes = alive.room.free // (1024 * 1024)
    if alive.room.problem:
        said = f"of the disk of '{alive.folder}': {alive.room.problem}"
        yield wrong("disk", said, "free some space; all goes on by itself")
    else:
        yield well("disk", f"{mebibytes:,} MiB are free for '{alive.folder}'")
    url = here.inbound.url
    if answers:
        yield well("listener", f"it answers at {url}")
    elif alive.running:
        cure = "see whether another address is to be advertised: `bellhop serve --advertise`"
        yield wrong("listener", f"nobody answers at {url}, the URL that clusters use", cure)


def _functions(here: Installation, *, answers: bool) -> Iterator[CheckResult]:
    """Examine functions by what they leave behind: a tick each minute, and an answer."""
    late, url = overview.lateness(here), here.inbound.url
    if late:
        cure = "see whether it is switched on, and read `bellhop logs --stage schedule`"
        yield wrong("schedule", late, cure)
    else:
        yield well("schedule", "it ticks")
    if answers:
        yield well("ingest", f"it answers at {url}")
    else:
        cure = "read `bellhop logs --stage ingest`, and see whether you may reach it from here"
        yield wrong("ingest", f"nobody answers at {url or 'any address'}", cure)


def examine(here: Installation, keys: Sequence[str]) -> Iterator[tuple[str, Sequence[CheckResult]]]:
    """Examine clusters, several at once; yield what was found of each, in their order."""
    clusters = here.catalogs.known().clusters

    def ask(key: str) -> Sequence[CheckResult]:
        return list(_Examination(here, clusters[key]).signs())

    found = at_once(keys, ask, PATIENCE)
    for key in keys:
        late = wrong(
            "API server",
            f"not all of it could be examined within {PATIENCE:g} s",
            "see whether it is very slow; examine only this cluster",
        )
        yield key, found.get(key, [late])


class _Examination:
    """One cluster's."""

    def __init__(self, here: Installation, cluster: Cluster) -> None:
        self._here = here
        self._cluster = cluster
        self._record = cluster.forwarder
        self._direct = is_direct(cluster.forwarder)
        self._audited = is_audited(cluster.forwarder)
        self._now = here.records.clock.now()
        self._kube: KubeClient
        self._resources: list[Resource] = []

    def signs(self) -> Iterator[CheckResult]:
        """Yield what is found now, and what the records have if that is nothing wrong.

        Whatever makes the cluster unhealthy in `bellhop status` is wrong here, too.
        """
        found = []
        for sign in self._examine():
            found.append(sign)
            yield sign
        health = overview.health(self._here, self._cluster.key)
        if health.message and not any(each.verdict == "wrong" for each in found):
            cure = f"`bellhop resync {self._cluster.key}` checks it again"
            yield wrong("last resync", health.message, cure)

    def _examine(self) -> Iterator[CheckResult]:
        met = list(self._meet())
        yield from met
        answers = any((each.piece, each.verdict) == ("API server", "well") for each in met)
        if answers:
            yield from self._each(
                ("credentials", self._credentials),
                ("clock", self._clock),
                ("identity", self._identity),
                ("sources", self._sources),
                ("rights", self._rights),
            )
        if not self._record:
            yield well("forwarder", "it has none: only resyncs find changes")
            yield from self._outside()
            return
        if overview.beats(self._cluster):
            yield from self._certificate()
        if answers and not self._audited:
            yield from self._each(
                ("webhook", self._webhook),
                *(() if self._direct else self._in_cluster()),
                ("webhook call", self._knock),
            )
        yield from self._heard()
        yield from self._outside()

    def _in_cluster(self) -> Sequence[tuple[str, Callable[[], Iterable[CheckResult]]]]:
        """Return the steps that examine a forwarder."""
        return (("Secret", self._secret), ("account", self._account), ("forwarder", self._pods))

    def _each(
        self, *steps: tuple[str, Callable[[], Iterable[CheckResult]]]
    ) -> Iterator[CheckResult]:
        """Take steps of which each may fail alone."""
        for piece, step in steps:
            try:
                yield from list(step())
            except BellhopError as error:
                yield unseen(piece, str(error))

    # The way out ------------------------------------------------------------------------------

    def _meet(self) -> Iterator[CheckResult]:
        key = self._cluster.key
        try:
            kube = self._here.access.open(key, version=self._cluster.credentials)
            assert isinstance(kube, KubeClient)
            self._kube = kube
        except BellhopError as error:
            yield wrong("credentials", str(error), _AGAIN)
            return
        try:
            version = self._kube.version()
        except UntrustedError as error:
            cure = f"if its certificate authority has changed, {self._registering()}"
            yield wrong("certificate", str(error), cure)
            return
        except UnreachableError as error:
            cure = "see whether it runs, and is reached from here; what waits for it then goes on"
            yield wrong("API server", str(error), cure)
            return
        except DeniedError as error:
            cure = f"{self._registering()}, with credentials that it accepts"
            yield wrong("credentials", str(error), cure)
            return
        except BellhopError as error:
            yield wrong("API server", str(error), "see whether an API server is at its address")
            return
        yield well("API server", f"it answers: Kubernetes {version}")
        found = _VERSION.match(version)
        if found and (int(found[1]), int(found[2])) < _OLDEST:
            yield wrong("version", f"{version} is older than v1.20", "upgrade the cluster")

    def _registering(self) -> str:
        if self._cluster.managed:
            return _AGAIN
        return f"`bellhop register cluster {self._cluster.key} --kubeconfig FILE`"

    def _credentials(self) -> Iterator[CheckResult]:
        ends = self._kube.ends_at
        if ends and ends - self._now < overview.ENDING:
            yield wrong("credentials", overview.ending(ends, self._now), self._registering())

    def _clock(self) -> Iterator[CheckResult]:
        skew = self._kube.skew
        if skew is None:
            yield unseen("clock", "its API server does not report the time")
        elif abs(skew) >= _SKEW:
            yield wrong("clock", f"its clock is {_apart(skew)} ours", "set the one that is wrong")
        else:
            yield well("clock", "it agrees with ours")

    def _identity(self) -> Iterator[CheckResult]:
        known, uid = known_uid(self._here, self._cluster), identify(self._kube)
        if known and uid and uid != known:
            cure = f"{_AGAIN}, or put back the cluster that was there"
            yield wrong("identity", "its address leads to another cluster than it did", cure)

    def _sources(self) -> Iterator[CheckResult]:
        catalog = self._here.catalogs.known()
        self._resources = watched(self._kube, catalog, self._cluster)
        sources = catalog.sources_in(self._cluster.key)
        if sources:
            yield well("sources", f"in force: {', '.join(sources)}")
        else:
            yield unseen(
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
                yield wrong("sources", said, cure)

    def _accounts(self) -> set[str]:
        """Return the service accounts for which anything may be done in the cluster."""
        catalog = self._here.catalogs.known()
        accounts = {account for account, _ in catalog.accounts_in(self._cluster.key)}
        rules = (*catalog.triggers.values(), *catalog.profiles.values())
        return accounts | {each.account for each in rules if each.account}

    def _rights(self) -> Iterator[CheckResult]:
        missing = missing_for_watching(
            self._kube,
            self._resources,
            ringing=bool(self._record) and not self._audited,
            direct=self._direct,
        )
        if missing_for_applying(self._kube):
            # They need not reach everything: what counts is what is to be brought there.
            kinds = brought(self._here, self._cluster.key)
            missing += missing_for_applying(self._kube, kinds)
            missing += missing_for_releases(self._kube, released(self._here, self._cluster.key))
        missing += missing_for_acting(self._kube, self._accounts())
        cure = (
            "grant them to the user of the kubeconfig; the how-to 'Register a cluster' lists them"
        )
        for each in missing:
            yield wrong("rights", f"its credentials {each}", cure)
        if not missing:
            yield well("rights", "its credentials may do all that is asked of them")

    # The way in -------------------------------------------------------------------------------

    def _certificate(self) -> Iterator[CheckResult]:
        ends = ends_at(self._cluster)
        if ends is None:
            yield wrong("certificate", "the forwarder's cannot be read", _AGAIN)
        elif ends - self._now < _SOON:
            yield wrong("certificate", f"the forwarder's ends on {ends:%Y-%m-%d %H:%M} UTC", _AGAIN)
        else:
            yield well("certificate", f"the forwarder's is valid until {ends:%Y-%m-%d}")

    def _webhook(self) -> Iterator[CheckResult]:
        sweep = f"`bellhop resync {self._cluster.key}` writes it again, or reports what fails"
        found = self._kube.get(_WEBHOOKS, "", NAME)
        hooks = (found or {}).get("webhooks") or []
        clients = [hook.get("clientConfig") or {} for hook in hooks]
        if found is None:
            health = self._here.records.health.head(self._cluster.key)
            why = f": {health.message}" if health.mute else ""
            yield wrong("webhook", f"its webhook configuration is missing{why}", sweep)
            return
        problems = {each for client in clients for each in self._differs(client)}
        lacking = {each.plural for each in self._resources} - _ringing(hooks)
        if lacking:
            problems.add(f"does not send events of {', '.join(sorted(lacking))}")
        for each in sorted(problems):
            yield wrong("webhook", f"it {each}", sweep)
        if moved := overview.moved(self._here, self._cluster):
            yield wrong("webhook", moved, f"{_AGAIN}, or serve at that address again")
        elif not problems:
            where = self._record.get("url") or "the Service in the cluster"
            yield well("webhook", f"it calls {'ingest itself' if self._direct else where}")

    def _differs(self, client: Mapping[str, Any]) -> Iterator[str]:
        """Say where a webhook leads elsewhere than the record has it."""
        service = client.get("service") or {}
        path = str(service.get("path") or "")
        url = self._record.get("url", "")
        rings = str(client.get("url") or path)
        if not rings.endswith(self._record.get("path", "")):
            yield "calls another path than the forwarder's"
        token = digest_of(rings.rpartition("/")[2])
        if self._direct and token not in self._cluster.gate((), 0).digests(self._now):
            yield "calls ingest with a token that is not accepted"
        if url and not rings.startswith(url):
            yield f"does not call '{url}', where the forwarder is said to be"
        if not url and not service:
            yield "does not call the Service in the cluster"
        if path and not all(map(_SEGMENT.fullmatch, path.strip("/").split("/"))):
            yield "has a path that API servers refuse"
        if self._record.get("ca", "") != _decoded(client.get("caBundle")):
            whose = "ingest's" if self._direct else "the forwarder's"
            yield f"trusts another authority than that of {whose} certificate"

    def _secret(self) -> Iterator[CheckResult]:
        entries = entries_of(self._kube)
        cluster, inbound = self._cluster, self._here.inbound.url
        if not entries:
            yield wrong("Secret", f"'{NAMESPACE}/{NAME}' is not there", _AGAIN)
            return
        if entries.get("cluster") != cluster.key:
            serves = entries.get("cluster", "")[:128]
            yield wrong("Secret", f"the forwarder serves cluster '{serves}'", _AGAIN)
            return
        digest = digest_of(entries.get("token", ""))
        if digest == cluster.token_digest:
            yield well("Secret", "its token is the one that is accepted")
        elif digest == cluster.former_digest:
            yield well("Secret", "its token is the former one, which is accepted for now")
        else:
            yield wrong("Secret", "its token is not accepted", _AGAIN)
        url = self._record.get("ingest-url") or inbound
        if entries.get("ingest-url", "").rstrip("/") != url.rstrip("/"):
            sent = entries.get("ingest-url", "")[:256]
            cure = f"{_AGAIN}, or serve at that address again"
            yield wrong("Secret", f"the forwarder sends to {sent}, and Bellhop is at {url}", cure)

    def _account(self) -> Iterator[CheckResult]:
        role = self._kube.get(_ROLE, "", NAME)
        binding = self._kube.get(_BINDING, "", NAME)
        may = {
            (group, plural)
            for rule in (role or {}).get("rules") or []
            for group in rule.get("apiGroups") or []
            for plural in rule.get("resources") or []
            if "get" in (rule.get("verbs") or [])
        }
        lacking = [r.plural for r in self._resources if (r.gvk.group, r.plural) not in may]
        sweep = f"`bellhop resync {self._cluster.key}` grants it"
        if lacking:
            what = ", ".join(sorted(lacking))
            yield wrong(
                "account", f"the forwarder may not read {what}, whose events it receives", sweep
            )
        if binding is None:
            yield wrong("account", f"ClusterRoleBinding '{NAME}' is not there", _AGAIN)
        if binding is not None and not lacking:
            yield well("account", "the forwarder may read the objects of its events")

    def _pods(self) -> Iterator[CheckResult]:
        if self._record.get("url"):
            return
        found = self._kube.get(_DEPLOYMENT, NAMESPACE, NAME)
        cure = f"`kubectl -n {NAMESPACE} get pods` and `kubectl -n {NAMESPACE} logs deploy/{NAME}`"
        if found is None:
            yield wrong("forwarder", "its Deployment is not there", _INSTALL)
        elif not (found.get("status") or {}).get("readyReplicas"):
            yield wrong("forwarder", "none of its pods is ready", f"{cure} say why")

    def _knock(self) -> Iterator[CheckResult]:
        """See whether the API server reaches the forwarder."""
        whom = "ingest" if self._direct else "the forwarder"
        where = self._record.get("url") or f"its Service '{NAMESPACE}/{NAME}'"
        key = self._somebody()
        if key is None:
            yield unseen("webhook call", "there is no object of a watched kind for a dry-run call")
            return
        said = self._kube.knock(*key, manager=KNOCKER)
        if f"{NAME} " in said or f"{INGEST} " in said:
            yield well("webhook call", f"its API server reaches {whom}")
            return
        yield wrong(
            "webhook call",
            f"its API server does not reach {whom} at {where}",
            f"see whether {whom} runs, and is reached from the API server at that address,"
            " and read its log",
        )

    def _somebody(self) -> tuple[GVK, str, str] | None:
        """Find an object that rings; those of the forwarder's own namespace do not."""
        for resource in self._resources:
            for item in self._kube.page(resource.gvk, limit=_SAMPLE).items:
                metadata = item["metadata"]
                place = metadata.get("namespace", "")
                own = metadata["name"] if resource.gvk.kind == "Namespace" else place
                if own != NAMESPACE:
                    return resource.gvk, place, metadata["name"]
        return None

    def _heard(self) -> Iterator[CheckResult]:
        key = self._cluster.key
        heard = self._here.records.hearings.get(key)
        said = overview.ringing(self._here, key)
        if said:
            cure = "see what else is wrong here; if nothing is, read the forwarder's log"
            yield wrong("heartbeat", said, cure)
        elif not overview.beats(self._cluster):
            return
        elif heard is None:
            yield unseen("heartbeat", "no heartbeat yet")
        else:
            yield well(
                "heartbeat", f"at {heard.at:%Y-%m-%d %H:%M:%S} UTC, {_forwarder(heard.version)}"
            )
        if heard and abs(heard.ahead) >= _SKEW.total_seconds():
            apart = _apart(timedelta(seconds=heard.ahead))
            cure = "set the one that is wrong"
            yield wrong("clock", f"the forwarder's clock is {apart} ours", cure)
        if unsubscribed := overview.unsubscribed(self._here, key):
            place = f"{MESSAGING_NAMESPACE}/{MESSAGING_NAME}"
            cure = f"see what the Secret '{place}' says, and whether that server runs"
            yield wrong("NATS", unsubscribed, cure)
        if heard and heard.owed and heard.since and self._now - heard.since > overview.SILENT:
            cure = "its log says why; it keeps them, and sends them once it can"
            owed = f"it owes {heard.owed} objects since {heard.since:%Y-%m-%d %H:%M} UTC"
            yield wrong("heartbeat", owed, cure)

    def _outside(self) -> Iterator[CheckResult]:
        """See who is refused of those that send CloudEvents for the cluster from outside."""
        known = list(senders.listed(self._here, self._cluster.key))
        refused = [each for each in known if each.refused and each.refused.count >= overview.MANY]
        for each in refused:
            yield wrong("senders", *_of_refused(each, self._now))
        if known and not refused:
            names = ", ".join(each.sender.name for each in known)
            yield well("senders", f"{names}: nothing was refused lately")


def _of_refused(seen: senders.Seen, now: datetime) -> tuple[str, str]:
    """Say of a sender that it is refused, and what to do."""
    sender, refusals = seen.sender, seen.refused
    assert refusals
    since = f"{refusals.since:%Y-%m-%d %H:%M} UTC"
    said = f"'{sender.name}' from outside was refused {refusals.count} times since {since}"
    until = sender.former_until
    if until and until <= now:
        said += f"; its former secret ended at {until:%Y-%m-%d %H:%M} UTC"
    rotate = f"`bellhop sender rotate {sender.cluster} {sender.name}`"
    return said, f"give it its present secret and set its clock, or draw a new one: {rotate}"


def _apart(skew: timedelta) -> str:
    minutes = round(abs(skew) / timedelta(minutes=1))
    return f"{minutes} minutes {'ahead of' if skew > timedelta(0) else 'behind'}"


def _forwarder(version: str) -> str:
    return f"by forwarder {version}" if version else "by a sender that does not report its version"


def _ringing(hooks: Sequence[Mapping[str, Any]]) -> set[str]:
    """Return the resources that webhooks ring for, whoever made the object."""
    return {
        str(plural)
        for hook in hooks
        if not (hook.get("objectSelector") or {}).get("matchLabels")
        for rule in hook.get("rules") or []
        for plural in rule.get("resources") or []
    }


def _decoded(bundle: Any) -> str:
    try:
        return base64.b64decode(str(bundle or ""), validate=True).decode()
    except (binascii.Error, ValueError):
        return ""
