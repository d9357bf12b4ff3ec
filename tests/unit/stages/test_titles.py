"""Names that generators wrote, while processes die: one owner, and nobody is blocked."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from bellhop.core.gvk import GVK
from bellhop.state.messages import Instantiate
from tests.fakes import rig
from tests.fakes.fleet import Fleet, service
from tests.fakes.manifests import join, source, trigger
from tests.fakes.mortal import Fate, Killed, Mortal
from tests.fakes.share import SHARE
from tests.unit.stages.test_overlap import meanwhile

CONFIG = GVK("", "v1", "ConfigMap")
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


def mortal(fate: Fate, name: str, port: Any) -> Mortal:
    return Mortal(name, port, fate)


def rivals(folder: Path) -> Fleet:
    """Return an installation with two triggers that generate one name, and read it."""
    folder.mkdir()
    fleet = Fleet(folder)
    fleet.register("east", env="production")
    names = ("one", "two")
    triggers = [trigger(name, one="false", more=GENERATES) for name in names]
    holders = [HOLDER.replace("NAME", name) for name in names]
    fleet.apply(join(source(), *triggers, *holders, ORIGIN))
    fleet.pump()
    return fleet


def settle(fleet: Fleet) -> None:
    """Let all that is due be done, longer than any pause."""
    rig.release(fleet)
    for _ in range(4):
        fleet.clock.advance(timedelta(seconds=130))
        rig.tick(fleet)
        fleet.pump()


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
def test_death_at_any_step_leaves_one_owner_and_blocks_nobody(tmp_path: Path, offset: int) -> None:
    """Whoever died comes again; then one trigger goes, and the other has the name."""
    for steps in range(1 + offset, 420, 42):
        fleet = rivals(tmp_path / f"{steps}")
        east, fate = fleet.access.clusters["fleet/east"], Fate()
        rig.interpose(fleet, partial(mortal, fate))
        fleet.access.clusters = {"fleet/east": east}
        fate.doom(steps)
        try:
            fleet.write("east", service("a"))
            fleet.pump()
            fate.revive()
        except Killed:
            fate.revive()
            fleet.reread()
            fleet.write("east", service("a"))
        settle(fleet)
        check(fleet, "1")

        fate.doom(steps)
        try:
            fleet.declare.delete([("EventTrigger", "", "one")])
            fleet.pump()
            fate.revive()
        except Killed:
            fate.revive()
            fleet.reread()
            rig.delete(fleet, ("EventTrigger", "", "one"))
        settle(fleet)
        (two,) = fleet.records.profiles.of("two")
        assert (two.error, two.titles) == ("", (("ConfigMap", "same"),))
        assert list(fleet.records.profiles.of("one")) == []
        assert [each["metadata"]["name"] for each in east.objects(CONFIG)] == ["two"]


def test_a_name_that_is_taken_between_claim_and_profile_is_found_out(tmp_path: Path) -> None:
    """Another takes it while nobody says that he has it: who was slow begins anew, and is told."""
    fleet = rivals(tmp_path / "state")
    fleet.write("east", service("a"))
    for delivery in fleet.queues["evaluate"].receive(10, wait=timedelta(0)):
        fleet.work("evaluate", [delivery])
    deploy, other = (rig.process(fleet).stages["deploy"] for _ in range(2))

    meanwhile(
        deploy._instantiation._writer._titles,
        "take",
        lambda: other.handle(Instantiate("two", "fleet/east")),
    )
    deploy.handle(Instantiate("one", "fleet/east"))
    (one,), (two,) = (list(fleet.records.profiles.of(name)) for name in ("one", "two"))
    assert (two.error, two.titles) == ("", (("ConfigMap", "same"),))
    assert "trigger 'two' has generated it" in one.error

    settle(fleet)
    check(fleet, "1")
    fleet.close()
