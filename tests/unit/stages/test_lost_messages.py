"""Whichever message of a deployment under way is lost, two resyncs later it has ended all the same.

Each history is played once to count its messages, and once more for each of them, which is lost.
A turn is over after each step, so that long work is a chain of messages. The first message of a
change is not among them: no record says that it was published.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

from bellhop.errors import UnreachableError
from bellhop.settings import Settings
from bellhop.state.messages import CHARTS
from tests.fakes import rig
from tests.fakes.clock import TickingClock
from tests.fakes.fleet import Fleet
from tests.fakes.kube import FakeKube
from tests.fakes.lossy import Losses, Which
from tests.fakes.manifests import config, holder, join, profile
from tests.unit.stages.test_charts import TWO, charts, data

INBOXES = ("apply", CHARTS)

AT_ONCE = -timedelta.resolution
"""A turn that is over before it began."""


@dataclass(frozen=True)
class Step:
    """What somebody does, and the ConfigMaps that there are in the cluster two resyncs later."""

    act: Callable[[Fleet, FakeKube], object]
    wanted: Sequence[str]
    phases: Sequence[str] = ("Provisioned",)


def own(*names: str) -> str:
    return join(profile(), holder("own", *(config(each, "v: '1'") for each in names)))


def fail(kube: FakeKube) -> None:
    kube.fail_with(UnreachableError("does not answer"), "apply")


CHARTED = ["second-config", "web-config"]
HISTORIES = {
    "charts are deployed and removed": [
        Step(lambda fleet, _: fleet.apply(charts(of=TWO)), CHARTED),
        Step(lambda fleet, _: rig.delete(fleet, ("ClusterProfile", "", "p")), [], ()),
    ],
    "a profile takes several turns to be deployed and removed": [
        Step(lambda fleet, _: fleet.apply(own("a", "b", "c")), ["a", "b", "c"]),
        Step(lambda fleet, _: rig.label(fleet, "east", {"env": None}), [], ()),
    ],
    "a deployment fails and is retried": [
        Step(
            lambda fleet, kube: (fail(kube), fleet.apply(own("a", "b"))),
            [],
            ("Failed",),
        ),
        Step(lambda _, kube: kube.fail_with(None), ["a", "b"]),
    ],
}


def play(steps: Sequence[Step], losses: Losses) -> set[Which]:
    """Play a history in which one message is lost; return the first ones of each step.

    Raises:
        AssertionError: two resyncs after a step something else is there.
    """
    firsts: set[Which] = set()
    with rig.folder() as folder:
        fleet = Fleet(Path(folder), Settings(turn=AT_ONCE, hold_share=0), TickingClock())
        rig.lose(fleet, losses)
        fleet.repositories.put("web", "1.0.0")
        kube = fleet.register("east", env="production")
        for step in steps:
            firsts |= {(each, losses.counts[each] + 1) for each in INBOXES}
            step.act(fleet, kube)
            fleet.pump()
            rig.resync(fleet, 2)
            assert sorted(data(kube)) == sorted(step.wanted)
            phases = [each.phase for each in fleet.records.outcomes.of("fleet/east")]
            assert phases == list(step.phases)
        fleet.close()
    return firsts


@pytest.mark.parametrize("name", HISTORIES)
def test_a_deployment_whose_message_is_lost_is_done_two_resyncs_later(name: str) -> None:
    """Turns of deployments and removals, with charts and without, and retries of failures."""
    whole = Losses()
    firsts = play(HISTORIES[name], whole)
    turns = {(each, number + 1) for each in INBOXES for number in range(whole.counts[each])}
    assert turns - firsts
    for turn in sorted(turns - firsts):
        losses = Losses(turn)
        try:
            play(HISTORIES[name], losses)
        except AssertionError as error:
            error.add_note(f"lost: {turn}, {losses.lost}")
            raise
