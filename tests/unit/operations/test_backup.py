"""Moves of an installation: nothing is lost, re-created or withdrawn, and only one works."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from bellhop.adapters.local.secrets import FileSecrets
from bellhop.clusters.kubeconfig import Kubeconfig
from bellhop.core.address_policy import PUBLIC
from bellhop.diagnosis import orphans
from bellhop.errors import BusyError, ConflictError, InvalidError
from bellhop.installation import Inbound, Installation
from bellhop.operations import backup as moving
from bellhop.ports.store import Item
from bellhop.state.cluster import Cluster
from tests.fakes import rig
from tests.fakes.fleet import EAST, SERVICE, Fleet, service
from tests.fakes.kept import require_value
from tests.fakes.manifests import FOR_EACH, INSTANTIATE, config, holder, join, source, trigger
from tests.fakes.share import SHARE

RULES = join(source(), trigger(), holder("made", config(FOR_EACH), annotations=INSTANTIATE))
PASSPHRASE = "four words and a number 7"


class Place:
    """An installation in a folder of its own, over clusters that all places share."""

    def __init__(self, folder: Path, old: Fleet | None = None, *, key: int = 0) -> None:
        folder.mkdir()
        self.fleet = Fleet(folder, clock=old.clock if old else None)
        if old:
            self.fleet.access = old.access
            self.fleet.reread()
        self.secrets = FileSecrets(folder / "secrets", bytes([key]) * 32)

    @property
    def here(self) -> Installation:
        found = self.fleet.installation()
        return replace(found, secrets=self.secrets, inbound=Inbound("", ""))

    def backup(self, *, leave: bool = True) -> str:
        file = io.StringIO()
        moving.backup(self.here, file, PASSPHRASE, leave=leave, pause=lambda _: None)
        return file.getvalue()

    def restore(
        self, archive: str, passphrase: str = PASSPHRASE, *, without_leave: bool = False
    ) -> Any:
        return moving.restore(
            self.here, io.StringIO(archive), passphrase, without_leave=without_leave
        )


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., Place]]:
    places: list[Place] = []

    def one(old: Place | None = None) -> Place:
        place = tmp_path / str(len(places))
        places.append(Place(place, old.fleet if old else None, key=len(places)))
        return places[-1]

    yield one
    for each in places:
        each.fleet.close()


@pytest.fixture
def old(make: Callable[..., Place]) -> Place:
    """An installation where three objects match, with deployed add-ons."""
    place = make()
    place.fleet.register("east", env="production")
    place.secrets.put("kubeconfig/fleet/east", b"its kubeconfig")
    place.fleet.apply(RULES)
    place.fleet.pump()
    for number in range(3):
        place.fleet.write("east", service(f"web-{number}"))
    place.fleet.pump()
    return place


def list_deployed(place: Place) -> dict[str, str]:
    """Return the objects of the trigger in the cluster by name, each with its uid."""
    objects = place.fleet.access.clusters[EAST].objects()
    made = [each["metadata"] for each in objects if each["kind"] == "ConfigMap"]
    return {each["name"]: each["uid"] for each in made}


def test_what_was_there_is_there_and_goes_on(old: Place, make: Callable[..., Place]) -> None:
    """Nothing is applied again or withdrawn; later events and deletions have their effect."""
    before = list_deployed(old)
    kube = old.fleet.access.clusters[EAST]
    archive = old.backup()
    kube.calls.clear()
    new = make(old)
    moved = new.restore(archive)
    new.fleet.pump()

    assert (moved.clusters, moved.secrets, moved.lost) == (1, 1, [])
    assert list_deployed(new) == before
    assert not [call for call in kube.calls if call.verb in {"apply", "remove"}]
    assert new.secrets.read("kubeconfig/fleet/east") == b"its kubeconfig"
    stored = new.fleet.write("east", service("web-3"))
    new.fleet.pump()
    assert list_deployed(new).keys() == before.keys() | {"for-web-3"}
    new.fleet.drop("east", stored)
    new.fleet.pump()
    assert list_deployed(new) == before


def test_names_only_the_clusters_that_others_call(old: Place, make: Callable[..., Place]) -> None:
    """A cluster on the old machine's loopback is none that a cloud reaches."""
    for name, server in (("near", "https://127.0.0.1:6443"), ("far", "https://10.0.0.1:6443")):
        old.fleet.register(name)
        kubeconfig = Kubeconfig(server, token="t")
        old.secrets.put(f"kubeconfig/fleet/{name}", json.dumps(kubeconfig.to_dict()).encode())
    old.secrets.delete("kubeconfig/fleet/east")
    archive = old.backup()
    here = replace(make(old).here, reach=PUBLIC)
    moved = moving.restore(here, io.StringIO(archive), PASSPHRASE)

    assert moved.refused == {
        "fleet/near": "cluster.server: the host is the machine that calls itself; give the address"
        " where the API server is reached"
    }


