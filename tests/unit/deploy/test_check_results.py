"""Results of a check for objects: by its script, its rules or their absence, and without values."""

from __future__ import annotations

from typing import Any

import pytest

from bellhop.core.gvk import GVK
from bellhop.deploy.gates.check_results import objection, unserved
from bellhop.luabox import Limits
from bellhop.state.check import Check, CheckRule, MetricQuery, MetricSource, When

DEPLOYMENT = GVK("apps", "v1", "Deployment")
LIMITS = Limits(seconds=0.2)
READY = """
function evaluate()
  if obj.status == nil then return {message = "no status"} end
  return {healthy = obj.status.ready > 0, message = "none is ready"}
end"""
RULES = (
    CheckRule("many", "resource.status.ready > 5"),
    CheckRule("paused", "resource.spec.paused"),
)


def check(script: str = "", *rules: CheckRule, when: When = "validateHealths") -> Check:
    return Check(when, "up", DEPLOYMENT, script=script, rules=rules)


def deployment(name: str = "web", kind: str = "Deployment", **fields: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "shop"}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": metadata, **fields}


def ready(number: int, name: str = "web") -> dict[str, Any]:
    return deployment(name, status={"ready": number}, spec={})


@pytest.mark.parametrize(
    ("asked", "objects", "said"),
    [
        pytest.param(check(READY), [ready(1)], "", id="healthy"),
        pytest.param(
            check(READY),
            [ready(1), ready(0, "late"), ready(0, "later")],
            "Deployment 'shop/late' is not healthy: none is ready",
            id="the first that is not",
        ),
        pytest.param(
            check(READY),
            [deployment()],
            "Deployment 'shop/web' is not healthy: no status",
            id="without healthy it is not",
        ),
        pytest.param(
            check("function evaluate() return {matching = true} end"),
            [ready(1)],
            "Deployment 'shop/web' is not healthy: its script returns no field 'healthy', but"
            " 'matching'",
            id="another field",
        ),
        pytest.param(
            check("function evaluate() return {healthy = obj.metadata.name == 'x'} end"),
            [ready(1)],
            "Deployment 'shop/web' is not healthy",
            id="without a message",
        ),
        pytest.param(
            check("function evaluate(o) return {healthy = o.status.ready == 1} end"),
            [ready(1)],
            "",
            id="as its argument",
        ),
        pytest.param(
            check("function evaluate() return {healthy = metrics['x'] == nil} end"),
            [ready(1)],
            "",
            id="metrics are there, and empty",
        ),
        pytest.param(
            check("function evaluate() return {healthy = 1} end"),
            [ready(1)],
            "Deployment 'shop/web' is not healthy: its script fails: up: 'healthy' must be a"
            " boolean, not a number",
            id="no boolean",
        ),
        pytest.param(
            check("function evaluate() while true do end end"),
            [ready(1)],
            "Deployment 'shop/web' is not healthy: its script fails: up:1: the script took",
            id="without an end",
        ),
        pytest.param(check("", *RULES), [ready(6)], "", id="one rule holds"),
        pytest.param(
            check("", *RULES),
            [deployment(status={"ready": 1}, spec={"paused": False})],
            "Deployment 'shop/web' is not healthy: no CEL rule holds",
            id="no rule holds",
        ),
        pytest.param(
            check("", CheckRule("odd", "resource.")),
            [ready(1)],
            "Deployment 'shop/web' cannot be checked: up, rule 'odd':",
            id="no rule at all",
        ),
        pytest.param(
            check(READY, *RULES),
            [ready(1)],
            "Deployment 'shop/web' is not healthy: no CEL rule holds; rule 'paused' fails:",
            id="script and rules",
        ),
        pytest.param(check(), [deployment()], "", id="is there"),
        pytest.param(check(), [], "there is no Deployment", id="is not there"),
        pytest.param(check(READY, when="preDeployChecks"), [], "there is no Deployment", id="yet"),
        pytest.param(check(READY, when="preDeleteChecks"), [], "", id="nobody uses it"),
        pytest.param(check(READY, when="postDeleteChecks"), [], "", id="it is gone"),
    ],
)
def test_says_what_it_has_against_them(
    asked: Check, objects: list[dict[str, Any]], said: str
) -> None:
    """The first object that is not healthy by script and rules, in a sentence; or nothing."""
    found = objection(asked, objects, LIMITS)

    assert found.startswith(said)
    assert bool(found) == bool(said)


