"""Rights leave a cluster after what was written by them, and wait for nothing else."""

from __future__ import annotations

from datetime import timedelta

import pytest

from bellhop.core.sveltos_annotations import ACCOUNT_NAME, ACCOUNT_NAMESPACE
from bellhop.diagnosis.failures import list_failures
from bellhop.errors import UnreachableError
from bellhop.operations.redeployment import redeploy
from bellhop.ports.queue import Done
from bellhop.state.messages import Apply, Resolve
from tests.fakes.fleet import EAST, Fleet, service
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
from tests.unit.extras.test_role_requests import GIVEN, names, outcome, request, role

ANNS = f"labels: {{{ACCOUNT_NAME}: ann, {ACCOUNT_NAMESPACE}: team}}, "
RIGHTS = ("RoleRequest", "", "anns")
OWN = ("ClusterProfile", "", "own")
_NEVER = """preDeleteChecks:
  - {name: never, featureID: Resources, version: v1, kind: ConfigMap, namespace: team,
     script: "function evaluate() return {healthy = false} end"}"""


def theirs(text: str, account: str = "ann") -> str:
    """Return what is declared as a tenant's."""
    labels = ANNS.replace(" ann,", f" {account},")
    return text.replace("metadata: {", f"metadata: {{{labels}", 1)


def tenant(name: str = "own", *, more: str = "", account: str = "ann") -> str:
    """Return a profile of a tenant, and its manifest: a ConfigMap of its name."""
    own = theirs(profile(name=name, more=more), account)
    return join(own, holder(name, config(name, "v: '1'", namespace="team")))


def granted() -> str:
    """Return a RoleRequest by which the tenant may do all with ConfigMaps in its namespace."""
    return join(request(), holder("roles", role()))


@pytest.fixture
def east(fleet: Fleet) -> FakeKube:
    kube = fleet.register("east", env="production")
    kube.follow_bindings()
    return kube


def rights_first(fleet: Fleet) -> None:
    """Have all done about the RoleRequest that was deleted before anything else is."""
    deploy = fleet.stages["deploy"]
    deploy.handle(Resolve("RoleRequest:anns"))
    deploy.handle(Apply("", "", "RoleRequest:anns", EAST))


def left_over(fleet: Fleet) -> list[str]:
    """Return what is recorded of profiles, of who waits for them, and when."""
    kinds = ("outcome", "inventory", "owner", "waiting", "needing", "leaving")
    partitions = [f"{kind}/{EAST}" for kind in kinds]
    found = [item.sort for each in partitions for item in fleet.store.query(each)]
    found += [each.name for each in fleet.records.profiles.of("")]
    timer = fleet.records.timers.get(f"apply/{EAST}/RoleRequest:anns")
    return found + ["timer"] * bool(timer)


def lose_messages(fleet: Fleet) -> None:
    """Have nobody do what was asked for so far."""
    for inbox in ("deploy", "apply"):
        for each in fleet.queues[inbox].receive(9, wait=timedelta(0)):
            fleet.queues[inbox].settle(each, Done())


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("more", ["", "syncMode: OneTime", "stopMatchingBehavior: LeavePolicies"])
def test_what_a_tenant_wrote_goes_with_its_rights(
    fleet: Fleet, east: FakeKube, more: str, *, first: bool
) -> None:
    """Both are deleted at once, and whichever is worked on first nothing waits for a clock."""
    fleet.deploy(granted(), tenant(more=more))
    assert outcome(fleet, "own").phase == "Provisioned"

    fleet.declare.delete([RIGHTS, OWN])
    if first:
        rights_first(fleet)
        assert names(east) == GIVEN
    fleet.pump()

    assert names(east) == []
    assert east.names() == (["own"] if "Leave" in more else [])
    assert left_over(fleet) == []


