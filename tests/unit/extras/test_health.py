"""HealthChecks: the health of a cluster by its resources, from the event to the notification."""

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
from bellhop.diagnosis.failures import list_failures
from bellhop.extras.health.notifier import HealthNotifier
from bellhop.extras.health.records import Condition
from bellhop.logs import Log
from bellhop.state.match import Selection
from bellhop.state.messages import CheckHealth
from tests.fakes.chat import Chat, chat
from tests.fakes.fleet import EAST, SERVICE, Fleet, service
from tests.fakes.health import SAYS, cluster_check, health_check
from tests.fakes.kept import require_value
from tests.fakes.kube import FakeKube
from tests.fakes.manifests import config, holder, join, profile
from tests.unit.extras.test_notifications import SECRET, deny

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
    """A fleet that notifies a chat."""
    one = Fleet(tmp_path)
    send = Sender(LOCAL, {kind: f"{here.url}/{kind}" for kind in ENDPOINTS}).send
    log = Log(one.output)
    one.handlers[CheckHealth] = HealthNotifier(one.installation(), log, send=send).handle
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
    return require_value(fleet.records.selections.get(EAST, SOURCE))


def east(fleet: Fleet, *texts: str) -> FakeKube:
    """Return a cluster in production of which the HealthCheck is asked."""
    found = fleet.register("east", env="production")
    fleet.deploy(*(texts or (health_check(), cluster_check())))
    return found


def test_an_event_notifies_of_an_unhealthy_resource(fleet: Fleet, here: Chat) -> None:
    """And that it is healthy again, without a resync; each once."""
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


def test_a_resync_finds_missed_events(fleet: Fleet) -> None:
    """Deleted objects are not asked for any more."""
    kube = east(fleet)
    kube.put(says("Suspended"))
    fleet.resync()
    assert health(fleet) == (False, "Service 'default/web' is Suspended: it says so")

    fleet.drop("east", dict(kube.objects(SERVICE)[0]))
    fleet.pump()
    assert health(fleet) == (True, "services: 0 resources are healthy")


def test_many_ends_at_once_are_not_held(fleet: Fleet) -> None:
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


def test_a_resource_nested_too_deep_is_left_out(fleet: Fleet) -> None:
    """The others are evaluated, and the report names the one that nobody looked at."""
    east(fleet)
    deep = says("Degraded", "deep")
    deep["spec"]["deep"] = reduce(lambda inner, _: {"a": inner}, range(150), {})
    fleet.write("east", deep)
    fleet.write("east", says("Degraded", "web"))
    fleet.pump()

    assert health(fleet) == (False, "Service 'default/web' is Degraded: it says so")
    assert "the script is not given Service 'default/deep': nested" in selection(fleet).left_out


def test_clusters_without_a_check_are_not_listed(fleet: Fleet) -> None:
    """None of their objects is stored, and none sends events."""
    fleet.register("east", env="test")
    fleet.deploy(health_check(), cluster_check())
    fleet.write("east", says("Degraded"))
    fleet.pump()

    assert fleet.catalogs.current().kinds_in(EAST) == ()
    assert list(fleet.records.matches.of(EAST)) == []
    assert fleet.records.conditions.of(EAST) == {}


def test_a_cluster_that_gets_the_label_is_asked(fleet: Fleet) -> None:
    """And one that loses it is asked no more, of which nothing stays."""
    kube = fleet.register("east", env="test")
    kube.put(says("Degraded"))
    fleet.deploy(health_check(), cluster_check())
    fleet.declare.label(EAST, {"env": "production"})
    fleet.pump()
    assert health(fleet) == (False, "Service 'default/web' is Degraded: it says so")

    fleet.declare.label(EAST, {"env": "test"})
    fleet.pump()
    assert fleet.records.conditions.of(EAST) == {}
    assert list(fleet.records.selections.heads(EAST)) == []
    assert list(fleet.records.matches.of(EAST)) == []


