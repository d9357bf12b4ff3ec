"""Where histories touch the wiring of a Fleet: processes, batches, messages, and what is recorded.

Worlds and schedules know a fleet only by these functions, so that ports, stages and records can
be redrawn without a word changing in a history.
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from msgspec.structs import replace

from bellhop.api.names import health_source
from bellhop.core.gvk import GVK, ObjectKey
from bellhop.core.identity import profile_name
from bellhop.diagnosis import held_deletions
from bellhop.errors import MissingError, PermanentError
from bellhop.operations import pause as pausing
from bellhop.profiles.records import Place
from bellhop.state.cluster import MANAGEMENT, Cluster
from bellhop.state.delays import sweep_timer
from bellhop.state.messages import INBOXES, Apply, CheckDeletionGuard, Evaluate, Instantiate, Resync
from bellhop.state.records import Records
from bellhop.state.sealer import Sealer
from bellhop.state.timers import SHARDS, SKEW
from tests.fakes.fleet import FakeAccess, Fleet
from tests.fakes.lossy import Losses, LossyQueue
from tests.fakes.mortal import Fate, Killed, Mortal

STAGES = "sweep evaluate deploy"
"""The stages that are fed by queues, in the order in which a worker looks at them."""

VISIBILITY = timedelta(seconds=121)
"""After this long a message in flight is given to another, and a worker's leases end."""

MEMORY = Path("/dev/shm")

HOST = "mgmt"
"""The cluster that hosts what is Local, as histories call it."""

UNWIRED: Mapping[str, str] = {}

Wrap = Callable[[str, Any], Any]


def place(cluster: str) -> str:
    """Return the name by which a cluster of a history is registered."""
    return MANAGEMENT if cluster == HOST else f"fleet/{cluster}"


def folder() -> TemporaryDirectory[str]:
    """Make a folder for one history; in memory, where the machine has such: a disk is slower."""
    return TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None)


class WrappedAccess(FakeAccess):
    """Clients behind a proxy."""

    def __init__(self, wrap: Wrap) -> None:
        super().__init__()
        self._wrap = wrap

    def open(self, *args: Any, **kwargs: Any) -> Any:
        return self._wrap("cluster", super().open(*args, **kwargs))


def interpose(fleet: Fleet, wrap: Wrap) -> None:
    """Put a proxy around every port: store, blobs, queues, Helm and the clusters' clients."""
    fleet.access = WrappedAccess(wrap)
    fleet.store._store = wrap("store", fleet.store._store)
    blobs = wrap("blobs", fleet.records._payloads._blobs)
    fleet.records = Records(fleet.store, blobs, Sealer(bytes(32)), fleet.clock)
    fleet.queues = {name: wrap(name, queue) for name, queue in fleet.queues.items()}
    fleet.charts = wrap("charts", fleet.charts)
    fleet.reread()


def make_mortal(fleet: Fleet, given: Fate | None = None) -> Fate:
    """Let an installation die at a call of one of its ports; return what decides at which."""
    fate, clusters = given or Fate(), fleet.access.clusters
    interpose(fleet, lambda name, port: Mortal(name, port, fate))
    fleet.access.clusters = clusters
    return fate


def process(fleet: Fleet) -> Fleet:
    """Start another process on the same store, queues and clusters; it remembers nothing."""
    another = copy.copy(fleet)
    another.reread()
    return another


def batch(fleet: Fleet, stage: str, *, limit: int) -> bool:
    """Take one batch from each of a stage's inboxes and work on it; say whether there was any."""
    worked = False
    for inbox in inboxes(stage):
        deliveries = fleet.queues[inbox].receive(limit, wait=timedelta(0))
        fleet.work(inbox, deliveries)
        worked = worked or bool(deliveries)
    return worked


def inboxes(stage: str) -> Sequence[str]:
    """Name the inboxes of a stage."""
    return [inbox for inbox, whose in INBOXES.items() if whose == stage]


def release(fleet: Fleet) -> None:
    """Give back what workers hold that are known to be dead."""
    for queue in fleet.queues.values():
        queue.release()


def kill(fleet: Fleet, fate: Fate, steps: int, act: Callable[[], object] | None = None) -> bool:
    """Work in a process that dies at a step, and begin another; return whether it died by then."""
    fate.doom(steps)
    died = True
    with suppress(Killed):
        (act or fleet.pump)()
        died = False
    fate.revive()
    fleet.reread()
    release(fleet)
    return died


def settle(fleet: Fleet, rounds: int = 3) -> None:
    """Give back what dead workers hold, and do all that is due, longer than any lease."""
    release(fleet)
    for _ in range(rounds):
        fleet.clock.advance(timedelta(seconds=130))
        tick(fleet)
        fleet.pump()


def tick(fleet: Fleet) -> None:
    """Do what the schedule does: publish what is due, and finish what was abandoned."""
    fleet.schedule.tick()
    fleet.declare.resume()


