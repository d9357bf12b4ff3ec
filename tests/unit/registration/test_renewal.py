"""Renewals that become due as time passes."""

from __future__ import annotations

import io
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from bellhop.adapters.kube.client import KubeClient
from bellhop.core.gvk import GVK
from bellhop.diagnosis.failures import list_failures
from bellhop.errors import BusyError, MissingError, UnreachableError
from bellhop.installation import Inbound, Installation
from bellhop.logs import Log
from bellhop.registration import instructions
from bellhop.registration.forwarder_manifests import NAME
from bellhop.registration.removal import deregister
from bellhop.registration.renewal import find_expiry, find_next, renew, rotate
from bellhop.runtime.handlers import Handlers
from bellhop.runtime.handlers.sweep import make_sweep_table
from bellhop.state.cluster import Cluster as Record
from bellhop.state.delays import renewal_timer
from bellhop.state.messages import Resync as Swept
from infra.lab.cluster import Cluster
from tests.fakes.clock import FakeClock
from tests.fakes.kept import require_value
from tests.fakes.renewing import Renewer, renewals_due
from tests.unit.registration.conftest import Enroll

KEY = "prod/eu-1"
WEBHOOK = GVK("admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration")


def found(here: Installation) -> Record:
    return require_value(here.records.clusters.get(KEY))


def settle(here: Installation, clock: FakeClock) -> None:
    clock.advance(instructions.OVERLAP)
    renew(here, KEY)
    assert renewals_due(here) == []


def test_a_certificate_renews_itself_when_half_of_its_life_has_passed(
    here: Installation, enroll: Enroll, source: KubeClient, clock: FakeClock
) -> None:
    """By the registration's own way: what is in use counts until the new is settled."""
    enroll(labels={"env": "fv"})
    settle(here, clock)
    before, former = found(here), instructions.read_entries(source)
    clock.advance(instructions.VALIDITY / 2)
    assert renewals_due(here) == [KEY]
    renew(here, KEY)
    during, present = found(here), instructions.read_entries(source)
    settle(here, clock)
    after = found(here)

    assert present["token"] != former["token"]
    assert present["former-path"] == former["path"]
    assert present["ingest-url"] == "https://ingest.example"
    assert during.forwarder["path"] == before.forwarder["path"]
    assert after.forwarder["path"] == present["path"]
    assert "former-path" not in instructions.read_entries(source)
    assert (after.labels, after.registered_at) == ({"env": "fv"}, before.registered_at)
    ends = find_expiry(after)
    assert ends is not None
    assert ends > clock.now() + instructions.VALIDITY * 0.9


def test_renewing_twice_changes_nothing_the_second_time(
    here: Installation, enroll: Enroll, source: KubeClient, clock: FakeClock
) -> None:
    """Two that find the same thing due, one after the other."""
    enroll()
    settle(here, clock)
    once = (found(here), instructions.read_entries(source))

    assert renew(here, KEY) == []
    assert renew(here, "prod/other") == []
    assert (found(here), instructions.read_entries(source)) == once


class Interrupted:
    """A secret store with a concurrent change right after a read."""

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
    here: Installation, enroll: Enroll, clock: FakeClock, *, again: bool
) -> None:
    """Deregistered meanwhile, and maybe registered again: the renewal was of the former cluster."""
    enroll()
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
    here: Installation, enroll: Enroll, clock: FakeClock
) -> None:
    """Resyncs need no certificate."""
    enroll(forwarder=False)
    clock.advance(timedelta(days=3650))

    assert find_next(found(here), clock.now()) is None
    assert renewals_due(here) == []


