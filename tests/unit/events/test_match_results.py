"""What a source makes of an object, and what it says of why not."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from bellhop.api.kinds import EventSource, of
from bellhop.errors import ScriptError
from bellhop.events.rules_match import (
    Candidate,
    Ruling,
    SlowScriptError,
    evaluate_rules,
    why,
    why_not,
)
from bellhop.luabox import Limits

LIMITS = Limits()


def source(*selectors: dict[str, Any]) -> EventSource:
    found = of(
        {
            "apiVersion": "lib.projectsveltos.io/v1beta1",
            "kind": "EventSource",
            "metadata": {"name": "s"},
            "spec": {"resourceSelectors": list(selectors)},
        }
    )
    assert isinstance(found, EventSource)
    return found


def selector(kind: str = "Service", script: str = "", **more: Any) -> dict[str, Any]:
    evaluate = f"function evaluate() {script} end" if script else ""
    return {"group": "", "version": "v1", "kind": kind, "evaluate": evaluate, **more}


def thing(kind: str = "Service", **more: Any) -> dict[str, Any]:
    metadata = {"name": "web", "namespace": "shop"}
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata, **more}


def saying(*, matching: bool, message: str) -> str:
    return f"return {{matching={str(matching).lower()}, message='{message}'}}"


def without_declined(ruling: Ruling) -> Ruling:
    """Leave out which selectors were asked."""
    return replace(ruling, declined=(), taken=None)


def test_the_first_selector_that_takes_an_object_decides() -> None:
    """Later selectors are not asked, so that a script that would fail does no harm."""
    found = source(
        selector(script=saying(matching=True, message="yes")), selector(script="error()")
    )

    assert without_declined(evaluate_rules(found, Candidate(thing()), LIMITS)) == Ruling(
        matching=True, message="yes", run=True
    )


def test_says_of_each_selector_why_not() -> None:
    """Each has its reason, and the message is that of the script that was run last."""
    found = source(
        selector("Pod"),
        selector(script=saying(matching=False, message="not yet")),
        selector(namespace="hr"),
    )

    ruling = evaluate_rules(found, Candidate(thing()), LIMITS)

    assert (ruling.matching, ruling.message) == (False, "not yet")
    assert [why_not(each, thing()) for each in ruling.declined] == [
        "it is a v1/Service, not v1/Pod",
        "its script says no: not yet",
        "its namespace is 'shop', not 'hr'",
    ]


def test_says_that_a_script_returns_no_matching() -> None:
    """A misspelt field is named; of a Secret nothing that the script returned is."""
    found = source(
        selector(script="return {matched = true, message = 'yes'}"),
        selector("Secret", script="return {[obj.data.password] = true}"),
    )
    secret = thing("Secret", data={"password": "hunter2"})

    plain = evaluate_rules(found, Candidate(thing()), LIMITS)
    hidden = evaluate_rules(found, Candidate(secret), LIMITS)

    assert why_not(plain.declined[0], thing()) == (
        "its script returns no field 'matching', but 'matched': yes"
    )
    assert why_not(hidden.declined[1], secret) == "its script returns no field 'matching'"


def test_what_is_being_deleted_comes_where_that_is_asked_for() -> None:
    """Its message says what to write; a script that is asked sees since when."""
    script = "return {matching = obj.metadata.deletionTimestamp ~= nil}"
    found = source(selector(), selector(script=script, includeDeletingResources=True))
    leaving = thing()
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T12:00:00Z"

    ruling = evaluate_rules(found, Candidate(leaving), LIMITS)

    assert ruling.matching
    assert [why_not(each, leaving) for each in ruling.declined] == [
        "it is being deleted, and includeDeletingResources does not ask for that"
    ]
    assert evaluate_rules(found, Candidate(thing()), LIMITS).taken == found.selectors[0]


def test_a_script_that_has_no_time_is_not_taken_for_one_that_fails() -> None:
    """Nor is one run that is given none; labels are asked all the same."""
    endless = source(selector(namespace="hr"), selector(script="while true do end"))

    for limits in (LIMITS._replace(seconds=0.001), None):
        with pytest.raises(SlowScriptError):
            evaluate_rules(endless, Candidate(thing()), limits)
    assert not evaluate_rules(
        source(selector(namespace="hr", script="error()")), Candidate(thing()), None
    ).matching
    with pytest.raises(ScriptError) as caught:
        evaluate_rules(source(selector(script="error()")), Candidate(thing()), LIMITS)
    assert not isinstance(caught.value, SlowScriptError)


def test_a_deleted_object_matches_nothing() -> None:
    """No selector is asked about what is not there."""
    assert evaluate_rules(source(selector()), None, LIMITS) == Ruling(matching=False)


def test_a_script_that_fails_is_no_verdict() -> None:
    """An error is raised, under the source's name."""
    with pytest.raises(ScriptError, match="s"):
        evaluate_rules(source(selector(script="error('no idea')")), Candidate(thing()), LIMITS)


