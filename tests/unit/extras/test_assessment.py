"""Results of a HealthCheck's script for resources, and results that it may not return."""

from __future__ import annotations

from typing import Any

import pytest

from bellhop.api.kinds import EventSource, HealthCheck, parse_all, read_documents
from bellhop.core.gvk import ObjectKey
from bellhop.errors import ScriptError
from bellhop.extras.health.assessment import MOST, assess
from bellhop.luabox import Limits
from tests.fakes.fleet import service
from tests.fakes.health import SAYS, health_check

COUNTS = """
function evaluate()
  local found = {}
  for _, each in ipairs(resources) do
    table.insert(found, {resource = each, status = "Degraded", message = "of " .. #resources})
  end
  return {resources = found}
end
"""


def source(script: str = SAYS) -> EventSource:
    [found] = parse_all(read_documents(health_check(script), source="f"))
    assert isinstance(found, HealthCheck)
    return found.source


def unwell(count: int) -> list[dict[str, Any]]:
    made = [service(f"web-{number:04}") for number in range(count)]
    for each in made:
        each["metadata"]["annotations"] = {"state": "Degraded"}
    return made


def test_what_a_script_leaves_out_is_healthy() -> None:
    """As in Sveltos, where a report has only what the script returned."""
    found = assess(source(), [[service("web")]], Limits())

    assert (found.resources, found.message, found.again) == ((), "1 resources are healthy", False)


def test_parts_are_evaluated_apart_and_reported_together() -> None:
    """Each call sees only its part; `status` is taken for `healthStatus`, as Sveltos' code has."""
    found = assess(source(COUNTS), [unwell(3)[:2], unwell(3)[2:]], Limits())

    assert [each.manifest["message"] for each in found.resources] == ["of 2", "of 2", "of 1"]
    assert found.message == "3 not healthy of 3 resources"


def test_of_very_many_the_first_are_kept() -> None:
    """All of them are counted."""
    found = assess(source(), [unwell(MOST + 5)], Limits())

    assert len(found.resources) == MOST
    assert found.resources[0].key.name == "web-0000"
    assert found.message == f"{MOST + 5} not healthy of {MOST + 5} resources"


def test_of_very_many_those_that_were_known_stay() -> None:
    """In their order: since when they are not well is kept with them."""
    objects = unwell(MOST + 5)
    known = {str(ObjectKey.of(each)) for each in objects[-2:]}
    found = assess(source(), [objects], Limits(), known=known)

    names = [each.key.name for each in found.resources]
    assert names == sorted(names)
    assert names[-3:] == [f"web-{MOST - 3:04}", f"web-{MOST + 3:04}", f"web-{MOST + 4:04}"]


@pytest.mark.parametrize(
    ("returned", "error"),
    [
        pytest.param("7", "output is not a lua table", id="no table"),
        pytest.param("{resources = 7}", "'resources' must be a list", id="no list"),
        pytest.param("{resources = {7}}", r"'resources\[1\]' must be a table", id="no tables"),
        pytest.param(
            "{resources = {{healthStatus = 'Healthy'}}}", "resource' must be a table", id="nobody"
        ),
        pytest.param(
            "{resources = {{resource = resources[1]}}}",
            "healthStatus' must be one of",
            id="no state",
        ),
        pytest.param(
            "{resources = {{resource = {kind = 'A'}, status = 'Healthy'}}}",
            "has no apiVersion",
            id="nameless",
        ),
    ],
)
def test_refuses_what_is_no_answer(returned: str, error: str) -> None:
    """In a sentence that names the script and the field."""
    script = f"function evaluate()\n  return {returned}\nend"
    with pytest.raises(ScriptError, match=error) as failed:
        assess(source(script), [[service("web")]], Limits())

    assert "healthcheck:services, evaluateHealth" in str(failed.value)


def test_a_script_without_end_is_stopped() -> None:
    """It is boxed as all are."""
    endless = "function evaluate()\n  while true do end\nend"
    with pytest.raises(ScriptError):
        assess(source(endless), [[service("web")]], Limits(seconds=0.2))
