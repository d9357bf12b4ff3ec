"""Renewal of clusters: what is due as time passes, so that their events go on.

due when                                        what is done
the mark `begun` is older than a minute         the registration that died is done again
the mark `settle` names a time that is past     old path, authority and token end
half of the certificate's life has passed       the cluster is registered again, as `register` does
its path is none that a Service is called at    the same, at once: earlier versions made such paths
a cluster was left for another under its name   that one is silenced
the token by which Bellhop logs in is old       the cluster issues another, where its spec says so

Nothing is remembered but in the cluster's record, so that it does not matter who asks, how often,
or who else is at it. When to ask is a timer:

    who writes a record    record ─► timer: in a minute
    the schedule           publishes Renew ─► timer: in ten minutes, should this one fail
    Renew                  does what is due ─► reads timer, record ─► timer: when the record says

The last write is on condition of the timer that was read before the record: a record that was
written since has set it again. Killed anywhere, the timer of the step before fires.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from msgspec.structs import replace

from bellhop.adapters.local.certificates import life
from bellhop.clusters.installation_mark import refuse_taken
from bellhop.clusters.kubeconfig import sanitise
from bellhop.errors import DeniedError, InvalidError, MissingError
from bellhop.installation import Inbound, Installation
from bellhop.ports.kube import Kube
from bellhop.registration import instructions
from bellhop.registration.forwarder_manifests import (
    forwarder_secret,
    is_audited,
    is_callable,
    is_direct,
    make_direct_record,
)
from bellhop.registration.permissions import list_watched
from bellhop.registration.record_update import update_cluster
from bellhop.registration.registration import register
from bellhop.registration.removal import forget_abandoned, remove_former_sender
from bellhop.registration.request import PATIENCE, Pause, Registration
from bellhop.registration.token_renewal import find_token_renewal, renew_token, token_interval
from bellhop.registration.unanswered import INSTALL
from bellhop.state.cluster import Cluster
from bellhop.state.timers import SKEW

_AT_ONCE = datetime.min.replace(tzinfo=UTC)


def find_next(cluster: Cluster, now: datetime) -> datetime | None:
    """Return the time of the next renewal of a cluster; None if it needs none."""
    times = [at for at, _ in _list_steps(cluster, now)]
    return min(times, default=None)


def renew(here: Installation, key: str) -> list[str]:
    """Do the due renewals of a cluster; return a sentence for each.

    It may take a few seconds. Done twice at once, or half, it is harmless.

    Raises:
        UnreachableError: the cluster does not answer.
        BellhopError: registration failed.
    """
    kept = here.records.clusters.get(key)
    if kept is None:
        return []
    cluster = kept.value
    now = here.records.clock.now()
    plans = (plan for plan in _list_steps(cluster, now) if plan[0] <= now)
    due = sorted(plans, key=lambda plan: plan[0])
    return [done for _, work in due[:1] if (done := work(here, cluster))]


def rotate(
    here: Installation, key: str, audit: Path | None = None, *, pause: Pause = time.sleep
) -> Cluster:
    """Give a cluster's sender a new token now, as a renewal does; return the changed cluster.

    The token of an API server's audit log is written into the folder `audit`.

    Old and new are both accepted meanwhile, so no request is refused. Killed anywhere, or done
    twice at once, it ends as a registration would.

    Raises:
        MissingError: there is no such cluster, or it has no sender.
        BellhopError: registration failed.
    """
    kept = here.records.clusters.get(key)
    if kept is None:
        raise MissingError(f"cannot rotate the token of cluster '{key}': it is not registered")
    if not kept.value.forwarder:
        raise MissingError(
            f"cannot rotate the token of cluster '{key}': it has no sender, and so no token;"
            " register it with --forwarder to receive its events"
        )
    if is_audited(kept.value.forwarder) != (audit is not None):
        raise InvalidError(
            f"cannot rotate the token of cluster '{key}': its API server has it in a file; give"
            " --audit and the folder for the new one"
            if audit is None
            else f"cannot write files for cluster '{key}': it does not send its audit log"
        )
    _again(here, kept.value, pause, audit)
    found = here.records.clusters.get(key)
    if found is None:
        raise MissingError(f"cannot rotate the token of cluster '{key}': it was deregistered now")
    return found.value


def find_expiry(cluster: Cluster) -> datetime | None:
    """Return the end of the forwarder's certificate; None if it has none."""
    span = _life(cluster)
    return span[1] if span else None


_Work = Callable[[Installation, Cluster], str]


def _list_steps(cluster: Cluster, now: datetime) -> Iterator[tuple[datetime, _Work]]:
    """Yield the renewals of a cluster, each with its time.

    A recorded time that is too late to be true was written by a clock that was ahead: it is due.
    """
    begun, settle = (cluster.forwarder.get(mark) for mark in ("begun", "settle"))
    if begun:
        # Anything else waits for this.
        yield _at_most(datetime.fromisoformat(begun) + PATIENCE, now + PATIENCE), _again
        return
    if cluster.abandoned:
        yield _AT_ONCE, _leave
    if settle:
        yield (
            _at_most(datetime.fromisoformat(settle), now + instructions.AUDIT_OVERLAP),
            _complete_rotation,
        )
    if token := find_token_renewal(cluster):
        yield _at_most(token, now + token_interval(cluster)), renew_token
    if is_direct(cluster.forwarder) or is_audited(cluster.forwarder):
        return
    if cluster.forwarder and not is_callable(cluster.forwarder):
        yield _AT_ONCE, _again
    span = _life(cluster)
    if span:
        # Its beginning says nothing of when it was made, which may be by a clock that was ahead.
        yield _at_most(span[1] - instructions.VALIDITY / 2, now + instructions.VALIDITY), _again


