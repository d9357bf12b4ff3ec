"""Status of an installation for one screen: workers, clusters, queues and failures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from msgspec import Struct

from bellhop.api.names import asker
from bellhop.api.stage_profile import StageProfile
from bellhop.clusters.pause import pause_of
from bellhop.diagnosis import cluster_status, profile_status, worker_status
from bellhop.diagnosis.calls import find_unanswered, list_dead_letters, read_backlogs
from bellhop.diagnosis.condition import Condition
from bellhop.diagnosis.failures import list_failures
from bellhop.installation import Installation, Ticking
from bellhop.ports.queue import Backlog


class ClusterStatus(Struct, frozen=True):
    """The status of one cluster: last heartbeat, last answer, and its deployments.

    `rings` is true of a cluster that sends events, `beats` of one whose forwarder sends heartbeats.
    Of its `deployments`, one for each profile, `deployed` are as desired.
    """

    key: str
    state: str
    heard_at: datetime | None
    reached_at: datetime | None
    rings: bool
    beats: bool
    missed: int
    seen: int
    counted_since: datetime | None
    waiting: int
    failing: int
    deployed: int
    deployments: int


class Status(Struct, frozen=True):
    """The status of an installation; `worked_at` is the last heartbeat of the worker.

    `version` is that of the worker, as far as it is known; `clock` describes its clock's last jump.
    The oldest `pending` work waits since that time, as of the last tick of functions.
    """

    running: bool | None
    functions: bool
    version: str
    since: datetime | None
    worked_at: datetime | None
    clock: str
    clusters: Sequence[ClusterStatus]
    sources: int
    triggers: int
    profiles: int
    paused: Sequence[str]
    queues: Mapping[str, Backlog]
    pending: datetime | None
    dead: int
    failures: Sequence[Condition]

    @property
    def deployments(self) -> int:
        return sum(each.deployments for each in self.clusters)

    @property
    def deployed(self) -> int:
        """The number of deployments that are as desired, by the records."""
        return sum(each.deployed for each in self.clusters)


def read_status(here: Installation) -> Status:
    """Read all records, and call the clusters that were not reached lately."""
    catalog, now = here.catalogs.known(), here.records.clock.now()
    worker = here.records.pulses.get()
    unanswered, letters = find_unanswered(here), list_dead_letters(here)
    return Status(
        running=_is_running(here),
        functions=isinstance(here.vitals, Ticking),
        version=worker.version if worker else "",
        since=worker.since if worker else None,
        worked_at=worker.at if worker else None,
        clock=worker_status.describe_clock_jump(here),
        clusters=[_read_cluster(here, key, unanswered) for key in catalog.clusters],
        sources=sum(not asker(name) for name in catalog.sources),
        triggers=len(catalog.triggers),
        profiles=len(catalog.profiles),
        paused=[
            *(f"cluster {key}" for key, each in catalog.clusters.items() if pause_of(each, now)),
            *(f"trigger {name}" for name, each in catalog.triggers.items() if each.paused),
            *(f"promotion {name}" for name, each in catalog.promotions.items() if each.paused),
            *(
                f"profile {name}"
                for name, each in catalog.profiles.items()
                if each.paused and not isinstance(each, StageProfile)
            ),
        ],
        queues=read_backlogs(here),
        pending=worker.pending if worker else None,
        dead=sum(map(len, letters.values())),
        failures=list(list_failures(here, unanswered, letters)),
    )


def _is_running(here: Installation) -> bool | None:
    if isinstance(here.vitals, Ticking):
        return not worker_status.describe_missed_ticks(here)
    return here.vitals.running if here.vitals else None


def _read_cluster(here: Installation, key: str, unanswered: Mapping[str, str]) -> ClusterStatus:
    health = cluster_status.read_health(here, key)
    heartbeat = here.records.hearings.get(key)
    kept = here.records.clusters.get(key)
    state = cluster_status.display_state(here, kept.value, health)[0] if kept else health.state
    outcomes = list(here.records.outcomes.of(key))
    waiting = [each for each in outcomes if profile_status.waits_for_cluster(each)]
    failed = [each for each in outcomes if each.phase.startswith("Failed")]
    return ClusterStatus(
        key=key,
        state="Down" if key in unanswered else state,
        heard_at=heartbeat.at if heartbeat else None,
        reached_at=health.swept_at,
        rings=bool(kept and kept.value.forwarder),
        beats=bool(kept and cluster_status.sends_heartbeats(kept.value)),
        missed=health.missed,
        seen=health.seen,
        counted_since=health.counted_since,
        waiting=len(waiting),
        failing=sum(not profile_status.waits_for_cluster(each) for each in failed),
        deployed=sum(each.phase == "Provisioned" for each in outcomes),
        deployments=len(outcomes),
    )
