"""Templates written to hurt, and the limit each must end in."""

from __future__ import annotations

from typing import NamedTuple

from bellhop.gotemplate import (
    DepthLimitError,
    ExecError,
    GoTemplateError,
    LimitError,
    OutputLimitError,
    ParseError,
    StepLimitError,
)


class Attack(NamedTuple):
    """A name, a template and the error it must end in."""

    name: str
    template: str
    error: type[GoTemplateError]


def _doubling(start: str, step: str, use: str) -> str:
    return f"{{{{ $x := {start} }}}}{{{{ range until 64 }}}}{{{{ $x = {step} }}}}{{{{ end }}}}{use}"


_NESTED = _doubling("list 1", "list $x $x", "{{ USE }}")

ATTACKS = [
    Attack("repeat", '{{ repeat 1000000000 "x" }}', OutputLimitError),
    Attack("until", "{{ until 1000000000 }}", StepLimitError),
    Attack("untilStep", "{{ untilStep 0 9000000000000000000 1 }}", StepLimitError),
    Attack("seq", "{{ seq 1000000000 }}", StepLimitError),
    Attack("seq of nine quintillions", "{{ seq -9223372036854775807 1 }}", StepLimitError),
    Attack("randAlphaNum", "{{ randAlphaNum 1000000000 }}", OutputLimitError),
    Attack("randBytes", "{{ randBytes 1000000000 }}", OutputLimitError),
    Attack("indent", '{{ indent 1000000000 "x" }}', OutputLimitError),
    Attack("nindent", '{{ nindent 100000 (repeat 1000 "x\\n") }}', OutputLimitError),
    Attack("replace", '{{ replace "" (repeat 1000000 "y") "xxxx" }}', OutputLimitError),
    Attack(
        "regexReplaceAll",
        '{{ regexReplaceAll "x" (repeat 100000 "x") (repeat 1000 "y") }}',
        OutputLimitError,
    ),
    Attack("regexFindAll", '{{ regexFindAll "" (repeat 1000000 "x") -1 }}', StepLimitError),
    Attack("regexSplit", '{{ regexSplit "x" (repeat 1000000 "x") -1 }}', StepLimitError),
    Attack("large repetition", '{{ mustRegexMatch "((a{1000}){1000}){1000}" "a" }}', ExecError),
    Attack("printf width", '{{ printf "%1000000d%1000000d%1000000d" 1 2 3 }}', OutputLimitError),
    Attack(
        "printf precision in a loop",
        '{{ range until 1000 }}{{ printf "%.900000f" 1.5 }}{{ end }}',
        OutputLimitError,
    ),
    Attack("join", '{{ join (repeat 100000 "x") (until 100000) }}', OutputLimitError),
    Attack("wrapWith", '{{ wrapWith 1 (repeat 1000 "y") (repeat 10000 "x") }}', OutputLimitError),
    Attack("wrap", '{{ wrap 1 (repeat 1900000 "x ") }}', LimitError),
    Attack("fromYaml of a long list", '{{ fromYaml (repeat 120000 "- a\\n") }}', StepLimitError),
    Attack("doubling text", _doubling('"x"', "cat $x $x", ""), OutputLimitError),
    Attack("doubling list", _doubling("list 1", "concat $x $x", ""), LimitError),
    Attack("keeping texts", _doubling("list", 'append $x (repeat 1900000 "x")', ""), LimitError),
    *[
        Attack(f"laughing list, {use}", _NESTED.replace("USE", use), LimitError)
        for use in (
            "$x",
            "print $x",
            'printf "%v" $x',
            "html $x",
            "toJson $x",
            "toYaml $x",
            'toToml (dict "a" $x)',
            "mustToPrettyJson $x",
            "deepCopy $x",
            "deepEqual $x (deepCopy $x)",
            "quote $x",
            'join "," $x',
            "uniq (list $x $x)",
            "has $x (list (list 1) $x)",
            "sortAlpha $x",
            'merge (dict) (dict "a" $x)',
            'setField (dict "a" 1) "b" $x',
            "dict $x 1",
            'genSelfSignedCert "x" $x nil 1',
        )
    ],
    Attack("laughing comparison", _NESTED.replace("USE", "eq $x $x"), LimitError),
    Attack("a map in itself", '{{ $d := dict }}{{ $_ := set $d "a" $d }}{{ $d }}', DepthLimitError),
    Attack(
        "a map in itself as YAML",
        '{{ $d := dict }}{{ $_ := set $d "a" $d }}{{ toYaml $d }}',
        DepthLimitError,
    ),
    Attack(
        "YAML that laughs",
        "{{ fromYaml `a: &a [x,x,x,x,x,x,x,x,x,x]\n"
        + "".join(
            f"{new}: &{new} [{','.join([f'*{old}'] * 10)}]\n"
            for old, new in zip("abcdefgh", "bcdefghi", strict=True)
        )
        + "` }}",
        StepLimitError,
    ),
    Attack("deep YAML", '{{ fromYaml (repeat 100000 "[") }}', DepthLimitError),
    Attack("deep YAML blocks", '{{ fromYaml (repeat 100000 "- ") }}', DepthLimitError),
    Attack("deep JSON", '{{ mustFromJson (repeat 100000 "[") }}', DepthLimitError),
    Attack("deep TOML", '{{ fromToml (printf "a = %s" (repeat 10000 "[")) }}', DepthLimitError),
    Attack(
        "recursion",
        '{{ define "a" }}{{ template "a" . }}{{ end }}{{ template "a" . }}',
        DepthLimitError,
    ),
    Attack(
        "laughing templates",
        "".join(
            f'{{{{ define "t{n}" }}}}{f"{{{{ template `t{n + 1}` }}}}" * 10}{{{{ end }}}}'
            for n in range(20)
        )
        + '{{ define "t20" }}ha{{ end }}{{ template "t0" }}',
        StepLimitError,
    ),
    Attack(
        "nested ranges",
        "{{ range until 1000 }}{{ range until 1000 }}{{ end }}{{ end }}",
        LimitError,
    ),
    Attack("a long range", "{{ range 9000000000000000000 }}{{ end }}", StepLimitError),
    Attack(
        "written in a loop",
        '{{ range until 9999 }}{{ "0123456789" | repeat 99 }}{{ end }}',
        LimitError,
    ),
    Attack("deep parentheses", "{{ " + "(" * 100_000 + ")" * 100_000 + " }}", DepthLimitError),
    Attack("deep ifs", "{{ if 1 }}" * 50_000 + "{{ end }}" * 50_000, DepthLimitError),
    Attack("deep ranges", "{{ range 1 }}" * 50_000, DepthLimitError),
    Attack("deep blocks", '{{ block "x" 1 }}' * 50_000, DepthLimitError),
    Attack("a long pipeline", "{{ 1" + " | print" * 20_000 + " }}", DepthLimitError),
    Attack("a long chain of fields", "{{ ." + ".".join("a" * 50_000) + " }}", ExecError),
    Attack("many actions", "{{ 1 }}" * 200_000, StepLimitError),
    Attack("a long number", "{{ " + "9" * 100_000 + " }}", ParseError),
    Attack("a long octal number", "{{ 0o" + "7" * 100_000 + " }}", ParseError),
    Attack("a number in a text", '{{ int (repeat 100000 "9") | fail }}', ExecError),
    Attack("a version", '{{ semver (repeat 100000 "9") }}', ExecError),
    Attack("an unclosed action", "{{ " * 100_000, ParseError),
    Attack("unclosed comments", "{{/*" * 100_000, ParseError),
    Attack("unclosed quotes", '{{ "' * 100_000, ParseError),
    Attack("attributes", "{{ .__class__ }}", ExecError),
    Attack("attributes of texts", '{{ ("x").__class__ }}', ExecError),
]
"""An else-if chain of any length is no attack: it is read and run in a loop."""
