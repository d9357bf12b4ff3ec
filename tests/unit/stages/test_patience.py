"""A script that takes long harms its own source alone: it is run apart, and told of."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from bellhop.core.gvk import GVK, ObjectKey
from bellhop.events.records.slow_scripts import FORGOTTEN
from bellhop.settings import Settings
from bellhop.state.messages import Evaluate
from tests.fakes.fleet import SERVICE, Fleet
from tests.fakes.manifests import FOR_EACH, INSTANTIATE, config, holder, join, source, trigger

HERE = "fleet/east"
WEB = ObjectKey(SERVICE, "default", "web")
FOR_EVER = "while true do end"
LONG = "for i = 1, 8e6 do end"
"""A fifth of a second: far more than the first time limit of SETTINGS, and less than the last."""
SETTINGS = Settings(script_seconds=2, script_first_seconds=0.05)


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    fleet = Fleet(tmp_path, SETTINGS)
    fleet.register("east", env="production")
    fleet.apply(join(judging("plain", ""), trigger(origin="plain")))
    fleet.apply(holder("made", config(FOR_EACH), annotations=INSTANTIATE))
    return fleet


def judging(name: str, script: str, *, ring: str = "yes") -> str:
    """Return a source whose script does something before it says that an object matches."""
    text = f"function evaluate() {script} return {{matching = obj.metadata.labels.v ~= 'no'}} end"
    more = f", selector: {{matchLabels: {{ring: '{ring}'}}}}, evaluate: \"{text}\""
    return source(name=name, more=more)


def slow(fleet: Fleet, script: str, **more: Any) -> None:
    """Declare a source that comes before the plain one, and whose script takes long."""
    fleet.apply(join(judging("a-slow", script, **more), trigger("slow", origin="a-slow")))
    fleet.pump()


def write(fleet: Fleet, v: str = "1", name: str = "web") -> dict[str, Any]:
    labels = {"ring": "yes", "v": v}
    metadata = {"name": name, "namespace": "default", "labels": labels}
    return fleet.write("east", {"apiVersion": "v1", "kind": "Service", "metadata": metadata})


def work(fleet: Fleet, *inboxes: str) -> int:
    worked = 0
    for inbox in inboxes:
        while deliveries := fleet.queues[inbox].receive(50, wait=timedelta(0)):
            fleet.work(inbox, deliveries)
            worked += len(deliveries)
    return worked


def match(fleet: Fleet, source: str = "a-slow") -> tuple[bool, str] | None:
    kept = fleet.records.matches.get(HERE, source, WEB)
    return (kept.value.matching, kept.value.error) if kept else None


def paces(fleet: Fleet) -> list[tuple[str, int]]:
    return [(each.source, each.times) for each in fleet.records.paces.all()]


def exceed(fleet: Fleet, times: int) -> None:
    for number in range(times):
        write(fleet, name=f"other-{number}")
        work(fleet, "evaluate")


def test_others_are_judged_and_told_without_waiting_for_it(fleet: Fleet) -> None:
    """A script that never ends is stopped soon, and fails when it had all its time."""
    slow(fleet, FOR_EVER)
    write(fleet)

    work(fleet, "evaluate", "deploy", "apply")

    assert match(fleet, "plain") == (True, "")
    made = fleet.access.clusters[HERE].objects(GVK("", "v1", "ConfigMap"))
    assert [each["metadata"]["name"] for each in made] == ["for-web"]
    assert match(fleet) is None
    work(fleet, "patient")
    found = match(fleet)
    assert found
    assert "took more than" in found[1]


def test_a_script_that_takes_long_has_its_say(fleet: Fleet) -> None:
    """What it says apart counts as what is said at once, and is told."""
    slow(fleet, LONG)
    stored = write(fleet)
    fleet.pump()
    assert match(fleet) == (True, "")

    write(fleet, "no")
    work(fleet, "evaluate")
    assert match(fleet) == (True, "")
    work(fleet, "patient")
    assert match(fleet) is None

    fleet.drop("east", stored)
    work(fleet, "evaluate")
    assert fleet.queues["patient"].receive(1, wait=timedelta(0)) == []


def test_an_object_that_is_gone_waits_for_no_script(fleet: Fleet) -> None:
    """Its matches are withdrawn at once, those of slow scripts, too."""
    slow(fleet, LONG)
    stored = write(fleet)
    fleet.pump()

    fleet.drop("east", stored)
    work(fleet, "evaluate")

    assert list(fleet.records.matches.of(HERE)) == []
    assert fleet.records.trails.get(HERE, WEB).value.ended
    assert work(fleet, "patient") == 0


def test_who_judges_one_source_alone_ends_no_trail(fleet: Fleet) -> None:
    """Of an object that is gone there may be matches of others: whoever deletes those ends it."""
    slow(fleet, LONG)
    stored = write(fleet)
    fleet.pump()
    fleet.drop("east", stored)

    fleet.stages["evaluate"].handle(Evaluate(HERE, str(WEB), source="a-slow"))

    assert (match(fleet), match(fleet, "plain")) == (None, (True, ""))
    assert not fleet.records.trails.get(HERE, WEB).value.ended
    fleet.pump()
    assert list(fleet.records.matches.of(HERE)) == []
    assert fleet.records.trails.get(HERE, WEB).value.ended


def test_what_changes_while_it_is_judged_apart_is_judged_again(fleet: Fleet) -> None:
    """Whoever judges apart looks again as all do, and knows nothing of other sources' matches."""
    slow(fleet, LONG)
    write(fleet)
    work(fleet, "evaluate")
    stage: Any = fleet.stages["evaluate"]
    judge, left = stage._judge, [lambda: write(fleet, "no")]

    def late(*args: Any) -> Any:
        judged = judge(*args)
        while left:
            left.pop()()
        return judged

    stage._judge = late
    work(fleet, "patient")

    assert match(fleet) is None
    assert match(fleet, "plain") == (True, "")


