"""A promotion of many clusters, a share of them at a time: `all in one` of Sveltos' documentation.

env=fv, three hours ─► env=pre-production, a Job and its check ─► env=production, from 20:00
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from bellhop.errors import InvalidError
from bellhop.state.promotion import StageState
from tests.fakes.fleet import Fleet
from tests.fakes.kube import CONFIG, FakeKube
from tests.fakes.manifests import config, holder
from tests.unit.promotions.conftest import promotion, version

HOUR = timedelta(hours=1)
MOMENT = timedelta(seconds=1)
COUNTS = {"fv": 10, "pre-production": 10, "production": 20}
PLACES = 2
"""Clusters of production that may change at a time, by `maxUpdate: 10%`."""

JOB = {"kind": "ConfigMap", "namespace": "default", "name": "validation"}
PASSED = {
    "name": "passed",
    "featureID": "Resources",
    "group": "",
    "version": "v1",
    "kind": "ConfigMap",
    "evaluateCEL": [
        {"name": "done", "rule": "!has(resource.data.job) || resource.data.job == 'done'"}
    ],
}
STAGES = (
    {"name": "fv", "trigger": {"auto": {"delay": "3h"}}},
    {
        "name": "pre-production",
        "trigger": {
            "auto": {
                "delay": "3h",
                "preHealthCheckDeployment": [JOB],
                "postDelayHealthChecks": [PASSED],
                "promotionWindow": {"from": "0 20 * * *", "to": "0 23 * * *"},
            }
        },
    },
    {"name": "production"},
)
ALL_IN_ONE = promotion(*STAGES, profileSpec={"maxUpdate": "10%"})


class Many:
    """Forty clusters, and what they have."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.kubes: dict[str, list[FakeKube]] = {
            env: [fleet.register(f"{env}-{number}", env=env) for number in range(count)]
            for env, count in COUNTS.items()
        }

    def count(self, env: str, v: str) -> int:
        """Return how many clusters of a stage have a version."""
        return sum(_version(kube) == v for kube in self.kubes[env])

    def has(self, v: str) -> list[int]:
        return [self.count(env, v) for env in COUNTS]

    def stage(self, name: str) -> StageState:
        kept = self.fleet.records.promotions.get("agent")
        assert kept
        return kept.value.stage(name)

    def settle(self, rounds: int = 40) -> None:
        self.fleet.wait(MOMENT, times=rounds)

    def wait_until(self, at: datetime) -> None:
        while self.fleet.clock.now() < at:
            self.fleet.wait(timedelta(minutes=30))
            self.settle(5)


def _version(kube: FakeKube) -> str:
    found = (each for each in kube.objects(CONFIG) if each["metadata"]["name"] == "agent")
    return next((str(each["data"]["v"]) for each in found), "")


def test_all_in_one_over_forty_clusters(fleet: Fleet) -> None:
    """Each stage in its turn, and none before its delay, its check and its window."""
    many = Many(fleet)
    begun = fleet.clock.now()
    assert begun == datetime(2026, 1, 1, 12, tzinfo=UTC)
    job = holder("validation", config("validation", "job: runs"))
    fleet.deploy(version("1"), job, ALL_IN_ONE)
    many.settle()
    assert many.has("1") == [10, 0, 0]
    assert many.stage("fv").phase == "Soaking"

    many.wait_until(begun + 3 * HOUR)
    many.settle()
    assert many.has("1") == [10, 10, 0]

    many.wait_until(begun + 6 * HOUR + timedelta(minutes=10))
    stage = many.stage("pre-production")
    assert stage.phase == "Verifying", stage
    assert {*map(len, (kube.names() for kube in many.kubes["pre-production"]))} == {2}

    fleet.deploy(holder("validation", config("validation", "job: done")))
    many.wait_until(begun + 7 * HOUR)
    assert many.stage("pre-production").phase == "WindowClosed"
    assert many.has("1") == [10, 10, 0]

    many.wait_until(begun + 8 * HOUR)
    many.settle()
    assert many.has("1") == [10, 10, 20]
    assert [kube.names() for kube in many.kubes["pre-production"]] == [["agent"]] * 10


def test_a_share_of_a_stage_changes_at_a_time(fleet: Fleet) -> None:
    """A release that production refuses is tried in a tenth of its clusters."""
    many = Many(fleet)
    quick = promotion(*({"name": env} for env in COUNTS), profileSpec={"maxUpdate": "10%"})
    fleet.deploy(version("1"), quick)
    many.settle()
    assert many.has("1") == [10, 10, 20]

    ends = [
        kube.refuse("agent", InvalidError("its webhook refuses it"))
        for kube in many.kubes["production"]
    ]
    fleet.deploy(version("2"))
    many.settle()

    assert many.has("2") == [10, 10, 0]
    names = [f"production-{number}" for number in range(COUNTS["production"])]
    phases = [fleet.status_of("agent-production", f"fleet/{name}").phase for name in names]
    assert sum(each.startswith("Failed") for each in phases) == PLACES, phases
    assert many.stage("production").phase == "Stalled"
    assert many.has("1") == [0, 0, 20]

    for end in ends:
        end()
    fleet.wait(HOUR)
    many.settle()
    assert many.has("2") == [10, 10, 20]
    assert many.stage("production").phase == "Promoted"
