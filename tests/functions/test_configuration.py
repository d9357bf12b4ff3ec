"""From custom resources in a cluster to add-ons in another, by functions with their roles only."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from infra.demo.user import User
from infra.lab.cluster import Cluster
from tests.functions.hub import NOTE, TRIGGER, WELCOME, Hub, make_team
from tests.functions.rights import RoleSite
from tests.functions.roles import GuardedLambda
from tests.lab.moto import Moto

pytestmark = pytest.mark.timeout(600)


@pytest.fixture
def site(moto: Moto) -> Iterator[RoleSite]:
    """An installation without clusters."""
    one = RoleSite(moto)
    yield one
    one.close()


def test_objects_of_the_configuration_cluster_are_deployed_and_withdrawn(
    site: RoleSite, source_cluster: Cluster, destination_cluster: Cluster
) -> None:
    """Each function has the rights of its role only, and none is denied anything.

    It takes long: every message goes through queues of moto, which are polled.
    """
    target = User(destination_cluster.kubeconfig())
    make_team(target)
    functions = GuardedLambda(site)
    site.user.register("east", destination_cluster.kubeconfig(), env="production")
    hub = Hub(source_cluster, site.user, functions.send)
    functions.wait(lambda: site.here.records.gates.get("fleet/hub"))

    hub.write(WELCOME.read_text())
    functions.wait(lambda: target.get(NOTE))
    hub.delete(TRIGGER)
    functions.wait(lambda: target.get(NOTE) is None and hub.get(TRIGGER) is None)

    assert functions.denied() == []
    hub.close()
    target.close()
