"""What a source makes of an object, and what it says of why not."""

from __future__ import annotations

from typing import Any

import pytest

from bellhop.engine.judging import Candidate, Ruling, SlowScriptError, judge, why_not
from bellhop.errors import ScriptError
from bellhop.luabox import Limits
from bellhop.model.kinds import EventSource, of

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


def test_the_first_selector_that_takes_an_object_decides() -> None:
    """Later selectors are not asked, so that a script that would fail does no harm."""
    found = source(
        selector(script=saying(matching=True, message="yes")), selector(script="error()")
    )

    assert judge(found, Candidate(thing()), LIMITS) == Ruling(
        matching=True, message="yes", run=True
    )


def test_says_of_each_selector_why_not() -> None:
    """Each has its reason, and the message is that of the script that was run last."""
    found = source(
        selector("Pod"),
        selector(script=saying(matching=False, message="not yet")),
        selector(namespace="hr"),
    )

    judged = judge(found, Candidate(thing()), LIMITS)

    assert (judged.matching, judged.message) == (False, "not yet")
    assert [why_not(each, thing()) for each in judged.declined] == [
        "it is a v1/Service, and v1/Pod is asked for",
        "its script says no: not yet",
        "its namespace is 'shop', and 'hr' is asked for",
    ]


def test_a_script_that_has_no_time_is_not_taken_for_one_that_fails() -> None:
    """Nor is one run that is given none; labels are asked all the same."""
    endless = source(selector(namespace="hr"), selector(script="while true do end"))

    for limits in (LIMITS._replace(seconds=0.001), None):
        with pytest.raises(SlowScriptError):
            judge(endless, Candidate(thing()), limits)
    assert not judge(
        source(selector(namespace="hr", script="error()")), Candidate(thing()), None
    ).matching
    with pytest.raises(ScriptError) as caught:
        judge(source(selector(script="error()")), Candidate(thing()), LIMITS)
    assert not isinstance(caught.value, SlowScriptError)


def test_an_object_that_is_gone_matches_nothing() -> None:
    """No selector is asked about what is not there."""
    assert judge(source(selector()), None, LIMITS) == Ruling(matching=False)


def test_a_script_that_fails_is_no_verdict() -> None:
    """An error is raised, under the source's name."""
    with pytest.raises(ScriptError, match="s"):
        judge(source(selector(script="error('no idea')")), Candidate(thing()), LIMITS)


@pytest.mark.parametrize("quoting", [False, True])
def test_a_script_that_had_a_secret_is_not_quoted(*, quoting: bool) -> None:
    """Neither its message nor its error is told, unless to who has the Secret at hand."""
    telling = source(selector("Secret", script=saying(matching=True, message="hunter2")))
    failing = source(selector("Secret", script="error('hunter2')"))

    assert judge(telling, Candidate(thing("Secret")), LIMITS, quoting=quoting) == Ruling(
        matching=True, message="hunter2" if quoting else "", run=True
    )
    with pytest.raises(ScriptError) as caught:
        judge(failing, Candidate(thing("Secret")), LIMITS, quoting=quoting)
    assert ("hunter2" in str(caught.value)) == quoting