def resync(fleet: Fleet, times: int) -> None:
    """Let time pass, and work, until each cluster was resynced so often, only by its timer."""
    # Timers of clusters differ by a tenth.
    left = times * (fleet.settings.sweep_interval * 1.1 + timedelta(seconds=1))
    while left > timedelta(0):
        fleet.clock.advance(min(VISIBILITY, left))
        left -= VISIBILITY
        tick(fleet)
        fleet.pump()


def lose(fleet: Fleet, losses: Losses) -> None:
    """Have an installation lose a message."""
    fleet.queues = {name: LossyQueue(name, each, losses) for name, each in fleet.queues.items()}
    fleet.reread()


def heed_clock(fleet: Fleet) -> None:
    """Do what `serve` does when it sees that its clock went back."""
    fleet.schedule.pull_in()


def beyond_their_pause(fleet: Fleet) -> list[str]:
    """Name what is set for later than it may be: a clock that is right again must not count."""
    now = fleet.clock.now()
    found = [
        item.value["name"]
        for shard in SHARDS
        for item in fleet.store.query(f"due/{shard}")
        if item.value["set"] > (now + SKEW).isoformat(timespec="microseconds")
    ]
    for cluster in fleet.records.clusters.all():
        name = sweep_timer(cluster.key)
        timer = fleet.records.timers.get(name)
        if timer is None or timer.value.at > now + fleet.settings.sweep_interval * 1.1:
            found.append(name)
    return found


def request_resync(fleet: Fleet, cluster: str, *, full: bool) -> None:
    """Request a resync as a user or the schedule does."""
    fleet.publisher.publish([Resync(place(cluster), full=full)])


def resync_together(fleet: Fleet) -> None:
    """Resync all clusters at one time from now on: of three out of step one always is."""
    for cluster in fleet.catalogs.current().clusters:
        body = Resync(cluster).message().body
        fleet.records.timers.set(sweep_timer(cluster), fleet.clock.now(), body)


def echo(fleet: Fleet, cluster: str, destination: str, key: ObjectKey) -> None:
    """Repeat messages about one object that were sent, or might have been, at any time."""
    here = place(cluster)
    profile = profile_name("each", here, str(key))
    fleet.publisher.publish(
        [
            Evaluate(here, str(key), trace="echo"),
            Instantiate("each", here, str(key)),
            Apply("each", here, profile, place(destination)),
        ]
    )


def release_held(fleet: Fleet) -> None:
    """Release all that is held, as a user does."""
    here = fleet.installation()
    for each in list(held_deletions.list_held_reports(here)):
        with suppress(MissingError):
            # It came back meanwhile.
            held_deletions.release_report(here, each.hold.cluster, each.hold.source)
    with suppress(MissingError):
        # Another release of it was quicker.
        fleet.release()


def weigh(fleet: Fleet, cluster: str) -> None:
    """Check the deletion guard of a cluster, as timers do, and messages that come again."""
    here = place(cluster)
    sources = fleet.catalogs.current().sources_in(here)
    fleet.publisher.publish(CheckDeletionGuard(here, each) for each in sorted(sources))


def publish(fleet: Fleet, queue: str, message: Any) -> None:
    """Send a recorded message again."""
    fleet.queues[queue].publish([message])


def replay_dead(fleet: Fleet) -> int:
    """Replay every dead letter, as a user does; say how many there were."""
    found = [(queue, letter.id) for queue in fleet.queues.values() for letter in queue.list()]
    for queue, number in found:
        queue.replay(number)
    return len(found)


def rotate(fleet: Fleet, cluster: str, token_digest: str) -> None:
    """Register a cluster again as it is, with another token."""
    found = fleet.records.clusters.get(place(cluster))
    assert found
    fleet.declare.register(replace(found.value, token_digest=token_digest), expect=found.token)


def label(fleet: Fleet, cluster: str, labels: dict[str, str | None]) -> None:
    """Set labels of a cluster."""
    fleet.declare.label(place(cluster), labels)


def pause(fleet: Fleet, cluster: str, *, paused: bool) -> None:
    """Pause a cluster or resume it, as a user does."""
    pausing.pause_cluster(fleet.installation(), place(cluster), paused=paused)


def register_host(fleet: Fleet, token: str = "", forwarder: Mapping[str, str] = UNWIRED) -> None:
    """Register the management cluster or the cluster that is read, with a forwarder or without."""
    at, digest = fleet.clock.now(), hashlib.sha256(token.encode()).hexdigest()
    fleet.declare.register(Cluster("mgmt", HOST, {}, "v1.20.2", digest, at, forwarder))


def deregister(fleet: Fleet, cluster: str) -> None:
    """Forget a cluster; one that is forgotten already is fine."""
    with suppress(MissingError):
        fleet.declare.deregister(place(cluster))


