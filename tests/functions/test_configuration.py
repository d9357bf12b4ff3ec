"""From custom resources in a cluster to add-ons in another, by functions with their roles only."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bellhop.core.gvk import ObjectKey
from bellhop.state.messages import Resync
from infra.demo.user import User
from infra.lab.cluster import Cluster
from tests.functions.hub import NOTE, TRIGGER, WELCOME, Hub, HubFleet, make_team
from tests.functions.registered_objects import CLUSTER, make_cluster
from tests.functions.rights import RoleSite, needs_configuration_cluster, rights
from tests.functions.roles import GuardedLambda
from tests.lab.moto import Moto

pytestmark = pytest.mark.timeout(600)

HUB, EAST = "fleet/hub", "default/east"
LABELS = {"env": "production"}, {"dep": "eng"}
OBJECT = ObjectKey(CLUSTER, "default", "east")


@pytest.fixture
def site(moto: Moto) -> Iterator[RoleSite]:
    """An installation without clusters, whose functions may not write kubeconfigs."""
    one = RoleSite(moto, configuration=False)
    yield one
    one.close()


def test_objects_of_the_configuration_cluster_are_deployed_and_withdrawn(
    site: RoleSite, source_cluster: Cluster, destination_cluster: Cluster
) -> None:
    """A cluster is registered by an object as soon as the functions may store its kubeconfig.

    Each function has the rights of its role only, and none is denied anything else. It takes long:
    every message goes through queues of moto, which are polled.
    """
    target, records = User(destination_cluster.kubeconfig()), site.here.records
    make_team(target)
    functions = GuardedLambda(site)
    hub = Hub(source_cluster.kubeconfig(), site.user, functions.send)
    functions.wait(lambda: records.gates.get(HUB))

    hub.write(*make_cluster("east", destination_cluster.kubeconfig(), env="production"))
    functions.wait(lambda: "`configuration_cluster = true`" in hub.read_failure(OBJECT))
    assert {(each["role"], each["action"]) for each in functions.denied()} == {
        (f"{site.account.name}-sweep", "secretsmanager:PutSecretValue")
    }
    functions.grant("sweep", *filter(needs_configuration_cluster, rights()))
    site.here.publisher.publish([Resync(HUB)])
    functions.wait(lambda: records.clusters.get(EAST))
    functions.wait(lambda: not hub.read_failure(OBJECT))

    hub.apply(WELCOME.read_text())
    functions.wait(lambda: target.get(NOTE))
    hub.delete(TRIGGER)
    functions.wait(lambda: target.get(NOTE) is None and hub.get(TRIGGER) is None)
    hub.delete(OBJECT)
    functions.wait(lambda: records.clusters.get(EAST) is None)

    assert list(site.here.secrets.names("kubeconfig/default")) == []
    assert functions.denied() == []
    hub.close()
    target.close()


@pytest.mark.thorough
def test_each_example_works_by_the_api_server_only(
    site: RoleSite, both_clusters: tuple[Cluster, Cluster]
) -> None:
    functions = GuardedLambda(site)
    for each, name, labels in zip(both_clusters, ("source", "destination"), LABELS, strict=True):
        site.user.register(name, each.kubeconfig(), **labels)
    fleet = HubFleet(both_clusters, site.user, functions.send, functions.wait)
    fleet.play_all()
    assert functions.denied() == []
    fleet.close()