@pytest.mark.parametrize("quoting", [False, True])
def test_a_script_that_had_a_secret_is_not_quoted(*, quoting: bool) -> None:
    """Neither its message nor its error is shown, unless the caller has the Secret."""
    speaking = source(selector("Secret", script=saying(matching=True, message="hunter2")))
    failing = source(selector("Secret", script="error('hunter2')"))

    assert without_declined(
        evaluate_rules(speaking, Candidate(thing("Secret")), LIMITS, quoting=quoting)
    ) == Ruling(matching=True, message="hunter2" if quoting else "", run=True)
    with pytest.raises(ScriptError) as caught:
        evaluate_rules(failing, Candidate(thing("Secret")), LIMITS, quoting=quoting)
    assert ("hunter2" in str(caught.value)) == quoting


def cel(*rules: str, kind: str = "Service", script: str = "", **more: Any) -> dict[str, Any]:
    named = [{"name": f"r{number}", "rule": rule} for number, rule in enumerate(rules, start=1)]
    return selector(kind, script, evaluateCEL=named, **more)


TYPED = {"spec": {"type": "LoadBalancer"}}


def test_of_cel_rules_the_first_that_holds_decides() -> None:
    """One is enough; it is named, and those behind it are not asked."""
    found = source(
        cel("resource.kind == 'Pod'", "resource.kind == 'Service'", "resource.absent > 1")
    )

    ruling = evaluate_rules(found, Candidate(thing()), LIMITS)

    assert without_declined(ruling) == Ruling(
        matching=True, message="CEL rule 'r2' holds", run=True, rule="r2"
    )
    assert why(ruling) == "its CEL rule 'r2' holds"


def test_a_cel_rule_that_fails_does_not_hold_and_is_reported() -> None:
    """An object without a field that a rule looks at does not match; that is no error."""
    found = source(cel("resource.spec.type == 'NodePort'", "resource.spec.ports[0].port == 1"))

    ruling = evaluate_rules(found, Candidate(thing(**TYPED)), LIMITS)

    assert not ruling.matching
    said = "no CEL rule holds; rule 'r2' fails: Key not found in map : \"ports\""
    assert (ruling.message, ruling.run) == (said, True)
    assert [why_not(each, thing(**TYPED)) for each in ruling.declined] == [said]


def test_a_cel_rule_that_gives_no_bool_fails() -> None:
    """A text is neither true nor false."""
    ruling = evaluate_rules(source(cel("resource.spec.type")), Candidate(thing(**TYPED)), LIMITS)

    assert ruling.message == (
        "no CEL rule holds; rule 'r1' fails: it gave a string, and must be true or false"
    )


@pytest.mark.parametrize(
    ("rule", "script", "message"),
    [
        pytest.param("true", "error('never run')", "CEL rule 'r1' holds", id="the rule"),
        pytest.param("false", saying(matching=True, message="yes"), "yes", id="the script"),
        pytest.param(
            "resource.absent > 1", saying(matching=True, message=""), "", id="after a failure"
        ),
    ],
)
def test_of_a_rule_and_a_script_either_is_enough(rule: str, script: str, message: str) -> None:
    """The rule is asked first, for it is cheaper."""
    ruling = evaluate_rules(source(cel(rule, script=script)), Candidate(thing()), LIMITS)

    assert (ruling.matching, ruling.message) == (True, message)


def test_says_of_both_why_not() -> None:
    """Who reads it learns what the rules and what the script had against the object."""
    found = source(cel("false", script=saying(matching=False, message="not yet")))

    ruling = evaluate_rules(found, Candidate(thing()), LIMITS)

    assert [why_not(each, thing()) for each in ruling.declined] == [
        "no CEL rule holds; its script says no: not yet"
    ]


SEARCHING = "resource.s.contains(resource.t)"
LONG = {"s": "x" * 2**20, "t": "x" * 2**19 + "y"}


def test_a_cel_rule_that_has_no_time_is_not_taken_for_one_that_fails() -> None:
    """It is run where it may take longer; and none is run without any time."""
    for limits in (LIMITS._replace(seconds=0.01), None):
        with pytest.raises(SlowScriptError):
            evaluate_rules(source(cel(SEARCHING)), Candidate(thing(**LONG)), limits)


def test_a_cel_rule_beyond_its_memory_is_no_verdict() -> None:
    """Nobody knows whether it holds, so what matched before stays as it was."""
    found = source(cel("size(resource.s.replace('x', resource.s)) > 0"))

    with pytest.raises(
        ScriptError, match="s, rule 'r1': needed more than 67108864 bytes"
    ) as caught:
        evaluate_rules(found, Candidate(thing(**LONG)), LIMITS)

    assert not isinstance(caught.value, SlowScriptError)


@pytest.mark.parametrize("quoting", [False, True])
def test_a_cel_rule_that_had_a_secret_is_not_quoted(*, quoting: bool) -> None:
    """The runtime quotes keys; those of a Secret are shown only to a caller that has it."""
    found = source(cel("resource.data[resource.data.key] == ''", kind="Secret"))
    secret = thing("Secret", data={"key": "hunter2"})

    ruling = evaluate_rules(found, Candidate(secret), LIMITS, quoting=quoting)

    shown = ruling.message + "".join(why_not(each, secret) for each in ruling.declined)
    assert "rule 'r1' fails" in shown
    assert ("hunter2" in shown) == quoting
    assert ("withheld" in shown) != quoting