def test_who_sends_its_audit_log_is_left_to_be_registered_by_hand(
    old: Place, make: Callable[..., Place]
) -> None:
    """Done by itself, a registration without the folder would make a forwarder of it."""
    clusters = old.fleet.records.clusters
    kept = clusters.get(EAST)
    assert kept
    audited = {"audit": "yes", "url": "https://ingest.example/clusters/fleet/east"}
    clusters.put(replace(kept.value, forwarder=audited), expect=kept.token)
    new = make(old)
    new.restore(old.backup())

    found = require_value(new.fleet.records.clusters.get(EAST))
    assert found.forwarder == audited


def test_what_was_under_way_is_done_elsewhere(old: Place, make: Callable[..., Place]) -> None:
    """Messages are not carried: whatever may have been among them is asked for again."""
    old.fleet.write("east", service("late"))
    for inbox in ("evaluate", "deploy"):
        old.fleet.work(inbox, old.fleet.queues[inbox].receive(1, wait=timedelta(0)))
    assert "for-late" not in list_deployed(old)
    new = make(old)
    new.restore(old.backup())
    new.fleet.pump()

    assert "for-late" in list_deployed(new)


def test_what_a_queue_keeps_in_the_store_stays(old: Place, make: Callable[..., Place]) -> None:
    """Messages that rest, or are dead, are no more carried there than those in a queue."""
    kept = {"body": {"do": "probe", "cluster": EAST}, "group": EAST, "share": EAST, "attempts": 1}
    for partition in ("rest/bellhop-probe", "letter/bellhop-probe"):
        old.here.records.store.put(Item(partition, "7", kept))
    new = make(old)
    new.restore(old.backup())

    partitions = {item.partition for item in new.here.records.store.all()}
    assert "cluster" in partitions
    assert not {each for each in partitions if each.startswith(("rest/", "letter/"))}


def test_an_installation_that_was_left_declares_nothing(old: Place) -> None:
    """And says where to go; what it was left with has it go on."""
    archive = old.backup()

    with pytest.raises(BusyError, match="it was left for another one at 2026-01-01T12:00:00"):
        old.fleet.apply(RULES.replace("watched", "other"))
    assert old.restore(archive).returned
    old.fleet.apply(RULES.replace("for-", "also-"))
    old.fleet.pump()
    assert "also-web-0" in list_deployed(old)


def test_one_that_was_left_is_backed_up_again(old: Place, make: Callable[..., Place]) -> None:
    """The archive may be lost; the second one counts as the first does."""
    old.backup()
    archive = old.backup(leave=False)

    assert json.loads(archive.splitlines()[0])["left"] is True
    make(old).restore(archive)
    assert old.restore(archive).returned


def test_a_copy_is_taken_where_that_is_said(old: Place, make: Callable[..., Place]) -> None:
    """Two that work on one cluster would undo each other's work."""
    archive = old.backup(leave=False)
    new = make(old)

    with pytest.raises(InvalidError, match="its installation may still be active"):
        new.restore(archive)
    assert new.restore(archive, without_leave=True).clusters == 1
    old.fleet.apply(RULES.replace("for-", "also-"))


@pytest.mark.rest
@pytest.mark.parametrize("record", range(1, 32, 5 * SHARE))
def test_a_backup_beside_working_stages_deletes_nothing_alive(
    old: Place, make: Callable[..., Place], record: int
) -> None:
    """A store without snapshots is read while one event ends and two begin: all come right."""
    fleet, file, done = old.fleet, io.StringIO(), []
    first = fleet.access.clusters[EAST].get(SERVICE, "default", "web-0")
    assert first

    def interrupt(number: int) -> None:
        if number == record:
            fleet.drop("east", first)
            fleet.write("east", service("meanwhile"))
            fleet.pump()
            done.append(number)

    kept = {name: uid for name, uid in list_deployed(old).items() if name != "for-web-0"}
    moving.backup(old.here, file, PASSPHRASE, pause=lambda _: None, report_progress=interrupt)
    fleet.write("east", service("later"))
    fleet.pump()
    before = list_deployed(old)
    assert done
    new = make(old)
    new.restore(file.getvalue(), without_leave=True)
    new.fleet.pump()

    assert kept.items() <= list_deployed(new).items()
    assert list_deployed(new) == before
    # The first resync may come before what began after the backup is deployed again.
    rig.request_resync(new.fleet, "east", full=True)
    new.fleet.pump()
    assert list_deployed(new) == before
    assert not list(orphans.list_orphans(new.here))


