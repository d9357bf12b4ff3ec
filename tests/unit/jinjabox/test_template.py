"""Jinja2 in a box: what templates may do, and what hostile templates cannot."""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from typing import Any

import pytest

from bellhop.gotemplate import Limits, Struct
from bellhop.jinjabox import JinjaError, origins, render

LIMITS = Limits(output=8 * 1024 * 1024, steps=250_000, seconds=5.0)
SERVICE = {
    "kind": "Service",
    "metadata": {"name": "web", "namespace": "shop", "labels": {"b": "1", "a": "2"}},
    "spec": {"ports": [{"port": 443, "name": "https"}, {"port": 80, "name": "http"}]},
    "items": ["kept"],
    "flag": True,
    "empty": None,
}
ROOT = {
    "Resource": SERVICE,
    "Resources": [SERVICE],
    "MatchingResource": Struct(
        {"Kind": "Service", "Namespace": "shop", "Name": "web"}, "v1.ObjectReference"
    ),
}


def rendered(text: str) -> str:
    return render(text, ROOT, name="x", limits=LIMITS)


def failure(text: str) -> JinjaError:
    with pytest.raises(JinjaError) as caught:
        rendered(text)
    return caught.value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("{{ Resource.metadata.name }}", "web", id="a field"),
        pytest.param("{{ MatchingResource.Kind }}", "Service", id="a field of a reference"),
        pytest.param("{{ Resource['spec'].ports[0].port }}", "443", id="items"),
        pytest.param("{{ Resource.items }}", '["kept"]', id="data wins over a method"),
        pytest.param("{{ Resource.flag }} {{ 1.5 }}", "true 1.5", id="scalars as JSON has them"),
        pytest.param(
            "{% for k, v in Resource.metadata.labels.items() %}{{ k }}{{ v }}{% endfor %}",
            "a2b1",
            id="mappings by key",
        ),
        pytest.param(
            "{% for p in Resource.spec.ports if p.port > 100 %}{{ loop.index }}/{{ loop.length }}"
            "{{ loop.last }}{% else %}none{% endfor %}",
            "1/1true",
            id="a loop with a test",
        ),
        pytest.param(
            "{% for n in [[1, [2]]] recursive %}<{% for m in n %}{{ m | to_json }}{% endfor %}>"
            "{% endfor %}",
            "<1[2]>",
            id="nested lists",
        ),
        pytest.param(
            "{% macro m(a, b=2) %}{{ a }}{{ b }}{{ varargs }}{% endmacro %}{{ m(1, 3, 5) }}",
            "13[5]",
            id="a macro",
        ),
        pytest.param(
            "{% macro m() %}<{{ caller() }}>{% endmacro %}{% call m() %}x{% endcall %}",
            "<x>",
            id="a call block",
        ),
        pytest.param(
            "{% set ns = namespace(n=0) %}{% for p in Resource.spec.ports %}"
            "{% set ns.n = ns.n + p.port %}{% endfor %}{{ ns.n }}",
            "523",
            id="a namespace",
        ),
        pytest.param("{{ Resource.spec.ports | map(attribute='port') | join(',') }}", "443,80"),
        pytest.param("{{ Resource.spec.ports | map(attribute='port') | sort | first }}", "80"),
        pytest.param(
            "{{ Resource.spec.ports | selectattr('name', 'eq', 'http') | list | length }}", "1"
        ),
        pytest.param(
            "{% for port, found in Resource.spec.ports | groupby('port') %}{{ port }};{% endfor %}",
            "80;443;",
        ),
        pytest.param(
            "{{ Resource.spec.ports | groupby('port') | map('first') | list }}", "[80,443]"
        ),
        pytest.param("{{ [3, 1, 3] | unique | list }} {{ [1, 2] | max }}", "[3,1] 2"),
        pytest.param("{{ 'hello'[1:3] }}{{ 'abc'[-1] }}", "elc", id="parts of a text"),
        pytest.param("{{ 1 < 2 <= 2 and 'a' in 'cat' and 3 not in [1] }}", "true"),
        pytest.param("{{ {'a': [1]} == {'a': [1]} }}", "true", id="equal by value"),
        pytest.param("{{ Resource.nope | default('d') }}", "d"),
        pytest.param("{{ Resource.empty | default('d', true) }}", "d"),
        pytest.param("{{ Resource.nope is defined }} {{ Resource.flag is defined }}", "false true"),
        pytest.param("{{ 'a\nb' | indent(2) }}|{{ 'a' | nindent(2) }}", "a\n  b|\n  a"),
        pytest.param("{{ 'x\"y' | quote }} {{ \"it's\" | squote }}", "\"x\\\"y\" 'it''s'"),
        pytest.param("{{ 'hé' | b64encode }} {{ 'aMOp' | b64decode }}", "aMOp hé"),
        pytest.param(
            "{{ 'a' | sha256 }}",
            "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb",
        ),
        pytest.param("{{ {'b': 1, 'a': 'yes'} | to_yaml }}", 'a: "yes"\nb: 1'),
        pytest.param("{{ {'b': 1, 'a': none} | to_json }}", '{"a":null,"b":1}'),
        pytest.param("{{ ('a: [1, 2]' | from_yaml).a | sum }}", "3"),
        pytest.param("{{ ('{\"a\": 4}' | from_json).a }}", "4"),
        pytest.param("{{ '%s-%03d' | format('a', 7) }} {{ '%.1f' % 2.25 }}", "a-007 2.2"),
        pytest.param("{{ '%(a)s%%' | format(a=1) }}", "1%"),
        pytest.param("{{ 'a' ~ 1 ~ true }} {{ 'ab' * 2 }} {{ [1] + [2] }}", "a1true abab [1,2]"),
        pytest.param(
            "{{ 7 // 2 }} {{ 2 ** 10 }} {{ '12' | int + 1 }} {{ 'x' | int(5) }}", "3 1024 13 5"
        ),
        pytest.param("{{ 'a b'.split() }} {{ 'Ab'.upper().startswith('AB') }}", '["a","b"] true'),
        pytest.param("{{ 'abc' | truncate(2) }} {{ 'a-b' | replace('-', '_') }}", "ab a_b"),
        pytest.param(
            "{% filter upper %}a{{ 1 }}{% endfilter %}{% set x %}b{% endset %}{{ x }}", "A1b"
        ),
        pytest.param(
            "{{ 'hELLO you' | capitalize }} {{ 'hELLO you' | title }}",
            "Hello you Hello You",
            id="large and small letters",
        ),
        pytest.param("{{ ' a ' | trim }}|{{ 'xxaxx' | trim('x') }}|{{ 1.5 | string }}", "a|a|1.5"),
        pytest.param("{{ 'a b/ü&' | urlencode }}", "a%20b/%C3%BC%26"),
        pytest.param("{{ '1.5' | float }} {{ 'x' | float(2) }} {{ -3 | abs }}", "1.5 2 3"),
        pytest.param(
            "{{ 2.567 | round(2) }} {{ 2.1 | round(0, 'ceil') }} {{ 2.9 | round(0, 'floor') }}"
            " {{ 2.0 | round(method='ceil') }}",
            "2.57 3.0 2.0 2.0",
            id="rounding",
        ),
        pytest.param(
            "{{ 'abc' | list }} {{ 'abc' | reverse }} {{ [1, 2] | reverse }}",
            '["a","b","c"] cba [2,1]',
            id="a text is a list of characters, and turns round as one",
        ),
        pytest.param(
            "{{ {'b': 1, 'a': 2} | items }} {{ {'b': 1, 'a': 2} | dictsort(by='value') }}",
            '[["a",2],["b",1]] [["b",1],["a",2]]',
            id="entries by key, and by value",
        ),
        pytest.param("{{ [3, 1] | min }} {{ [1, 2, 3] | batch(2) }}", "1 [[1,2],[3]]"),
        pytest.param(
            "{{ [1, 2] | select('odd') }} {{ [1, 2] | reject('odd') }} {{ [0, 1, ''] | select }}",
            "[1] [2] [1]",
            id="what passes a test, or is true",
        ),
        pytest.param("{{ Resource.spec.ports | rejectattr('name', 'eq', 'http') | length }}", "1"),
        pytest.param(
            "{{ [{'a': 1}, {}] | map(attribute='a', default='none') }}"
            "{{ [[1, 2], [3]] | map(attribute=0) }}",
            '[1,"none"][1,3]',
            id="attributes that may be missing, and places in lists",
        ),
        pytest.param("{{ 'a\nb\n'.splitlines() }} {{ [1, 2, 3][1:] }}", '["a","b"] [2,3]'),
        pytest.param(
            "{{ {'a': 1}.get('a') }} {{ {'a': 1}.get('b', 2) }} {{ {'b': 1, 'a': 2}.values() }}",
            "1 2 [2,1]",
            id="the methods of a mapping",
        ),
        pytest.param(
            "{% for k in {'b': 1, 'a': 2} %}{{ k }}{% endfor %}"
            "{% for k in {'a': 1, 1: 2} %}{{ k }}{% endfor %}",
            "ab1a",
            id="a mapping's keys in order, of whatever type",
        ),
        pytest.param("{{ 'a' in {'a': 1} }} {{ [1] == 1 }}", "true false"),
        pytest.param(
            "{% set more = {'c': 3} %}{{ dict({'a': 1}, b=2, **more) }}",
            '{"a":1,"b":2,"c":3}',
            id="a mapping of mappings and names",
        ),
        pytest.param(
            "{% for g in Resource.spec.ports | groupby('port') %}"
            "{{ g.grouper }}:{{ g.list | length }}{{ loop.cycle(',', '.') }}{% endfor %}",
            "80:1,443:1.",
            id="groups by name, and a cycle",
        ),
        pytest.param("{% raw %}{{ .Cluster }}{% endraw %}{# gone #}", "{{ .Cluster }}"),
        pytest.param("no template: {}\n", "no template: {}\n", id="a text without tags"),
        pytest.param("{{ 1 }}\n", "1\n", id="the last line break stays"),
    ],
)
def test_renders(text: str, expected: str) -> None:
    """What people write in Jinja2 gives what they expect."""
    assert rendered(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "{{ nope }}",
        "{% if nope %}x{% endif %}",
        "{% if not nope %}x{% endif %}",
        "{% if Resource.nope %}x{% endif %}",
        "{% if nope == nope %}x{% endif %}",
        "{% if nope and true %}x{% endif %}",
        "{% for x in nope %}{% endfor %}",
        "{{ nope.deeper | default('x') }}",
        "{{ 'a' in nope }}",
        "{{ nope in ['a'] }}",
        "{{ nope ~ 'x' }}",
        "{{ nope + 1 }}",
        "{{ [nope] }}",
        "{{ {'a': nope} | to_yaml }}",
        "{{ nope | upper }}",
        "{{ nope() }}",
        "{{ [1] | map(attribute='x') | list }}",
        "{{ 'x' | replace('x', nope) }}",
        "{{ Resource.spec.ports[7] }}",
    ],
)
def test_what_is_not_there_is_an_error(text: str) -> None:
    """No use of what is not there passes in silence, least of all in an if."""
    assert "is undefined" in str(failure(text)) or "has no" in str(failure(text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            "a\n{{ Resource.metadata.nmae }}",
            "template: x:2: 'dict object' has no attribute 'nmae' (did you mean 'name'?)",
            id="a misspelling",
        ),
        pytest.param(
            "{{ Resource.empty }}", "template: x:1: there is nothing (null) to write; give"
        ),
        pytest.param("\n\n{{ .Resource }}", "template: x:3: unexpected '.'", id="Go's spelling"),
        pytest.param("{{ 1 | nope }}", "template: x:1: No filter named 'nope'."),
        pytest.param("{% for p in Resource.metadata.name %}{% endfor %}", "go through a string"),
        pytest.param("{{ Resource.metadata.name.upper }}", "upper is a function; call it: upper()"),
        pytest.param("{{ 1 + 'a' }}", "cannot use '+' on a number and a string"),
        pytest.param("{{ [[1]] | sort }}{{ [[1], [2]] | sort }}", "cannot order a list and a list"),
        pytest.param("{{ fail('no ports') }}", "template: x:1: no ports", id="a template's own"),
        pytest.param(
            "{% macro m() %}\n{{ nope }}\n{% endmacro %}\n\n{{ m() }}",
            "template: x:2: 'nope'",
            id="the line inside a macro",
        ),
        pytest.param("{{ '%d' | format('secret') }}", "a string is not a number"),
        pytest.param("{{ 'secret!' | b64decode }}", "the value is not base64 of a UTF-8 text"),
        pytest.param("{{ 5 | length }}{{ 'secret' }}", "a number has no length"),
        pytest.param("{{ 'secret' | items }}", "a string has no entries"),
        pytest.param("{{ 'secret' | int(base=3) }}", "the base of a number is 2, 8, 10 or 16"),
        pytest.param("{{ 1 | round(0, 'up') }}", "the method of rounding is common, ceil or floor"),
        pytest.param("{{ '{secret' | from_json }}", "the value is not JSON"),
        pytest.param("{{ '{secret: [' | from_yaml }}", "the value is not YAML"),
        pytest.param("{{ 'a: 1\\n---\\nb: 2' | from_yaml }}", "more than one YAML document"),
        pytest.param("{{ [1] | batch(0) }}", "the size of a batch is at least 1"),
        pytest.param("{{ [1] | batch('secret') }}", "a string where a whole number is expected"),
        pytest.param("{{ [1] | map }}", "map takes the name of a filter, or attribute=…"),
        pytest.param("{{ [1] | select('nope') }}", "the name of a test that is not there"),
        pytest.param("{{ [[1]] | unique }}", "a list cannot be compared here; name an attribute"),
        pytest.param("{{ 'secret'.split('') }}", "an empty separator splits nothing"),
        pytest.param("{{ 10 ** 10000 }}", "a power beyond 1024"),
        pytest.param("{{ 1 / 0 }}", "division by zero"),
        pytest.param("{{ 5[1:] }}", "cannot cut a part out of a number"),
        pytest.param("{{ 'secret'[::0] }}", "the step of a part cannot be zero"),
        pytest.param("{{ '%s' | format('secret', 2) }}", "not all arguments are used"),
        pytest.param("{{ '%s %s' | format('secret') }}", "more places than there are arguments"),
        pytest.param("{{ 'secret' | replace(1, 2) }}", "a number where a string is expected"),
        pytest.param("{{ dict('secret') }}", "dict() takes mappings and names"),
        pytest.param("{{ dict(**'secret') }}", "cannot take names from a string"),
        pytest.param("{{ [range] | to_json }}", "a function or a macro has no JSON"),
        pytest.param("{{ namespace(a='secret') }}", "this value cannot be written"),
    ],
)
def test_errors_name_the_line_and_the_mistake(text: str, expected: str) -> None:
    """An error has the template's name, the line at fault, and no value."""
    error = failure(text)

    assert expected in str(error)
    assert "secret" not in str(error)
    assert text.split("\n")[error.line - 1].strip() == error.excerpt


