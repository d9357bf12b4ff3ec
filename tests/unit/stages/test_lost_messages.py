"""Whichever message is lost, two resyncs later all is as if it had not been.

Each history is played once to count its messages, and once more for each of them, which is lost.
A turn is over after each step, so that long work is a chain of messages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

from bellhop.errors import UnreachableError
from bellhop.settings import Settings
from tests.fakes import rig
from tests.fakes.clock import TickingClock
from tests.fakes.fleet import Fleet
from tests.fakes.kube import FakeKube
from tests.fakes.lossy import Losses, Which
from tests.fakes.manifests import config, holder, join, profile
from tests.fakes.overlaps import OVERLAPS, play_lossy
from tests.unit.stages.test_charts import TWO, charts, data

Play = Callable[[Losses], None]

_STRIDE = 7
"""Messages from one that is lost to the next, where each step of a resync is one."""

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
    "a profile takes several turns to be deployed, changed and removed": [
        Step(lambda fleet, _: fleet.apply(own("a", "b", "c")), ["a", "b", "c"]),
        Step(lambda fleet, _: fleet.apply(own("c", "d", "e")), ["c", "d", "e"]),
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


def play(steps: Sequence[Step], losses: Losses) -> None:
    """Play a history in which one message is lost.

    Raises:
        AssertionError: two resyncs after a step something else is there.
    """
    with rig.folder() as folder:
        fleet = Fleet(Path(folder), Settings(turn=AT_ONCE, hold_share=0), TickingClock())
        rig.lose(fleet, losses)
        fleet.repositories.put("web", "1.0.0")
        kube = fleet.register("east", env="production")
        for step in steps:
            step.act(fleet, kube)
            fleet.pump()
            rig.resync(fleet, 2)
            assert sorted(data(kube)) == sorted(step.wanted)
            phases = [each.phase for each in fleet.records.outcomes.of("fleet/east")]
            assert phases == list(step.phases)
        fleet.close()


def losing(play: Play) -> Iterator[Which]:
    """Yield the messages without which a history ends otherwise."""
    whole = Losses()
    play(whole)
    for inbox, count in whole.counts.items():
        for number in range(1, count + 1, _STRIDE if inbox == "sweep" else 1):
            losses = Losses((inbox, number))
            try:
                play(losses)
            except AssertionError as error:
                error.add_note(f"lost: number {number} of {inbox}, {losses.lost}")
                raise
            yield inbox, number


@pytest.mark.parametrize("name", HISTORIES)
def test_work_whose_message_is_lost_is_done_two_resyncs_later(name: str) -> None:
    """Turns of deployments and removals, with charts and without, and retries of failures."""
    inboxes = {inbox for inbox, _ in losing(lambda losses: play(HISTORIES[name], losses))}

    assert inboxes >= {"deploy", "apply", "sweep"}


OFTEN = {
    "an object changes twice",
    "an object goes, and another comes under its name",
}
"""What is played each time; `make check` plays all."""


@pytest.mark.parametrize(
    "overlap",
    [
        pytest.param(each, id=each.name, marks=[] if each.name in OFTEN else [pytest.mark.rest])
        for each in OVERLAPS
    ],
)
def test_an_event_whose_message_is_lost_is_not(overlap: object) -> None:
    """What clusters, users and senders do is as the model has it, whichever message is lost."""
    assert list(losing(lambda losses: play_lossy(overlap, losses)))