@pytest.mark.rest
@pytest.mark.parametrize("lines", range(1, 30, 4 * SHARE))
def test_a_restore_that_was_killed_is_run_again(
    old: Place, make: Callable[..., Place], lines: int
) -> None:
    """Half of it works on nothing, and the same archive fills the rest."""
    before, archive = list_deployed(old), old.backup()
    new = make(old)
    with pytest.raises(InvalidError):
        new.restore("\n".join(archive.splitlines()[: lines + 1]) + "\n")
    with pytest.raises(BusyError, match="an archive is being restored"):
        new.fleet.apply(RULES.replace("for-", "also-"))
    new.restore(archive)
    new.fleet.pump()

    assert list_deployed(new) == before
    with pytest.raises(ConflictError, match="it was restored here before"):
        new.restore(archive)


def test_a_place_with_clusters_of_its_own_is_refused(
    old: Place, make: Callable[..., Place]
) -> None:
    """Nothing of two installations is mixed."""
    new = make(old)
    new.fleet.register("west")

    with pytest.raises(ConflictError, match="clusters or manifests of its own"):
        new.restore(old.backup())


def test_an_archive_shows_nothing_without_its_passphrase(
    old: Place, make: Callable[..., Place]
) -> None:
    """Nor does it open with another one, changed, in another order or cut short."""
    archive = old.backup()
    lines = archive.splitlines()
    swapped = [lines[0], lines[2], lines[1], *lines[3:]]
    header = json.loads(lines[0])
    unleft = [json.dumps({**header, "left": False}), *lines[1:]]

    for word in ("kubeconfig", "web-0", "east", "made", PASSPHRASE):
        assert word not in archive
    for text, passphrase, said in (
        (archive, "another passphrase", "wrong passphrase"),
        ("\n".join(swapped), PASSPHRASE, "wrong passphrase"),
        ("\n".join(unleft), PASSPHRASE, "wrong passphrase"),
        ("\n".join([*lines[:3], lines[3][:-8], *lines[4:]]), PASSPHRASE, "damaged at its line 4"),
        ("", PASSPHRASE, "did not write this file"),
        ("[]\n", PASSPHRASE, "did not write this file"),
        (json.dumps({**header, "format": 2}), PASSPHRASE, "a newer Bellhop wrote it"),
    ):
        with pytest.raises(InvalidError, match=said):
            make(old).restore(text, passphrase, without_leave=True)


def test_a_short_passphrase_is_refused_before_anything_is_left(old: Place) -> None:
    """A thief of the file may try as many as possible."""
    with pytest.raises(InvalidError, match="take 12 or more"):
        moving.backup(old.here, io.StringIO(), "short", leave=True, pause=lambda _: None)

    assert old.fleet.records.moves.get() is None


def test_a_lost_payload_is_named_and_the_rest_moves(old: Place, make: Callable[..., Place]) -> None:
    """A payload that was lost before keeps nothing else from moving."""
    head = {"uid": "u", "rv": 1, "gone": False, "at": "2026-01-01T00:00:00+00:00"}
    lost = Item(f"observation/{EAST}", "/v1/Service/default/lost", {**head, "payload": "a/-/b"})
    old.fleet.store.put(lost)
    file = io.StringIO()
    moved = moving.backup(old.here, file, PASSPHRASE, leave=True, pause=lambda _: None)

    assert moved.lost == [f"{lost.partition} {lost.sort}"]
    assert make(old).restore(file.getvalue()).clusters == 1


def test_forwarders_get_the_address_to_send_to(old: Place, make: Callable[..., Place]) -> None:
    """A registration is renewed at once, to the new address, whatever the old one was."""
    kept = require_value(old.fleet.records.clusters.get(EAST))
    forwarder = {"url": "", "ca": "", "ingest-url": "https://old.example", "ingest-ca": "x"}
    updated = Cluster(**{**_fields(kept), "forwarder": forwarder})
    old.fleet.records.clusters.put(updated)
    new = make(old)
    new.restore(old.backup())
    moved = require_value(new.fleet.records.clusters.get(EAST))

    assert "ingest-url" not in moved.forwarder
    begun = new.fleet.clock.now() - timedelta(minutes=1)
    assert moved.forwarder["begun"] == begun.isoformat()
    waiting = [
        each.message.body for each in new.fleet.queues["sweep"].receive(9, wait=timedelta(0))
    ]
    assert {"do": "renew", "cluster": EAST} in waiting


def _fields(cluster: Cluster) -> dict[str, Any]:
    return {name: getattr(cluster, name) for name in cluster.__struct_fields__}
