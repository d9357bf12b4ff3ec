"""HealthChecks: how a cluster is by its resources, from the ring to who is told."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from functools import reduce
from pathlib import Path
from typing import Any

import pytest

from bellhop.adapters.notices import Sender
from bellhop.adapters.notices.sender import ENDPOINTS
from bellhop.api.health_check import AGAIN
from bellhop.core.address_policy import LOCAL
from bellhop.diagnosis.failures import failures
from bellhop.extras.health.notifier import HealthNotifier
from bellhop.logs import Log
from bellhop.state.condition import Condition
from bellhop.state.consumer import Inbox
from bellhop.state.messages import CheckHealth, Resync
from bellhop.state.record import Selection
from tests.fakes.chat import Chat, chat
from tests.fakes.fleet import SERVICE, Fleet, service
from tests.fakes.health import SAYS, cluster_check, health_check
from tests.fakes.kube import FakeKube
from tests.fakes.manifests import config, holder, join, profile
from tests.unit.fleet.test_noticing import SECRET, deny

EAST = "fleet/east"
SOURCE = "healthcheck:services"
TOLD = """
  - name: slack
    type: Slack
    notificationRef: {apiVersion: v1, kind: Secret, namespace: default, name: slack}
"""


@pytest.fixture
def here() -> Iterator[Chat]:
    with chat() as found:
        yield found


@pytest.fixture
def fleet(tmp_path: Path, here: Chat) -> Iterator[Fleet]:
    """A fleet that tells a chat."""
    one = Fleet(tmp_path)
    send = Sender(LOCAL, {kind: f"{here.url}/{kind}" for kind in ENDPOINTS}).send
    log = Log(one.output)
    stage = HealthNotifier(one.installation(), one.stages["sweep"], log, send=send)
    one.stages["sweep"] = stage
    for name in ("confirm", "sweep", "probe"):
        one.inboxes[name] = Inbox(name, stage, one.settings, log)
    yield one
    one.close()


def says(state: str, name: str = "web") -> dict[str, Any]:
    found = service(name)
    found["metadata"].setdefault("annotations", {})["state"] = state
    return found


def condition(fleet: Fleet, name: str = "production") -> Condition | None:
    kept = fleet.records.conditions.of(EAST).get(name)
    return kept.value if kept else None


def health(fleet: Fleet) -> tuple[bool, str] | None:
    found = condition(fleet)
    return (found.healthy, found.message) if found else None


def selection(fleet: Fleet) -> Selection:
    kept = fleet.records.selections.get(EAST, SOURCE)
    assert kept
    return kept.value


def east(fleet: Fleet, *texts: str) -> FakeKube:
    """Return a cluster in production of which the HealthCheck is asked."""
    found = fleet.register("east", env="production")
    fleet.apply(*(texts or (health_check(), cluster_check())))
    fleet.pump()
    return found


def test_a_ring_tells_that_a_resource_is_not_well(fleet: Fleet, here: Chat) -> None:
    """And that it is again, without a sweep; each once."""
    east(fleet, SECRET, health_check(), cluster_check(notifications=TOLD))
    assert health(fleet) == (True, "services: 0 resources are healthy")

    fleet.write("east", says("Degraded"))
    fleet.pump()
    assert health(fleet) == (False, "Service 'default/web' is Degraded: it says so")
    fleet.clock.advance(timedelta(minutes=2))
    fleet.write("east", says("Healthy"))
    fleet.pump()
    assert health(fleet) == (True, "services: 1 resources are healthy")

    assert [each.partition("\n")[0] for each in here.texts] == [
        "Cluster fleet/east is unhealthy (production)",
        "Cluster fleet/east is healthy again (production)",
    ]


def test_a_sweep_finds_what_did_not_ring(fleet: Fleet) -> None:
    """And what is gone is not asked for any more."""
    kube = east(fleet)
    kube.put(says("Suspended"))
    fleet.publisher.publish([Resync(EAST)])
    fleet.pump()
    assert health(fleet) == (False, "Service 'default/web' is Suspended: it says so")

    fleet.drop("east", dict(kube.objects(SERVICE)[0]))
    fleet.pump()
    assert health(fleet) == (True, "services: 0 resources are healthy")


def test_what_ends_at_once_in_great_number_is_not_held(fleet: Fleet) -> None:
    """Nothing is withdrawn by it, and who looks at health is to see what is there."""
    east(fleet)
    there = [fleet.write("east", says("Degraded", f"web-{number}")) for number in range(30)]
    fleet.pump()
    assert len(selection(fleet).selected) == 30
    for each in there:
        fleet.drop("east", each)
    fleet.pump()

    assert health(fleet) == (True, "services: 0 resources are healthy")
    assert list(fleet.records.holds.all(EAST)) == []


def test_one_resource_nested_too_deep_is_left_out_alone(fleet: Fleet) -> None:
    """The others are evaluated, and the report names the one that nobody looked at."""
    east(fleet)
    deep = says("Degraded", "deep")
    deep["spec"]["deep"] = reduce(lambda inner, _: {"a": inner}, range(150), {})
    fleet.write("east", deep)
    fleet.write("east", says("Degraded", "web"))
    fleet.pump()

    assert health(fleet) == (False, "Service 'default/web' is Degraded: it says so")
    assert "the script is not given Service 'default/deep': nested" in selection(fleet).left_out


def test_clusters_that_no_check_names_are_not_asked(fleet: Fleet) -> None:
    """Nothing is kept of their objects, and none of them rings."""
    fleet.register("east", env="test")
    fleet.apply(health_check(), cluster_check())
    fleet.pump()
    fleet.write("east", says("Degraded"))
    fleet.pump()

    assert fleet.catalogs.current().kinds_in(EAST) == ()
    assert list(fleet.records.matches.of(EAST)) == []
    assert fleet.records.conditions.of(EAST) == {}


def test_a_cluster_that_gets_the_label_is_asked(fleet: Fleet) -> None:
    """And one that loses it is asked no more, of which nothing stays."""
    kube = fleet.register("east", env="test")
    kube.put(says("Degraded"))
    fleet.apply(health_check(), cluster_check())
    fleet.pump()
    fleet.declare.label(EAST, {"env": "production"})
    fleet.pump()
    assert health(fleet) == (False, "Service 'default/web' is Degraded: it says so")

    fleet.declare.label(EAST, {"env": "test"})
    fleet.pump()
    assert fleet.records.conditions.of(EAST) == {}
    assert list(fleet.records.selections.heads(EAST)) == []
    assert list(fleet.records.matches.of(EAST)) == []


def test_a_health_check_that_is_missing_is_told_and_judged_when_it_comes(fleet: Fleet) -> None:
    """Until then nobody knows; when it goes the cluster is as it was."""
    kube = east(fleet, cluster_check())
    kube.put(says("Degraded"))
    assert health(fleet) is None
    sentence = "there is no HealthCheck 'services', which it names; apply it"
    assert sentence in [each.sentence for each in failures(fleet.installation())]

    fleet.apply(health_check())
    fleet.pump()
    assert health(fleet) == (False, "Service 'default/web' is Degraded: it says so")
    fleet.declare.delete([("HealthCheck", "", "services")])
    fleet.stages["sweep"].handle(CheckHealth(EAST))
    found = condition(fleet)
    assert found
    assert [each.healthy for each in found.checks] == [None]
    fleet.pump()
    assert health(fleet) == (False, "Service 'default/web' is Degraded: it says so")


def test_a_check_is_looked_at_as_soon_as_it_is_declared(fleet: Fleet) -> None:
    """Without a sweep, where it asks for nothing that is not known."""
    fleet.register("east", env="production")
    fleet.pump()
    fleet.apply(cluster_check(checks="{name: deployment, type: Addons}"))
    fleet.pump()

    assert health(fleet) == (True, "all 0 profiles are deployed")


def test_a_script_that_fails_is_told_with_its_line(fleet: Fleet) -> None:
    """The cluster is not well until it can be said again; what was known comes back."""
    east(fleet)
    fleet.apply(health_check("function evaluate()\n  return nothing.at.all\nend"))
    fleet.pump()
    found = health(fleet)
    assert found is not None
    assert not found[0]
    assert found[1].startswith("HealthCheck 'services' cannot be evaluated: ")
    assert "2: attempt to index" in found[1]

    fleet.apply(health_check())
    fleet.pump()
    assert health(fleet) == (True, "services: 0 resources are healthy")


def test_a_state_that_is_none_is_an_error(fleet: Fleet) -> None:
    """It is told by the ring which there are, and that it is over by the next."""
    east(fleet)
    fleet.write("east", says("Sick"))
    fleet.pump()
    found = health(fleet)
    assert found is not None
    assert not found[0]
    assert "must be one of 'Healthy', 'Progressing', 'Degraded', 'Suspended'" in found[1]

    fleet.write("east", says("Healthy"))
    fleet.pump()
    assert health(fleet) == (True, "services: 1 resources are healthy")


def test_all_checks_count_together(fleet: Fleet) -> None:
    """One that fails is enough, and each is told for itself."""
    two = (
        "{name: deployment, type: Addons},"
        " {name: services, type: HealthCheck, livenessSourceRef: {name: services}}"
    )
    kube = fleet.register("east", env="production")
    deny(kube)
    own = join(profile(), holder("own", config("own")))
    fleet.apply(health_check(), cluster_check(checks=two), own)
    fleet.pump()
    fleet.publisher.publish([Resync(EAST)])
    fleet.pump()
    found = condition(fleet)
    assert found
    assert [(each.name, each.healthy) for each in found.checks] == [
        ("deployment", False),
        ("services", True),
    ]
    assert not found.healthy


def test_a_script_that_wants_to_look_again_is_asked_again(fleet: Fleet) -> None:
    """After ten seconds, though nothing has changed; one that does not is not."""
    east(fleet, health_check(SAYS.replace("message =", "reEvaluate = true, message =")))
    fleet.apply(cluster_check())
    fleet.write("east", says("Progressing"))
    fleet.pump()
    name = f"assess/{EAST}/{SOURCE}"
    before = fleet.records.timers.get(name)
    assert before
    assert before.value.at == fleet.clock.now() + AGAIN

    fleet.clock.advance(AGAIN)
    fleet.pump()
    after = fleet.records.timers.get(name)
    assert after
    assert after.value.at == fleet.clock.now() + AGAIN
    fleet.apply(health_check())
    fleet.pump()
    fleet.clock.advance(AGAIN)
    fleet.pump()
    assert fleet.records.timers.get(name) is None


FLAPPING = health_check(more="  flapping: {consecutiveEvaluations: 3}\n")


def test_what_is_not_well_for_a_moment_is_told_to_nobody(fleet: Fleet, here: Chat) -> None:
    """Nor what is so again and again; well it is at once."""
    east(fleet, SECRET, FLAPPING, cluster_check(notifications=TOLD))
    for _ in range(4):
        fleet.write("east", says("Degraded"))
        fleet.pump()
        fleet.clock.advance(AGAIN)
        fleet.pump()
        fleet.write("east", says("Healthy"))
        fleet.pump()

    assert health(fleet) == (True, "services: 1 resources are healthy")
    assert here.texts == []


def test_what_stays_unwell_counts_in_time(fleet: Fleet, here: Chat) -> None:
    """By the clock and without a ring or a sweep, whatever its state is meanwhile."""
    east(fleet, SECRET, FLAPPING, cluster_check(notifications=TOLD))
    fleet.write("east", says("Progressing"))
    fleet.pump()
    waits = "services: 1 not healthy of 1 resources, and none for long enough yet"
    assert health(fleet) == (True, waits)
    fleet.clock.advance(AGAIN)
    fleet.write("east", says("Degraded"))
    fleet.pump()
    for _ in range(3):
        fleet.stages["sweep"].handle(CheckHealth(EAST))
    assert health(fleet) == (True, waits)
    timer = fleet.records.timers.get(f"notice/{EAST}")
    assert timer
    assert timer.value.at == fleet.clock.now() + AGAIN

    fleet.clock.advance(AGAIN)
    fleet.pump()
    assert health(fleet) == (False, "Service 'default/web' is Degraded: it says so")
    assert len(here.texts) == 1


def test_of_secrets_nothing_is_quoted(fleet: Fleet) -> None:
    """Neither in what a script says, nor in the name of a resource that it makes up."""
    quotes = """
