"""What a rule may cost, worked out before it is run: never less than it does cost."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from typing import Any

import pytest

from bellhop.celbox import Rule
from bellhop.celbox.bound import Amount, Cost, bound, program_size


def cost(text: str, size: float, nodes: float) -> Cost:
    return bound(Rule(text)._tree, Amount(size, nodes))


@pytest.mark.parametrize(
    "text",
    [
        "resource.spec.ports.exists(p, p.name == 'web')",
        "resource.a.all(x, x.b.all(y, y.c == 'z'))",
        "resource.metadata.labels.exists(k, k.startsWith('a') && k != 'ab')",
        "resource.a.exists(x, x.name.matches('^web-[0-9]+$'))",
        "resource.kind in ['Service', 'Pod']",
    ],
)
def test_what_goes_once_through_an_object_grows_as_it_does(text: str) -> None:
    """All elements of a list are together no larger than the list."""
    small, large = cost(text, 1e4, 1e2), cost(text, 1e5, 1e3)

    assert large.work / small.work < 11
    assert large.memory <= max(small.memory * 11, 1e6)


@pytest.mark.parametrize(
    "text",
    [
        "resource.a.all(x, resource.a.all(y, x.b == y.b))",
        "resource.s.contains(resource.t)",
        "size(resource.s.replace('a', resource.s)) > 0",
        "resource.a.all(x, x in resource.a)",
    ],
)
def test_what_goes_through_it_for_each_part_grows_faster(text: str) -> None:
    """Ten times as large costs about a hundred times as much."""
    small, large = cost(text, 1e5, 1e3), cost(text, 1e6, 1e4)

    assert large.work / small.work > 50


MEASURED = """
import json, resource, sys, time
from bellhop.celbox import Limits, Rule
from bellhop.celbox.bound import Amount, bound
from bellhop.celbox.rule import _depths
text, given = json.load(sys.stdin)
rule = Rule(text, limits=Limits(here=1e9, seconds=1e9, memory=10**15))
Rule("has(resource.zz) || true").holds(given)
size = Amount(len(rule._write(given)), sum(1 for _ in _depths(given)))
reckoned = bound(rule._tree, size)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
begun = time.thread_time()
rule.holds(given)
took = (time.thread_time() - begun) * 1e9
used = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak) * 1024
print(json.dumps([reckoned.work, reckoned.memory, took, used]))
"""

GIVEN: dict[str, Any] = {
    "s": "x" * 200_000,
    "k": list(range(200)),
    "l": [{"name": f"n{number}", "s": "y" * 50} for number in range(200)],
    "d": {str(number): number for number in range(2000)},
    "w": [f"word{number}" for number in range(1500)],
}


@pytest.mark.clocked
@pytest.mark.parametrize(
    "text",
    [
        "resource.s == resource.s + 'a' || true",
        "resource.k.all(x, size(resource.s) > 0)",
        "!resource.s.contains(resource.l[0].s + 'z')",
        "!resource.s.matches('(x+x+)+y')",
        "resource.k.all(x, 'abc'.matches('^a[a-z]+c$'))",
        "size(resource.s.replace('x', 'yyy')) > 0",
        "size(resource.s.split('')) > 0",
        "size(resource.w.join(', ')) > 0",
        "size(resource.s.reverse()) > 0 && size(resource.s.upperAscii()) > 0",
        "size(strings.quote(resource.s)) > 0",
        "size('%s %s'.format([resource.s, resource.l])) > 0",
        "size(resource.w.map(x, x + 'a')) > 0",
        "size(resource.w.filter(x, x != 'word1')) > 0",
        "resource.d == resource.d",
        "resource.k.all(x, !('zz' in resource.w))",
        "resource.k.all(x, size(resource.w + resource.w) > 0)",
        "size(resource.s.findAll('x')) > 0",
        "resource.k.sum() > 0",
        "resource.k.all(x, quantity(string(x) + 'm').sign() >= 0)",
    ],
)
def test_a_bound_holds(text: str) -> None:
    """What a rule is measured to take is below what it was reckoned to take."""
    done = subprocess.run(
        [sys.executable, "-c", MEASURED],
        input=json.dumps([text, GIVEN]),
        capture_output=True,
        text=True,
        check=True,
    )
    work, memory, took, used = json.loads(done.stdout)

    assert took < work
    assert used < memory + 4 * 1024 * 1024


@pytest.mark.parametrize(
    ("pattern", "least", "most"),
    [
        pytest.param("^web-[0-9]+$", 1, 100, id="what people write"),
        pytest.param("(", 0, 0, id="none"),
        pytest.param(r"[\pL]{1000}", math.inf, math.inf, id="too large"),
        pytest.param(r"[\pL]{30}", math.inf, math.inf, id="large"),
    ],
)
def test_a_large_pattern_is_not_compiled_here(pattern: str, least: float, most: float) -> None:
    """It has no bound, since its computation would take as long as it does."""
    assert least <= program_size(pattern) <= most


def test_small_objects_are_evaluated_here() -> None:
    """A process of its own is for what is absurd, not for what people write."""
    service = {"kind": "Service", "spec": {"ports": [{"name": "web", "port": 80}] * 10}}

    for text in (
        "resource.spec.ports.exists(p, resource.spec.ports.exists(q, p.port < q.port)) || true",
        "size(resource.kind.replace('S', 's')) > 0",
        "resource.spec.ports.map(p, p.name).filter(n, n != '').join(',').size() > 0",
        "resource.spec.ports.exists(p, p.name.contains(resource.kind)) || true",
    ):
        rule = Rule(text)

        assert rule.harmless(service)
        assert rule.holds(service)
