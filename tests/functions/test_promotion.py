"""A promotion on AWS: from stage to stage by functions with their roles only."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from bellhop.state.messages import Promote, Resolve
from infra.lab.cluster import Cluster
from tests.cli.conftest import House, on_aws
from tests.cli.test_permissions import identity, may, policy
from tests.functions.lab import Context, event
from tests.functions.rights import RoleSite
from tests.functions.roles import GuardedLambda
from tests.functions.staged import NAME, StagedFleet
from tests.lab.moto import Moto
from tests.waiting import eventually

pytestmark = pytest.mark.timeout(600)


@pytest.fixture
def site(moto: Moto) -> Iterator[RoleSite]:
    """An installation without clusters, whose functions have their roles."""
    one = RoleSite(moto, retry_first=1, retry_longest=1)
    yield one
    one.close()


@pytest.fixture
def house(site: RoleSite, tmp_path: Path) -> Iterator[House]:
    """The command line of somebody with a context for it."""
    made = on_aws(tmp_path, site.account)
    yield made
    made.opened.close()


@pytest.fixture
def fleet(
    site: RoleSite, house: House, both_clusters: tuple[Cluster, Cluster], tmp_path: Path
) -> Iterator[StagedFleet]:
    """Three stages, before anything is applied."""
    one = StagedFleet(site.user, both_clusters, house, tmp_path)
    yield one
    one.close()


def test_a_release_reaches_production_once_a_caller_of_aws_approves_it(
    site: RoleSite, house: House, fleet: StagedFleet
) -> None:
    """Production changes for nothing else: no tick, no repeated message, no failed function.

    It takes long: every message goes through queues of moto, which are polled.
    """
    functions, queues = GuardedLambda(site), site.here.queues.values()
    may(house, policy("approver", house))
    caller = identity(house)
    for release in (1, 2):
        version, before = f"2.{release}", fleet.read("production")
        fleet.apply(version)
        functions.pump(until=partial(fleet.is_in, "staging", "Soaking", release))
        eventually("the delay is over", fleet.is_due)
        assert not fleet.has("canary", version)
        # The state is written, and nothing is published: as if the function died between the two.
        throttled = {"role": f"{site.account.name}-deploy", "code": "RequestThrottled"}
        site.moto.fail("sqs:SendMessageBatch", status=400, times=12, **throttled)
        functions.tick(event("scheduler"), Context())
        functions.wait(partial(fleet.is_in, "canary", "AwaitingApproval", release))
        for message in (Promote(NAME), Promote(NAME), Resolve(f"{NAME}-production")):
            site.here.publisher.publish([message])
        functions.wait(lambda: all(each.backlog().waiting == 0 for each in queues))
        assert fleet.has("canary", version)
        assert fleet.read("production") == before

        fleet.do("approve", "promotion", NAME, "--reason", "CHG-4711", **caller)
        functions.wait(partial(fleet.is_in, "production", "Promoted", release))
        assert fleet.has("production", version)

    assert functions.denied() == []
    role = f"{house.context.place['table']}-person"
    arn = f"arn:aws:sts::123456789012:assumed-role/{role}/person"
    history = json.loads(fleet.do("history", "promotion", NAME, "-o", "json"))
    approved = {(each["stage"], each["release"]): each["approved"] for each in history}
    assert approved.pop(("canary", 1)) == approved.pop(("canary", 2)) == f"{arn}: CHG-4711"
    assert set(approved.values()) == {""}
