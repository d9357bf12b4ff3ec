"""Registration: the accepted senders at each moment, despite deaths and concurrency."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from bellhop.adapters.kube.client import KubeClient
from bellhop.core.gvk import GVK
from bellhop.errors import BusyError, ConflictError, MissingError
from bellhop.installation import Installation
from bellhop.ports.store import Item
from bellhop.registration import instructions
from bellhop.registration.forwarder_manifests import NAME, NAMESPACE, webhook_configuration
from bellhop.registration.removal import deregister, remove_former_sender
from bellhop.registration.renewal import renew
from bellhop.registration.request import PATIENCE, Registered
from bellhop.state.cluster import Cluster as Record
from bellhop.state.cluster import Health
from infra.lab.cluster import Cluster
from tests.fakes.clock import FakeClock
from tests.fakes.kept import require_value
from tests.fakes.renewing import renewals_due
from tests.fakes.share import SHARE
from tests.unit.registration.conftest import Enroll

KEY = "prod/eu-1"
WEBHOOK = GVK("admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration")


class Killed(BaseException):
    """The end of a killed process."""


def die(_: float) -> None:
    raise Killed


def no_pause(_: float) -> None:
    """Tests need not wait for API servers without events."""


def counts(here: Installation, token: str) -> bool:
    """Say whether ingest would take a token."""
    gate = require_value(here.records.gates.get(KEY))
    return instructions.digest_token(token) in gate.digests(here.records.clock.now())


def has_wired(kube: KubeClient, here: Installation) -> None:
    """Do in a cluster what its first resync does."""
    cluster = require_value(here.records.clusters.get(KEY))
    kube.apply(webhook_configuration([], cluster.forwarder))


def test_both_tokens_count_until_the_new_one_is_settled(
    here: Installation, enroll: Enroll, source: KubeClient, clock: FakeClock
) -> None:
    """The former one until minutes after the forwarder got the new one, the new one from before."""
    enroll()
    first = instructions.read_entries(source)["token"]
    seen: list[tuple[bool, str]] = []

    def look(_: float) -> None:
        seen.append((counts(here, first), instructions.read_entries(source)["token"]))

    enroll(pause=look)
    second = instructions.read_entries(source)["token"]

    assert seen == [(True, first)]
    assert counts(here, first)
    assert counts(here, second)
    clock.advance(instructions.OVERLAP)
    assert not counts(here, first)
    assert counts(here, second)


def test_a_renewal_that_is_killed_leaves_the_forwarder_its_token(
    here: Installation, enroll: Enroll, source: KubeClient, clock: FakeClock
) -> None:
    """Between the record and the Secret: the old token counts for as long as it takes."""
    enroll()
    with pytest.raises(Killed):
        enroll(pause=die)
    token = instructions.read_entries(source)["token"]
    clock.advance(timedelta(days=30))

    assert counts(here, token)
    assert renewals_due(here) == [KEY]


def test_what_was_killed_is_finished_later(
    here: Installation, enroll: Enroll, source: KubeClient, clock: FakeClock
) -> None:
    """The renewal finishes it: the token in the cluster is one that counts, and nothing is due."""
    enroll()
    with pytest.raises(Killed):
        enroll(pause=die)
    former = instructions.read_entries(source)["token"]
    clock.advance(PATIENCE)
    renew(here, KEY)

    assert counts(here, former)
    assert counts(here, instructions.read_entries(source)["token"])
    clock.advance(instructions.OVERLAP)
    renew(here, KEY)
    assert not counts(here, former)
    assert counts(here, instructions.read_entries(source)["token"])
    assert renewals_due(here) == []


def test_a_renewal_that_dies_again_and_again_keeps_what_is_in_use(
    here: Installation, enroll: Enroll, source: KubeClient, clock: FakeClock
) -> None:
    """However often it begins, token, path and authority of the forwarder stay in force."""
    enroll()
    first = require_value(here.records.clusters.get(KEY))
    token = instructions.read_entries(source)["token"]
    for _ in range(5):
        clock.advance(PATIENCE)
        with pytest.raises(Killed):
            enroll(pause=die)
    last = require_value(here.records.clusters.get(KEY))

    assert counts(here, token)
    assert last.forwarder["path"] == first.forwarder["path"]
    assert first.forwarder["ca"] in last.forwarder["ca"]
    assert last.forwarder["ca"].count("BEGIN") <= 3


def test_a_second_registration_at_the_same_time_has_to_wait(
    here: Installation, enroll: Enroll, source: KubeClient
) -> None:
    """The first one goes on undisturbed."""
    enroll()
    refused: list[BusyError] = []

    def meanwhile(_: float) -> None:
        with pytest.raises(BusyError, match="another registration of it has begun") as caught:
            enroll()
        refused.append(caught.value)

    enroll(pause=meanwhile)

    assert len(refused) == 1
    assert counts(here, instructions.read_entries(source)["token"])


def test_a_cluster_that_is_deregistered_meanwhile_keeps_no_token(
    here: Installation, enroll: Enroll, source: KubeClient
) -> None:
    """Nothing is left in it that would send: the Secret that was written afterwards goes, too."""
    enroll()

    def leave(_: float) -> None:
        here.declare.deregister(KEY)

    with pytest.raises(BusyError, match="deregistered by somebody else"):
        enroll(pause=leave)

    assert here.records.clusters.get(KEY) is None
    assert source.get(instructions.SECRET, NAMESPACE, NAME) is None
    assert source.get(WEBHOOK, "", NAME) is None


class Mortal:
    """The writes of a store whose process is killed at one of them, before or after it is done."""

    def __init__(self, put: Callable[..., Item], writes: int, *, after: bool) -> None:
        self._put = put
        self._left = writes
        self._after = after

    def __call__(self, item: Item, **more: Any) -> Item:
        self._left -= 1
        if self._left == 0 and not self._after:
            raise Killed
        done = self._put(item, **more)
        if self._left == 0:
            raise Killed
        return done


@pytest.mark.rest
@pytest.mark.parametrize("first", [True, False], ids=["first", "again"])
@pytest.mark.parametrize("after", [True, False], ids=["after", "before"])
def test_ends_well_whichever_write_was_the_last(
    here: Installation,
    enroll: Enroll,
    source: KubeClient,
    clock: FakeClock,
    monkeypatch: pytest.MonkeyPatch,
    *,
    first: bool,
    after: bool,
) -> None:
    """Killed around every write of the record in turn, and finished by the renewals.

    At every moment the token in the cluster is one that counts, as long as the cluster is known.
    It takes seconds: a registration dies around each of its writes and is finished every time.
    """
    monkeypatch.setattr(instructions, "SPREAD_SECONDS", 0.0)
    store = here.records.store
    died = 0
    for writes in range(1, 40, SHARE):
        if first and here.records.clusters.get(KEY):
            # Without its namespace, whose end takes a controller that this cluster has not.
            source.remove(instructions.SECRET, NAMESPACE, NAME)
            here.declare.deregister(KEY)
        if not first and not here.records.clusters.get(KEY):
            enroll()
        with monkeypatch.context() as doomed:
            doomed.setattr(store, "put", Mortal(store.put, writes, after=after))
            try:
                enroll()
            except Killed:
                died += 1
            else:
                break
        here.records.catalog.change("clusters")
        here.declare.resume()
        _assert_sound(here, source)
        for _ in range(3):
            clock.advance(max(PATIENCE, instructions.OVERLAP))
            here.declare.resume()
            for key in renewals_due(here):
                renew(here, key)
            _assert_sound(here, source)
        assert renewals_due(here) == []
        known = here.records.clusters.get(KEY) is not None
        assert known == bool(instructions.read_entries(source).get("token"))

    assert died >= 5 // SHARE


def _assert_sound(here: Installation, source: KubeClient) -> None:
    entries = instructions.read_entries(source)
    assert not entries or counts(here, entries["token"])


def test_registrations_that_race_leave_a_token_that_counts(
    here: Installation, enroll: Enroll, source: KubeClient
) -> None:
    """Of four that begin at once one gets through, or several one after the other."""
    done: list[Registered] = []

    def work() -> None:
        with suppress(BusyError):
            done.append(enroll(pause=no_pause))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert done
    assert counts(here, instructions.read_entries(source)["token"])


def test_a_secret_that_is_not_the_one_is_written_again(
    here: Installation, enroll: Enroll, source: KubeClient, clock: FakeClock
) -> None:
    """One that stalled for minutes wrote over it: noticed when the registration settles."""
    enroll()
    entries = instructions.read_entries(source)
    source.apply(instructions.forwarder_secret(entries | {"token": "of-one-that-stalled"}))
    clock.advance(instructions.OVERLAP)
    renew(here, KEY)

    assert counts(here, instructions.read_entries(source)["token"])


def test_a_label_that_is_set_meanwhile_is_kept(
    here: Installation, enroll: Enroll, source: KubeClient
) -> None:
    """Both changes of the record are there in the end."""
    enroll(labels={"env": "fv"})

    def label(_: float) -> None:
        here.declare.label(KEY, {"region": "eu"})

    enroll(pause=label)
    cluster = require_value(here.records.clusters.get(KEY))

    assert cluster.labels == {"env": "fv", "region": "eu"}
    assert counts(here, instructions.read_entries(source)["token"])


def test_a_first_registration_that_is_killed_is_finished_later(
    here: Installation, enroll: Enroll, source: KubeClient, clock: FakeClock
) -> None:
    """A record that says begun, and no Secret: the renewal gives the forwarder one."""
    done = enroll()
    record = {**instructions.mark_settled(done.cluster.forwarder), "begun": clock.now().isoformat()}
    here.records.clusters.put(replace(done.cluster, forwarder=record))
    here.records.catalog.change("clusters")
    source.remove(instructions.SECRET, NAMESPACE, NAME)
    clock.advance(PATIENCE)
    assert renewals_due(here) == [KEY]
    renew(here, KEY)

    assert counts(here, instructions.read_entries(source)["token"])


# Which cluster it is ----------------------------------------------------------------------------


def test_one_cluster_is_not_registered_under_two_names(
    here: Installation, enroll: Enroll, source: KubeClient
) -> None:
    """Everything would be applied twice; nothing is changed, in it or here."""
    enroll()
    before = instructions.read_entries(source)
    with pytest.raises(ConflictError, match="it is cluster 'prod/eu-1' already"):
        enroll("eu-2")

    assert before == instructions.read_entries(source)
    assert here.records.clusters.get("prod/eu-2") is None
    assert list(here.secrets.names("kubeconfig/")) == [f"kubeconfig/{KEY}"]


def test_copies_of_one_backup_are_registered_when_asked(here: Installation, enroll: Enroll) -> None:
    """`--allow-twice` takes them, with a warning."""
    enroll()
    done = enroll("eu-2", twice=True)

    assert here.records.clusters.get("prod/eu-2") is not None
    assert any("it is cluster 'prod/eu-1', too" in each for each in done.warnings)


def test_two_names_at_once_leave_one(
    here: Installation, enroll: Enroll, source: KubeClient
) -> None:
    """Neither sees the other when it looks; each looks again once it is in the record.

    At most one is left, and the cluster's forwarder sends for that one.
    """
    barrier = threading.Barrier(2)
    refused: list[str] = []

    def work(name: str) -> None:
        barrier.wait()
        try:
            enroll(name)
        except ConflictError as error:
            refused.append(str(error))

    threads = [threading.Thread(target=work, args=(name,)) for name in ("eu-1", "eu-2")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    left = [cluster.key for cluster in here.records.clusters.all()]

    assert len(refused) + len(left) == 2
    assert len(left) <= 1
    assert left in ([], [instructions.find_entries(source).get("cluster")])


def test_another_cluster_under_the_name_silences_the_one_before(
    here: Installation,
    enroll: Enroll,
    source: KubeClient,
    destination: KubeClient,
    destination_cluster: Cluster,
) -> None:
    """With the old credentials: its webhook is deleted, and the new cluster has its Secret."""
    enroll()
    has_wired(source, here)
    done = enroll(cluster=destination_cluster)

    assert source.get(WEBHOOK, "", NAME) is None
    assert source.get(instructions.SECRET, NAMESPACE, NAME) is None
    assert counts(here, instructions.read_entries(destination)["token"])
    assert not [each for each in done.warnings if "by hand" in each]
    assert done.cluster.abandoned == ""
    assert list(here.secrets.names("abandoned/")) == []


def test_a_cluster_before_that_does_not_answer_is_named(
    enroll: Enroll, source_cluster: Cluster, destination_cluster: Cluster
) -> None:
    """A sentence says what is to be removed by hand, and the new one is registered."""
    enroll()
    source_cluster.stop()
    done = enroll(cluster=destination_cluster)

    (warning,) = [each for each in done.warnings if "by hand" in each]
    assert warning.startswith("the cluster that had this name before may still send events: ")
    assert "ValidatingWebhookConfiguration 'bellhop-forwarder'" in warning
    assert done.cluster.abandoned == ""


@pytest.mark.parametrize(
    ("lost", "expected"),
    [
        pytest.param(
            "credentials",
            "the cluster that had this name before may still send events: there is no",
        ),
        pytest.param("address", "its address leads to another cluster by now; remove"),
        pytest.param("name", ""),
    ],
)
def test_nothing_is_silenced_but_the_cluster_before(
    here: Installation,
    enroll: Enroll,
    source: KubeClient,
    source_cluster: Cluster,
    destination_cluster: Cluster,
    lost: str,
    expected: str,
) -> None:
    """If its credentials or address are lost, a warning says so; another name goes on."""
    moved = enroll(cluster=destination_cluster).cluster
    before = enroll(name="eu-2").cluster
    if lost != "credentials":
        here.secrets.put(f"abandoned/{KEY}", _kubeconfig(source_cluster))
    uid = "of-a-cluster-that-is-no-more" if lost == "address" else before.uid

    said = remove_former_sender(here, replace(moved, abandoned=uid))

    assert (expected in said, bool(said)) == (True, lost != "name")
    assert instructions.read_entries(source)["cluster"] == "prod/eu-2"


def test_leaving_a_cluster_behind_outlives_a_kill(
    here: Installation,
    enroll: Enroll,
    source: KubeClient,
    source_cluster: Cluster,
    destination_cluster: Cluster,
    clock: FakeClock,
) -> None:
    """Killed as soon as the new cluster is in the record: the renewals silence the old one."""
    enroll()
    has_wired(source, here)
    begun = require_value(here.records.clusters.get(KEY))
    moved = enroll(cluster=destination_cluster).cluster
    has_wired(source, here)
    here.secrets.put(f"abandoned/{KEY}", _kubeconfig(source_cluster))
    here.records.clusters.put(replace(moved, abandoned=begun.uid))
    here.records.catalog.change("clusters")
    assert renewals_due(here) == [KEY]
    renew(here, KEY)
    cluster = require_value(here.records.clusters.get(KEY))

    assert source.get(WEBHOOK, "", NAME) is None
    assert cluster.abandoned == ""
    assert clock.now() < datetime.fromisoformat(cluster.forwarder["settle"])


def test_leaving_a_cluster_behind_survives_a_lost_race(
    here: Installation,
    enroll: Enroll,
    source: KubeClient,
    destination_cluster: Cluster,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A label set meanwhile starts another attempt: the stored credentials are the old ones."""
    enroll()
    has_wired(source, here)
    whole = here.declare.register

    def lose_race(cluster: Record, **more: Any) -> str:
        monkeypatch.setattr(here.declare, "register", whole)
        here.declare.label(KEY, {"region": "eu"})
        return whole(cluster, **more)

    monkeypatch.setattr(here.declare, "register", lose_race)
    done = enroll(cluster=destination_cluster)

    assert source.get(WEBHOOK, "", NAME) is None
    assert not [each for each in done.warnings if "by hand" in each]
    assert done.cluster.labels == {"region": "eu"}


