"""Status of a SveltosCluster, computed from the records of its cluster."""

from __future__ import annotations

from datetime import datetime

from bellhop.clusters.pause import describe_pause, window_in
from bellhop.configuration.conditions import State, progress, retry, succeed
from bellhop.configuration.objects import SveltosClusterStatus
from bellhop.core.windows import next_times
from bellhop.diagnosis.cluster_status import read_health
from bellhop.installation import InstallationView
from bellhop.registration.token_renewal import RENEWED_AT
from bellhop.state.cluster import Cluster, Health


def read_cluster_status(
    here: InstallationView, key: str
) -> tuple[SveltosClusterStatus, State] | None:
    """Return the status of a cluster and its state; None if it is not registered."""
    kept = here.records.clusters.get(key)
    if kept is None:
        return None
    cluster, now = kept.value, here.records.clock.now()
    health = read_health(here, key)
    status = make_cluster_status(cluster, health, now)
    return status, describe_state(cluster, health, now)


def describe_state(cluster: Cluster, health: Health, now: datetime) -> State:
    """Return the state of a cluster: whether its API server answers, and what it waits for."""
    if health.away:
        return retry(health.state, health.message, health.since)
    if not cluster.kubernetes:
        return progress("Connecting", "its API server was not called yet", cluster.registered_at)
    return succeed("Connected", f"it {describe_pause(cluster, now)}", health.since)


def make_cluster_status(
    cluster: Cluster | None, health: Health, now: datetime, refusal: str = ""
) -> SveltosClusterStatus:
    """Return the status of a cluster, by its record and its health; without a record, only why.

    `refusal` is why the present version of the object is not in force, or what it lacks. A cluster
    is ready once its API server has answered, and stays so while it is down, as in Sveltos. Times
    of a window are those after `now`.
    """
    if cluster is None:
        return SveltosClusterStatus(failure_message=refusal)
    window = window_in(cluster)
    coming = next_times(window, now) if window else None
    reached = bool(cluster.kubernetes)
    problem = health.message if health.away else ""
    return SveltosClusterStatus(
        version=cluster.kubernetes,
        ready=reached,
        connection_status="Down" if health.away else "Healthy" if reached else None,
        connection_failures=health.failures,
        last_reconciled_token_request_at=cluster.annotations.get(RENEWED_AT, ""),
        failure_message="; ".join(filter(None, (refusal, problem))),
        next_pause=coming.closes if coming else None,
        next_unpause=coming.opens if coming else None,
    )