@pytest.mark.parametrize(
    "text",
    [
        "{{ ''.__class__.__mro__ }}",
        "{{ Resource['__class__'] }}",
        "{{ ''['__class__'] }}",
        "{{ cycler.__init__.__globals__ }}",
        "{{ lipsum(5) }}",
        "{{ joiner }}",
        "{{ self._TemplateReference__context }}",
        "{{ self.x }}",
        "{{ range.__call__ }}",
        "{{ namespace.call }}",
        "{{ ''.upper.call }}",
        "{% macro f() %}{% endmacro %}{{ f.__globals__ }}",
        "{% macro f() %}{% endmacro %}{{ f._func }}",
        "{% for x in [1] %}{{ loop._recurse }}{% endfor %}",
        "{% for x in [1] %}{{ loop.__init__ }}{% endfor %}",
        "{{ namespace(a=1)['_Namespace__attrs'] }}",
        "{{ namespace(a=1).__class__ }}",
        "{{ '{0.__class__}'.format(1) }}",
        "{{ '{0.__class__}'.format_map(Resource) }}",
        "{{ '%s' % Resource.__class__ }}",
        "{{ Resource | attr('__class__') }}",
        "{{ [Resource] | map(attribute='__class__') | list }}",
        "{{ [Resource] | map('attr', '__class__') | list }}",
        "{{ [Resource] | map('\\0key') | list | map(attribute='__class__') | list }}",
        "{{ Resource.metadata.pop('name') }}",
        "{{ Resource.spec.ports.append(1) }}",
        "{{ Resource.update({}) }}",
        "{% set Resource.metadata = 1 %}",
        "{% include 'x' %}",
        "{% import 'x' as y %}",
        "{% from 'x' import y %}",
        "{% extends 'x' %}",
        "{% block a %}{{ self.a() }}{% endblock %}",
        "{% autoescape true %}{% endautoescape %}",
        "{{ caller() }}",
        "{{ context }}{{ environment }}",
        "{{ dict.fromkeys }}",
        "{{ 'abc'.encode() }}",
        "{{ (1).bit_length() }}",
    ],
)
def test_nothing_of_python_can_be_reached(text: str) -> None:
    """Neither attributes nor templates nor other parts of Jinja2 are within reach."""
    failure(text)

    assert SERVICE["metadata"] == {
        "name": "web",
        "namespace": "shop",
        "labels": {"b": "1", "a": "2"},
    }


