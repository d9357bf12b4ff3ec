"""What Sveltos' suite of its add-on controller looks for, played by client libraries only."""

from __future__ import annotations

import pytest

from tests.flow.management import addons, addons_cluster, addons_local, addons_patches
from tests.flow.management.suite import Suite, run_all

pytestmark = pytest.mark.timeout(900)

GROUPS = (addons, addons_patches, addons_local)
FEW = (
    addons.deploys_once,
    addons.reports_a_missing_reference,
    addons_patches.decides_between_references_by_tier,
    addons.deploys_a_profile_of_a_namespace,
    addons.matches_nothing_while_a_profile_is_paused,
    addons_local.keeps_a_profile_of_a_namespace_in_it,
    addons_local.deploys_to_both_clusters,
    addons_local.acts_with_the_rights_of_a_tenant,
    addons_local.reports_a_wrong_template,
)
"""One for each behaviour."""


def test_plays_a_scenario_of_each_behaviour(suite: Suite) -> None:
    """Several at a time."""
    run_all(suite, FEW)


@pytest.mark.thorough
def test_plays_all_scenarios_twice(suite: Suite) -> None:
    """Five at a time, and those that change the cluster by themselves, with no reset in between."""
    for _ in range(2):
        run_all(suite, [scenario for each in GROUPS for scenario in each.SCENARIOS])
        for each in addons_cluster.SCENARIOS:
            run_all(suite, [each])