def test_a_missing_health_check_is_shown_and_evaluated_once_applied(fleet: Fleet) -> None:
    """Until then nobody knows; when it goes the cluster is as it was."""
    kube = east(fleet, cluster_check())
    kube.put(says("Degraded"))
    assert health(fleet) is None
    sentence = "there is no HealthCheck 'services', which it names; apply it"
    assert sentence in [each.message for each in list_failures(fleet.installation())]

    fleet.deploy(health_check())
    assert health(fleet) == (False, "Service 'default/web' is Degraded: it says so")
    fleet.declare.delete([("HealthCheck", "", "services")])
    fleet.stages["sweep"].handle(CheckHealth(EAST))
    found = condition(fleet)
    assert found
    assert [each.healthy for each in found.checks] == [None]
    fleet.pump()
    assert health(fleet) == (False, "Service 'default/web' is Degraded: it says so")


def test_a_check_is_evaluated_as_soon_as_it_is_applied(fleet: Fleet) -> None:
    """This needs no resync if all its kinds are observed."""
    fleet.register("east", env="production")
    fleet.pump()
    fleet.deploy(cluster_check(checks="{name: deployment, type: Addons}"))

    assert health(fleet) == (True, "all 0 profiles are deployed")


def test_a_failing_script_is_shown_with_its_line(fleet: Fleet) -> None:
    """The cluster is unhealthy until the script succeeds; then former resources are restored."""
    east(fleet)
    fleet.deploy(health_check("function evaluate()\n  return nothing.at.all\nend"))
    found = health(fleet)
    assert found is not None
    assert not found[0]
    assert found[1].startswith("HealthCheck 'services' cannot be evaluated: ")
    assert "2: attempt to index" in found[1]

    fleet.deploy(health_check())
    assert health(fleet) == (True, "services: 0 resources are healthy")


def test_an_invalid_state_is_an_error(fleet: Fleet) -> None:
    """One event shows the valid states, and the next ends the error."""
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
    """One failure is enough, and each is notified separately."""
    two = (
        "{name: deployment, type: Addons},"
        " {name: services, type: HealthCheck, livenessSourceRef: {name: services}}"
    )
    kube = fleet.register("east", env="production")
    deny(kube)
    own = join(profile(), holder("own", config("own")))
    fleet.deploy(health_check(), cluster_check(checks=two), own)
    fleet.resync()
    found = condition(fleet)
    assert found
    assert [(each.name, each.healthy) for each in found.checks] == [
        ("deployment", False),
        ("services", True),
    ]
    assert not found.healthy


def test_a_script_that_requests_another_run_runs_again(fleet: Fleet) -> None:
    """After ten seconds, though nothing has changed; one that does not is not."""
    east(fleet, health_check(SAYS.replace("message =", "reEvaluate = true, message =")))
    fleet.apply(cluster_check())
    fleet.write("east", says("Progressing"))
    fleet.pump()
    name = f"assess/{EAST}/{SOURCE}"
    before = require_value(fleet.records.timers.get(name))
    assert before.at == fleet.clock.now() + AGAIN

    fleet.wait(AGAIN)
    after = require_value(fleet.records.timers.get(name))
    assert after.at == fleet.clock.now() + AGAIN
    fleet.deploy(health_check())
    fleet.wait(AGAIN)
    assert fleet.records.timers.get(name) is None


FLAPPING = health_check(more="  flapping: {consecutiveEvaluations: 3}\n")


def test_a_momentary_failure_is_not_notified(fleet: Fleet, here: Chat) -> None:
    """Nor what is so again and again; well it is at once."""
    east(fleet, SECRET, FLAPPING, cluster_check(notifications=TOLD))
    for _ in range(4):
        fleet.write("east", says("Degraded"))
        fleet.pump()
        fleet.wait(AGAIN)
        fleet.write("east", says("Healthy"))
        fleet.pump()

    assert health(fleet) == (True, "services: 1 resources are healthy")
    assert here.texts == []


def test_a_lasting_failure_counts_in_time(fleet: Fleet, here: Chat) -> None:
    """By the clock and without an event or a resync, whatever its state is meanwhile."""
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
    timer = require_value(fleet.records.timers.get(f"notice/{EAST}"))
    assert timer.at == fleet.clock.now() + AGAIN

    fleet.wait(AGAIN)
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


def test_a_burst_is_evaluated_and_notified_once(fleet: Fleet, here: Chat) -> None:
    """The number of resources that change at once does not matter."""
    east(fleet, SECRET, health_check(), cluster_check(notifications=TOLD))
    for number in range(40):
        fleet.write("east", says("Degraded", f"web-{number}"))
    fleet.pump()

    assert len(here.texts) == 1
    found = health(fleet)
    assert found
    assert "and 37 more" in found[1]
