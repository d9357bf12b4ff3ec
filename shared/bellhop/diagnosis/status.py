"""How an installation is, for one screen: what works, what waits for what, what is wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from msgspec import Struct

from bellhop.api.source_names import asker
from bellhop.clusters.pause import pause_of
from bellhop.diagnosis import clocks, overview
from bellhop.diagnosis.cluster_calls import silent
from bellhop.diagnosis.failure import Failure
from bellhop.diagnosis.failures import failures
from bellhop.diagnosis.queues import backlogs, dead_letters
from bellhop.installation.installation import Installation
from bellhop.installation.process import Ticking
from bellhop.ports.queue import Backlog


class ClusterStatus(Struct, frozen=True):
    """How one cluster is: when it was heard and reached last, and what waits for it.

    Of its `deployments`, one for each profile, so many are `deployed` as desired.

    `rings` is true of a cluster that sends events, `beats` of one whose forwarder sends heartbeats.
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
    """All of it; `worked_at` is when who does the work wrote last, None if it never did.

    `version` is that of who works, as far as it is known; `clock` tells of its clock's last jump.
    The oldest `pending` work waits since that time, as the last tick of functions has it.
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
    failures: Sequence[Failure]

    @property
    def deployments(self) -> int:
        """Count the deployments of profiles in clusters."""
        return sum(each.deployments for each in self.clusters)

    @property
    def deployed(self) -> int:
        """Count those that are as desired, by the records."""
        return sum(each.deployed for each in self.clusters)


def status(here: Installation) -> Status:
    """Look at everything, and call the clusters that were not reached lately."""
    catalog, now = here.catalogs.known(), here.records.clock.now()
    pulse = here.records.pulses.get()
    unanswered, letters = silent(here), dead_letters(here)
    return Status(
        running=_runs(here),
        functions=isinstance(here.vitals, Ticking),
        version=pulse.version if pulse else "",
        since=pulse.since if pulse else None,
        worked_at=pulse.at if pulse else None,
        clock=clocks.jump(here),
        clusters=[_cluster(here, key, unanswered) for key in catalog.clusters],
        sources=sum(not asker(name) for name in catalog.sources),
        triggers=len(catalog.triggers),
        profiles=len(catalog.profiles),
        paused=[
            *(f"cluster {key}" for key, each in catalog.clusters.items() if pause_of(each, now)),
            *(f"trigger {name}" for name, each in catalog.triggers.items() if each.paused),
            *(f"profile {name}" for name, each in catalog.profiles.items() if each.paused),
        ],
        queues=backlogs(here),
        pending=pulse.pending if pulse else None,
        dead=sum(map(len, letters.values())),
        failures=list(failures(here, unanswered, letters)),
    )


def _runs(here: Installation) -> bool | None:
    if isinstance(here.vitals, Ticking):
        return not overview.lateness(here)
    return here.vitals.running if here.vitals else None


def _cluster(here: Installation, key: str, unanswered: Mapping[str, str]) -> ClusterStatus:
    health = overview.health(here, key)
    heard = here.records.hearings.get(key)
    kept = here.records.clusters.get(key)
    state = overview.standing(here, kept.value, health)[0] if kept else health.state
    outcomes = list(here.records.outcomes.of(key))
    waiting = [each for each in outcomes if overview.waits(each)]
    failed = [each for each in outcomes if each.phase.startswith("Failed")]
    return ClusterStatus(
        key=key,
        state="Down" if key in unanswered else state,
        heard_at=heard.at if heard else None,
        reached_at=health.swept_at,
        rings=bool(kept and kept.value.forwarder),
        beats=bool(kept and overview.beats(kept.value)),
        missed=health.missed,
        seen=health.seen,
        counted_since=health.counted_since,
        waiting=len(waiting),
        failing=sum(not overview.waits(each) for each in failed),
        deployed=sum(each.phase == "Provisioned" for each in outcomes),
        deployments=len(outcomes),
    )
