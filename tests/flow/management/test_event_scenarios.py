"""What Sveltos' suite of its event manager looks for, played by client libraries only."""

from __future__ import annotations

import pytest

from tests.flow.management import event_generators, events
from tests.flow.management.suite import Suite, run_all

pytestmark = pytest.mark.timeout(900)

FEW = (
    event_generators.deletes_a_profile_before_what_it_names,
    event_generators.reads_what_a_generator_wrote,
    event_generators.accepts_cloud_events_of_a_report,
    events.follows_a_cluster_set,
)
"""One for each behaviour."""


def test_plays_a_scenario_of_each_behaviour(suite: Suite) -> None:
    """Several at a time."""
    run_all(suite, FEW)


@pytest.mark.thorough
def test_plays_all_scenarios_twice(suite: Suite) -> None:
    """Five at a time, with no reset in between."""
    for _ in range(2):
        run_all(suite, [*events.SCENARIOS, *event_generators.SCENARIOS])
