"""A cluster that has the definitions of Sveltos holds the configuration as one with Bellhop's."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.fakes.definitions import sveltos_definitions
from tests.flow import test_configuration_cluster as cluster
from tests.flow.conftest import Flow
from tests.flow.test_configuration_cluster import Hub
from tests.scenarios import (
    carry_service,
    carry_service_of_v1alpha1,
    guard_services,
    route_services,
)

pytestmark = pytest.mark.timeout(300)

hub = cluster.hub


@pytest.fixture
def definitions(flow: Flow, request: pytest.FixtureRequest) -> None:
    """Have the source cluster define the kinds before Bellhop does."""
    if request.param == "Sveltos'":
        for each in sveltos_definitions():
            flow.source.apply(each)


@pytest.mark.parametrize(
    ("definitions", "scenario"),
    [
        pytest.param(
            "Sveltos'",
            cluster.test_the_welcome_example_works_by_the_api_server_only,
            id="welcome",
            marks=pytest.mark.oldest,
        ),
        *(
            pytest.param("Sveltos'", each, id=each.__name__, marks=pytest.mark.thorough)
            for each in (
                carry_service,
                carry_service_of_v1alpha1,
                guard_services,
                route_services,
                cluster.replicate_with_templates,
            )
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