def test_it_says_for_whom_it_waits(fleet: Fleet, east: FakeKube) -> None:
    """By name, of many the first ones; waiting is no failure, and the reason is shown."""
    fleet.deploy(granted(), *(tenant(f"own-{number}") for number in range(5)))
    fleet.declare.delete([RIGHTS, *(("ClusterProfile", "", f"own-{n}") for n in range(5))])
    rights_first(fleet)

    waits = outcome(fleet)
    assert (waits.phase, waits.reason, waits.failures) == ("Provisioning", "Waiting", 0)
    said = (
        "cannot withdraw 'RoleRequest:anns' from 'fleet/east' yet: what 'own-0', 'own-1', 'own-2'"
        " and others deployed there is removed with the permissions of 'team/ann'; it goes once"
        " that"
        " is done"
    )
    assert waits.message == said
    assert [each.type for each in list_failures(fleet.installation())] == ["waiting"]
    fleet.pump()
    assert names(east) == []


def test_rights_go_with_a_label_after_what_goes_with_it(fleet: Fleet, east: FakeKube) -> None:
    """A cluster that loses the label loses both, and keeps nothing."""
    fleet.deploy(granted(), tenant())

    fleet.declare.label(EAST, {"env": "test"})
    # They are all that the cluster has.
    fleet.release()
    rights_first(fleet)
    fleet.pump()

    assert (names(east), east.names()) == ([], [])
    assert fleet.records.outcomes.get(EAST, "own") is None


@pytest.mark.parametrize("what", ["EventTrigger made", "EventSource watched"])
def test_what_a_tenants_trigger_wrote_goes_with_its_rights(
    fleet: Fleet, east: FakeKube, what: str
) -> None:
    """The trigger or its source is deleted, and no worker has read that yet."""
    text = config(FOR_EACH, namespace="team")
    rules = (theirs(source()), theirs(trigger()), holder("made", text, annotations=INSTANTIATE))
    sees = role("sees", "services", "")
    fleet.deploy(request(), holder("roles", role(), sees), *rules)
    fleet.write("east", service("web"))
    for _ in range(3):
        fleet.pump()
        fleet.clock.advance(timedelta(seconds=5))
    assert east.names() == ["for-web"]

    kind, _, name = what.partition(" ")
    fleet.declare.delete([RIGHTS, (kind, "", name)])
    rights_first(fleet)
    assert outcome(fleet).reason == "Waiting"
    fleet.pump()

    assert (names(east), east.names()) == ([], [])


@pytest.mark.parametrize("why", ["it is wanted", "another's", "tried dry", "in another cluster"])
def test_rights_wait_for_nothing_that_stays(fleet: Fleet, east: FakeKube, why: str) -> None:
    """Nor for what others leave: who still wants to write is denied, as is meant."""
    account = "bob" if why == "another's" else "ann"
    east.rbac.grant("team/bob", "ConfigMap")
    fleet.deploy(granted(), tenant(account=account))
    gone = [RIGHTS]
    match why:
        case "another's":
            gone = [RIGHTS, OWN]
        case "tried dry":
            fleet.deploy(tenant(more="syncMode: DryRun"))
            fleet.apply(tenant(more="syncMode: DryRun").replace("env: production", "env: other"))
        case "in another cluster":
            west = fleet.register("west", env="production")
            west.follow_bindings()
            fleet.pump()
            fleet.apply(tenant().replace("env: production", "only: east"))
            fleet.declare.label(EAST, {"only": "east"})
    fleet.declare.delete(gone)
    rights_first(fleet)

    assert names(east) == []
    assert fleet.records.outcomes.get(EAST, "RoleRequest:anns") is None


@pytest.mark.parametrize("why", ["a check", "no answer"])
def test_rights_wait_as_long_as_what_leaves_by_them(fleet: Fleet, east: FakeKube, why: str) -> None:
    """They go as it does, without a further wait, be it that somebody has it go unchecked."""
    fleet.deploy(granted(), tenant(more=_NEVER if why == "a check" else ""))
    if why == "no answer":
        east.fail_with(UnreachableError("does not answer"), "remove")
    fleet.declare.delete([RIGHTS, OWN])
    for _ in range(3):
        fleet.pump()
        fleet.clock.advance(timedelta(minutes=20))
    assert names(east) == GIVEN
    assert outcome(fleet).reason == "Waiting"

    if why == "no answer":
        east.fail_with(None)
        fleet.clock.advance(timedelta(minutes=20))
    else:
        redeploy(fleet.installation(), "own", unchecked=True)
    fleet.pump()

    assert (names(east), east.names()) == ([], [])