_DOUBLING = (
    "{% set ns = namespace(x=START) %}{% for i in range(100) %}{% set ns.x = STEP %}{% endfor %}"
)


def doubling(start: str, step: str, then: str = "") -> str:
    return _DOUBLING.replace("START", start).replace("STEP", step) + then


@pytest.mark.clocked
@pytest.mark.parametrize(
    "text",
    [
        pytest.param("{% for i in range(10**9) %}{{ i }}{% endfor %}", id="a huge range"),
        pytest.param("{{ 'a' * 10**9 }}", id="a huge text"),
        pytest.param("{{ [0] * 10**9 }}", id="a huge list"),
        pytest.param("{{ 10**10**8 }}", id="a huge number"),
        pytest.param(doubling("2", "ns.x * ns.x"), id="a number that doubles"),
        pytest.param(doubling("'ab'", "ns.x ~ ns.x"), id="a text that doubles"),
        pytest.param(doubling("'ab'", "ns.x + ns.x"), id="a text that is added to itself"),
        pytest.param(doubling("[1]", "ns.x + ns.x"), id="a list that doubles"),
        pytest.param(doubling("[1]", "[ns.x, ns.x]", "{{ ns.x }}"), id="writing a shared list"),
        pytest.param(doubling("[1]", "[ns.x, ns.x]", "{{ ns.x | to_yaml }}"), id="as YAML"),
        pytest.param(
            doubling("[1]", "[ns.x, ns.x]", "{{ ns.x == [ns.x[0], ns.x[1]] }}")
            + doubling("[1]", "[ns.x, ns.x]", "{{ ns.x in [[1]] }}{{ {ns.x: 1} }}"),
            id="hashing a shared list",
        ),
        pytest.param("{{ ('a' * 1000000) | replace('a', 'b' * 1000) }}", id="replace that swells"),
        pytest.param("{{ ('a' * 1000000).replace('a', 'b' * 1000) }}", id="its method"),
        pytest.param("{{ ['a' * 1000000] * 2 | join }}", id="a list times a number"),
        pytest.param("{{ range(200000) | join('a' * 1000) }}", id="join that swells"),
        pytest.param("{{ 'a' | indent(10**9) }}", id="a huge indent"),
        pytest.param("{{ '%1000000000d' % 1 }}", id="a wide format"),
        pytest.param("{{ '%*d' | format(1000000000, 1) }}", id="a width from an argument"),
        pytest.param("{{ '%.1000000000f' | format(1) }}", id="a precise format"),
        pytest.param("{{ ('a ' * 4000000).split() }}", id="splitting a huge text"),
        pytest.param("{{ ('x' * 4000000) | list }}", id="the characters of a huge text"),
        pytest.param("{{ ('[' ~ '[],' * 400000 ~ '[]]') | from_json }}", id="many small lists"),
        pytest.param("{{ ('- a\n' * 400000) | from_yaml }}", id="much YAML"),
        pytest.param("{{ ('[' * 100000) | from_json }}", id="deep JSON"),
        pytest.param("{{ dict(*range(10**9)) }}", id="starred arguments"),
        pytest.param(
            "{% for a in range(10**4) %}{% for b in range(10**4) %}{{ b }}{% endfor %}{% endfor %}",
            id="nested loops",
        ),
        pytest.param(
            "{% for a in range(10**4) %}{% for b in range(10**4) if false %}{% endfor %}"
            "{% endfor %}",
            id="loops whose test fails",
        ),
        pytest.param(
            "{% set a %}{% for i in range(240000) %}" + "x" * 100 + "{% endfor %}{% endset %}",
            id="a captured text",
        ),
        pytest.param(
            "{% for i in range(200000) %}" + "x" * 100 + "{% endfor %}", id="a large output"
        ),
        pytest.param("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", id="a macro of itself"),
        pytest.param(
            "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}"
            "{{ f(50) }}",
            id="a macro that branches",
        ),
        pytest.param(
            "{% macro f() %}{% call f() %}{% endcall %}{{ caller() }}{% endmacro %}"
            "{% call f() %}{% endcall %}",
            id="a call block of itself",
        ),
        pytest.param(
            "{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}", id="a loop of itself"
        ),
        pytest.param("{{ " + "(" * 3000 + "1" + ")" * 3000 + " }}", id="deep parentheses"),
        pytest.param("{{ 1" + "+1" * 9000 + " }}", id="a long sum"),
        pytest.param("{{ " + "[" * 300 + "]" * 300 + " }}", id="deep lists"),
        pytest.param("{% if 1 %}" * 300 + "{% endif %}" * 300, id="deep conditions"),
        pytest.param("{% for i in [1] %}" * 40 + "{% endfor %}" * 40, id="deep loops"),
        pytest.param("{{ a }}" * 100_000, id="a template of many words"),
        pytest.param("{#" * 300_000, id="comments that never end"),
        pytest.param("{% raw %}" * 100_000, id="raw blocks that never end"),
    ],
)
def test_a_hostile_template_ends_soon_and_small(text: str) -> None:
    """It ends in an error within seconds on a busy machine, and never takes much memory.

    It takes seconds: some templates use up a limit of steps first.
    """
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.thread_time()
    failure(text)

    assert time.thread_time() - began < 20
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200 * 1024


