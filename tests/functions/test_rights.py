"""No function has a right that it does not need: something ends badly without each of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import pytest
from botocore.exceptions import ClientError

from bellhop.errors import BellhopError
from bellhop.state.messages import CHARTS
from infra.lab.cluster import Cluster
from tests.functions.registered_objects import registers_by_an_object
from tests.functions.rights import Right, rights, with_parameters
from tests.functions.roles import Post, Site
from tests.functions.situations import (
    SITUATIONS,
    Situation,
    applies_a_profile,
    registers_again,
    silences_the_one_before,
)
from tests.lab.moto import Moto

pytestmark = pytest.mark.timeout(600)  # One test plays all that a role meets.

PLAYED = [each for each in rights() if not each.action.startswith("ec2:")]
"""All rights but those by which Lambda places a function in a network: nobody plays that here."""


class Evidence:
    """Which situations take which right, played role by role when it is asked for."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._posts: dict[str, Post] = {}
        self._found: dict[str, dict[Right, list[Situation]]] = {}

    def post(self, role: str) -> Post:
        """Return the function of a role."""
        if role not in self._posts:
            self._posts[role] = Post(self._site, role)
        return self._posts[role]

    def of(self, role: str) -> Mapping[Right, Sequence[Situation]]:
        """Play all that a role meets, with all its rights; return what takes each of them."""
        if role not in self._found:
            found: dict[Right, list[Situation]] = defaultdict(list)
            for situation in SITUATIONS[role]:
                for right in self._taken(role, situation):
                    found[right].append(situation)
            self._found[role] = dict(found)
        return self._found[role]

    def fails(self, situation: Situation, right: Right) -> bool:
        """Say whether a situation does not end well without a right, only because it is missing."""
        post = self.post(right.role)
        try:
            post.play(situation, without=right)
        except (AssertionError, BellhopError, ClientError):
            return post.asked(allowed=False) == {right}
        return False

    def _taken(self, role: str, situation: Situation) -> set[Right]:
        post = self.post(role)
        post.play(situation)
        assert post.asked(allowed=False) == set()
        return post.asked(allowed=True)


@pytest.fixture(scope="module")
def evidence(_moto: Moto, two_clusters: tuple[Cluster, Cluster]) -> Iterator[Evidence]:
    """An installation on moto with a real cluster."""
    two_clusters[0].start()
    two_clusters[0].reset()
    site = Site(_moto, two_clusters[0])
    yield Evidence(site)
    site.close()


@pytest.fixture(scope="module")
def parameters(
    _moto: Moto,
    _parameters: None,
    evidence: Evidence,  # noqa: ARG001 - the cluster is started for it
    two_clusters: tuple[Cluster, Cluster],
) -> Iterator[Evidence]:
    """An installation with its kubeconfigs in Parameter Store, after all tests of the other."""
    two_clusters[0].reset()
    site = Site(_moto, two_clusters[0], parameters=True)
    yield Evidence(site)
    site.close()


@pytest.mark.parametrize("role", SITUATIONS)
def test_a_function_does_its_work_by_its_role(evidence: Evidence, role: str) -> None:
    """With exactly these rights all that it meets ends well, and each of them is asked for.

    It takes long: every situation of a role is played, and moto checks IAM at each call.
    """
    assert evidence.of(role).keys() == {each for each in PLAYED if each.role == role}


@pytest.mark.parametrize("role", ["charts", "deploy", "evaluate", "schedule"])
def test_senders_are_for_ingest_and_the_resync(evidence: Evidence, role: str) -> None:
    """No other function reads or writes how clusters and senders prove who they are."""
    for partition in ("sender/fleet/east", "payload/sender/fleet/east/0", "caller", "issuer"):
        for operation in ("get_item", "put_item"):
            with pytest.raises(BellhopError, match="AWS denies it"):
                use_table(evidence.post(role), operation, partition)


def test_evaluate_writes_nothing_that_is_deployed(evidence: Evidence) -> None:
    """Scripts of tenants run there: from there nobody can write what is deployed, or where."""
    post = evidence.post("evaluate")
    for partition in (
        *("manifest/ConfigMap", "payload/manifest/ConfigMap/default/a", "profile/t/0"),
        *("payload/profile/t/0/a", "inventory/fleet/east", "owner/fleet/east"),
        *("outcome/fleet/east", "cluster", "gate"),
        *("configured/ClusterProfile", "written/ClusterProfile//a"),
        *("promotion", "release/a", "payload/release/a/1", "pin/a", "payload/pin/a/1/b"),
        *("frozen/a", "payload/frozen/a/b"),
    ):
        use_table(post, "get_item", partition)
        for operation in ("put_item", "delete_item"):
            with pytest.raises(BellhopError, match="AWS denies it"):
                use_table(post, operation, partition)


def use_table(post: Post, operation: str, partition: str) -> None:
    """Call DynamoDB with all rights of a role for one item of a partition."""
    post.play(lambda _: None)
    key = {"partition": {"S": partition}, "sort": {"S": "ci"}}
    table = post.site.account.environment["BELLHOP_TABLE"]
    what = {"Item": key} if operation == "put_item" else {"Key": key}
    post.services.call("dynamodb", operation, {"TableName": table, **what}, doing="try it")


@pytest.mark.thorough
@pytest.mark.parametrize("right", PLAYED, ids=str)
def test_it_does_not_without_each_of_its_rights(evidence: Evidence, right: Right) -> None:
    """The same function in the same situation fails, and for that reason only."""
    taking = evidence.of(right.role).get(right, ())

    assert any(evidence.fails(situation, right) for situation in taking)


WITH_KUBECONFIGS: Mapping[str, Sequence[Situation]] = {
    "charts": [partial(applies_a_profile, of=CHARTS)],
    "deploy": [applies_a_profile],
    "sweep": [registers_again, silences_the_one_before, registers_by_an_object],
}
"""Situations that take the rights to kubeconfigs."""


@pytest.mark.parametrize("role", WITH_KUBECONFIGS)
def test_kubeconfigs_may_be_parameters(parameters: Evidence, role: str) -> None:
    """The functions that have kubeconfigs ask for these rights of Parameter Store, and no other."""
    post, situations = parameters.post(role), WITH_KUBECONFIGS[role]
    asked = set()
    for situation in situations:
        post.play(situation)
        assert post.asked(allowed=False) == set()
        asked |= post.asked(allowed=True)
    needed = {each for each in post.rights if each.action.startswith("ssm:")}

    assert needed
    assert {each for each in asked if each.action.startswith("ssm:")} == needed


PARAMETERS = sorted({with_parameters(each) for each in rights()} - set(rights()))
"""The rights to kubeconfigs that are parameters."""


def test_only_functions_with_kubeconfigs_have_rights_to_parameters() -> None:
    """Ingest, evaluate and the schedule reach no cluster."""
    assert {each.role for each in PARAMETERS} == set(WITH_KUBECONFIGS)


@pytest.mark.thorough
@pytest.mark.parametrize("right", PARAMETERS, ids=str)
def test_no_kubeconfig_is_a_parameter_without_each_right(
    parameters: Evidence, right: Right
) -> None:
    """The same function in the same situation fails, and for that reason only."""
    situations = WITH_KUBECONFIGS[right.role]

    assert any(parameters.fails(situation, right) for situation in situations)