@pytest.mark.parametrize("worked", [True, False])
def test_rights_go_when_what_was_to_leave_stays(
    fleet: Fleet, east: FakeKube, *, worked: bool
) -> None:
    """The next deployment notifies it, or it looks by itself where no worker did anything."""
    fleet.deploy(granted(), tenant(more=_NEVER))
    fleet.declare.delete([RIGHTS, OWN])
    if worked:
        fleet.pump()
    else:
        rights_first(fleet)
        lose_messages(fleet)
    assert outcome(fleet).reason == "Waiting"

    fleet.apply(tenant(more=_NEVER))
    fleet.wait(timedelta(seconds=5))
    if not worked:
        assert names(east) == GIVEN
        fleet.wait(timedelta(minutes=6))

    assert names(east) == []
    assert east.names() == ["own"]


def test_each_that_gives_rights_waits(fleet: Fleet, east: FakeKube) -> None:
    """It is unknown by whose permission an object was written; all are removed after it."""
    fleet.deploy(granted(), request("also"), tenant())

    fleet.declare.delete([RIGHTS, ("RoleRequest", "", "also"), OWN])
    deploy = fleet.stages["deploy"]
    for name in ("anns", "also"):
        deploy.handle(Resolve(f"RoleRequest:{name}"))
        deploy.handle(Apply("", "", f"RoleRequest:{name}", EAST))
    fleet.pump()

    assert (names(east), east.names(), left_over(fleet)) == ([], [], [])


@pytest.mark.usefixtures("east")
def test_rights_cost_nothing_for_what_is_not_their_accounts(fleet: Fleet) -> None:
    """Withdrawing them reads as much beside forty profiles of others as beside none."""
    fleet.deploy(granted(), tenant())
    counts = []
    for others in (0, 40):
        names_ = [f"other-{number}" for number in range(others)]
        fleet.apply(*(profile(name=n) for n in names_), *(holder(n, config(n)) for n in names_))
        fleet.deploy(granted())
        fleet.declare.delete([RIGHTS])
        fleet.stages["deploy"].handle(Resolve("RoleRequest:anns"))
        fleet.store.counts.clear()
        fleet.stages["deploy"].handle(Apply("", "", "RoleRequest:anns", EAST))
        counts.append(dict(fleet.store.counts))
        fleet.pump()

    assert counts[0] == counts[1]


def test_who_changes_the_account_is_its_own_from_then_on(fleet: Fleet, east: FakeKube) -> None:
    """Though nothing of what is there changes: the other's rights wait for it, the former not."""
    bobs = join(request("bobs", "bob"), holder("roles", role()))
    fleet.deploy(granted(), bobs, tenant(more=_NEVER))
    fleet.deploy(tenant(more=_NEVER, account="bob"))

    fleet.declare.delete([RIGHTS, ("RoleRequest", "", "bobs"), OWN])
    fleet.pump()

    assert names(east) == [each.replace("ann", "bob") for each in GIVEN]
    assert [item.sort for item in fleet.store.query(f"needing/{EAST}")] == [
        "ServiceAccount team/bob:own"
    ]


def test_rights_go_when_what_leaves_does_so_without_them(fleet: Fleet, east: FakeKube) -> None:
    """A user removes the tenant's labels from a profile whose check never passes."""
    fleet.deploy(granted(), tenant(more=_NEVER))
    fleet.declare.delete([RIGHTS, OWN])
    fleet.pump()
    assert outcome(fleet).reason == "Waiting"

    fleet.apply(profile(), holder("own", config("own", "v: '1'", namespace="team")))
    fleet.wait(timedelta(seconds=5))
    assert (names(east), east.names()) == ([], ["own"])

    fleet.declare.delete([OWN])
    fleet.pump()
    assert east.names() == []


def test_rights_wait_for_nothing_that_leaves_by_others(fleet: Fleet, east: FakeKube) -> None:
    """Though it is noted as theirs: nobody has been in the cluster since it got another account."""
    east.rbac.grant("team/bob", "ConfigMap")
    fleet.deploy(granted(), tenant())
    fleet.apply(tenant(account="bob"))
    fleet.stages["deploy"].handle(Resolve("own"))

    fleet.declare.delete([RIGHTS, OWN])
    rights_first(fleet)
    assert names(east) == []

    fleet.pump()
    assert east.names() == []