@pytest.mark.clocked
def test_time_is_limited_where_steps_are_not() -> None:
    """A render that is given no time stops by the clock."""
    limits = LIMITS._replace(seconds=0.05, steps=10**9)
    began = time.thread_time()
    with pytest.raises(JinjaError, match=r"took longer than 0\.05 seconds"):
        render("{% for i in range(3000000) %}{% endfor %}", {}, name="x", limits=limits)

    assert time.thread_time() - began < 5


def test_names_the_line_of_the_template() -> None:
    """Each rendered line has the line it comes from, in loops and over values of many lines."""
    text = (
        "a: 1\n{% for p in Resource.spec.ports -%}\n- b: {{ p.port }}\n  c:\n"
        "{{ p | to_yaml }}\n{% endfor %}"
    )

    lines = origins(text, ROOT, name="x", limits=LIMITS)

    assert lines == [1, 3, 4, 5, 5, 3, 4, 5, 5, 6]
    assert len(lines) == rendered(text).count("\n") + 1


def test_a_render_leaves_nothing_for_the_next() -> None:
    """Two renders of one template with one set of data give the same text."""
    text = "{% set ns = namespace(l=[]) %}{% set ns.l = ns.l + [1] %}{{ ns.l }}{{ Resource.items }}"

    assert rendered(text) == rendered(text)


def test_stages_that_render_nothing_do_not_load_jinja2() -> None:
    """Ingest and evaluate start without Jinja2, and so does deploy until a template asks."""
    modules: list[Any] = ["ingest.handler", "events.evaluator", "runtime.handlers.deploy"]
    script = ";".join(f"import bellhop.{each}" for each in modules)
    script += ";import sys;print([m for m in sys.modules if m.startswith('jinja2')])"

    found = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )

    assert found.stdout.strip() == "[]"
