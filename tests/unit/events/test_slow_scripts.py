"""Slow scripts: they run apart, delay only their own source, and are shown."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from bellhop.core.gvk import GVK, ObjectKey
from bellhop.events.records import FORGOTTEN
from bellhop.settings import Settings
from bellhop.state.messages import Evaluate
from tests.fakes.fleet import EAST, SERVICE, Fleet, OpenFleet
from tests.fakes.hooks import after_next
from tests.fakes.manifests import FOR_EACH, INSTANTIATE, config, holder, join, source, trigger

WEB = ObjectKey(SERVICE, "default", "web")
FOR_EVER = "while true do end"
LONG = "for i = 1, 8e6 do end"
"""A fifth of a second: far more than the first time limit of SETTINGS, and less than the last."""
SETTINGS = Settings(script_seconds=2, script_first_seconds=0.05)


@pytest.fixture
def fleet(open_fleet: OpenFleet) -> Fleet:
    fleet = open_fleet(SETTINGS)
    fleet.register("east", env="production")
    fleet.apply(join(source_with("plain", ""), trigger(origin="plain")))
    fleet.apply(holder("made", config(FOR_EACH), annotations=INSTANTIATE))
    return fleet


def source_with(name: str, script: str, *, ring: str = "yes") -> str:
    """Return a source whose script does something before it says that an object matches."""
    text = f"function evaluate() {script} return {{matching = obj.metadata.labels.v ~= 'no'}} end"
    more = f", selector: {{matchLabels: {{ring: '{ring}'}}}}, evaluate: \"{text}\""
    return source(name=name, more=more)


def slow(fleet: Fleet, script: str, **more: Any) -> None:
    """Declare a source that comes before the plain one, and whose script takes long."""
    fleet.deploy(join(source_with("a-slow", script, **more), trigger("slow", origin="a-slow")))


def write(fleet: Fleet, v: str = "1", name: str = "web") -> dict[str, Any]:
    labels = {"ring": "yes", "v": v}
    metadata = {"name": name, "namespace": "default", "labels": labels}
    return fleet.write("east", {"apiVersion": "v1", "kind": "Service", "metadata": metadata})


def match(fleet: Fleet, source: str = "a-slow") -> tuple[bool, str] | None:
    kept = fleet.records.matches.get(EAST, source, WEB)
    return (kept.value.matching, kept.value.error) if kept else None


def recorded_sources(fleet: Fleet) -> list[tuple[str, int]]:
    return [(each.source, each.times) for each in fleet.records.paces.all()]


def exceed(fleet: Fleet, times: int) -> None:
    for number in range(times):
        write(fleet, name=f"other-{number}")
        fleet.drain("evaluate")


def test_other_sources_are_evaluated_without_waiting(fleet: Fleet) -> None:
    """A script that never ends is stopped soon, and fails when it had all its time."""
    slow(fleet, FOR_EVER)
    write(fleet)

    fleet.drain("evaluate", "deploy", "apply")

    assert match(fleet, "plain") == (True, "")
    made = fleet.access.clusters[EAST].objects(GVK("", "v1", "ConfigMap"))
    assert [each["metadata"]["name"] for each in made] == ["for-web"]
    assert match(fleet) is None
    fleet.drain("patient")
    found = match(fleet)
    assert found
    assert "took more than" in found[1]


def test_the_result_of_a_slow_script_counts(fleet: Fleet) -> None:
    """Its result apart counts as one at once, and is published."""
    slow(fleet, LONG)
    stored = write(fleet)
    fleet.pump()
    assert match(fleet) == (True, "")

    write(fleet, "no")
    fleet.drain("evaluate")
    assert match(fleet) == (True, "")
    fleet.drain("patient")
    assert match(fleet) is None

    fleet.drop("east", stored)
    fleet.drain("evaluate")
    assert fleet.queues["patient"].receive(1, wait=timedelta(0)) == []


def test_a_deleted_object_waits_for_no_script(fleet: Fleet) -> None:
    """Its matches are withdrawn at once, those of slow scripts, too."""
    slow(fleet, LONG)
    stored = write(fleet)
    fleet.pump()

    fleet.drop("east", stored)
    fleet.drain("evaluate")

    assert list(fleet.records.matches.of(EAST)) == []
    assert fleet.records.trails.get(EAST, WEB).value.ended
    assert fleet.drain("patient") == 0


def test_evaluating_one_source_ends_no_source_index(fleet: Fleet) -> None:
    """A deleted object may have matches of other sources: the worker that deletes those ends it."""
    slow(fleet, LONG)
    stored = write(fleet)
    fleet.pump()
    fleet.drop("east", stored)

    fleet.stages["evaluate"].handle(Evaluate(EAST, str(WEB), source="a-slow"))

    assert (match(fleet), match(fleet, "plain")) == (None, (True, ""))
    assert not fleet.records.trails.get(EAST, WEB).value.ended
    fleet.pump()
    assert list(fleet.records.matches.of(EAST)) == []
    assert fleet.records.trails.get(EAST, WEB).value.ended


def test_an_object_changed_while_evaluated_apart_is_evaluated_again(fleet: Fleet) -> None:
    """A worker apart reads again as all do, and knows nothing of other sources' matches."""
    slow(fleet, LONG)
    write(fleet)
    fleet.drain("evaluate")
    after_next(fleet.stages["evaluate"]._sources, "evaluate", lambda: write(fleet, "no"))
    fleet.drain("patient")

    assert match(fleet) is None
    assert match(fleet, "plain") == (True, "")


