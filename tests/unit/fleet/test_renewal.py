"""What becomes due as time passes, with nobody asking for it."""

from __future__ import annotations

import io
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from bellhop.adapters.kube.client import KubeClient
from bellhop.core.gvk import GVK
from bellhop.diagnosis.failures import failures
from bellhop.errors import BusyError, MissingError, UnreachableError
from bellhop.installation.installation import Inbound, Installation
from bellhop.logs import Log
from bellhop.registration import instructions
from bellhop.registration.deregistration import deregister
from bellhop.registration.forwarder_manifests import NAME
from bellhop.registration.registration import register
from bellhop.registration.renewal import ends_at, next_at, renew, rotate
from bellhop.resync.resync import Resyncer
from bellhop.state.delays import renewal_timer
from bellhop.state.messages import Resync as Swept
from bellhop.state.record import Cluster as Record
from infra.lab.cluster import Cluster
from tests.fakes.clock import FakeClock
from tests.fakes.kept import value_of
from tests.fakes.renewing import Renewer, renewals_due
from tests.unit.fleet.conftest import Wished

KEY = "prod/eu-1"
WEBHOOK = GVK("admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration")


def found(here: Installation) -> Record:
    cluster = value_of(here.records.clusters.get(KEY))
    assert cluster is not None
    return cluster


def settle(here: Installation, clock: FakeClock) -> None:
    clock.advance(instructions.OVERLAP)
    renew(here, KEY)
    assert renewals_due(here) == []


def test_a_certificate_renews_itself_when_half_of_its_life_has_passed(
    here: Installation,
    wished: Wished,
    source: KubeClient,
    source_cluster: Cluster,
    clock: FakeClock,
) -> None:
    """By the registration's own way: what is in use counts until the new is settled."""
    register(here, wished(source_cluster, labels={"env": "fv"}))
    settle(here, clock)
    before, former = found(here), instructions.entries_of(source)
    clock.advance(instructions.VALIDITY / 2)
    assert renewals_due(here) == [KEY]
    renew(here, KEY)
    during, present = found(here), instructions.entries_of(source)
    settle(here, clock)
    after = found(here)

    assert present["token"] != former["token"]
    assert present["former-path"] == former["path"]
    assert present["ingest-url"] == "https://ingest.example"
    assert during.forwarder["path"] == before.forwarder["path"]
    assert after.forwarder["path"] == present["path"]
    assert "former-path" not in instructions.entries_of(source)
    assert (after.labels, after.registered_at) == ({"env": "fv"}, before.registered_at)
    ends = ends_at(after)
    assert ends is not None
    assert ends > clock.now() + instructions.VALIDITY * 0.9


def test_renewing_twice_changes_nothing_the_second_time(
    here: Installation,
    wished: Wished,
    source: KubeClient,
    source_cluster: Cluster,
    clock: FakeClock,
) -> None:
    """Two that find the same thing due, one after the other."""
    register(here, wished(source_cluster))
    settle(here, clock)
    once = (found(here), instructions.entries_of(source))

    assert renew(here, KEY) == []
    assert renew(here, "prod/other") == []
    assert (found(here), instructions.entries_of(source)) == once


class Interrupted:
    """A secret store in which somebody else does something right after a read."""

    def __init__(self, secrets: Any, act: Callable[[], object]) -> None:
        self._secrets = secrets
        self._act = act

    def read(self, name: str) -> bytes:
        value: bytes = self._secrets.read(name)
        self._act()
        return value

    def __getattr__(self, name: str) -> Any:
        return getattr(self._secrets, name)


@pytest.mark.parametrize("again", [False, True])
def test_a_renewal_revives_nobody(
    here: Installation,
    wished: Wished,
    source_cluster: Cluster,
    clock: FakeClock,
    *,
    again: bool,
) -> None:
    """Deregistered while it began, and maybe registered anew: the renewal was of the one before."""
    register(here, wished(source_cluster))
    settle(here, clock)
    clock.advance(instructions.VALIDITY / 2)

    def act() -> None:
        before, credentials = found(here), here.secrets.read(f"kubeconfig/{KEY}")
        deregister(here, KEY)
        if again:
            here.secrets.put(f"kubeconfig/{KEY}", credentials)
            later = clock.now() + timedelta(seconds=1)
            here.declare.register(replace(before, labels={"other": "yes"}, registered_at=later))

    busy = replace(here, secrets=Interrupted(here.secrets, act))
    with pytest.raises(MissingError, match="it was deregistered meanwhile"):
        renew(busy, KEY)

    kept = here.records.clusters.get(KEY)
    assert (kept is not None) == again
    assert not kept or kept.value.labels == {"other": "yes"}
    assert list(here.secrets.names()) == ([f"kubeconfig/{KEY}"] if again else [])


def test_a_cluster_without_a_forwarder_has_nothing_to_renew(
    here: Installation, wished: Wished, source_cluster: Cluster, clock: FakeClock
) -> None:
    """Sweeps alone need no certificate."""
    register(here, wished(source_cluster, forwarder=False))
    clock.advance(timedelta(days=3650))

    assert next_at(found(here), clock.now()) is None
    assert renewals_due(here) == []


