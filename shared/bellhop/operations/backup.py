"""Backups of an installation, and moves to another place: embedded, AWS, Google Cloud.

    backup   --leave: mark "left" ─► all workers stop ─► records, opened, and secrets ─► archive
             without: records as they are at one moment where the store has snapshots
    restore  mark "filling" ─► records, sealed again, secrets; clusters and gates last
             ─► a fresh catalog ─► mark "filled" ─► all work is requested once

Messages in queues are not copied: all work is requested again instead, and finished work has no
effect. Inventories and owners are copied, so that nothing is re-created or withdrawn. Secrets are
read after the snapshot is taken: newer credentials are valid for older records, not vice versa.
Changes of a cluster since the backup are found by a full resync of it. Forwarders learn the new
address by a renewal of each registration; until then they keep what nobody accepts.

A restore that was killed is run again with the same archive. A backup writes nothing but the mark
of --leave, and restoring its archive where it was made takes that away.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import IO, Any

from msgspec.structs import replace

from bellhop.clusters.kubeconfig import sanitise
from bellhop.errors import ConflictError, InvalidError, MissingError
from bellhop.installation import Installation
from bellhop.operations import archive
from bellhop.registration.forwarder_manifests import is_audited
from bellhop.registration.request import PATIENCE
from bellhop.state.envelope import Envelope
from bellhop.state.installation_moves import FILLED, FILLING, LEFT, Move
from bellhop.state.messages import Apply, Instantiate, Renew, Resolve, Resync
from bellhop.state.profile import Profile

NOTICED = timedelta(seconds=40)
"""After so long all functions of a cloud have seen that their installation was left."""

_STAYS = frozenset(
    {"payload", "trash", "catalog", "move", "ledger", "ledgers", "pulse", "look", "refusals"}
    | {"walk", "rest", "letter", "retries", "applyset", "alert"}
)
"""Partitions, by their first word, that belong to a place: payloads come with their heads."""

_LAST = ("due", "timer", "pending", "cluster", "gate")
"""Records by which workers begin to work, written after all others."""

_PROFILE = "profile/"
_KUBECONFIG = "kubeconfig/"

Pause = Callable[[float], None]
ReportProgress = Callable[[int], None]
"""A callback with the number of finished records."""


@dataclass
class TransferResult:
    """The result of a backup or restore; `lost` are records without their payload.

    `managed` has the names in their clouds of clusters without a stored kubeconfig, and `refused`
    why kubeconfigs of others cannot be used from here.
    """

    records: int = 0
    secrets: int = 0
    clusters: int = 0
    lost: list[str] = field(default_factory=list)
    managed: dict[str, str] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    returned: bool = False


# Leaving ----------------------------------------------------------------------------------------


def backup(
    here: Installation,
    file: IO[str],
    passphrase: str,
    *,
    leave: bool = False,
    pause: Pause,
    snapshot: Callable[[], AbstractContextManager[object]] = nullcontext,
    report_progress: ReportProgress = lambda _: None,
) -> TransferResult:
    """Write an installation into an archive; with `leave` it does nothing from then on.

    Records are read within a `snapshot`: workers go on meanwhile. An installation that was left can
    be backed up again: the archive may be lost or incomplete.

    Raises:
        InvalidError: the passphrase is too short.
        BusyError: the installation is being restored.
    """
    archive.check(passphrase)
    move, number, moved = here.records.moves.get(), os.urandom(16).hex(), TransferResult()
    if move and move.what == LEFT:
        number, leave = move.archive, True
    else:
        here.records.moves.refuse()
    if leave:
        here.records.moves.put(Move(LEFT, number, here.records.clock.now()))
        pause(NOTICED.total_seconds())
    with snapshot():
        archive.write(
            file, passphrase, _entries(here, moved, report_progress), number=number, left=leave
        )
    return moved


def _entries(
    here: Installation, moved: TransferResult, report_progress: ReportProgress
) -> Iterator[archive.Entry]:
    for name in list(here.secrets.names()):
        # A cluster may be deregistered meanwhile.
        with suppress(MissingError):
            value = base64.b64encode(here.secrets.read(name)).decode()
            moved.secrets += 1
            yield {"kind": "secret", "name": name, "value": value}
    places = [
        (item.partition, item.sort) for item in here.records.store.all() if _goes(item.partition)
    ]
    for partition, sort in sorted(places, key=lambda place: (_rank(place[0]), place)):
        try:
            found = here.records.opened(partition, sort)
        except MissingError:
            moved.lost.append(f"{partition} {sort}")
            continue
        if found is None:
            continue
        moved.records += 1
        moved.clusters += partition == "cluster"
        report_progress(moved.records)
        expires = found.item.expires_at
        yield {
            "kind": "record",
            "partition": partition,
            "sort": sort,
            "head": dict(found.head),
            "payload": found.payload,
            "expires_at": expires.isoformat() if expires else None,
        }


def _goes(partition: str) -> bool:
    return partition.partition("/")[0] not in _STAYS


def _rank(partition: str) -> int:
    first = partition.partition("/")[0]
    return _LAST.index(first) + 1 if first in _LAST else 0


# Arriving ---------------------------------------------------------------------------------------


def restore(
    here: Installation,
    file: IO[str],
    passphrase: str,
    *,
    without_leave: bool = False,
    report_progress: ReportProgress = lambda _: None,
) -> TransferResult:
    """Fill a new installation from an archive, or reactivate the one that was left with it.

    Raises:
        InvalidError: the passphrase is wrong, or the archive is damaged; or its
            installation may be active, and `without_leave` does not accept that.
        ConflictError: this installation has something that is not of the archive.
    """
    header = archive.read_header(file)
    entries = archive.read(file, passphrase, header)
    first = next(entries, None)
    moved = TransferResult(returned=_reactivate(here, header))
    if not moved.returned:
        _refuse(here, header, without_leave=without_leave)
        here.records.moves.put(Move(FILLING, header.id, here.records.clock.now()))
        for entry in _with(first, entries):
            _keep(here, entry, moved)
            report_progress(moved.records)
        here.records.catalog.change("declared", "clusters")
        here.records.moves.put(Move(FILLED, header.id, here.records.clock.now()))
    here.publisher.publish(_request_all(here))
    return moved


def _reactivate(here: Installation, header: archive.Header) -> bool:
    """Reactivate the installation if it was left with this archive."""
    move = here.records.moves.get()
    if not (move and move.what == LEFT and move.archive == header.id):
        return False
    here.records.moves.delete()
    return True


def _refuse(here: Installation, header: archive.Header, *, without_leave: bool) -> None:
    if not (header.left or without_leave):
        raise InvalidError(
            "cannot restore the archive: its installation may still be active, and two would undo"
            " each other's work; add --without-leave if it is lost, or back it up with"
            " --leave to move it"
        )
    move = here.records.moves.get()
    if move and move.archive == header.id:
        if move.what == FILLED:
            raise ConflictError("cannot restore the archive: it was restored here before")
        return
    taken = next((item for item in here.records.store.all() if _counts(item.partition)), None)
    if move or taken:
        raise ConflictError(
            "cannot restore the archive: this installation has clusters or manifests of its own;"
            " restore into a new one"
        )


def _counts(partition: str) -> bool:
    return partition == "cluster" or partition.startswith("manifest/")


def _with(first: archive.Entry | None, rest: Iterable[archive.Entry]) -> Iterator[archive.Entry]:
    if first is not None:
        yield first
    yield from rest


def _keep(here: Installation, entry: archive.Entry, moved: TransferResult) -> None:
    if entry["kind"] == "secret":
        value = base64.b64decode(entry["value"])
        here.secrets.put(entry["name"], value)
        moved.secrets += 1
        if entry["name"].startswith(_KUBECONFIG):
            _check_address(here, entry["name"].removeprefix(_KUBECONFIG), value, moved)
        return
    partition, head = entry["partition"], entry["head"]
    if partition == "cluster":
        head = _request_registration(here, head)
        moved.clusters += 1
        if managed := head.get("managed"):
            moved.managed[entry["sort"]] = managed
    here.records.put_opened(partition, entry["sort"], head, entry["payload"], entry["expires_at"])
    moved.records += 1


def _check_address(
    here: Installation, cluster: str, kubeconfig: bytes, moved: TransferResult
) -> None:
    """Record a cluster whose address this installation does not call, as loopback in a cloud."""
    try:
        sanitise(kubeconfig, reach=here.reach)
    except InvalidError as error:
        moved.refused[cluster] = str(error)


def _request_registration(here: Installation, head: Mapping[str, Any]) -> Mapping[str, Any]:
    """Request the registration of a cluster again: its forwarder gets the new address."""
    forwarder = dict(head.get("forwarder") or {})
    if not forwarder or is_audited(forwarder):
        # A file of the API server names the former address: no registration of ours changes it.
        return head
    for name in ("ingest-url", "ingest-ca"):
        forwarder.pop(name, None)
    forwarder["begun"] = (here.records.clock.now() - PATIENCE).isoformat()
    return {**head, "forwarder": forwarder}


def _request_all(here: Installation) -> Iterator[Envelope]:
    """Request all work that may have been in flight."""
    catalog = here.catalogs.known()
    for cluster in catalog.clusters:
        yield Renew(cluster)
        yield Resync(cluster, full=True)
        for trigger in catalog.triggers:
            yield Instantiate(trigger, cluster)
    for name in catalog.profiles:
        yield Resolve(name)
    triggers = {
        item.partition.removeprefix(_PROFILE).rpartition("/")[0]
        for item in here.records.store.all()
        if item.partition.startswith(_PROFILE)
    }
    for trigger in sorted(triggers):
        for glance in here.records.profiles.heads(trigger):
            profile = _read_destinations(here, glance)
            for cluster in (*profile.destinations, *glance.leaving):
                yield Apply(profile.trigger, profile.cluster, profile.name, cluster)


def _read_destinations(here: Installation, glance: Profile) -> Profile:
    """Read the destinations of a profile that are too many for its head."""
    if not glance.vague:
        return glance
    kept = here.records.profiles.head(glance.trigger, glance.cluster, glance.name)
    return replace(kept.value, contents=()) if kept else glance
