"""Clusters that another installation has: none is taken unasked, and nothing of it is touched."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from bellhop.adapters.kube.client import KubeClient
from bellhop.clusters import installation_mark
from bellhop.core.gvk import GVK, Resource
from bellhop.core.sveltos_annotations import INSTALLATION, INSTALLATION_ADDRESS
from bellhop.diagnosis.orphans import list_orphans, remove_orphans
from bellhop.errors import ConflictError
from bellhop.installation import Inbound, Installation
from bellhop.registration import instructions
from bellhop.registration.forwarder_manifests import NAME, NAMESPACE
from bellhop.registration.registration import register
from bellhop.registration.removal import deregister
from bellhop.registration.renewal import rotate
from bellhop.runtime.embedded.state import open_state
from bellhop.settings import Settings
from bellhop.state.messages import Resync
from infra.lab.cluster import Cluster
from tests.fakes.clock import FakeClock
from tests.fakes.fleet import Fleet
from tests.fakes.kept import value_of
from tests.fakes.kube import FakeKube
from tests.fakes.manifests import config, holder, join, profile
from tests.unit.registration.conftest import Wished

EAST = "fleet/east"
KEY = "prod/eu-1"
CONFIG = GVK("", "v1", "ConfigMap")
SPACE = GVK("", "v1", "Namespace")
WEBHOOK = GVK("admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration")
RECORD = {"url": "https://10.0.0.5", "ca": "", "path": "/ring/one"}
THEIRS = {INSTALLATION: "0123456789abcdef", INSTALLATION_ADDRESS: "https://other.example"}
NAMED = "another installation of Bellhop (01234567, at https://other.example)"


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    """Return an installation with a cluster that sends events, and a profile in it."""
    one = Fleet(tmp_path)
    one.register("east", env="production").serve(
        Resource(WEBHOOK, "validatingwebhookconfigurations", namespaced=False)
    )
    cluster = value_of(one.records.clusters.get(EAST))
    assert cluster
    one.declare.register(replace(cluster, forwarder=RECORD))
    one.apply(join(profile(), holder("own", config("a"), config("b"))))
    one.pump()
    yield one
    one.close()


@pytest.fixture
def east(fleet: Fleet) -> FakeKube:
    return fleet.access.clusters[EAST]


def mark(kube: FakeKube) -> None:
    """Have another installation take the cluster."""
    metadata = {"name": NAMESPACE, "annotations": THEIRS}
    kube.put({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})


def lose(fleet: Fleet) -> None:
    """Forget what the profile applied, as a backup from before it does, and look at the cluster."""
    fleet.records.forget_holdings(EAST)
    fleet.records.outcomes.forget(EAST)
    fleet.records.profiles.delete("", "", "own")
    for kind, namespace in (("ClusterProfile", ""), ("ConfigMap", "default")):
        fleet.records.manifests.delete(kind, namespace, "own")
    fleet.records.catalog.change("clusters", "declared")
    resync(fleet)


def resync(fleet: Fleet) -> None:
    fleet.publisher.publish([Resync(EAST, full=True)])
    fleet.pump()


def test_a_resync_leaves_the_id_of_its_installation(fleet: Fleet, east: FakeKube) -> None:
    """A cluster that an earlier version registered bears it, too, and it stays the same."""
    [webhook] = east.objects(WEBHOOK)
    mine = fleet.records.installations.get()

    assert webhook["metadata"]["annotations"][INSTALLATION] == mine.id
    resync(fleet)
    assert fleet.records.installations.get() == mine


def test_a_cluster_that_was_taken_over_keeps_the_others_webhook(
    fleet: Fleet, east: FakeKube
) -> None:
    """The health of the cluster names the other installation, and what to do."""
    mark(east)
    east.calls.clear()
    resync(fleet)

    assert not [each for each in east.calls if each.verb == "apply" and each.gvk == WEBHOOK]
    health = fleet.records.health.get(EAST).value
    assert health.mute
    assert f"it was taken over by {NAMED}" in health.message


def test_what_another_installation_may_own_is_no_orphan(fleet: Fleet, east: FakeKube) -> None:
    """No object is shown as an orphan, nor removed, in a cluster of another installation."""
    mark(east)
    lose(fleet)

    assert list(list_orphans(fleet.installation())) == []
    with pytest.raises(ConflictError, match=r"another installation .* has it"):
        list(remove_orphans(fleet.installation(), EAST))
    assert len(east.objects(CONFIG)) == 2


def test_orphans_that_are_removed_are_in_the_event_log(fleet: Fleet, east: FakeKube) -> None:
    """Each has a line with its cluster and the profile that had applied it."""
    lose(fleet)
    assert len(list(remove_orphans(fleet.installation(), EAST))) == 2

    assert east.objects(CONFIG) == []
    lines = [each for each in fleet.ledger() if "which no profile held" in each.detail]
    assert [(each.what, each.cluster, each.context["profile"]) for each in lines] == [
        ("removed", EAST, "own")
    ] * 2


def test_a_cluster_of_another_installation_is_taken_over_only_when_asked(
    here: Installation,
    wished: Wished,
    source: KubeClient,
    source_cluster: Cluster,
    clock: FakeClock,
    tmp_path: Path,
) -> None:
    """Refused, nothing is changed; taken over, the first one neither renews nor removes anything.

    It takes over 5 s: four registrations with a real API server, each with its own certificate.
    """
    here = replace(here, inbound=Inbound("https://first.example", ""))
    opened = open_state(tmp_path / "other", Settings(), clock=clock)
    other = replace(opened.installation, inbound=Inbound("https://second.example", ""))
    register(here, wished(source_cluster))
    before = instructions.read_entries(source)
    with pytest.raises(ConflictError, match=r"first\.example.* has it.*--take-over"):
        register(other, wished(source_cluster))
    assert instructions.read_entries(source) == before
    assert other.records.clusters.get(KEY) is None

    register(other, wished(source_cluster, take_over=True))
    taken = instructions.read_entries(source)
    space = source.get(SPACE, "", NAMESPACE)
    assert space
    assert space["metadata"]["annotations"][INSTALLATION] == other.records.installations.get().id
    clock.advance(timedelta(minutes=5))
    with pytest.raises(ConflictError, match=r"second\.example.* has it"):
        rotate(here, KEY)
    left = deregister(here, KEY).left
    assert "another installation" in left
    assert instructions.read_entries(source) == taken
    register(other, wished(source_cluster))
    deregister(other, KEY)
    assert source.get(WEBHOOK, "", NAME) is None
    space = source.get(SPACE, "", NAMESPACE)
    assert space
    assert space["metadata"]["deletionTimestamp"]
    assert installation_mark.other(here.records.installations, source) == ""
    opened.close()
