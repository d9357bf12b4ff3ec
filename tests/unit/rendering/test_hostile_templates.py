"""Templates in both dialects whose single calls would toil or swell: each ends in its limit.

What runs in C cannot be interrupted, so the arguments of every call are bounded before it begins.
"""

from __future__ import annotations

import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import NamedTuple

import pytest

from bellhop.errors import TemplateError
from bellhop.gotemplate import Limits
from bellhop.rendering.templates import Dialect, render
from bellhop.settings import Settings

ROOT = Path(__file__).parents[3]
CPU_SECONDS = 20.0
"""What one attack may take of a busy processor; by itself each takes a second at most."""

PEAK_MEGABYTES = 160
"""What all attacks together may add to the memory of a process."""

_TEXT = '{{ $a := repeat 8000000 "x" }}'
_NFA = '(print "(a|b)*a" (repeat 4 "(a|b){1000}") "c")'
_MAP = "{{ $d := dict }}{{ range $i := until 20000 }}{{ $_ := set $d (print $i) $i }}{{ end }}"
_MIXED = '{{ $a := repeat 260000 "aé\u4e2d\U0001f600" }}'
_J_TEXT = '{% set a = "x" * 8000000 %}'
_J_LIST = _J_TEXT + (
    "{% set ns = namespace(l=[a]) %}"
    "{% for i in range(14) %}{% set ns.l = ns.l + ns.l %}{% endfor %}"
)
_J_DOUBLED = (
    "{% set ns = namespace(a=[1]) %}"
    "{% for i in range(30) %}{% set ns.a = [ns.a, ns.a] %}{% endfor %}"
)
_J_KEEP = "{% set ns = namespace(l=[]) %}{% for i in range(9999) %}{% set ns.l = [ns.l, USE] %}"


class Attack(NamedTuple):
    """A name, a template, what its error says, and its dialect."""

    name: str
    template: str
    says: str
    dialect: Dialect = "go"


def _many(name: str, times: int = 280) -> str:
    return f" {name}" * times


