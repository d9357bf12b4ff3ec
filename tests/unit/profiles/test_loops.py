"""Loops are named, and run once a minute; nothing else is slowed."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from bellhop.diagnosis.explain.trigger import explain_trigger
from bellhop.diagnosis.failures import list_failures
from bellhop.state.messages import Instantiate
from tests.fakes.fleet import Fleet
from tests.fakes.kube import CONFIG, FakeKube
from tests.fakes.manifests import feeding, seed, watching

ONE = "/v1/ConfigMap/default/one"
PAUSE = timedelta(minutes=1)


def there(kube: FakeKube) -> dict[str, dict[str, Any]]:
    return {each["metadata"]["name"]: each for each in kube.objects(CONFIG)}


def number(kube: FakeKube, name: str = "one") -> int:
    return int(there(kube)[name]["data"]["count"])


def forward(fleet: Fleet, kube: FakeKube, rounds: int = 40) -> None:
    """Send every object as often as it changes, as a forwarder does; at most so many rounds."""
    sent: dict[str, str] = {}
    for _ in range(rounds):
        fleet.schedule.tick()
        fleet.pump()
        now = {name: each["metadata"]["resourceVersion"] for name, each in there(kube).items()}
        news = [name for name, version in now.items() if sent.get(name) != version]
        if not news:
            return
        fleet.send("east", *({"object": there(kube)[name], "own": True} for name in news))
        sent = now
        fleet.pump()


def grow(fleet: Fleet, kube: FakeKube) -> None:
    """Start a loop: a trigger that deploys what its own source matches, and one more each time."""
    fleet.apply(watching("watched", "seed"), feeding("grow", "watched", "one", "seed"))
    fleet.write("east", seed("seed"))
    forward(fleet, kube)


def slowed(fleet: Fleet) -> list[str]:
    return [each.detail for each in fleet.ledger() if each.what == "slowed"]


def timers(fleet: Fleet) -> list[str]:
    return [each.sort for each in fleet.store.all() if each.partition.startswith("timer/")]


def test_what_feeds_itself_comes_once_a_minute(fleet: Fleet, east: FakeKube) -> None:
    """Sixteen turns come at once, each minute one more; event log and failures name it."""
    grow(fleet, east)
    assert number(east) == 16
    (line,) = slowed(fleet)
    assert "trigger 'grow' feeds itself: what is applied changes what source 'watched'" in line
    (failure,) = [each for each in list_failures(fleet.installation()) if each.type == "loop"]
    assert "'grow' feeds itself" in failure.message
    assert failure.about == "grow for /v1/ConfigMap/default/one in fleet/east"

    for turn in range(17, 22):
        fleet.clock.advance(PAUSE)
        forward(fleet, east)
        assert number(east) == turn


def test_two_that_feed_each_other_are_named_both(fleet: Fleet, east: FakeKube) -> None:
    """Each names the trigger through which it comes back to itself."""
    fleet.apply(
        watching("as", "a"),
        watching("bs", "b"),
        feeding("to-b", "as", "the-b", "b"),
        feeding("to-a", "bs", "the-a", "a"),
    )
    fleet.write("east", seed("a", "the-a"))
    forward(fleet, east)

    assert max(number(east, "the-a"), number(east, "the-b")) == 16
    (line,) = slowed(fleet)
    assert "feeds itself, through trigger '" in line


def test_what_grows_without_end_is_slowed(fleet: Fleet, east: FakeKube) -> None:
    """Each turn makes another object, and another profile: it is their chain that is counted."""
    echo = "e-{{ .Resource.metadata.name }}"
    fleet.apply(watching("watched", "seed"), feeding("echo", "watched", echo, "seed"))
    fleet.write("east", seed("seed"))
    forward(fleet, east)
    assert len(there(east)) == 17

    fleet.clock.advance(PAUSE)
    forward(fleet, east)
    assert len(there(east)) == 18


def test_others_go_on_at_once(fleet: Fleet, east: FakeKube) -> None:
    """Beside a loop, another object and another trigger of the same source are made as ever."""
    fleet.apply(watching("watched", "seed"), feeding("grow", "watched", "one", "seed"))
    fleet.apply(feeding("copy", "watched", "copy-{{ .Resource.metadata.name }}", "copy"))
    fleet.write("east", seed("seed"))
    forward(fleet, east)
    for n in range(30):
        fleet.write("east", seed("seed", "two", str(n)))
        fleet.pump()

        assert number(east, "copy-two") == n + 1


@pytest.mark.rest
def test_a_chain_is_not_slowed(fleet: Fleet, east: FakeKube) -> None:
    """Ten links, of which the first changes thirty times within a moment."""
    for link in range(10):
        fleet.apply(
            watching(f"s{link}", f"l{link}"),
            feeding(f"t{link}", f"s{link}", f"o{link + 1}", f"l{link + 1}"),
        )
    for n in range(30):
        fleet.write("east", seed("l0", "o0", str(n)))
        forward(fleet, east)

        assert number(east, "o10") == n + 10
    assert slowed(fleet) == []


def test_a_corrected_trigger_waits_for_nothing(fleet: Fleet, east: FakeKube) -> None:
    """A trigger that is written again renders at once, and is no loop any more."""
    grow(fleet, east)

    fleet.apply(feeding("grow", "watched", "one", "seed", '{count: "0"}'))
    forward(fleet, east)
    assert number(east) == 0
    assert [each for each in list_failures(fleet.installation()) if each.type == "loop"] == []


def test_a_change_of_the_fleet_gives_a_loop_no_more_turns(fleet: Fleet, east: FakeKube) -> None:
    """Only what users declare mends a loop: clusters are registered and labelled all the time."""
    fleet.apply(watching("watched", "seed"), feeding("grow", "watched", "one", "seed"))
    fleet.write("east", seed("seed"))
    forward(fleet, east, rounds=8)
    fleet.register("west")
    forward(fleet, east)
    assert number(east) == 16

    fleet.declare.label("fleet/west", {"env": "staging"})
    forward(fleet, east)
    assert number(east) == 16
    assert [each.type for each in list_failures(fleet.installation())] == ["loop"]


def test_what_comes_back_the_same_is_no_loop(fleet: Fleet, east: FakeKube) -> None:
    """A trigger may deploy what its own source matches, and be asked for it hourly for ever."""
    fleet.apply(
        watching("watched", "seed"),
        feeding("stamp", "watched", "one", "seed", '{copy: "{{ .Resource.data.count }}"}'),
    )
    for n in range(40):
        fleet.write("east", seed("seed", n=str(n)))
        forward(fleet, east)
        assert there(east)["one"]["data"]["copy"] == str(n)
        fleet.clock.advance(PAUSE)

    assert slowed(fleet) == []


def test_a_loop_across_clusters_is_slowed(fleet: Fleet, east: FakeKube) -> None:
    """One cluster's trigger that deploys to another, and the other's back, are one chain."""
    west = fleet.register("west", env="staging")
    there_and = feeding("there", "as", "the-b", "b").replace(
        "oneForEvent", "destinationClusterSelector: {matchLabels: {env: staging}}\n  oneForEvent"
    )
    back = feeding("back", "bs", "the-a", "a").replace(
        "sourceClusterSelector: {matchLabels: {env: production}}",
        "sourceClusterSelector: {matchLabels: {env: staging}}\n"
        "  destinationClusterSelector: {matchLabels: {env: production}}",
    )
    fleet.apply(watching("as", "a"), watching("bs", "b"), there_and, back)
    fleet.write("east", seed("a", "the-a"))
    for _ in range(30):
        for name, kube in (("east", east), ("west", west)):
            fleet.send(name, *({"object": each, "own": True} for each in there(kube).values()))
            fleet.pump()

    assert max(number(east, "the-a"), number(west, "the-b")) == 16
    assert "feeds itself, through trigger '" in slowed(fleet)[0]


def test_one_for_all_objects_is_slowed_too(fleet: Fleet, east: FakeKube) -> None:
    """It is followed back by the objects of ours among those that match."""
    makes = '{count: "{{ range .Resources }}{{ add 1 (int .data.count) }}{{ end }}"}'
    growing = feeding("grow", "watched", "one", "seed", makes)
    fleet.apply(
        watching("watched", "seed"), growing.replace("oneForEvent: true", "oneForEvent: false")
    )
    fleet.write("east", seed("seed"))
    forward(fleet, east)

    assert number(east) == 16
    assert len(slowed(fleet)) == 1


def test_a_deferred_turn_is_logged_once(fleet: Fleet, east: FakeKube) -> None:
    """A message that comes again makes no other line, and no other turn; `explain` says when."""
    grow(fleet, east)
    (timer,) = [each for each in timers(fleet) if each.startswith("loop/")]
    for _ in range(3):
        fleet.publisher.publish([Instantiate("grow", "fleet/east", ONE)])
        fleet.pump()

    assert (number(east), len(slowed(fleet))) == (16, 1)
    assert [each for each in timers(fleet) if each.startswith("loop/")] == [timer]
    links = explain_trigger(fleet.installation(), "grow", lambda: True).links
    (link,) = [each for each in links if each.type == "profile"]
    assert "'grow' feeds itself" in link.message
    assert "next at 12:01:00" in link.message


def test_a_death_before_a_turn_is_deferred_is_corrected(fleet: Fleet, east: FakeKube) -> None:
    """A deleted timer is set again by the message, which was not acknowledged."""
    grow(fleet, east)
    (timer,) = [each for each in timers(fleet) if each.startswith("loop/")]
    fleet.records.timers.cancel(timer)
    fleet.publisher.publish([Instantiate("grow", "fleet/east", ONE)])
    fleet.pump()
    fleet.clock.advance(PAUSE)
    forward(fleet, east)

    assert number(east) == 17


def test_a_loop_that_ended_is_forgotten(fleet: Fleet, east: FakeKube) -> None:
    """Twenty minutes later it has sixteen turns again, and is no failure any more."""
    grow(fleet, east)
    fleet.clock.advance(timedelta(minutes=20))
    assert [each for each in list_failures(fleet.installation()) if each.type == "loop"] == []

    forward(fleet, east)
    assert number(east) == 32
