"""Names of generators, while processes die: one owner, and no trigger is blocked."""

from __future__ import annotations

from pathlib import Path

import pytest

from bellhop.state.messages import Instantiate
from tests.fakes import rig
from tests.fakes.fleet import Fleet, service
from tests.fakes.hooks import after_next
from tests.fakes.kube import CONFIG
from tests.fakes.manifests import join, source, trigger
from tests.fakes.mortal import Killed
from tests.fakes.share import SHARE

HOLDER = """
apiVersion: v1
kind: ConfigMap
metadata: {name: NAME, namespace: default, annotations: {projectsveltos.io/template: ok}}
data:
  main.yaml: |
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: NAME, namespace: default}
    data: {v: '{{ (getResource "Same").data.v }}'}
"""
ORIGIN = """
apiVersion: v1
kind: ConfigMap
metadata: {name: origin, namespace: default}
data: {v: '{{ len .MatchingResources }}'}
"""
GENERATES = """configMapGenerator: [{name: origin, namespace: default, nameFormat: same}]
  templateResourceRefs:
  - resource: {apiVersion: v1, kind: ConfigMap, namespace: projectsveltos, name: same}
    identifier: Same"""


def rivals(folder: Path) -> Fleet:
    """Return an installation with two triggers that generate one name, and read it."""
    folder.mkdir()
    fleet = Fleet(folder)
    fleet.register("east", env="production")
    names = ("one", "two")
    triggers = [trigger(name, one="false", more=GENERATES) for name in names]
    holders = [HOLDER.replace("NAME", name) for name in names]
    fleet.deploy(join(source(), *triggers, *holders, ORIGIN))
    return fleet


def check(fleet: Fleet, count: str) -> None:
    """See that one has the name, both say so, and all who read it have what it is."""
    (one,), (two,) = (list(fleet.records.profiles.of(name)) for name in ("one", "two"))
    winner, loser = (one, two) if not one.error else (two, one)
    assert (winner.error, winner.titles) == ("", (("ConfigMap", "same"),))
    assert "has generated it for 'fleet/east'" in loser.error
    title = fleet.records.titles.get("ConfigMap", "same")
    assert title
    assert title.value.profile == winner.name
    (made,) = [
        each
        for each in fleet.access.clusters["fleet/east"].objects(CONFIG)
        if each["metadata"]["name"] == winner.trigger
    ]
    assert made["data"] == {"v": count}


@pytest.mark.rest
@pytest.mark.parametrize("offset", range(3)[::SHARE])
def test_death_at_any_step_leaves_one_owner_and_no_block(tmp_path: Path, offset: int) -> None:
    """The dead worker's message comes again; then one trigger ends, and the other has the name."""
    for steps in range(1 + offset, 420, 42):
        fleet = rivals(tmp_path / f"{steps}")
        fate = rig.make_mortal(fleet)
        east = fleet.access.clusters["fleet/east"]
        fate.doom(steps)
        try:
            fleet.write("east", service("a"))
            fleet.pump()
            fate.revive()
        except Killed:
            fate.revive()
            fleet.reread()
            fleet.write("east", service("a"))
        rig.settle(fleet, 4)
        check(fleet, "1")

        fate.doom(steps)
        try:
            fleet.delete("EventTrigger", "one")
            fate.revive()
        except Killed:
            fate.revive()
            fleet.reread()
            rig.delete(fleet, ("EventTrigger", "", "one"))
        rig.settle(fleet, 4)
        (two,) = fleet.records.profiles.of("two")
        assert (two.error, two.titles) == ("", (("ConfigMap", "same"),))
        assert list(fleet.records.profiles.of("one")) == []
        assert east.names() == ["two"]


def test_a_name_that_is_taken_between_claim_and_profile_is_found_out(tmp_path: Path) -> None:
    """Another reserves it before the profile is written: the slow worker tries again, and fails."""
    fleet = rivals(tmp_path / "state")
    fleet.write("east", service("a"))
    fleet.drain("evaluate")
    here, there = (rig.process(fleet) for _ in range(2))
    deploy, other = here.stages["deploy"], there.stages["deploy"]

    after_next(
        here.instantiation._writer._titles,
        "take",
        lambda: other.handle(Instantiate("two", "fleet/east")),
    )
    deploy.handle(Instantiate("one", "fleet/east"))
    (one,), (two,) = (list(fleet.records.profiles.of(name)) for name in ("one", "two"))
    assert (two.error, two.titles) == ("", (("ConfigMap", "same"),))
    assert "trigger 'two' has generated it" in one.error

    rig.settle(fleet, 4)
    check(fleet, "1")
    fleet.close()