def test_a_token_is_rotated_without_a_gap(
    here: Installation, enroll: Enroll, source: KubeClient, clock: FakeClock
) -> None:
    """At every moment the forwarder's token is accepted; then the old one ends.

    Of two at once the second comes after the first: the record admits only one.
    """
    enroll(labels={"env": "fv"})
    settle(here, clock)
    before, first = found(here), instructions.read_entries(source)["token"]
    during: list[bool] = []

    def look(_: float) -> None:
        gate = require_value(here.records.gates.get(KEY))
        there = instructions.read_entries(source)["token"]
        during.append(instructions.digest_token(there) in gate.digests(clock.now()))
        with pytest.raises(BusyError):
            rotate(here, KEY)

    after = rotate(here, KEY, pause=look)
    second = instructions.read_entries(source)["token"]

    assert during == [True]
    assert first != second
    assert after.token_digest == instructions.digest_token(second)
    assert after.former_digest == instructions.digest_token(first)
    assert after.former_until == clock.now() + instructions.OVERLAP
    assert (after.labels, after.registered_at) == ({"env": "fv"}, before.registered_at)
    settle(here, clock)
    assert found(here).former_digest == ""


def test_rotates_nothing_that_has_no_token(here: Installation, enroll: Enroll) -> None:
    """Neither of a missing cluster, nor of one that only resyncs cover."""
    with pytest.raises(MissingError, match="it is not registered"):
        rotate(here, KEY)
    enroll(forwarder=False)
    with pytest.raises(MissingError, match="it has no sender, and so no token"):
        rotate(here, KEY)


def test_a_rotation_that_meets_no_cluster_changes_nothing(
    here: Installation, enroll: Enroll, source_cluster: Cluster, clock: FakeClock
) -> None:
    """The old token goes on to count, and nothing is left to be finished."""
    enroll()
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
    here: Installation, enroll: Enroll, source: KubeClient, clock: FakeClock
) -> None:
    """The first resync requests it, and the renewal configures the webhook; no token is lost."""
    enroll()
    settle(here, clock)
    former = instructions.read_entries(source)["token"]
    old = as_of_an_earlier_version(here)
    here.records.timers.set(renewal_timer(KEY), clock.now() + timedelta(days=300), {})
    log = Log(io.StringIO())
    sweep = Handlers("sweep", make_sweep_table(here, log))
    sweep.handle(Swept(KEY))
    said = here.records.health.get(KEY).value.message
    before = source.get(WEBHOOK, "", NAME)
    asked = Renewer(here, here.dead["sweep"], log).tick()
    after = source.get(WEBHOOK, "", NAME)
    gate = require_value(here.records.gates.get(KEY))

    assert "at which no API server calls a Service" in said
    assert before is None
    assert asked == 1
    assert after is not None
    assert found(here).forwarder["path"] == instructions.read_entries(source)["path"]
    assert found(here).forwarder["path"] != old.forwarder["path"]
    assert instructions.digest_token(former) in gate.digests(clock.now())
    settle(here, clock)
    assert "next-path" not in found(here).forwarder


def test_a_path_below_a_url_needs_no_renewal(
    here: Installation, enroll: Enroll, clock: FakeClock
) -> None:
    """Its webhook stays; the next renewal makes another path."""
    enroll(forwarder_url="https://10.0.0.5:9443")
    settle(here, clock)
    as_of_an_earlier_version(here)

    assert renewals_due(here) == []


def test_a_renewal_that_fails_is_said_and_tried_again(
    here: Installation, enroll: Enroll, source_cluster: Cluster, clock: FakeClock
) -> None:
    """In the log each time, once in ten minutes; and by `show failures` from the next day on.

    It takes seconds: an API server boots.
    """
    enroll(inbound=Inbound("https://ingest.example", ""))
    settle(here, clock)
    clock.advance(instructions.VALIDITY / 2)
    source_cluster.stop()
    log = io.StringIO()
    process = Renewer(here, here.dead["sweep"], Log(log))
    assert [process.tick() for _ in range(3)] == [1, 0, 0]
    assert log.getvalue().count("Cannot renew a cluster") == 1
    assert list(list_failures(here)) == []
    clock.advance(timedelta(days=1, minutes=1))
    Renewer(here, here.dead["sweep"], Log(log)).tick()
    (failure,) = list_failures(here)
    source_cluster.start()
    clock.advance(timedelta(minutes=10))
    process.tick()

    assert log.getvalue().count("Cannot renew a cluster") == 2
    assert (failure.type, failure.about) == ("certificate", f"forwarder of {KEY}")
    assert "could not be renewed" in failure.message
    assert "Renewed a cluster" in log.getvalue()
    assert list(list_failures(here)) == []
