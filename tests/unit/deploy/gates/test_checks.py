"""Checks of a cluster before and after a profile is deployed to it, and removed."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from bellhop.api.kinds import ClusterProfile, of
from bellhop.diagnosis.failures import list_failures
from bellhop.diagnosis.profile_manifests import manifest
from bellhop.errors import ConflictError, UnreachableError
from bellhop.operations.redeployment import redeploy
from bellhop.state.messages import Apply
from bellhop.state.profile import Profile
from tests.fakes.fleet import EAST, Fleet
from tests.fakes.kept import require_value
from tests.fakes.kube import CONFIG, FakeKube
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


def gate(kube: FakeKube, name: str = "gate", **data: str) -> None:
    """Write the object that the checks look at."""
    metadata = {"name": name, "namespace": "kube-system"}
    kube.put({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})


def deploys(fleet: Fleet, more: str = "", *objects: str) -> None:
    fleet.deploy(profile(more=more), holder("own", *map(config, objects or ("a", "b"))))


def names(kube: FakeKube) -> list[str]:
    found = [each["metadata"] for each in kube.objects(CONFIG)]
    return sorted(each["name"] for each in found if each["namespace"] == "default")


def record(fleet: Fleet) -> Profile:
    return require_value(fleet.records.profiles.get("", "", "own"))


def lists(kube: FakeKube) -> int:
    return sum(call.verb == "list" for call in kube.calls)


# Before --------------------------------------------------------------------------------------


def test_nothing_is_applied_until_the_ground_is_ready(fleet: Fleet, east: FakeKube) -> None:
    """The outcome names the check that it waits for, and why; then all is deployed by itself."""
    gate(east, ready="no")
    deploys(fleet, check("preDeployChecks"))

    assert names(east) == []
    waits = fleet.status_of()
    assert (waits.phase, waits.reason) == ("Provisioning", "Unmet")
    said = "ConfigMap 'kube-system/gate' is not healthy: it is not ready"
    assert waits.message == f"waits for check 'ready': {said}"
    assert [each.phase for each in waits.features] == ["Provisioning"]

    gate(east, ready="yes")
    fleet.wait()
    assert names(east) == ["a", "b"]
    assert fleet.status_of().phase == "Provisioned"


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
    deploys(fleet, check("preDeployChecks", kind=kind))

    assert names(east) == []
    assert fleet.status_of().message == f"waits for check 'ready': {said}"


def test_a_check_without_a_script_asks_that_something_is_there(
    fleet: Fleet, east: FakeKube
) -> None:
    """As in Sveltos, what nobody asks about is healthy."""
    more = "labelFilters: [{key: ground, operation: Equal, value: fine}]"
    deploys(fleet, check("preDeployChecks", script="", more=more))
    said = "there is no ConfigMap in namespace 'kube-system' with the labels 'ground=fine'"
    assert fleet.status_of().message == f"waits for check 'ready': {said}"

    metadata = {"name": "x", "namespace": "kube-system", "labels": {"ground": "fine"}}
    east.put({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
    fleet.wait()
    assert names(east) == ["a", "b"]


@pytest.mark.usefixtures("east")
def test_waiting_is_no_failure(fleet: Fleet) -> None:
    """A check that does not pass counts for no limit of failures."""
    deploys(fleet, f"maxConsecutiveFailures: 1\n  {check('preDeployChecks')}")
    fleet.wait(times=4)

    assert fleet.status_of().phase == "Provisioning"
    assert fleet.status_of().counted == 0
    assert fleet.status_of().failures > 4


def test_pauses_grow_as_those_of_failures_do(fleet: Fleet, east: FakeKube) -> None:
    """Nobody asks a cluster each second for an hour."""
    deploys(fleet, check("preDeployChecks"))
    fleet.wait(times=12)
    before = lists(east)
    fleet.wait(timedelta(seconds=30), 60)

    assert 1 <= lists(east) - before <= 3


def test_a_change_is_checked_before_it_is_applied(fleet: Fleet, east: FakeKube) -> None:
    """Deployed objects stay as they are until the check of the change passes."""
    gate(east, ready="yes")
    deploys(fleet, check("preDeployChecks"))
    gate(east, ready="no")
    deploys(fleet, check("preDeployChecks"), "a", "c")

    assert names(east) == ["a", "b"]
    gate(east, ready="yes")
    fleet.wait()
    assert names(east) == ["a", "c"]


@pytest.mark.usefixtures("east")
def test_what_is_tried_dry_is_not_checked(fleet: Fleet) -> None:
    """Nothing is touched, so that nothing has to be ready."""
    deploys(fleet, f"syncMode: DryRun\n  {check('preDeployChecks')}")

    assert (fleet.status_of().phase, fleet.status_of().message) == ("DryRun", "2 to create")


@pytest.mark.usefixtures("east")
def test_a_check_that_fails_for_long_is_listed_as_a_failure(fleet: Fleet) -> None:
    """Most checks need a moment; one that has not passed for a minute is looked at."""
    deploys(fleet, check("preDeployChecks"))
    fleet.wait()
    assert list(list_failures(fleet.installation())) == []

    fleet.wait(times=6)
    [failure] = list_failures(fleet.installation())
    assert (failure.type, failure.about) == ("deployment", "own to fleet/east")
    assert failure.message.startswith("waits for check 'ready': there is no ConfigMap in namespace")
    assert "(asked " in failure.message


# After ---------------------------------------------------------------------------------------


def test_it_is_deployed_once_it_is_healthy(fleet: Fleet, east: FakeKube) -> None:
    """All is applied, and the outcome waits."""
    deploys(fleet, check("validateHealths"))
    assert names(east) == ["a", "b"]
    assert (fleet.status_of().phase, fleet.status_of().reason) == ("Provisioning", "Unmet")

    gate(east, ready="yes")
    fleet.wait()
    assert (fleet.status_of().phase, fleet.status_of().message) == ("Provisioned", "")


@pytest.mark.usefixtures("east")
def test_the_event_log_has_what_was_applied_though_it_waits(fleet: Fleet) -> None:
    """The event log has what was applied, and then which check it waits for."""
    deploys(fleet, check("validateHealths"))
    fleet.wait()
    entries = [(each.what, each.detail) for each in fleet.ledger() if each.cluster == EAST]

    assert ("applied", "ConfigMap a, ConfigMap b") in entries
    assert any(what == "waits" and "check 'ready'" in said for what, said in entries)


def test_what_is_healthy_is_not_asked_again(fleet: Fleet, east: FakeKube) -> None:
    """A message that comes again asks for nothing where nothing was done since."""
    gate(east, ready="yes")
    deploys(fleet, check("validateHealths"))
    gate(east, ready="no")
    before = lists(east)
    fleet.publisher.publish([APPLY])
    fleet.pump()

    assert lists(east) == before
    assert fleet.status_of().phase == "Provisioned"


@pytest.mark.parametrize("more", ["maxConsecutiveFailures: 3", "tier: 7", "", "drift"])
def test_a_new_revision_is_checked_again(fleet: Fleet, east: FakeKube, more: str) -> None:
    """So is a revision of fields alone, and an object whose drift is corrected."""
    gate(east, ready="yes")
    deploys(fleet, check("validateHealths"))
    gate(east, ready="no")
    if more == "drift":
        east.drop(CONFIG, "default", "a")
        fleet.records.inventories.doubt(EAST, "own", fleet.clock.now())
        fleet.publisher.publish([APPLY])
        fleet.pump()
    else:
        deploys(fleet, f"{more}\n  {check('validateHealths')}", "a", "b" if more else "c")

    assert fleet.status_of().phase == "Provisioning"


def test_health_is_asked_soon_however_long_the_ground_took(fleet: Fleet, east: FakeKube) -> None:
    """Pauses that grew before anything was deployed are not those of the present revision."""
    both = f"{check('preDeployChecks')}\n  {check('validateHealths', 'up', script=UP)}"
    gate(east, ready="no")
    deploys(fleet, both)
    fleet.wait(times=12)
    gate(east, ready="yes", up="no")
    fleet.wait()
    assert "'up'" in fleet.status_of().message

    gate(east, ready="yes", up="yes")
    fleet.wait(timedelta(seconds=1), 5)
    assert fleet.status_of().phase == "Provisioned"


def test_once_is_done_when_it_is_healthy(fleet: Fleet, east: FakeKube) -> None:
    """A OneTime profile that never was healthy has not succeeded yet."""
    deploys(fleet, f"syncMode: OneTime\n  {check('validateHealths')}")
    gate(east, ready="yes")
    fleet.wait()
    assert fleet.status_of().phase == "Provisioned"

    gate(east, ready="no")
    deploys(fleet, f"syncMode: OneTime\n  {check('validateHealths')}", "c")
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
    """The present checks count, for one profile an object and for one of all."""
    text = join(source(), holder("made", config("made"), annotations=INSTANTIATE))
    fleet.apply(text, trigger(one=one, more=check("preDeployChecks")))
    fleet.write("east", {"apiVersion": "v1", "kind": "Service", "metadata": _place("web")})
    fleet.pump()
    assert names(east) == []

    fleet.apply(trigger(one=one))
    fleet.wait(times=2)
    assert names(east) == ["made"]


# What goes ------------------------------------------------------------------------------------


def test_nothing_is_removed_while_somebody_uses_it(fleet: Fleet, east: FakeKube) -> None:
    """The profile is deleted; its objects stay, and are deleted once nobody uses them."""
    gate(east, ready="no")
    deploys(fleet, check("preDeleteChecks"))
    fleet.delete("ClusterProfile", "own")
    fleet.wait(times=2)
    assert names(east) == ["a", "b"]
    assert (fleet.status_of().phase, fleet.status_of().reason) == ("Removing", "Unmet")

    gate(east, ready="yes")
    fleet.wait()
    assert names(east) == []
    assert fleet.records.outcomes.get(EAST, "own") is None
    assert fleet.records.profiles.head("", "", "own") is None


@pytest.mark.parametrize("kind", ["ConfigMap", "PodTemplate"])
@pytest.mark.parametrize("when", ["preDeleteChecks", "postDeleteChecks"])
def test_nobody_is_nobody(fleet: Fleet, east: FakeKube, when: str, kind: str) -> None:
    """No object of the kind means that nothing keeps a removal."""
    deploys(fleet, check(when, kind=kind))
    fleet.delete("ClusterProfile", "own")

    assert names(east) == []
    assert fleet.records.profiles.head("", "", "own") is None


def test_a_profile_is_kept_until_all_its_objects_are_deleted(fleet: Fleet, east: FakeKube) -> None:
    """The objects are removed, and their record stays until the check after passes."""
    gate(east, ready="no")
    deploys(fleet, check("postDeleteChecks"))
    fleet.delete("ClusterProfile", "own")
    fleet.wait(times=2)
    assert names(east) == []
    assert fleet.status_of().phase == "Removing"
    assert record(fleet).leaves

    east.drop(CONFIG, "kube-system", "gate")
    fleet.wait()
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
    fleet.wait(times=2)
    assert names(east) == ["made"]

    gate(east, ready="yes")
    fleet.wait()
    assert names(east) == []
    assert list(fleet.records.profiles.of("made")) == []


def test_a_cluster_that_was_left_is_not_asked_again(fleet: Fleet, east: FakeKube) -> None:
    """A message that comes a week later makes no outcome of a cluster that has none."""
    fleet.register("west", env="production")
    deploys(fleet, check("postDeleteChecks"))
    fleet.declare.label(EAST, {"env": None})
    fleet.pump()
    assert names(east) == []
    gate(east, ready="no")
    before = lists(east)
    fleet.publisher.publish([APPLY])
    fleet.wait()

    assert lists(east) == before
    assert fleet.records.outcomes.get(EAST, "own") is None


def test_a_profile_that_comes_back_keeps_what_it_has(fleet: Fleet, east: FakeKube) -> None:
    """While its removal waits it is declared again: nothing was touched, and nothing waits."""
    gate(east, ready="no")
    deploys(fleet, check("preDeleteChecks"))
    fleet.delete("ClusterProfile", "own")
    applied = sum(call.verb == "apply" for call in east.calls)
    deploys(fleet, check("preDeleteChecks"))
    fleet.wait()

    assert names(east) == ["a", "b"]
    assert (fleet.status_of().phase, fleet.status_of().message) == ("Provisioned", "")
    assert sum(call.verb == "apply" for call in east.calls) == applied


def test_checks_that_are_lost_let_nothing_go(fleet: Fleet, east: FakeKube) -> None:
    """Objects are not removed unchecked when their checks are unknown."""
    gate(east, ready="yes")
    deploys(fleet, check("preDeleteChecks"))
    kept = fleet.records.profiles.get("", "", "own")
    assert kept
    fleet.records.profiles.put(replace(kept.value, checks=()), expect=kept.token)
    fleet.delete("ClusterProfile", "own")
    fleet.wait()

    assert names(east) == ["a", "b"]
    assert (fleet.status_of().phase, fleet.status_of().reason) == ("Failed", "Missing")
    assert "its checks are lost" in fleet.status_of().message


# Trouble ---------------------------------------------------------------------------------------


def test_a_cluster_that_does_not_answer_is_away(fleet: Fleet, east: FakeKube) -> None:
    """An error is no answer of a check."""
    gate(east, ready="yes")
    east.fail_with(UnreachableError("cannot reach it"), "list")
    deploys(fleet, check("preDeployChecks"))
    assert names(east) == []
    assert fleet.status_of().phase == "Failed"

    east.fail_with(None)
    fleet.wait()
    assert fleet.status_of().phase == "Provisioned"


def test_a_tenant_checks_with_its_own_rights(fleet: Fleet, east: FakeKube) -> None:
    """No check reads objects that its ServiceAccount may not list."""
    gate(east, ready="yes")
    text = profile(more=check("preDeployChecks")).replace(
        "{name: own}",
        "{name: own, labels: {projectsveltos.io/serviceaccount-name: dev,"
        " projectsveltos.io/serviceaccount-namespace: team}}",
    )
    fleet.deploy(text, holder("own", config("a")))

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
    deploys(fleet, check("preDeployChecks"))

    assert fleet.status_of().message == (
        "waits for check 'ready': it takes longer than the setting `turn` for more than 2 objects"
        " of ConfigMap; name a namespace, or labelFilters"
    )


@pytest.mark.usefixtures("east")
def test_a_profile_shows_its_checks_as_they_were_written(fleet: Fleet) -> None:
    """`get -o yaml` of what nobody declares any more can be applied again."""
    filters = "[{key: a, operation: Equal, value: b}, {key: c, operation: Different, value: d}"
    filters += ", {key: e, operation: Has}, {key: f, operation: DoesNotHave}]"
    rules = "evaluateCEL: [{name: one, rule: 'resource.data.ready == \"yes\"'}]"
    deploys(fleet, check("preDeleteChecks", more=f"labelFilters: {filters}\n    {rules}"))
    found = record(fleet)
    again = of(manifest(found, ""))
    assert isinstance(again, ClusterProfile)

    assert found.checks[0].labels == "a=b,c!=d,e,!f"
    assert again.checks == found.checks


@pytest.mark.parametrize("when", ["preDeleteChecks", "postDeleteChecks"])
def test_a_removal_can_be_asked_for_unchecked(fleet: Fleet, east: FakeKube, when: str) -> None:
    """A user can have a profile removed whose check never passes."""
    gate(east, ready="no")
    deploys(fleet, check(when))
    with pytest.raises(ConflictError, match="it is still wanted; take them out"):
        redeploy(fleet.installation(), "own", unchecked=True)
    fleet.delete("ClusterProfile", "own")
    redeploy(fleet.installation(), "own", unchecked=True)
    fleet.wait()

    assert names(east) == []
    assert fleet.records.profiles.head("", "", "own") is None