def test_a_cluster_that_was_only_resynced_is_known_by_its_resync(
    here: Installation, enroll: Enroll
) -> None:
    """A record of an older Bellhop has no uid: a resync recorded it."""
    done = enroll()
    here.records.clusters.put(replace(done.cluster, uid=""))
    here.records.health.put(KEY, Health(uid=done.cluster.uid))
    here.records.catalog.change("clusters")

    with pytest.raises(ConflictError, match="already"):
        enroll("eu-2")


def test_a_cluster_for_resyncs_only_sends_no_more_events(
    here: Installation, enroll: Enroll, source: KubeClient
) -> None:
    """Registered again with --no-forwarder: nothing there sends with a token that has ended."""
    enroll()
    has_wired(source, here)
    done = enroll(forwarder=False)

    assert source.get(WEBHOOK, "", NAME) is None
    assert source.get(instructions.SECRET, NAMESPACE, NAME) is None
    assert done.cluster.forwarder == {}


def test_deregistering_leaves_what_serves_another_name(
    here: Installation, enroll: Enroll, source: KubeClient
) -> None:
    """The forwarder has been taken over: it is not ours to remove, and that is said."""
    enroll()
    enroll("eu-2", twice=True)
    done = deregister(here, KEY)

    assert "its forwarder serves cluster 'prod/eu-2' by now" in done.left
    assert done.removed == []
    assert instructions.read_entries(source)["cluster"] == "prod/eu-2"
    with pytest.raises(MissingError):
        deregister(here, KEY)


def _kubeconfig(cluster: Cluster) -> bytes:
    return json.dumps(cluster.kubeconfig()).encode()
