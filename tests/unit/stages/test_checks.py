"""Checks of a cluster before and after a profile is brought to it, and taken back."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from bellhop.api.kinds import ClusterProfile, of
from bellhop.core.gvk import GVK
from bellhop.diagnosis.failures import failures
from bellhop.diagnosis.profile_manifests import manifest
from bellhop.errors import ConflictError, UnreachableError
from bellhop.operations.redeployment import redeploy
from bellhop.state.messages import Apply
from bellhop.state.record import DeploymentStatus, Profile
from tests.fakes.fleet import Fleet
from tests.fakes.kube import FakeKube
from tests.fakes.manifests import (
    FOR_EACH,
    INSTANTIATE,
    config,
    holder,
    join,
    profile,
    source,
    trigger,
)

CONFIG = GVK("", "v1", "ConfigMap")
EAST = "fleet/east"
HOUR = timedelta(hours=1)
APPLY = Apply("", "", "own", EAST)

READY = """
      function evaluate()
        local ready = obj.data ~= nil and obj.data.ready == "yes"
        return {healthy = ready, message = "it is not ready"}
      end"""

UP = READY.replace("ready", "up")


def check(
    when: str, name: str = "ready", *, script: str = READY, more: str = "", kind: str = "ConfigMap"
) -> str:
    """Return a check of the ConfigMaps in kube-system, as a field of a profile."""
    said = f"\n    script: |{script}" if script else ""
    return f"""{when}:
  - name: {name}
    featureID: Resources
    group: ""
    version: v1
    kind: {kind}
    namespace: kube-system{said}
    {more}"""


@pytest.fixture
def east(fleet: Fleet) -> FakeKube:
    return fleet.register("east", env="production")


def gate(kube: FakeKube, name: str = "gate", **data: str) -> None:
    """Write the object that the checks look at."""
    metadata = {"name": name, "namespace": "kube-system"}
    kube.put({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})


def brings(fleet: Fleet, more: str = "", *objects: str) -> None:
    fleet.apply(profile(more=more), holder("own", *map(config, objects or ("a", "b"))))
    fleet.pump()


def names(kube: FakeKube) -> list[str]:
    found = [each["metadata"] for each in kube.objects(CONFIG)]
    return sorted(each["name"] for each in found if each["namespace"] == "default")


def outcome(fleet: Fleet) -> DeploymentStatus:
    found = fleet.records.outcomes.get(EAST, "own")
    assert found
    return found.value


def record(fleet: Fleet) -> Profile:
    found = fleet.records.profiles.get("", "", "own")
    assert found
    return found.value


def wait(fleet: Fleet, times: int = 1) -> None:
    for _ in range(times):
        fleet.clock.advance(HOUR)
        fleet.pump()


def lists(kube: FakeKube) -> int:
    return sum(call.verb == "list" for call in kube.calls)


# Before --------------------------------------------------------------------------------------


def test_nothing_is_applied_until_the_ground_is_ready(fleet: Fleet, east: FakeKube) -> None:
    """The outcome says for which check it waits, and why; then all is brought by itself."""
    gate(east, ready="no")
    brings(fleet, check("preDeployChecks"))

    assert names(east) == []
    waits = outcome(fleet)
    assert (waits.phase, waits.reason) == ("Provisioning", "Unmet")
    said = "ConfigMap 'kube-system/gate' is not healthy: it is not ready"
    assert waits.message == f"waits for check 'ready': {said}"
    assert [each.phase for each in waits.features] == ["Provisioning"]

    gate(east, ready="yes")
    wait(fleet)
    assert names(east) == ["a", "b"]
    assert outcome(fleet).phase == "Provisioned"


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("ConfigMap", "there is no ConfigMap in namespace 'kube-system'"),
        ("PodTemplate", "the cluster does not serve v1/PodTemplate"),
    ],
)
def test_ground_that_is_not_there_is_not_ready(
    fleet: Fleet, east: FakeKube, kind: str, said: str
) -> None:
    """Neither an empty list nor a kind that is not served passes."""
    brings(fleet, check("preDeployChecks", kind=kind))

    assert names(east) == []
    assert outcome(fleet).message == f"waits for check 'ready': {said}"


def test_a_check_without_a_script_asks_that_something_is_there(
    fleet: Fleet, east: FakeKube
) -> None:
    """As in Sveltos, what nobody asks about is healthy."""
    more = "labelFilters: [{key: ground, operation: Equal, value: fine}]"
    brings(fleet, check("preDeployChecks", script="", more=more))
    said = "there is no ConfigMap in namespace 'kube-system' with the labels 'ground=fine'"
    assert outcome(fleet).message == f"waits for check 'ready': {said}"

    metadata = {"name": "x", "namespace": "kube-system", "labels": {"ground": "fine"}}
    east.put({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
    wait(fleet)
    assert names(east) == ["a", "b"]


@pytest.mark.usefixtures("east")
def test_waiting_is_no_failure(fleet: Fleet) -> None:
    """However often a check does not pass, the profile is not given up."""
    brings(fleet, f"maxConsecutiveFailures: 1\n  {check('preDeployChecks')}")
    wait(fleet, 4)

    assert outcome(fleet).phase == "Provisioning"
    assert outcome(fleet).counted == 0
    assert outcome(fleet).failures > 4


def test_pauses_grow_as_those_of_failures_do(fleet: Fleet, east: FakeKube) -> None:
    """Nobody asks a cluster each second for an hour."""
    brings(fleet, check("preDeployChecks"))
    wait(fleet, 12)
    before = lists(east)
    for _ in range(60):
        fleet.clock.advance(timedelta(seconds=30))
        fleet.pump()

    assert 1 <= lists(east) - before <= 3


def test_a_change_is_checked_before_it_is_brought(fleet: Fleet, east: FakeKube) -> None:
    """What is there stays as it is until the ground is ready for what comes."""
    gate(east, ready="yes")
    brings(fleet, check("preDeployChecks"))
    gate(east, ready="no")
    brings(fleet, check("preDeployChecks"), "a", "c")

    assert names(east) == ["a", "b"]
    gate(east, ready="yes")
    wait(fleet)
    assert names(east) == ["a", "c"]


@pytest.mark.usefixtures("east")
def test_what_is_tried_dry_is_not_checked(fleet: Fleet) -> None:
    """Nothing is touched, so that nothing has to be ready."""
    brings(fleet, f"syncMode: DryRun\n  {check('preDeployChecks')}")

    assert (outcome(fleet).phase, outcome(fleet).message) == ("DryRun", "2 to create")


@pytest.mark.usefixtures("east")
def test_only_what_waits_for_long_is_told_as_a_failure(fleet: Fleet) -> None:
    """Most checks need a moment; one that has not passed for a minute is looked at."""
    brings(fleet, check("preDeployChecks"))
    wait(fleet)
    assert list(failures(fleet.installation())) == []

    wait(fleet, 6)
    [told] = failures(fleet.installation())
    assert (told.what, told.which) == ("deployment", "own to fleet/east")
    assert told.sentence.startswith("waits for check 'ready': there is no ConfigMap in namespace")
    assert "(asked " in told.sentence


# After ---------------------------------------------------------------------------------------


def test_it_is_deployed_once_it_is_healthy(fleet: Fleet, east: FakeKube) -> None:
    """All is applied, and the outcome waits."""
    brings(fleet, check("validateHealths"))
    assert names(east) == ["a", "b"]
    assert (outcome(fleet).phase, outcome(fleet).reason) == ("Provisioning", "Unmet")

    gate(east, ready="yes")
    wait(fleet)
    assert (outcome(fleet).phase, outcome(fleet).message) == ("Provisioned", "")


@pytest.mark.usefixtures("east")
def test_what_was_applied_is_told_though_it_waits(fleet: Fleet) -> None:
    """The ledger says what was brought, and then for what it waits."""
    brings(fleet, check("validateHealths"))
    wait(fleet)
    told = [(each.what, each.detail) for each in fleet.ledger() if each.cluster == EAST]

    assert ("applied", "ConfigMap a, ConfigMap b") in told
    assert any(what == "waits" and "check 'ready'" in said for what, said in told)


def test_what_is_healthy_is_not_asked_again(fleet: Fleet, east: FakeKube) -> None:
    """A message that comes again asks for nothing where nothing was done since."""
    gate(east, ready="yes")
    brings(fleet, check("validateHealths"))
    gate(east, ready="no")
    before = lists(east)
    fleet.publisher.publish([APPLY])
    fleet.pump()

    assert lists(east) == before
    assert outcome(fleet).phase == "Provisioned"


@pytest.mark.parametrize("more", ["maxConsecutiveFailures: 3", "tier: 7", "", "drift"])
def test_what_is_new_is_asked_anew(fleet: Fleet, east: FakeKube, more: str) -> None:
    """A new revision, be it of fields alone, and an object that is put back are checked again."""
    gate(east, ready="yes")
    brings(fleet, check("validateHealths"))
    gate(east, ready="no")
    if more == "drift":
        east.drop(CONFIG, "default", "a")
        fleet.records.inventories.doubt(EAST, "own", fleet.clock.now())
        fleet.publisher.publish([APPLY])
        fleet.pump()
    else:
        brings(fleet, f"{more}\n  {check('validateHealths')}", "a", "b" if more else "c")

    assert outcome(fleet).phase == "Provisioning"


def test_health_is_asked_soon_however_long_the_ground_took(fleet: Fleet, east: FakeKube) -> None:
    """Pauses that grew before anything was brought are not those of what is brought now."""
    both = f"{check('preDeployChecks')}\n  {check('validateHealths', 'up', script=UP)}"
    gate(east, ready="no")
    brings(fleet, both)
    wait(fleet, 12)
    gate(east, ready="yes", up="no")
    wait(fleet)
    assert "'up'" in outcome(fleet).message

    gate(east, ready="yes", up="yes")
    for _ in range(5):
        fleet.clock.advance(timedelta(seconds=1))
        fleet.pump()
    assert outcome(fleet).phase == "Provisioned"


def test_once_is_done_when_it_is_healthy(fleet: Fleet, east: FakeKube) -> None:
    """A OneTime profile that never was healthy has not succeeded yet."""
    brings(fleet, f"syncMode: OneTime\n  {check('validateHealths')}")
    gate(east, ready="yes")
    wait(fleet)
    assert outcome(fleet).phase == "Provisioned"

    gate(east, ready="no")
    brings(fleet, f"syncMode: OneTime\n  {check('validateHealths')}", "c")
    assert names(east) == ["a", "b"]


def test_a_trigger_checks_what_it_makes(fleet: Fleet, east: FakeKube) -> None:
    """The checks of a trigger are those of its profiles, as they are written."""
    text = "{{ .Resource.metadata.name }}"
    script = f'\n      function evaluate() return {{healthy = false, message = "{text}"}} end'
    fleet.apply(
        join(
            source(),
            trigger(more=check("validateHealths", script=script)),
            holder("made", config(FOR_EACH), annotations=INSTANTIATE),
        )
    )
    gate(east)
    fleet.write("east", {"apiVersion": "v1", "kind": "Service", "metadata": _place("web")})
    fleet.pump()
    [found] = fleet.records.outcomes.of(EAST)

    assert names(east) == ["for-web"]
    assert found.message.endswith(f"is not healthy: {text}")


def _place(name: str) -> dict[str, Any]:
    return {"name": name, "namespace": "default"}


@pytest.mark.parametrize("one", ["true", "false"])
def test_checks_of_a_trigger_can_change(fleet: Fleet, east: FakeKube, one: str) -> None:
    """What is written anew is what counts, for each object and for all."""
    text = join(source(), holder("made", config("made"), annotations=INSTANTIATE))
    fleet.apply(text, trigger(one=one, more=check("preDeployChecks")))
    fleet.write("east", {"apiVersion": "v1", "kind": "Service", "metadata": _place("web")})
    fleet.pump()
    assert names(east) == []

    fleet.apply(trigger(one=one))
    wait(fleet, 2)
    assert names(east) == ["made"]


# What goes ------------------------------------------------------------------------------------


def withdraw(fleet: Fleet) -> None:
    fleet.declare.delete([("ClusterProfile", "", "own")])
    fleet.pump()


def test_nothing_is_removed_while_somebody_uses_it(fleet: Fleet, east: FakeKube) -> None:
    """The profile is deleted, what it brought stays, and goes once nobody uses it."""
    gate(east, ready="no")
    brings(fleet, check("preDeleteChecks"))
    withdraw(fleet)
    wait(fleet, 2)
    assert names(east) == ["a", "b"]
    assert (outcome(fleet).phase, outcome(fleet).reason) == ("Removing", "Unmet")

    gate(east, ready="yes")
    wait(fleet)
    assert names(east) == []
    assert fleet.records.outcomes.get(EAST, "own") is None
    assert fleet.records.profiles.head("", "", "own") is None


@pytest.mark.parametrize("kind", ["ConfigMap", "PodTemplate"])
@pytest.mark.parametrize("when", ["preDeleteChecks", "postDeleteChecks"])
def test_nobody_is_nobody(fleet: Fleet, east: FakeKube, when: str, kind: str) -> None:
    """Where nothing of the kind is there, nothing keeps a removal."""
    brings(fleet, check(when, kind=kind))
    withdraw(fleet)

    assert names(east) == []
    assert fleet.records.profiles.head("", "", "own") is None


def test_a_profile_is_held_until_all_is_gone(fleet: Fleet, east: FakeKube) -> None:
    """What was brought is removed, and its record stays until the check after passes."""
    gate(east, ready="no")
    brings(fleet, check("postDeleteChecks"))
    withdraw(fleet)
    wait(fleet, 2)
    assert names(east) == []
    assert outcome(fleet).phase == "Removing"
    assert record(fleet).leaves

    east.drop(CONFIG, "kube-system", "gate")
    wait(fleet)
    assert fleet.records.outcomes.get(EAST, "own") is None
    assert fleet.records.profiles.head("", "", "own") is None


@pytest.mark.parametrize("ends", ["event", "trigger"])
def test_what_a_trigger_made_stays_while_it_is_used(
    fleet: Fleet, east: FakeKube, ends: str
) -> None:
    """Be it that the event is over, or that the trigger is deleted."""
    gate(east, ready="no")
    text = join(source(), holder("made", config("made"), annotations=INSTANTIATE))
    fleet.apply(text, trigger(more=check("preDeleteChecks")))
    web = {"apiVersion": "v1", "kind": "Service", "metadata": _place("web")}
    stored = fleet.write("east", web)
    fleet.pump()
    if ends == "event":
        fleet.drop("east", stored)
    else:
        fleet.declare.delete([("EventTrigger", "", "made")])
    wait(fleet, 2)
    assert names(east) == ["made"]

    gate(east, ready="yes")
    wait(fleet)
    assert names(east) == []
    assert list(fleet.records.profiles.of("made")) == []


def test_a_cluster_that_was_left_is_not_asked_again(fleet: Fleet, east: FakeKube) -> None:
    """A message that comes a week later makes no outcome of a cluster that has none."""
    fleet.register("west", env="production")
    brings(fleet, check("postDeleteChecks"))
    fleet.declare.label(EAST, {"env": None})
    fleet.pump()
    assert names(east) == []
    gate(east, ready="no")
    before = lists(east)
    fleet.publisher.publish([APPLY])
    wait(fleet)

    assert lists(east) == before
    assert fleet.records.outcomes.get(EAST, "own") is None


def test_a_profile_that_comes_back_keeps_what_it_has(fleet: Fleet, east: FakeKube) -> None:
    """While its removal waits it is declared again: nothing was touched, and nothing waits."""
    gate(east, ready="no")
    brings(fleet, check("preDeleteChecks"))
    withdraw(fleet)
    applied = sum(call.verb == "apply" for call in east.calls)
    brings(fleet, check("preDeleteChecks"))
    wait(fleet)

    assert names(east) == ["a", "b"]
    assert (outcome(fleet).phase, outcome(fleet).message) == ("Provisioned", "")
    assert sum(call.verb == "apply" for call in east.calls) == applied


def test_checks_that_are_lost_let_nothing_go(fleet: Fleet, east: FakeKube) -> None:
    """What was to be checked and is not known is not removed unchecked."""
    gate(east, ready="yes")
    brings(fleet, check("preDeleteChecks"))
    kept = fleet.records.profiles.get("", "", "own")
    assert kept
    fleet.records.profiles.put(replace(kept.value, checks=()), expect=kept.token)
    withdraw(fleet)
    wait(fleet)

    assert names(east) == ["a", "b"]
    assert (outcome(fleet).phase, outcome(fleet).reason) == ("Failed", "Missing")
    assert "its checks are lost" in outcome(fleet).message


# Trouble ---------------------------------------------------------------------------------------


def test_a_cluster_that_does_not_answer_is_away(fleet: Fleet, east: FakeKube) -> None:
    """An error is no answer of a check."""
    gate(east, ready="yes")
    east.fail_with(UnreachableError("cannot reach it"), "list")
    brings(fleet, check("preDeployChecks"))
    assert names(east) == []
    assert outcome(fleet).phase == "Failed"

    east.fail_with(None)
    wait(fleet)
    assert outcome(fleet).phase == "Provisioned"


def test_a_tenant_checks_with_its_own_rights(fleet: Fleet, east: FakeKube) -> None:
    """What its ServiceAccount may not list, no check of it reads."""
    gate(east, ready="yes")
    text = profile(more=check("preDeployChecks")).replace(
        "{name: own}",
        "{name: own, labels: {projectsveltos.io/serviceaccount-name: dev,"
        " projectsveltos.io/serviceaccount-namespace: team}}",
    )
    fleet.apply(text, holder("own", config("a")))
    fleet.pump()

    asked = [call for call in east.calls if (call.verb, call.namespace) == ("list", "kube-system")]
    assert {call.account for call in asked} == {"team/dev"}


def test_more_than_can_be_looked_at_says_so(fleet: Fleet, east: FakeKube) -> None:
    """A check that takes longer than a turn ends, and says how to ask for less."""
    for number in range(5):
        gate(east, f"gate-{number}", ready="yes")
    listed = east.list

    def slowly(*args: Any, **how: Any) -> Any:
        for each in listed(*args, **how):
            fleet.clock.advance(timedelta(seconds=9))
            yield each

    east.list = slowly  # type: ignore[method-assign]
    brings(fleet, check("preDeployChecks"))

    assert outcome(fleet).message == (
        "waits for check 'ready': it takes longer than the setting `turn` for more than 2 objects"
        " of ConfigMap; name a namespace, or labelFilters"
    )


@pytest.mark.usefixtures("east")
def test_a_profile_shows_its_checks_as_they_were_written(fleet: Fleet) -> None:
    """`get -o yaml` of what nobody declares any more can be applied again."""
    filters = "[{key: a, operation: Equal, value: b}, {key: c, operation: Different, value: d}"
    filters += ", {key: e, operation: Has}, {key: f, operation: DoesNotHave}]"
    rules = "evaluateCEL: [{name: one, rule: 'resource.data.ready == \"yes\"'}]"
    brings(fleet, check("preDeleteChecks", more=f"labelFilters: {filters}\n    {rules}"))
    found = record(fleet)
    again = of(manifest(found, ""))
    assert isinstance(again, ClusterProfile)

    assert found.checks[0].labels == "a=b,c!=d,e,!f"
    assert again.checks == found.checks


@pytest.mark.parametrize("when", ["preDeleteChecks", "postDeleteChecks"])
def test_a_removal_can_be_asked_for_unchecked(fleet: Fleet, east: FakeKube, when: str) -> None:
    """Who knows better than a check that never passes has the profile go without it."""
    gate(east, ready="no")
    brings(fleet, check(when))
    with pytest.raises(ConflictError, match="it is still wanted; take them out"):
        redeploy(fleet.installation(), "own", unchecked=True)
    withdraw(fleet)
    redeploy(fleet.installation(), "own", unchecked=True)
    wait(fleet)

    assert names(east) == []
    assert fleet.records.profiles.head("", "", "own") is None
