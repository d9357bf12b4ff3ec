"""Templates made by a grammar: most of them run, many fail, and few are ever alike.

Random words hardly ever get past the parser. These know the shape of the data they are rendered
with and the variables in scope, yet mix in what does not fit, so that failures are tried too.
"""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

NAMES = ("a", "b", "items", "name", "n", "é")
TEXTS = ("", "x", "web-1", "a,b", "Hello World", "10", "é€", "a: 1", "<&>", "2024-01-02", "1.2.3")
VERBS = tuple(
    "%" + verb
    for verb in (
        "v",
        "d",
        "s",
        "q",
        "x",
        "X",
        "t",
        "T",
        "f",
        "g",
        "e",
        "c",
        "U",
        "5d",
        "-5d|",
        "05d",
        ".2f",
        "5s",
        ".1s",
        "+d",
        "#v",
    )
)
INTEGERS = st.sampled_from((0, 1, 2, -1, 7, 443, 1000000, 2**31, 2**63 - 1, -(2**63)))
FLOATS = st.sampled_from((0.5, 1.5, -2.25, 1e21, 1e-7, 100000.5))
SCALARS = st.sampled_from((None, True, False)) | INTEGERS | FLOATS | st.sampled_from(TEXTS)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=3)
    ),
    max_leaves=6,
)
# What templates are given: every name is there, of any type, and some lead further.
DATA = st.fixed_dictionaries(
    {
        "a": st.fixed_dictionaries({"b": VALUES, "n": INTEGERS}),
        "b": VALUES,
        "items": st.lists(
            st.fixed_dictionaries({"name": st.sampled_from(TEXTS), "n": INTEGERS}), max_size=3
        ),
        "name": st.sampled_from(TEXTS),
        "n": INTEGERS,
        "é": VALUES,
    }
)

# By what they return, functions and what their arguments should be: s text, n whole, f float,
# b bool, l list, d dict, v anything. Two are never anything but what is asked for: c a small count,
# lest Go takes all memory, and D a map of its own, lest data comes to hold itself.
_TABLE = {
    "s": """\
print vv|println v|html v|js s|urlquery s|upper s|lower s|title s|untitle s|trim s|trunc ns|join sl
substr nns|repeat cs|replace sss|quote v|squote v|cat vv|indent cs|nindent cs|trimPrefix ss
trimSuffix ss|trimAll ss|snakecase s|camelcase s|kebabcase s|swapcase s|abbrev ns
wrap cs|plural ssn|toString v|typeOf v|kindOf v|b64enc s|b64dec s|b32enc s|sha256sum s
sha1sum s|adler32sum s|toJson v|toYaml v|toPrettyJson d|toRawJson v|toToml d|regexFind ss
regexReplaceAll sss|regexQuoteMeta s|base s|dir s|ext s|clean s|slice snn|default ss|seq cc""",
    "n": """\
len l|len s|len d|add nn|add1 n|sub nn|mul nn|div nn|mod nn|max nn|min nn|int v|int64 v|atoi s
toDecimal v|index sn|default nn|coalesce nn|ternary nnb|or nn|and nn""",
    "f": "floor f|ceil f|round fc|float64 v|addf ff|mulf ff|maxf ff|subf ff|divf ff",
    "b": """\
not v|eq nn|eq ss|eq ff|eq vv|eq nnn|ne vv|lt nn|le nn|gt ss|ge nn|lt ff|contains ss|hasPrefix ss
hasSuffix ss|empty v|all vv|any vv|kindIs sv|typeIs sv|has vl|hasKey ds|regexMatch ss|isAbs s
semverCompare ss|deepEqual vv|and bb|or bb|and vv""",
    "l": """\
list vv|tuple vv|rest l|initial l|append lv|prepend lv|concat ll|reverse l|uniq l|compact l
without lv|slice ln|chunk cl|until c|untilStep ccc|splitList ss|sortAlpha l|toStrings l
pluck sd|regexSplit ssc|regexFindAll ssc|fromYamlArray s|or ll""",
    "d": """\
dict sv|dict svsv|pick ds|omit ds|set dss|set Dsv|unset ds|merge Dd|mergeOverwrite Dd|fromJson s
fromYaml s|split ss|urlParse s|and vd""",
    "v": """\
index ln|index ds|index dss|get ds|dig svd|first l|last l|default vv|coalesce vv|ternary vvb
or vv|and vvv|or vvv|semver s|fail s""",
}
FUNCTIONS = {
    kind: [tuple(line.split(" ")) for line in text.replace("\n", "|").split("|")]
    for kind, text in _TABLE.items()
}
STRICT = {
    "c": st.sampled_from(("0", "1", "2", "3", "-1", "7", "'a'", "0x1F")),
    "D": st.sampled_from(('(dict "a" 1 "b" "x")', "(dict)", '(dict "name" nil "b" (list 1))')),
}
LITERALS = {
    "s": st.sampled_from([json.dumps(text, ensure_ascii=False) for text in TEXTS] + ["`a\\b`"]),
    "n": st.sampled_from(("0", "1", "2", "3", "-1", "10", "0x1F", "1_000", "'a'", "1e3")),
    "f": st.sampled_from(("0.5", "1.0", "-2.25", "1e2", "0x1p-2")),
    "b": st.sampled_from(("true", "false")),
    "l": st.sampled_from(
        (
            ".items",
            '(list 1 "x" nil)',
            '(splitList "," "b,a,b")',
            "(until 3)",
            "(keys $ | sortAlpha)",
        )
    ),
    "d": st.sampled_from((".a", "$", '(dict "a" 1 "b" "x")', "(index $.items 0)", "(dict)")),
}
ODD = (".missing", ".items.name", "nil", ".a.b.name", "$.none.b", "3.x", "$none", "nofunction")
FIELDS = {
    "s": (".name", "$.name", ".a.b"),
    "n": (".n", "$.n", ".a.n", "$.a.n"),
    "f": ("(float64 .n)", ".b"),
    "b": (".b", "(not .b)", "(gt .n 1)"),
    "l": (".items", "$.items", "$.items", ".b"),
    "d": (".a", "$.a", ".", "$", ".b"),
    "v": (".", "$", ".a", ".n", ".items", ".b", ".é", "$.b", ".a.b", "$.a.b", ".name", "$.name"),
}
KINDS = st.sampled_from("vvvvssnnlldfb")
VARIABLES = ("$x", "$y", "$z")
GAPS = st.sampled_from((" ", " ", " ", "", "  ", "\n", "\n  "))
PROSE = st.sampled_from(("", "", "text", "\n", "  \n", " a: ", "é", "- x\n", "\t"))
TRIMS = st.sampled_from(("{{ %s }}",) * 6 + ("{{- %s }}", "{{ %s -}}", "{{- %s -}}", "{{%s}}"))