def test_only_an_object_that_its_script_must_judge_is_put_off(fleet: Fleet) -> None:
    """Labels are asked at once, however slow the script is that comes after them."""
    slow(fleet, LONG, ring="no")
    exceed(fleet, 4)

    assert work(fleet, "patient") == 0
    assert paces(fleet) == []


def test_a_source_that_keeps_exceeding_is_judged_apart_at_once(fleet: Fleet) -> None:
    """After three times in a row, by every process; it is noted, and logged once."""
    slow(fleet, LONG)
    exceed(fleet, 2)
    assert paces(fleet) == []
    exceed(fleet, 2)
    assert paces(fleet) == [("a-slow", 3)]

    judged = asked(fleet)
    write(fleet)
    work(fleet, "evaluate")
    assert judged == [("a-slow", False), ("plain", True)]
    fleet.reread()
    judged = asked(fleet)
    write(fleet, "2")
    fleet.store.counts.clear()
    work(fleet, "evaluate")
    assert judged == [("a-slow", False), ("plain", True)]
    assert fleet.output.getvalue().count("takes long") == 1

    work(fleet, "patient")
    assert match(fleet) == (True, "")
    assert paces(fleet)[0][1] > 3
    assert fleet.output.getvalue().count("takes long") == 1


def asked(fleet: Fleet) -> list[tuple[str, bool]]:
    """Return a list to which each judgement adds its source, and whether its script may run."""
    stage: Any = fleet.stages["evaluate"]
    real: Callable[..., Any] = stage._judge
    found: list[tuple[str, bool]] = []

    def judge(*args: Any) -> Any:
        judged = real(*args)
        found.append((judged.source.name, not judged.late))
        return judged

    stage._judge = judge
    return found


def test_a_script_that_is_written_anew_starts_afresh(fleet: Fleet) -> None:
    """What is known is of the source as it was written."""
    slow(fleet, LONG)
    exceed(fleet, 4)
    assert len(paces(fleet)) == 1
    fleet.pump()

    slow(fleet, "")
    write(fleet)
    work(fleet, "evaluate")

    assert match(fleet) == (True, "")
    assert work(fleet, "patient") == 0


def test_a_script_that_takes_no_time_any_more_is_not_put_off(fleet: Fleet) -> None:
    """It is forgotten once it ends soon where it has all its time; a source that is gone, too."""
    slow(fleet, f"if obj.metadata.labels.v ~= 'quick' then {LONG} end")
    exceed(fleet, 4)
    assert len(paces(fleet)) == 1

    write(fleet, "quick")
    work(fleet, "evaluate")
    assert match(fleet) is None
    fleet.stages["evaluate"].handle(Evaluate(HERE, str(WEB), source="a-slow"))

    assert match(fleet) == (True, "")
    assert paces(fleet) == []
    exceed(fleet, 3)
    fleet.clock.advance(FORGOTTEN + timedelta(seconds=1))
    assert paces(fleet) == []


def test_an_event_asks_for_no_pace(fleet: Fleet) -> None:
    """What is known of scripts is read now and then, not for each event."""
    write(fleet)
    fleet.pump()
    costs = []
    for v in ("2", "3"):
        fleet.store.counts.clear()
        write(fleet, v)
        work(fleet, "evaluate")
        costs.append(fleet.store.counts["query"])
        fleet.clock.advance(timedelta(seconds=6))

    assert costs[1] == costs[0] + 1
    assert match(fleet, "plain") == (True, "")


def searching(fleet: Fleet, name: str, size: int) -> None:
    """Have a Service that takes CEL long: it is in a process of its own, and not here."""
    annotations = {"a": "x" * size, "b": "x" * (size // 2) + "y"}
    labels = {"ring": "yes"}
    metadata = {"name": name, "namespace": "default", "labels": labels, "annotations": annotations}
    fleet.write("east", {"apiVersion": "v1", "kind": "Service", "metadata": metadata})


def by_cel(fleet: Fleet) -> None:
    rule = "!resource.metadata.annotations.a.contains(resource.metadata.annotations.b)"
    more = f", evaluateCEL: [{{name: searching, rule: '{rule}'}}]"
    fleet.apply(join(source(name="a-slow", more=more), trigger("slow", origin="a-slow")))
    fleet.pump()


def test_a_rule_that_takes_long_is_stopped_and_told_of(fleet: Fleet) -> None:
    """It is put off as a script is, and fails when it had all its time."""
    by_cel(fleet)
    searching(fleet, "web", 2**20)

    work(fleet, "evaluate")

    assert match(fleet, "plain") == (True, "")
    assert match(fleet) is None
    work(fleet, "patient")
    said = "a-slow, rule 'searching': took more than 2 s of processor time"
    assert match(fleet) == (False, said)


def test_time_in_a_process_of_its_own_makes_a_source_slow(fleet: Fleet) -> None:
    """None of it was spent here, and yet others would have to wait; so it is when judged apart."""
    by_cel(fleet)
    for number in range(3):
        searching(fleet, f"other-{number}", 2**17)
        work(fleet, "evaluate")

    assert paces(fleet) == [("a-slow", 3)]
    searching(fleet, "web", 2**16)
    work(fleet, "evaluate")
    assert match(fleet) is None
    work(fleet, "patient")
    assert match(fleet) == (True, "")
    assert paces(fleet)[0][1] > 3