_CALL, _VALUE, _BYTES = "a call is given more than", "a value of more than", "bytes in all"
_STEPS, _PRODUCT = "more than 500000 steps", "which is more than 100000000"
GO = [
    *[
        Attack(call, f"{_TEXT}{{{{ len ({call}{_many('$a')}) }}}}", _CALL)
        for call in ("print", "println", "cat", "squote", "quote", "html", "js", "urlquery")
    ],
    Attack("printf of many", f'{_TEXT}{{{{ printf "a"{_many("$a")} }}}}', _CALL),
    Attack("printf of one", f'{_TEXT}{{{{ printf "{"%[1]s" * 280}" $a }}}}', _VALUE),
    Attack("printf %q", f'{_TEXT}{{{{ printf "%q" $a }}}}', _CALL),
    Attack("printf of wide items", '{{ printf "%999999d" (until 99999) }}', _VALUE),
    *[
        Attack(call, f"{_TEXT}{{{{ {call} (list{_many('$a')}) }}}}", _CALL)
        for call in ('join ""', "toStrings", "sortAlpha", "uniq")
    ],
    *[
        Attack(f"long keys, {call}", f'{{{{ $d := dict (repeat 8000000 "x") 1 }}}}{use}', _VALUE)
        for call, use in (
            (name, f"{{{{ {name} (list{_many('$d')}) }}}}")
            for name in ("toJson", "toYaml", "print", "toRawJson", "quote")
        )
    ],
    Attack(
        "headings of tables",
        "{{ $l := list }}{{ range until 12 }}{{ $l = concat (list (dict)) $l $l }}{{ end }}"
        '{{ toToml (dict (repeat 900000 "k") $l) }}',
        _CALL,
    ),
    Attack(
        "depth times size",
        '{{ $l := list (repeat 4000000 "<") }}{{ range until 140 }}{{ $l = list $l }}{{ end }}'
        "{{ toJson $l }}",
        _PRODUCT,
    ),
    Attack(
        "depth times indentation",
        "{{ $l := until 90000 }}{{ range until 80 }}{{ $l = list $l }}{{ end }}"
        "{{ toPrettyJson $l }}",
        _VALUE,
    ),
    Attack("many values as YAML", "{{ toYaml (until 60000) }}", "YAML of more than 50000"),
    Attack("an RE2 NFA", f'{{{{ regexMatch {_NFA} (repeat 99999 "abbaabab") }}}}', _PRODUCT),
    Attack(
        "groups",
        '{{ regexFind (print (repeat 300 "(a|b)?") "c") (repeat 9999 "abbaabab") }}',
        _PRODUCT,
    ),
    Attack(
        "groups in groups",
        '{{ regexFind (print (repeat 9000 "(") "a" (repeat 9000 ")")) "ab" }}',
        "expression too large",
    ),
    Attack("trimAll", '{{ trimAll (repeat 99999 "b") (repeat 99999 "a") }}', _PRODUCT),
    Attack("split", f'{_TEXT}{{{{ split "" $a }}}}', _STEPS),
    Attack("splitList", f'{_TEXT}{{{{ splitList "" $a }}}}', _STEPS),
    Attack("splitn", f'{_TEXT}{{{{ splitn "" 9 $a }}}}', _STEPS),
    *[
        Attack(call, f"{_TEXT}{{{{ {call} $a }}}}", _CALL)
        for call in (
            *("upper", "lower", "title", "untitle", "swapcase", "nospace", "initials"),
            *("snakecase", "kebabcase", "camelcase", "shuffle", "b32enc", "b32dec", "b64dec"),
            *("clean", "urlParse", "regexQuoteMeta", "fromToml", "fromYaml", "now.Format"),
            *("duration", "durationRound", 'toDate "1"', 'dateInZone "1" now', "wrap 9"),
            *('decryptAES "a"', "genCAWithKey `a` 1", "buildCustomCert `a`"),
        )
    ],
    Attack("random letters", "{{ randAlphaNum 8000000 }}", _CALL),
    Attack("a URL", f'{_TEXT}{{{{ urlJoin (dict "path" $a) }}}}', _CALL),
    Attack(
        "a large key",
        '{{ genCAWithKey "a" 1 (print "-----BEGIN PRIVATE KEY-----" (repeat 9999 "a")) }}',
        "a key of more than 4096 characters",
    ),
    Attack(
        "many names",
        "{{ $l := list }}{{ range until 15 }}{{ $l = concat (list `a`) $l $l }}{{ end }}"
        '{{ genSelfSignedCert "a" nil $l 1 }}',
        _STEPS,
    ),
    Attack("JSON", '{{ fromJson (print "[" (repeat 2500000 "{},") "1]") }}', _STEPS),
    Attack(
        "a long key of TOML",
        '{{ index (fromToml (print (repeat 60000 "a.") "a=1")) "Error" | fail }}',
        "a key of more than 150 parts",
    ),
    Attack("keys", f"{_MAP}{{{{ keys{_many('$d')} }}}}", _STEPS),
    Attack(
        "kept maps",
        f"{_MAP}{{{{ $l := list }}}}{{{{ range 1000 }}}}"
        '{{ $l = append $l (omit $d "a") }}{{ end }}',
        _BYTES,
    ),
    Attack(
        "kept lists",
        "{{ $l := list }}{{ $x := until 400000 }}{{ range 1000 }}"
        "{{ $l = append $l (rest $x) }}{{ end }}",
        _BYTES,
    ),
    Attack(
        "kept texts of wide letters",
        '{{ $l := list }}{{ range 99 }}{{ $l = append $l (repeat 2000000 "\U0001f600") }}{{ end }}',
        _BYTES,
    ),
    Attack(
        "a chain of small lists",
        "{{ $x := list }}{{ range 490000 }}" + "{{ $x = list $x }}" * 20 + "{{ end }}",
        "",
    ),
    Attack("a long message", f"{_TEXT}{{{{ fail $a }}}}", "error calling fail"),
]
JINJA = [
    Attack(name, template, says, "jinja2")
    for name, template, says in (
        ("a hidden filter", '{{ [namespace]|map("\\x00literal")|join }}', "filter that is not"),
        (
            "a hidden filter on 2^30 items",
            _J_DOUBLED + '{{ [ns.a]|map("\\x00literal")|join }}',
            "filter that is not",
        ),
        ("a hidden test", '{{ [1]|select("\\x00tick")|list }}', "test that is not"),
        (
            "a suggestion",
            "{% set k = "
            + repr("".join(chr(0x4E00 + i) for i in range(128)))
            + ' * 600 %}{% set d = {k + "a": 1} %}{{ d["b" + k[::-1]] }}',
            "has no attribute",
        ),
        ("a block", _J_TEXT + "{% set c %}" + "{{ a }}" * 50 + "{% endset %}", _VALUE),
        (
            "a macro",
            _J_TEXT + "{% macro m() %}" + "{{ a }}" * 50 + "{% endmacro %}{{ m() }}",
            _VALUE,
        ),
        ("signs of percent", '{{ ("%%" * 4000000)|format }}', "steps"),
        ("sort", _J_LIST + "{{ ns.l|sort|length }}", _VALUE),
        ("sort with case", _J_LIST + "{{ ns.l|sort(case_sensitive=true)|length }}", _VALUE),
        ("unique", _J_LIST + "{{ ns.l|unique|length }}", _VALUE),
        ("map of upper", _J_LIST + "{{ ns.l|map('upper')|list|length }}", _BYTES),
        ("trim", '{{ ("a" * 99999)|trim("b" * 99999) }}', _PRODUCT),
        ("strip", '{{ ("a" * 99999).strip("b" * 99999) }}', _PRODUCT),
        ("lstrip", '{{ ("a" * 99999).lstrip("b" * 99999) }}', _PRODUCT),
        ("long keys", '{% set d = {"x" * 8000000: 1} %}{{ [d, d]|tojson }}', _VALUE),
        ("three letters of one", '{{ ("\u0390" * 8000000)|upper }}', _VALUE),
        ("kept literals", _J_KEEP.replace("USE", f"[{'[],' * 3000}1]") + "{% endfor %}", "steps"),
        (
            "kept texts of wide letters",
            _J_KEEP.replace("USE", '"\U0001f600" * 2000000') + "{% endfor %}",
            _BYTES,
        ),
    )
]
DEAREST = [
    Attack("quote", f"{_MIXED}{{{{ len (quote $a) }}}}", "2600002"),
    Attack("swapcase", f"{_MIXED}{{{{ len (swapcase $a) }}}}", "2600000"),
    Attack("snakecase", '{{ len (snakecase (repeat 26000 "aB é")) }}', "156000"),
    Attack("an RE2 NFA", f'{{{{ regexMatch {_NFA} (repeat 1000 "abbaabab") }}}}', "false"),
    Attack("maps as YAML", "{{ len (toYaml (chunk 1 (until 20000))) }}", "188889"),
    Attack(
        "keys with a common head as YAML",
        '{{ $d := repeat 1000 "x" }}{{ $m := dict }}{{ range $i := until 999 }}'
        "{{ $_ := set $m (print $d $i) 1 }}{{ end }}{{ len (toYaml $m) }}",
        "1008879",
    ),
    Attack(
        "keys of digits as YAML",
        '{{ $d := repeat 300000 "1" }}{{ len (toYaml (dict (print "1" $d) 1 (print "2" $d) 2)) }}',
        "600019",
    ),
    Attack("a number of groups", '{{ int (print "1" (repeat 3000000 "_1")) }}', "0"),
    Attack(
        "a number of base 60", '{{ len (toYaml (print "1" (repeat 2000000 ":1"))) }}', "4000003"
    ),
]
"""The dearest calls within the limits, and what they give."""