def test_a_token_is_rotated_without_a_gap(
    here: Installation,
    wished: Wished,
    source: KubeClient,
    source_cluster: Cluster,
    clock: FakeClock,
) -> None:
    """At every moment the token that the forwarder has is one that counts; then the old one ends.

    Twice at once is twice one after the other: the record lets nobody else begin.
    """
    register(here, wished(source_cluster, labels={"env": "fv"}))
    settle(here, clock)
    before, first = found(here), instructions.entries_of(source)["token"]
    during: list[bool] = []

    def look(_: float) -> None:
        gate = value_of(here.records.gates.get(KEY))
        assert gate is not None
        there = instructions.entries_of(source)["token"]
        during.append(instructions.digest_of(there) in gate.digests(clock.now()))
        with pytest.raises(BusyError):
            rotate(here, KEY)

    after = rotate(here, KEY, pause=look)
    second = instructions.entries_of(source)["token"]

    assert during == [True]
    assert first != second
    assert after.token_digest == instructions.digest_of(second)
    assert after.former_digest == instructions.digest_of(first)
    assert after.former_until == clock.now() + instructions.OVERLAP
    assert (after.labels, after.registered_at) == ({"env": "fv"}, before.registered_at)
    settle(here, clock)
    assert found(here).former_digest == ""


def test_rotates_nothing_that_has_no_token(
    here: Installation, wished: Wished, source_cluster: Cluster
) -> None:
    """Neither of a cluster that is not there, nor of one that sweeps alone look at."""
    with pytest.raises(MissingError, match="it is not registered"):
        rotate(here, KEY)
    register(here, wished(source_cluster, forwarder=False))
    with pytest.raises(MissingError, match="it has no sender, and so no token"):
        rotate(here, KEY)


def test_a_rotation_that_meets_no_cluster_changes_nothing(
    here: Installation, wished: Wished, source_cluster: Cluster, clock: FakeClock
) -> None:
    """The old token goes on to count, and nothing is left to be finished."""
    register(here, wished(source_cluster))
    settle(here, clock)
    before = found(here)
    source_cluster.stop()
    with pytest.raises(UnreachableError):
        rotate(here, KEY)

    assert found(here) == before


def as_of_an_earlier_version(here: Installation) -> Record:
    """Give the cluster the path that registration made before: URL-safe base64."""
    cluster = found(here)
    old = replace(cluster, forwarder={**cluster.forwarder, "path": "/ring/Kq_0-Zx"})
    here.records.clusters.put(old)
    here.records.catalog.change("clusters")
    return old


def test_a_path_at_which_no_service_is_called_is_renewed(
    here: Installation,
    wished: Wished,
    source: KubeClient,
    source_cluster: Cluster,
    clock: FakeClock,
) -> None:
    """The first sweep asks for it, and the renewal has the API server ring; no token is lost."""
    register(here, wished(source_cluster))
    settle(here, clock)
    former = instructions.entries_of(source)["token"]
    old = as_of_an_earlier_version(here)
    here.records.timers.set(renewal_timer(KEY), clock.now() + timedelta(days=300), {})
    log = Log(io.StringIO())
    sweep = Resyncer(here.records, here.catalogs, here.access, here.publisher, here.settings, log)
    sweep.handle(Swept(KEY))
    said = here.records.health.get(KEY).value.message
    before = source.get(WEBHOOK, "", NAME)
    asked = Renewer(here, here.dead["sweep"], log).tick()
    after = source.get(WEBHOOK, "", NAME)
    gate = value_of(here.records.gates.get(KEY))

    assert "at which no API server calls a Service" in said
    assert before is None
    assert asked == 1
    assert after is not None
    assert found(here).forwarder["path"] == instructions.entries_of(source)["path"]
    assert found(here).forwarder["path"] != old.forwarder["path"]
    assert gate is not None
    assert instructions.digest_of(former) in gate.digests(clock.now())
    settle(here, clock)
    assert "next-path" not in found(here).forwarder


def test_a_path_below_a_url_needs_no_renewal(
    here: Installation, wished: Wished, source_cluster: Cluster, clock: FakeClock
) -> None:
    """What rings goes on ringing; the next renewal makes another path."""
    register(here, wished(source_cluster, forwarder_url="https://10.0.0.5:9443"))
    settle(here, clock)
    as_of_an_earlier_version(here)

    assert renewals_due(here) == []


def test_a_renewal_that_fails_is_said_and_tried_again(
    here: Installation,
    wished: Wished,
    source_cluster: Cluster,
    clock: FakeClock,
) -> None:
    """In the log each time, once in ten minutes; and by `show failures` from the next day on.

    It takes seconds: an API server boots.
    """
    register(here, wished(source_cluster, inbound=Inbound("https://ingest.example", "")))
    settle(here, clock)
    clock.advance(instructions.VALIDITY / 2)
    source_cluster.stop()
    log = io.StringIO()
    process = Renewer(here, here.dead["sweep"], Log(log))
    assert [process.tick() for _ in range(3)] == [1, 0, 0]
    assert log.getvalue().count("Cannot renew a cluster") == 1
    assert list(failures(here)) == []
    clock.advance(timedelta(days=1, minutes=1))
    Renewer(here, here.dead["sweep"], Log(log)).tick()
    (failure,) = failures(here)
    source_cluster.start()
    clock.advance(timedelta(minutes=10))
    process.tick()

    assert log.getvalue().count("Cannot renew a cluster") == 2
    assert (failure.what, failure.which) == ("certificate", f"forwarder of {KEY}")
    assert "could not be renewed" in failure.sentence
    assert "Renewed a cluster" in log.getvalue()
    assert list(failures(here)) == []