function evaluate()
  local each = resources[1]
  if each == nil then return {} end
  local name = each.metadata.labels.quote and each.data.token or each.metadata.name
  local found = {apiVersion = "v1", kind = "Secret", metadata = {name = name}}
  found.metadata.namespace = each.metadata.namespace
  return {resources = {{resource = found, healthStatus = "Degraded", message = each.data.token}}}
end
"""
    secret: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "token", "namespace": "default", "labels": {}},
        "data": {"token": "aHVudGVyMg=="},
    }
    east(fleet, health_check(quotes, kind="Secret"), cluster_check())
    fleet.write("east", secret)
    fleet.pump()
    found = health(fleet)
    assert found is not None
    assert found[1] == (
        "Secret 'default/token' is Degraded: what its script says is withheld, for it may quote a"
        " Secret"
    )

    secret["metadata"]["labels"] = {"quote": "yes"}
    fleet.write("east", secret)
    fleet.pump()
    assert "is not one of those that were given" in selection(fleet).error
    assert "aHVudGVyMg" not in fleet.output.getvalue()
    assert "aHVudGVyMg" not in repr((condition(fleet), selection(fleet)))


def test_a_burst_is_judged_and_told_once(fleet: Fleet, here: Chat) -> None:
    """However many resources change at once."""
    east(fleet, SECRET, health_check(), cluster_check(notifications=TOLD))
    for number in range(40):
        fleet.write("east", says("Degraded", f"web-{number}"))
    fleet.pump()

    assert len(here.texts) == 1
    found = health(fleet)
    assert found
    assert "and 37 more" in found[1]