def limits(seconds: float) -> Limits:
    """Return the limits that a stage has by default, but for the time."""
    return Limits(seconds=seconds, output=Settings().template_output)


@pytest.mark.rest
@pytest.mark.clocked
@pytest.mark.parametrize(
    "attack", [pytest.param(a, id=f"{a.dialect}: {a.name}") for a in GO + JINJA]
)
def test_each_ends_in_its_limit(attack: Attack) -> None:
    """A hostile call ends in a sentence of bounded length, soon.

    It takes seconds: some attacks use up a limit of hundreds of thousands of steps first.
    """
    start = time.process_time()
    with pytest.raises(TemplateError) as caught:
        render(attack.template, {}, name="t", limits=limits(60), dialect=attack.dialect)

    assert time.process_time() - start < CPU_SECONDS
    assert attack.says in str(caught.value)
    assert len(str(caught.value)) < 5_000 + len(attack.template)


@pytest.mark.rest
@pytest.mark.clocked
@pytest.mark.parametrize("attack", [pytest.param(a, id=a.name) for a in DEAREST])
def test_the_dearest_that_is_allowed_ends_soon(attack: Attack) -> None:
    """Nothing within the limits of one call takes a processor for long."""
    start = time.process_time()
    found = render(attack.template, {}, name="t", limits=limits(60))

    assert time.process_time() - start < CPU_SECONDS
    assert found == attack.says


@pytest.mark.rest
def test_all_attacks_stay_small() -> None:
    """One process that renders them all grows by little; it takes 10 s, for they are many."""
    script = textwrap.dedent(
        """
        import resource
        import cryptography, re2, yaml
        from bellhop import jinjabox as jinja
        from bellhop.rendering.templates import render
        from bellhop.errors import TemplateError
        from tests.unit.rendering.test_hostile_templates import DEAREST, GO, JINJA, limits

        def peak():
            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10

        before = peak()
        for attack in DEAREST + GO + JINJA:
            try:
                render(attack.template, {}, name="t", limits=limits(60), dialect=attack.dialect)
            except TemplateError:
                pass
        print(peak() - before)
        """
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": f"{ROOT}:{ROOT / 'shared'}"},
        timeout=110,
    )

    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < PEAK_MEGABYTES


def test_what_a_list_of_thousands_takes_is_allowed() -> None:
    """Lists and maps that grow item by item may have some thousands of items."""
    template = (
        '{{ $l := list }}{{ $d := dict }}{{ range $i := until 3500 }}{{ $l = append $l "name" }}'
        "{{ $_ := set $d (print $i) $i }}{{ end }}{{ len $l }} {{ len $d }}"
    )

    assert render(template, {}, name="t", limits=limits(60)) == "3500 3500"
