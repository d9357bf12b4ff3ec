"""Work whose message a queue lost is done two resyncs later, whichever message that was.

Each history is played once to count its messages, and once more for each of them, which is lost.
A turn is over after each step, so that long work is a chain of messages. The first message of a
change of manifests is not among them: no record says that it was published. Each message of an
event is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from bellhop.errors import UnreachableError
from bellhop.resync import kind_lister, observed_kinds
from bellhop.settings import Settings
from bellhop.state.messages import CHARTS
from tests.fakes import rig
from tests.fakes.clock import TickingClock
from tests.fakes.fleet import Fleet, service, with_address
from tests.fakes.kube import FakeKube
from tests.fakes.lossy import Losses, Which
from tests.fakes.manifests import (
    FOR_EACH,
    INSTANTIATE,
    config,
    holder,
    join,
    profile,
    source,
    trigger,
)
from tests.fakes.releases import TWO, charts, data

INBOXES = ("apply", CHARTS)

AT_ONCE = -timedelta.resolution
"""A turn that is over before it began."""


@dataclass(frozen=True)
class Step:
    """An action, and the ConfigMaps in the cluster two resyncs later."""

    act: Callable[[Fleet, FakeKube], object]
    expected: Sequence[str]
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
            assert sorted(data(kube)) == sorted(step.expected)
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


EVENT_INBOXES = ("evaluate", "review", "deploy", "apply")
ADDRESS = "address: '{{ .Resource.status.loadBalancer }}'"
NAMES = "names: '{{ range .Resources }}{{ .metadata.name }} {{ .status.loadBalancer }}{{ end }}'"
SCRIPT = 'function evaluate() return {matching = obj.metadata.labels.sveltos == "fv"} end'
ONE = holder("made", config(FOR_EACH, ADDRESS), annotations=INSTANTIATE)
ALL = holder("made", config("all", NAMES), annotations=INSTANTIATE)
MANIFESTS = {
    "a profile for each object": join(source(), trigger(), ONE),
    "one profile for all objects": join(source(), trigger(one="false"), ALL),
    "a script selects": join(source(more=f", evaluate: '{SCRIPT}'"), trigger(), ONE),
}
EVENTS: dict[str, Callable[[Fleet, dict[str, Any]], dict[str, Any]]] = {
    "created": lambda fleet, stored: fleet.write("east", stored),
    "changed": lambda fleet, stored: fleet.write("east", with_address(stored)),
    "left the selection": lambda fleet, stored: fleet.write(
        "east", {**stored, "metadata": {**stored["metadata"], "labels": {"sveltos": "no"}}}
    ),
    "selected again": lambda fleet, stored: fleet.write(
        "east", {**stored, "metadata": {**stored["metadata"], "labels": {"sveltos": "fv"}}}
    ),
    "deleted": lambda fleet, stored: fleet.drop("east", stored) or stored,
}


class _Events:
    """A fleet in which a Service is created, changed and deleted, and one message may be lost."""

    def __init__(self, folder: str, manifests: str) -> None:
        selected = manifests.replace(
            "kind: Service",
            "kind: Service, labelFilters: [{key: sveltos, operation: Equal, value: fv}]",
        )
        settings = Settings(hold_share=0, script_seconds=60, script_first_seconds=60)
        self.fleet = Fleet(Path(folder), settings, TickingClock())
        self.kube = self.fleet.register("east", env="production")
        self.fleet.deploy(selected)
        rig.resync(self.fleet, 1)
        self.losses = Losses()
        self.stored = service("web")

    def play(self, *names: str) -> None:
        for name in names:
            self.stored = EVENTS[name](self.fleet, self.stored)
            self.fleet.pump()

    def lose(self, losses: Losses) -> None:
        """Lose a message from now on, and count them."""
        self.losses = losses
        rig.lose(self.fleet, losses)

    def counted(self) -> dict[str, int]:
        return {name: self.losses.counts[name] for name in EVENT_INBOXES}


def _play_event(manifests: str, names: Sequence[str], losses: Losses) -> dict[str, Any]:
    """Play events, the last of which may lose a message; return the result after two resyncs."""
    with rig.folder() as folder:
        events = _Events(folder, manifests)
        events.play(*names[:-1])
        events.lose(losses)
        events.play(names[-1])
        rig.resync(events.fleet, 2)
        found = dict(data(events.kube))
        events.fleet.close()
    return found


@pytest.mark.parametrize("last", EVENTS)
@pytest.mark.parametrize("manifests", MANIFESTS)
def test_any_message_of_an_event_may_be_lost(manifests: str, last: str) -> None:
    """The first one, too: a resync compares the object with the records of each later stage."""
    names = [*EVENTS][: [*EVENTS].index(last) + 1]
    whole = Losses()
    expected = _play_event(MANIFESTS[manifests], names, whole)
    messages = [(name, 1) for name in EVENT_INBOXES if whole.counts[name]]
    assert len(messages) >= len(EVENT_INBOXES) - 1
    for message in messages:
        losses = Losses(message)
        assert _play_event(MANIFESTS[manifests], names, losses) == expected, losses.lost
        assert losses.lost


@pytest.mark.parametrize("last", EVENTS)
@pytest.mark.parametrize("manifests", MANIFESTS)
def test_resyncs_publish_nothing_again_for_work_that_is_done(manifests: str, last: str) -> None:
    with rig.folder() as folder:
        events = _Events(folder, MANIFESTS[manifests])
        events.play(*[*EVENTS][: [*EVENTS].index(last) + 1])
        events.lose(Losses())
        rig.resync(events.fleet, 2)
        assert not any(events.counted().values())
        events.fleet.close()


def test_a_resync_evaluates_an_object_that_a_script_refused_once_more() -> None:
    """Only evaluate runs scripts, and nothing follows: there is no match to compare."""
    with rig.folder() as folder:
        refusing = MANIFESTS["a script selects"].replace('== "fv"', '== "other"')
        events = _Events(folder, refusing)
        events.play("created")
        events.lose(Losses())
        rig.resync(events.fleet, 3)
        assert events.counted() == {"evaluate": 0, "review": 1, "deploy": 0, "apply": 0}
        events.fleet.close()


def test_a_resync_leaves_what_is_in_flight() -> None:
    """A message may wait in a queue for a while: its work is not published twice at once."""
    with rig.folder() as folder:
        events = _Events(folder, MANIFESTS["a profile for each object"])
        fleet = events.fleet
        fleet.write("east", service("web"))
        events.lose(Losses())
        fleet.resync()
        assert events.counted()["evaluate"] == 1
        assert not events.counted()["review"]
        fleet.close()


def test_a_profile_for_all_objects_is_checked_once_in_a_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its report is read whole: not again for each page of objects."""
    for module in (kind_lister, observed_kinds):
        monkeypatch.setattr(module, "PAGE", 2)
    with rig.folder() as folder:
        events = _Events(folder, MANIFESTS["one profile for all objects"])
        fleet = events.fleet
        for name in "abcdef":
            fleet.write("east", service(name))
        fleet.pump()
        read, heads = fleet.records.profiles.head, []
        fleet.records.profiles.head = lambda *key: heads.append(key) or read(*key)  # type: ignore[func-returns-value, method-assign]
        rig.resync(fleet, 1)
        assert len(heads) == 1
        fleet.close()


def test_records_of_former_versions_ask_for_nothing_again() -> None:
    """They have neither the time of the last resync nor that of a profile's last change."""
    with rig.folder() as folder:
        events = _Events(folder, MANIFESTS["a profile for each object"])
        fleet = events.fleet
        events.play("created")
        kept = fleet.records.health.get("fleet/east")
        fleet.records.health.put("fleet/east", replace(kept.value, began_at=None))
        [made] = fleet.records.profiles.of("made")
        fleet.records.profiles.put(replace(made, revised_at=None))
        events.lose(Losses())
        rig.resync(fleet, 2)
        assert not any(events.counted().values())
        fleet.close()