def test_only_an_object_that_a_script_must_evaluate_is_deferred(fleet: Fleet) -> None:
    """Labels are asked at once, however slow the script is that comes after them."""
    slow(fleet, LONG, ring="no")
    exceed(fleet, 4)

    assert fleet.drain("patient") == 0
    assert recorded_sources(fleet) == []


def test_a_source_that_keeps_exceeding_is_evaluated_apart_at_once(fleet: Fleet) -> None:
    """After three times in a row, by every process; it is noted, and logged once."""
    slow(fleet, LONG)
    exceed(fleet, 2)
    assert recorded_sources(fleet) == []
    exceed(fleet, 2)
    assert recorded_sources(fleet) == [("a-slow", 3)]

    evaluated = asked(fleet)
    write(fleet)
    fleet.drain("evaluate")
    assert evaluated == [("a-slow", False), ("plain", True)]
    fleet.reread()
    evaluated = asked(fleet)
    write(fleet, "2")
    fleet.store.counts.clear()
    fleet.drain("evaluate")
    assert evaluated == [("a-slow", False), ("plain", True)]
    assert fleet.output.getvalue().count("takes long") == 1

    fleet.drain("patient")
    assert match(fleet) == (True, "")
    assert recorded_sources(fleet)[0][1] > 3
    assert fleet.output.getvalue().count("takes long") == 1


def asked(fleet: Fleet) -> list[tuple[str, bool]]:
    """Return a list that gets the source of each evaluation, and whether its script may run."""
    stage: Any = fleet.stages["evaluate"]
    real: Callable[..., Any] = stage._sources.evaluate
    found: list[tuple[str, bool]] = []

    def evaluate(*args: Any) -> Any:
        evaluated = real(*args)
        found.append((evaluated.source.name, not evaluated.late))
        return evaluated

    stage._sources.evaluate = evaluate
    return found


def test_a_changed_script_is_counted_again(fleet: Fleet) -> None:
    """The record is of the source as it was."""
    slow(fleet, LONG)
    exceed(fleet, 4)
    assert len(recorded_sources(fleet)) == 1
    fleet.pump()

    slow(fleet, "")
    write(fleet)
    fleet.drain("evaluate")

    assert match(fleet) == (True, "")
    assert fleet.drain("patient") == 0


def test_a_script_that_is_fast_again_is_not_deferred(fleet: Fleet) -> None:
    """Its record is deleted once it is fast apart; so is that of a deleted source."""
    slow(fleet, f"if obj.metadata.labels.v ~= 'quick' then {LONG} end")
    exceed(fleet, 4)
    assert len(recorded_sources(fleet)) == 1

    write(fleet, "quick")
    fleet.drain("evaluate")
    assert match(fleet) is None
    fleet.stages["evaluate"].handle(Evaluate(EAST, str(WEB), source="a-slow"))

    assert match(fleet) == (True, "")
    assert recorded_sources(fleet) == []
    exceed(fleet, 3)
    fleet.clock.advance(FORGOTTEN + timedelta(seconds=1))
    assert recorded_sources(fleet) == []


def test_an_event_reads_no_record_of_slow_scripts(fleet: Fleet) -> None:
    """The records are read now and then, not for each event."""
    write(fleet)
    fleet.pump()
    costs = []
    for v in ("2", "3"):
        fleet.store.counts.clear()
        write(fleet, v)
        fleet.drain("evaluate")
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
    fleet.deploy(join(source(name="a-slow", more=more), trigger("slow", origin="a-slow")))


def test_a_slow_rule_is_stopped_and_shown(fleet: Fleet) -> None:
    """It is put off as a script is, and fails when it had all its time."""
    by_cel(fleet)
    searching(fleet, "web", 2**20)

    fleet.drain("evaluate")

    assert match(fleet, "plain") == (True, "")
    assert match(fleet) is None
    fleet.drain("patient")
    said = "a-slow, rule 'searching': took more than 2 s of processor time"
    assert match(fleet) == (False, said)


def test_time_in_a_process_of_its_own_makes_a_source_slow(fleet: Fleet) -> None:
    """Within one slow run others would have to wait; so it runs apart."""
    by_cel(fleet)
    for number in range(3):
        searching(fleet, f"other-{number}", 2**17)
        fleet.drain("evaluate")

    assert recorded_sources(fleet) == [("a-slow", 3)]
    searching(fleet, "web", 2**16)
    fleet.drain("evaluate")
    assert match(fleet) is None
    fleet.drain("patient")
    assert match(fleet) == (True, "")
    assert recorded_sources(fleet)[0][1] > 3
