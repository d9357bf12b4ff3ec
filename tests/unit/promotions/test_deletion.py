"""A deleted promotion: its stages are withdrawn in reverse order, whatever dies meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from bellhop.diagnosis import failures
from bellhop.errors import UnreachableError
from tests.fakes import rig
from tests.fakes.fleet import Fleet
from tests.fakes.kube import CONFIG
from tests.unit.promotions.conftest import STAGES, Fleet3, auto, promotion, version
from tests.unit.promotions.test_frozen_sources import chart, released

LAST = {"name": "production"}
GATES = (auto("staging"), auto("canary"), LAST)
KEY = ("ClusterPromotion", "", "agent")
MINUTE = timedelta(minutes=1)


def left(staged: Fleet3) -> list[bool]:
    """Return whether each stage has anything left."""
    return [staged.has(each) != {""} for each in STAGES]


def is_forgotten(staged: Fleet3) -> bool:
    """Return whether no record of the promotion is left."""
    records = staged.fleet.records
    return not (
        records.promotions.get("agent")
        or records.releases.heads("agent")
        or records.pins.of("agent")
        or list(records.frozen.items("agent"))
        or [each for each in records.profiles.heads("") if each.rollout.promotion]
    )


def said(staged: Fleet3) -> str:
    return "\n".join(each.message for each in failures.list_failures(staged.fleet.installation()))


def test_a_cluster_that_does_not_answer_is_named_and_waited_for(staged: Fleet3) -> None:
    """The stages before it keep what they have until it is withdrawn, or deregistered."""
    staged.apply(version("1"), promotion(*GATES))
    down = staged.kubes["production2"]
    down.fail_with(UnreachableError("no route to host"))

    staged.fleet.delete("ClusterPromotion", "agent")
    staged.fleet.wait(MINUTE, times=10)

    assert left(staged) == [True, True, True]
    assert staged.kubes["production1"].names() == []
    assert "profile 'agent-production' is to leave cluster 'fleet/production2'" in said(staged)
    assert "no route to host" in said(staged)
    down.fail_with(None)
    staged.fleet.wait(MINUTE, times=30)
    staged.settle()
    assert left(staged) == [False] * 3
    assert is_forgotten(staged)


def test_a_cluster_that_is_deregistered_is_waited_for_no_more(staged: Fleet3) -> None:
    staged.apply(version("1"), promotion(*GATES))
    staged.kubes["production2"].fail_with(UnreachableError("no route to host"))
    staged.fleet.delete("ClusterPromotion", "agent")
    staged.fleet.wait(MINUTE, times=3)

    staged.fleet.declare.deregister("fleet/production2")
    del staged.kubes["production2"]
    staged.fleet.wait(MINUTE, times=5)

    assert left(staged) == [False] * 3
    assert is_forgotten(staged)


def test_a_held_deletion_begins_with_the_last_stage_once_it_is_released(fleet: Fleet) -> None:
    staged = Fleet3(fleet, [str(number) for number in range(10)])
    staged.apply(version("1"), promotion(*GATES))
    fleet.delete("ClusterPromotion", "agent")
    staged.settle()
    assert left(staged) == [True, True, True], "30 add-ons at once are held"

    staged.kubes["production2"].fail_with(UnreachableError("no route to host"))
    fleet.release()
    staged.settle()
    assert left(staged) == [True, True, True]
    staged.kubes["production2"].fail_with(None)
    fleet.wait(MINUTE, times=30)

    assert left(staged) == [False] * 3
    assert is_forgotten(staged)


def test_its_charts_are_forgotten_with_it(staged: Fleet3) -> None:
    fleet = staged.fleet
    fleet.repositories.put("web", "1.0.0")
    staged.apply(promotion(*GATES, profileSpec=chart()))
    assert released(fleet, "production1") == "1.0.0"

    fleet.delete("ClusterPromotion", "agent")
    staged.settle()

    assert [released(fleet, f"{each}1") for each in STAGES] == ["", "", ""]
    assert is_forgotten(staged)


def test_one_that_comes_back_meanwhile_goes_on(staged: Fleet3) -> None:
    """The stages that had not been withdrawn keep their objects."""
    staged.apply(version("1"), promotion(*GATES))
    [before] = staged.kubes["staging1"].objects(CONFIG)
    staged.kubes["production2"].fail_with(UnreachableError("no route to host"))
    staged.fleet.delete("ClusterPromotion", "agent")
    staged.settle()

    staged.kubes["production2"].fail_with(None)
    staged.apply(promotion(*GATES))
    staged.fleet.wait(MINUTE, times=30)

    assert [staged.has(each) for each in STAGES] == [{"1"}] * 3
    [after] = staged.kubes["staging1"].objects(CONFIG)
    assert after["metadata"]["uid"] == before["metadata"]["uid"]


def test_a_stage_that_verifies_takes_its_deployment_along(staged: Fleet3) -> None:
    verified = auto(
        "staging",
        preHealthCheckDeployment=[{"kind": "ConfigMap", "name": "job", "namespace": "default"}],
        postDelayHealthChecks=[
            {
                "name": "never",
                "featureID": "Resources",
                "group": "",
                "version": "v1",
                "kind": "ConfigMap",
                "evaluateCEL": [{"name": "no", "rule": "false"}],
            }
        ],
    )
    job = version("1").replace("name: agent", "name: job").replace("'agent'", "'job'")
    staged.apply(version("1"), job, promotion(verified, LAST))
    assert staged.stage("staging").phase == "Verifying"
    assert staged.kubes["staging1"].names() == ["agent", "job"]

    staged.fleet.delete("ClusterPromotion", "agent")
    staged.fleet.wait(MINUTE, times=30)

    assert staged.kubes["staging1"].names() == []
    assert is_forgotten(staged)


@contextmanager
def deployed(folder: Path, **spec: bool) -> Iterator[tuple[Fleet3, rig.Fate]]:
    """Yield a promotion that has reached all of its stages, in a process that may die."""
    fleet = Fleet(folder)
    try:
        staged = Fleet3(fleet, ["1"])
        fate = rig.make_mortal(fleet)
        staged.apply(version("1"), promotion(*GATES, **spec))
        assert left(staged) == [True] * 3
        yield staged, fate
    finally:
        fleet.close()


def delete(fleet: Fleet) -> None:
    """Delete the promotion, and work, as a command and a worker do; a second time is no error."""
    if fleet.records.manifests.has(*KEY):
        fleet.declare.delete([KEY])
    fleet.pump()


DEATHS = [
    pytest.param(step, marks=[] if step % 6 == 1 else [pytest.mark.thorough])
    for step in range(1, 400, 9)
]


@pytest.mark.parametrize("step", DEATHS)
def test_a_worker_dies_at_any_step(tmp_path: Path, step: int) -> None:
    """No stage goes before the one after it, and all go."""
    with deployed(tmp_path) as (staged, fate):
        fleet = staged.fleet
        rig.kill(fleet, fate, step, lambda: delete(fleet))
        for _ in range(6):
            fleet.clock.advance(MINUTE)
            rig.kill(fleet, fate, step, lambda: delete(fleet))
            assert left(staged) == sorted(left(staged), reverse=True)
        delete(fleet)
        rig.settle(fleet)
        staged.settle()
        assert left(staged) == [False] * 3
        assert is_forgotten(staged)


@pytest.mark.parametrize("step", DEATHS)
def test_a_worker_dies_while_profiles_become_the_users_own(tmp_path: Path, step: int) -> None:
    """No cluster loses anything, and each profile follows its ConfigMap afterwards."""
    with deployed(tmp_path, preserveClusterProfilesOnDelete=True) as (staged, fate):
        fleet = staged.fleet
        uids = [staged.kubes[f"{each}1"].objects(CONFIG)[0]["metadata"]["uid"] for each in STAGES]
        for _ in range(4):
            rig.kill(fleet, fate, step, lambda: delete(fleet))
            fleet.clock.advance(MINUTE)
            assert left(staged) == [True] * 3
        rig.settle(fleet)
        delete(fleet)
        fleet.wait(MINUTE, times=2)
        after = [staged.kubes[f"{each}1"].objects(CONFIG)[0]["metadata"]["uid"] for each in STAGES]
        assert after == uids
        assert is_forgotten(staged)
        staged.apply(version("2"))
        assert [staged.has(each) for each in STAGES] == [{"2"}] * 3