class Writer:
    """Writes one template, drawing each decision."""

    def __init__(self, draw: Any) -> None:
        self.draw = draw
        self.scope: list[tuple[str, str]] = []
        self.defined: list[str] = []

    def chance(self, of: int) -> bool:
        return self.draw(st.integers(1, of)) == of

    def pick(self, *choices: str) -> str:
        return self.draw(st.sampled_from(choices))

    def action(self, text: str) -> str:
        return self.draw(TRIMS) % text

    def operand(self, kind: str, depth: int) -> str:
        """Write one argument, nearly always of the kind asked for."""
        if kind in STRICT:
            return self.draw(STRICT[kind])
        if self.chance(30):
            return self.pick(*ODD) if self.chance(2) else self.operand(self.draw(KINDS), depth)
        if depth > 0 and self.chance(4):
            inner = f"({self.pipeline(kind, depth - 1)})"
            return inner + (self.pick(".a", ".name", ".b.n") if self.chance(15) else "")
        known = [name for name, held in self.scope if kind in (held, "v")]
        if known and self.chance(2):
            end = self.pick(".name", ".b", ".a.n") if self.chance(10) else ""
            return self.pick(*known) + end
        if kind in LITERALS and self.chance(2):
            return self.draw(LITERALS[kind])
        return self.pick(*FIELDS[kind])

    def call(self, kind: str, depth: int) -> str:
        """Write a function with its arguments, the last perhaps piped in."""
        if kind in "sv" and self.chance(5):
            verbs = [self.pick(*VERBS) for _ in range(self.draw(st.integers(1, 3)))]
            name, kinds = "printf", "v" * len(verbs)
            first = [name, json.dumps(self.pick("", " ").join(verbs))]
        else:
            name, kinds = self.draw(st.sampled_from(FUNCTIONS[kind]))
            first = [name]
        words = first + [self.operand(each, depth) for each in kinds[:-1]]
        if depth > 0 and kinds[-1] not in STRICT and self.chance(3):
            gap = self.draw(GAPS)
            return f"{self.pipeline(kinds[-1], depth - 1)}{gap}|{gap}{' '.join(words)}"
        if self.chance(60):
            return " ".join(words)
        return " ".join([*words, self.operand(kinds[-1], depth)])

    def pipeline(self, kind: str, depth: int) -> str:
        """Write a value, or functions over values."""
        if depth <= 0 or self.chance(3):
            return self.operand(kind, depth)
        return self.call(kind, depth)

    def body(self, depth: int, *, loop: bool) -> str:
        """Write what stands between a head and its end; its variables end with it."""
        known = len(self.scope)
        pieces = []
        for _ in range(self.draw(st.integers(1, 3))):
            pieces.append(self.draw(PROSE))
            pieces.append(self.statement(depth, loop=loop))
        del self.scope[known:]
        return "".join(pieces) + self.draw(PROSE)

    def statement(self, depth: int, *, loop: bool) -> str:
        kinds = ["show"] * 6 + ["assign"] * 3 + ["comment"]
        if depth > 0:
            kinds += ["if", "if", "with", "range", "range", "template", "define", "block"]
        if loop:
            kinds += ["leave"] * 3
        return getattr(self, f"write_{self.pick(*kinds)}")(depth, loop=loop)

    def write_show(self, *_: int, **__: bool) -> str:
        return self.action(self.pipeline(self.draw(KINDS), 2))

    def write_comment(self, _: int, **__: bool) -> str:
        return self.pick("{{/* note */}}", "{{- /* a\nb */ -}}", "{{/**/ -}}")

    def write_assign(self, _: int, **__: bool) -> str:
        if self.scope and self.chance(2):
            name, kind = self.draw(st.sampled_from(self.scope))
            return self.action(f"{name} = {self.pipeline(kind, 1)}")
        name, kind = self.pick(*VARIABLES), self.draw(KINDS)
        text = self.action(f"{name} := {self.pipeline(kind, 1)}")
        self.scope.append((name, kind))
        return text

    def write_leave(self, *_: int, **__: bool) -> str:
        word = self.pick("break", "continue")
        if self.chance(4):
            return self.action(word)
        return self.action(f"if {self.pipeline('b', 1)}") + self.action(word) + "{{ end }}"

    def branches(self, depth: int, word: str, *, loop: bool, inner_loop: bool) -> str:
        known = len(self.scope)
        head = ""
        if self.chance(3):
            names = [self.pick(*VARIABLES)]
            if word == "range" and self.chance(2):
                names.append(self.pick(*VARIABLES))
            head = f"{', '.join(names)} := "
        value = self.pipeline("l" if word == "range" else "v", 1)
        if head:
            self.scope += [(name, "v") for name in names]
        text = self.action(f"{word} {head}{value}") + self.body(depth - 1, loop=inner_loop)
        if word != "range" and self.chance(3):
            text += self.action(f"else {word} {self.pipeline('v', 1)}")
            text += self.body(depth - 1, loop=loop)
        if self.chance(2):
            text += self.action("else") + self.body(depth - 1, loop=loop)
        del self.scope[known:]
        return text + self.action("end")

    def write_if(self, depth: int, *, loop: bool) -> str:
        return self.branches(depth, "if", loop=loop, inner_loop=loop)

    def write_with(self, depth: int, *, loop: bool) -> str:
        return self.branches(depth, "with", loop=loop, inner_loop=loop)

    def write_range(self, depth: int, *, loop: bool) -> str:
        return self.branches(depth, "range", loop=loop, inner_loop=True)

    def write_template(self, *_: int, **__: bool) -> str:
        name = self.pick(*self.defined) if self.defined else "none"
        if name == "none" and not self.chance(9):
            return self.action(".name")
        return self.action(f'template "{name}" {self.operand("v", 1)}')

    def standalone(self, depth: int) -> str:
        """Write the body of a template, which sees no variables but its own."""
        outer, self.scope = self.scope, []
        text = self.body(depth, loop=False)
        self.scope = outer
        return text

    def write_define(self, depth: int, **_: bool) -> str:
        # Go has definitions only at the top; below, this one is an error and rare.
        if not self.chance(30):
            return self.write_show()
        return self.definition(depth)

    def definition(self, depth: int) -> str:
        name = self.pick("t", "u")
        text = self.action(f'define "{name}"') + self.standalone(depth - 1) + self.action("end")
        self.defined.append(name)
        return text

    def write_block(self, depth: int, **_: bool) -> str:
        value = self.operand("v", 1)
        text = self.action(f'block "k" {value}') + self.standalone(depth - 1) + self.action("end")
        self.defined.append("k")
        return text

    def whole(self) -> str:
        first = "".join(self.definition(2) for _ in range(self.draw(st.sampled_from((0, 0, 0, 1)))))
        return first + self.body(2, loop=False)


@st.composite
def templates(draw: Any) -> str:
    """Make one template."""
    return Writer(draw).whole()
