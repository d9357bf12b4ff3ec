"""What has to be done for clusters as time passes, so that they go on ringing.

due when                                        what is done
the mark `begun` is older than a minute         the registration that died is done again
the mark `settle` names a time that is past     old path, authority and token end
half of the certificate's life has passed       the cluster is registered again, as `register` does
a cluster was left for another under its name   that one is silenced

Nothing is remembered but in the cluster's record, so that it does not matter who asks, how often,
or who else is at it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime

from bellhop.adapters.local.certificates import life
from bellhop.engine.wiring import forwarder_secret
from bellhop.errors import DeniedError, InvalidError, MissingError
from bellhop.fleet import ringing
from bellhop.fleet.installation import Inbound, Installation
from bellhop.fleet.registration import PATIENCE, Wish, forget_abandoned, register
from bellhop.fleet.rewriting import rewrite
from bellhop.fleet.rights import watched
from bellhop.fleet.unwiring import leave_behind
from bellhop.model.kubeconfig import sanitise
from bellhop.model.record import Cluster

_AT_ONCE = datetime.min.replace(tzinfo=UTC)


def next_at(cluster: Cluster) -> datetime | None:
    """Return when the next renewal of a cluster is due; None if none ever is."""
    times = [at for at, _ in _plans(cluster)]
    return min(times, default=None)


def renewals_due(here: Installation) -> list[str]:
    """Return the clusters for which something is due by now, the longest due first."""
    now = here.records.clock.now()
    found = []
    for key, cluster in here.catalogs.known().clusters.items():
        at = next_at(cluster)
        if at is not None and at <= now:
            found.append((at, key))
    return [key for _, key in sorted(found)]


def renew(here: Installation, key: str) -> list[str]:
    """Do what is due for a cluster; return what was done, a sentence each.

    It may take a few seconds. Done twice at once, or half, it does no harm.

    Raises:
        UnreachableError: the cluster does not answer.
        BellhopError: as registering does.
    """
    kept = here.records.clusters.get(key)
    if kept is None:
        return []
    cluster = kept.value
    now = here.records.clock.now()
    due = sorted((plan for plan in _plans(cluster) if plan[0] <= now), key=lambda plan: plan[0])
    return [done for _, work in due[:1] if (done := work(here, cluster))]


def ends_at(cluster: Cluster) -> datetime | None:
    """Return when the certificate of a cluster's forwarder ends; None if it has none."""
    span = _life(cluster)
    return span[1] if span else None


_Work = Callable[[Installation, Cluster], str]


def _plans(cluster: Cluster) -> Iterator[tuple[datetime, _Work]]:
    """Yield what is to be done for a cluster some day, and when."""
    begun, settle = (cluster.forwarder.get(mark) for mark in ("begun", "settle"))
    if begun:
        # Anything else waits for this.
        yield datetime.fromisoformat(begun) + PATIENCE, _again
        return
    if cluster.abandoned:
        yield _AT_ONCE, _leave
    if settle:
        yield datetime.fromisoformat(settle), _settle
    span = _life(cluster)
    if span:
        begins, ends = span
        yield begins + (ends - begins) / 2, _again


def _life(cluster: Cluster) -> tuple[datetime, datetime] | None:
    authority = cluster.forwarder.get("next-ca") or cluster.forwarder.get("ca")
    try:
        return life(authority.encode()) if authority else None
    except InvalidError:
        return None


def _again(here: Installation, cluster: Cluster) -> str:
    inbound = here.inbound
    if cluster.forwarder.get("ingest-url"):
        inbound = Inbound(cluster.forwarder["ingest-url"], cluster.forwarder.get("ingest-ca", ""))
    if not inbound.url:
        raise MissingError(
            f"cannot renew cluster '{cluster.key}': nobody knows where it is to send its events;"
            " register it again with --ingest-url"
        )
    wish = Wish(
        cluster.namespace,
        cluster.name,
        sanitise(here.secrets.read(f"kubeconfig/{cluster.key}"), reach=here.reach),
        labels=None,
        inbound=inbound,
        forwarder_url=cluster.forwarder.get("url", ""),
        twice=True,
    )
    register(here, wish)
    return "renewed its token and the certificate of its forwarder"


def _leave(here: Installation, cluster: Cluster) -> str:
    left = leave_behind(here, cluster)
    forget_abandoned(here, cluster.key)
    return left or "silenced the cluster that had this name before"


def _settle(here: Installation, cluster: Cluster) -> str:
    """Have old path, authority and token end; register anew where the Secret is not the one."""
    kube = here.access.open(cluster.key, version=cluster.credentials)
    try:
        entries = ringing.entries_of(kube)
    except DeniedError:
        entries = {}
    else:
        if ringing.digest_of(entries.get("token", "")) != cluster.token_digest:
            # Of two registrations at once, one's record and the other's Secret may have stayed.
            return _again(here, cluster)
    fresh = _changed(
        here, cluster, lambda each: replace(each, forwarder=ringing.switched(each.forwarder))
    )
    if fresh is None:
        return ""
    resources = watched(kube, here.catalogs.current(), fresh)
    if "next-path" in cluster.forwarder:
        ringing.wire(kube, resources, fresh.forwarder)
    if entries.pop("former-path", None) is not None:
        # The forwarder goes on to know it for some minutes, until all API servers follow.
        kube.apply(forwarder_secret(entries))
    _changed(
        here,
        cluster,
        lambda each: replace(
            each,
            forwarder=ringing.settled(each.forwarder),
            former_digest="",
            former_until=None,
        ),
    )
    return "ended its former token, path and certificate" if cluster.former_digest else ""


def _changed(
    here: Installation, cluster: Cluster, step: Callable[[Cluster], Cluster]
) -> Cluster | None:
    """Take a step, unless the cluster was registered again meanwhile, which begins anew."""
    return rewrite(
        here,
        cluster.key,
        lambda found: step(found) if found.token_digest == cluster.token_digest else None,
    )
