"""A cluster that has the definitions of Sveltos holds the configuration as one with Bellhop's."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.fakes.definitions import sveltos_definitions
from tests.flow import test_configuration_cluster as cluster
from tests.flow import test_examples as examples
from tests.flow.conftest import Flow
from tests.flow.test_configuration_cluster import Hub

pytestmark = pytest.mark.timeout(300)

hub = cluster.hub


@pytest.fixture
def definitions(flow: Flow, request: pytest.FixtureRequest) -> None:
    """Have the source cluster define the kinds before Bellhop does."""
    if request.param == "Sveltos'":
        for each in sveltos_definitions():
            flow.source.apply(each)


def carry_service(hub: Hub, form: str = "service-discovery") -> None:
    examples.test_carries_a_service_to_the_other_cluster_and_takes_it_away(hub, form)


def carry_service_of_v1alpha1(hub: Hub) -> None:
    carry_service(hub, "service-discovery-eventbasedaddon")


@pytest.mark.parametrize(
    ("definitions", "scenario"),
    [
        pytest.param(
            "Sveltos'",
            cluster.test_the_welcome_example_works_by_the_api_server_only,
            id="welcome",
            marks=pytest.mark.oldest,
        ),
        pytest.param("Sveltos'", carry_service, id="service-discovery", marks=pytest.mark.thorough),
        pytest.param(
            "Sveltos'", cluster.guard_services, id="network-policy", marks=pytest.mark.thorough
        ),
        pytest.param(
            "Sveltos'", carry_service_of_v1alpha1, id="EventBasedAddOn", marks=pytest.mark.thorough
        ),
        pytest.param(
            "Bellhop's",
            carry_service_of_v1alpha1,
            id="EventBasedAddOn, Bellhop's",
            marks=pytest.mark.oldest,
        ),
    ],
    indirect=["definitions"],
)
@pytest.mark.usefixtures("definitions")
def test_an_example_does_the_same(hub: Hub, scenario: Callable[[Hub], None]) -> None:
    scenario(hub)