def delete(fleet: Fleet, key: tuple[str, str, str]) -> None:
    """Delete what was declared; what is not there is fine."""
    with suppress(MissingError):
        fleet.declare.delete([key])


# What is recorded -------------------------------------------------------------------------------


def inventories(fleet: Fleet, cluster: str) -> dict[str, set[tuple[str, str]]]:
    """Return kind and name of what profiles hold, without what was only begun."""
    return {
        each.profile: {(key.kind, key.name) for key, held in each.held.items() if held.digest}
        for each in fleet.records.inventories.of(place(cluster))
    }


def owners(fleet: Fleet, cluster: str) -> dict[tuple[str, str], tuple[str, int]]:
    """Return profile and tier of who owns each object, by kind and name."""
    found = {}
    for key, owner in fleet.records.owners.of(place(cluster)):
        found[key.kind, key.name] = (owner.profile, owner.tier)
    return found


def outcomes(fleet: Fleet, cluster: str) -> dict[str, tuple[str, str]]:
    """Return phase and reason of each profile in a cluster."""
    return {
        each.profile: (each.phase, each.reason)
        for each in fleet.records.outcomes.of(place(cluster))
    }


def matches(fleet: Fleet, cluster: str) -> set[tuple[str, str]]:
    """Return source and object of what is recorded as matching."""
    found = fleet.records.matches.of(place(cluster))
    return {(each.source, str(each.key)) for each in found}


def unwell(fleet: Fleet, cluster: str) -> dict[str, tuple[bool, set[str]]]:
    """Return by check whether a cluster is healthy, and which Services are not."""
    kept = fleet.records.selections.get(place(cluster), health_source("services"))
    found = {str(each.key) for each in kept.value.selected} if kept else set()
    conditions = fleet.records.conditions.of(place(cluster))
    return {check: (each.value.healthy, found) for check, each in conditions.items()}


def observed(fleet: Fleet, cluster: str) -> set[str]:
    """Return the objects that are recorded as being there."""
    found = fleet.records.observations.heads(place(cluster))
    return {str(each.key) for each in found if not each.gone}


def kinds(fleet: Fleet, cluster: str) -> Sequence[GVK]:
    """Return the kinds that count in a cluster."""
    return list(fleet.catalogs.current().kinds_in(place(cluster)))


def source_of(fleet: Fleet, trigger: str, cluster: str) -> str:
    """Return the name of the source that a trigger means in a cluster; "" if there is none."""
    catalog = fleet.catalogs.current()
    try:
        source = catalog.source_of(catalog.triggers[trigger], place(cluster))
    except PermanentError:
        return ""
    return source.name if source else ""


def state(fleet: Fleet, cluster: str) -> str:
    """Return how a cluster was when last met."""
    return fleet.records.health.get(place(cluster)).value.state


def registered(fleet: Fleet, cluster: str) -> tuple[dict[str, str], str]:
    """Return the labels of a cluster, and its token's digest."""
    found = fleet.records.clusters.get(place(cluster))
    assert found
    return dict(found.value.labels), found.value.token_digest


def profiles(fleet: Fleet, triggers: Sequence[str]) -> Iterator[Any]:
    """Yield the profiles of some triggers; the users' own are those of the trigger ""."""
    for trigger in triggers:
        yield from fleet.records.profiles.of(trigger)


def readers(fleet: Fleet) -> set[tuple[str, str]]:
    """Return what is noted to be read in `mgmt/mgmt`, and for which cluster."""
    known = fleet.records.readers
    found = ((key, each) for kind in known.kinds() for key, each in known.of_kind(kind))
    return {(key.name, each.destination) for key, each in found}


def left_over(fleet: Fleet) -> list[str]:
    """Return what should be nothing once all is done."""
    found = [f"a pending change {row[0]}" for row in fleet.records.pending.all()]
    for name, queue in fleet.queues.items():
        found += [f"a dead letter of {name}: {letter.reason}" for letter in queue.list()]
    if fleet.records.rotas.get(Place("", "", "then")):
        found.append("a cluster whose turn it is")
    for hold in fleet.records.holds.all():
        found.append(f"a hold of {hold.source} in {hold.cluster}")
    for removal in fleet.records.removals.all():
        found.append(f"a held removal of {removal.value.rule}")
    for cluster in fleet.access.clusters:
        items = fleet.records.store.query(f"held/{cluster}")
        found += [f"what is held in {cluster}: {item.sort}" for item in items]
        marked = (each for each in fleet.records.matches.of(cluster) if each.held)
        found += [f"a match that is held in {cluster}: {each.key}" for each in marked]
    lines = fleet.output.getvalue().splitlines()
    errors = [line for line in lines if '"ERROR"' in line and "dead letters" not in line]
    return found + [f"an error in the log: {line}" for line in errors]
