"""The costs of a promotion: nothing while it waits, and no deployment twice."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.fleet import Fleet
from tests.unit.promotions.conftest import Fleet3, auto, manual, promotion, version
from tests.unit.promotions.test_frozen_sources import chart

HOUR = timedelta(hours=1)
MOMENT = timedelta(seconds=1)
LAST = {"name": "production"}
CHARTS = 20
NIGHT = {"from": "0 22 * * *", "to": "0 23 * * *"}


def count_waiting(fleet: Fleet) -> Counter[str]:
    """Return the operations of the store in some minutes in which nothing happens."""
    fleet.wait(MOMENT, times=60)
    before = _operations(fleet)
    fleet.wait(MOMENT, times=180)
    return _operations(fleet) - before


def _operations(fleet: Fleet) -> Counter[str]:
    return Counter({name: n for name, n in fleet.store.counts.items() if name != "item"})


@pytest.mark.parametrize(
    ("first", "phase"),
    [
        (auto("staging", delay="5h"), "Soaking"),
        (manual("staging"), "AwaitingApproval"),
        (auto("staging", promotionWindow=NIGHT), "WindowClosed"),
    ],
)
def test_a_promotion_that_waits_makes_no_operation_of_the_store(
    tmp_path: Path, first: dict[str, Any], phase: str
) -> None:
    """Beyond those of the schedule, which looks for due timers with or without it."""
    idle, fleet = Fleet(tmp_path / "idle"), Fleet(tmp_path / "fleet")
    nothing = Fleet3(idle)
    staged = Fleet3(fleet)
    nothing.settle()
    staged.apply(version("1"), promotion(first, LAST))
    assert staged.phases() == [phase, "Waiting"]

    assert count_waiting(fleet) == count_waiting(idle)

    idle.close()
    fleet.close()


def charts(version: str) -> dict[str, Any]:
    """Return a profileSpec with many charts, of which the last has a version of its own."""
    [one] = chart("1.0.0")["helmCharts"]
    made = [{**one, "releaseName": f"web{number}"} for number in range(CHARTS)]
    return {"policyRefs": [], "helmCharts": [*made[:-1], {**made[-1], "chartVersion": version}]}


def test_a_release_of_many_charts_is_rendered_once_for_each_cluster(staged: Fleet3) -> None:
    """The next stage costs the clusters before it nothing, and a change only what it changes."""
    fleet = staged.fleet
    fleet.repositories.put("web", "1.0.0", "2.0.0")
    stages = auto("staging", delay="1h"), LAST
    staged.apply(promotion(*stages, profileSpec=charts("1.0.0")))
    helm = fleet.charts
    assert len(helm.deployed) == 2 * CHARTS
    rendered = len(helm.rendered)

    fleet.wait(HOUR)
    staged.settle()
    assert len(helm.deployed) == 4 * CHARTS
    assert len(helm.rendered) == rendered

    staged.apply(promotion(*stages, profileSpec=charts("2.0.0")))
    assert len(helm.deployed) == 4 * CHARTS + 2
    assert len(helm.rendered) <= rendered + 2


def test_a_release_is_rendered_for_a_stage_only_when_that_stage_changes(staged: Fleet3) -> None:
    """Stages exchange clusters, and a stage that keeps its own is not rendered for another's sake.

    By its own change a stage is rendered for its release, and as its status is counted.
    """
    fleet = staged.fleet
    rendered: Counter[str] = Counter()
    render = fleet.resolution.render_release

    def count(catalog: Any, declared: Any, release: int) -> Any:
        rendered[declared.rule] += 1
        return render(catalog, declared, release)

    fleet.resolution.render_release = count
    staged.apply(version("1"), promotion(auto("staging"), auto("canary"), LAST))
    staged.apply(version("2"))
    before = rendered.copy()
    staged.apply(version("3"))

    assert staged.has("production") == {"3"}
    assert max((rendered - before).values()) <= 3