@pytest.mark.parametrize(
    "asked",
    [
        check("function evaluate() return {healthy = false, message = obj.data.key} end"),
        check("function evaluate() error(obj.data.key) end"),
        check("function evaluate() return {[obj.data.key] = obj.data.key, healthy = 1} end"),
        check("", CheckRule("leaks", "resource.data[resource.data.key] == 'x'")),
    ],
)
def test_never_quotes_a_secret(asked: Check) -> None:
    """The message of a script about a Secret is in no status."""
    secret = deployment(kind="Secret", data={"key": "aGlkZGVuLXZhbHVl"})
    found = objection(asked, [secret], LIMITS)

    assert found.startswith("Secret 'shop/web' is not healthy")
    assert "aGlkZGVuLXZhbHVl" not in found


def test_looks_no_further_than_the_first() -> None:
    """A list of thousands is not read to its end once one is not healthy."""
    objects = iter([ready(0), ready(0), ready(0)])
    objection(check(READY), objects, LIMITS)

    assert len(list(objects)) == 2


@pytest.mark.parametrize(
    ("when", "said"),
    [
        ("preDeployChecks", "the cluster does not serve apps/v1/Deployment"),
        ("validateHealths", "the cluster does not serve apps/v1/Deployment"),
        ("preDeleteChecks", ""),
        ("postDeleteChecks", ""),
    ],
)
def test_a_kind_that_is_not_served_has_no_objects(when: When, said: str) -> None:
    """That is no health, and keeps no removal."""
    assert unserved(check(READY, when=when)) == said


def metrics(script: str, when: When = "validateHealths") -> Check:
    source = MetricSource("http://prom", "/q", (MetricQuery("errors", "sum(errors)"),))
    return Check(when, "up", GVK("", "", ""), script=script, metrics=source)


@pytest.mark.parametrize(
    ("script", "found", "said"),
    [
        pytest.param("healthy = metrics.errors < 2", {"errors": 1.0}, "", id="fine"),
        pytest.param(
            "healthy = metrics['errors'] < 2, message = 'many'",
            {"errors": 3.0},
            "it is not healthy: many",
            id="too many",
        ),
        pytest.param("healthy = obj == nil and metrics.errors == nil", {}, "", id="nothing found"),
        pytest.param(
            "healthy = metrics.errors < 2",
            {},
            "it is not healthy: its script fails: up:1: attempt to compare nil with number",
            id="compares what is not there",
        ),
        pytest.param(
            "healthy = metrics.errors == math.huge", {"errors": float("inf")}, "", id="infinite"
        ),
    ],
)
def test_metrics_without_a_kind_are_evaluated_once(
    script: str, found: dict[str, float], said: str
) -> None:
    """The script has no object then, and also decides where a profile leaves."""
    text = f"function evaluate() return {{{script}}} end"
    times: tuple[When, ...] = ("validateHealths", "postDeleteChecks")
    for when in times:
        assert objection(metrics(text, when), [], LIMITS, found) == said


def test_metrics_are_given_beside_each_object() -> None:
    """A check with a kind has both."""
    script = "function evaluate() return {healthy = obj.status.ready >= metrics.least} end"
    given = {"least": 2.0}
    assert objection(check(script), [ready(2)], LIMITS, given) == ""
    said = "Deployment 'shop/web' is not healthy"
    assert objection(check(script), [ready(1)], LIMITS, given) == said