def _at_most(at: datetime, latest: datetime) -> datetime:
    return at if at <= latest + SKEW else _AT_ONCE


def _life(cluster: Cluster) -> tuple[datetime, datetime] | None:
    authority = cluster.forwarder.get("next-ca") or cluster.forwarder.get("ca")
    try:
        return life(authority.encode()) if authority else None
    except InvalidError:
        return None


def _again(
    here: Installation, cluster: Cluster, pause: Pause = time.sleep, audit: Path | None = None
) -> str:
    inbound = here.inbound
    sends_directly = is_direct(cluster.forwarder)
    runs_outside = not sends_directly and audit is None
    unanswered = INSTALL in cluster.forwarder
    if cluster.forwarder.get("ingest-url"):
        inbound = Inbound(cluster.forwarder["ingest-url"], cluster.forwarder.get("ingest-ca", ""))
    if not inbound.url:
        raise MissingError(
            f"cannot renew cluster '{cluster.key}': the ingest URL is not known yet;"
            " register it again with --ingest-url"
        )
    if cluster.managed:
        # A token of an earlier version that is refused by now is replaced.
        here.access.open(cluster.key, version=cluster.credentials).version()
    spec = Registration(
        cluster.namespace,
        cluster.name,
        sanitise(here.secrets.read(f"kubeconfig/{cluster.key}"), reach=here.reach),
        labels=None,
        inbound=inbound,
        forwarder_url=cluster.forwarder.get("url", "") if runs_outside else "",
        direct=sends_directly,
        audit=audit,
        twice=not unanswered,
        install=None if unanswered else False,
        image=cluster.forwarder.get(INSTALL, ""),
        managed=cluster.managed,
        assume_role=cluster.assume_role,
        external_id=cluster.external_id,
        renews=cluster.registered_at,
    )
    register(here, spec, pause=pause)
    return "renewed its token and the certificate of its forwarder"


def _leave(here: Installation, cluster: Cluster) -> str:
    left = remove_former_sender(here, cluster)
    forget_abandoned(here, cluster.key)
    return left or "silenced the cluster that had this name before"


def _complete_rotation(here: Installation, cluster: Cluster) -> str:
    """End old path, authority and token; register again where the Secret is another one."""
    kube = here.access.open(cluster.key, version=cluster.credentials)
    if is_audited(cluster.forwarder):
        _end_former(here, cluster)
        return "ended its former token" if cluster.former_digest else ""
    refuse_taken(here.records.installations, kube)
    if is_direct(cluster.forwarder):
        return _end_former_direct(here, cluster, kube)
    try:
        entries = instructions.read_entries(kube)
    except DeniedError:
        entries = {}
    else:
        if instructions.digest_token(entries.get("token", "")) != cluster.token_digest:
            # Of two registrations at once, one's record and the other's Secret may have stayed.
            return _again(here, cluster)
    fresh = _changed(
        here,
        cluster,
        lambda each: replace(each, forwarder=instructions.mark_switched(each.forwarder)),
    )
    if fresh is None:
        return ""
    resources = list_watched(kube, here.catalogs.current(), fresh)
    if "next-path" in cluster.forwarder:
        instructions.configure_webhook(
            kube, resources, fresh.forwarder, here.records.installations.get()
        )
    if entries.pop("former-path", None) is not None:
        # The forwarder goes on to know it for some minutes, until all API servers follow.
        kube.apply(forwarder_secret(entries))
    _end_former(here, cluster)
    return "ended its former token, path and certificate" if cluster.former_digest else ""


def _end_former_direct(here: Installation, cluster: Cluster, kube: Kube) -> str:
    """End the old token of an API server that calls ingest itself, once it has the new one."""
    token = here.records.callers.get(cluster.key)
    if instructions.digest_token(token) != cluster.token_digest:
        # Of two registrations at once, one's record and the other's token may have stayed.
        return _again(here, cluster)
    resources = list_watched(kube, here.catalogs.current(), cluster)
    # A slow resync may have written the former one over it.
    mine = here.records.installations.get()
    instructions.configure_webhook(
        kube, resources, make_direct_record(cluster.forwarder, token), mine
    )
    _end_former(here, cluster)
    return "ended its former token" if cluster.former_digest else ""


def _end_former(here: Installation, cluster: Cluster) -> None:
    _changed(
        here,
        cluster,
        lambda each: replace(
            each,
            forwarder=instructions.mark_settled(each.forwarder),
            former_digest="",
            former_until=None,
        ),
    )


def _changed(
    here: Installation, cluster: Cluster, step: Callable[[Cluster], Cluster]
) -> Cluster | None:
    """Change the record, unless the cluster was registered again meanwhile."""
    return update_cluster(
        here,
        cluster.key,
        lambda found: step(found) if found.token_digest == cluster.token_digest else None,
    )
