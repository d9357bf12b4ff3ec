"""Whatever text and data come, a template renders or fails in its own words."""

from __future__ import annotations

import json
import os
import threading
from copy import deepcopy
from typing import Any

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from bellhop.gotemplate import GoTemplateError, Limits, ParseError, Template, event_functions
from bellhop.gotemplate.lexer import EOF, ERROR, LEFT_DELIM, RIGHT_DELIM, tokenize
from bellhop.gotemplate.limits import Budget
from bellhop.gotemplate.literals import quote, unquote
from bellhop.gotemplate.printf import sprintf

# `make fuzz` asks for this many times the examples, other ones each time.
FUZZ = int(os.environ.get("BELLHOP_FUZZ") or 0)
QUICK = settings(
    max_examples=150 * max(FUZZ, 1),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=not FUZZ,
    print_blob=bool(FUZZ),
)
SMALL = Limits(output=100_000, steps=20_000, depth=20, seconds=5)
FUNCTIONS = event_functions()

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4)
    ),
    max_leaves=8,
)
WORDS = (
    "{{ }} {{- -}} ( ) | := = , . .a .b $ $x range if else end with define template block break "
    "continue nil true 1 -3 1.5 'c' \"t\" `r` /* */ printf print index len eq upper dict list "
    "default toYaml fromYaml regexFind date semver trunc repeat until \n"
)
PIECES = st.sampled_from(WORDS.split(" "))
NAMES = st.sampled_from(sorted(FUNCTIONS))


def attempt(text: str, data: Any) -> None:
    """Render; only errors of templates may come out."""
    try:
        Template(text, funcs=FUNCTIONS, limits=SMALL).render(data)
    except GoTemplateError:
        return


@QUICK
@given(st.text())
def test_any_text_is_parsed_or_refused(text: str) -> None:
    """A text is a template or a ParseError, never another exception."""
    attempt("{{" + text, None)


@QUICK
@given(st.lists(PIECES, max_size=30), VALUES)
def test_any_pile_of_words_is_run_or_refused(words: list[str], data: Any) -> None:
    """Words of the language in any order and any data raise nothing but template errors."""
    attempt(" ".join(words), data)


@QUICK
@given(NAMES, st.lists(VALUES, max_size=4))
def test_any_function_takes_any_arguments_or_complains(name: str, values: list[Any]) -> None:
    """Each function, given anything, answers or raises a template error."""
    if name in ("genPrivateKey", "genCA", "genSelfSignedCert", "derivePassword"):
        return
    arguments = " ".join(f"(index .v {number})" for number in range(len(values)))
    attempt(f"{{{{ {name} {arguments} }}}}", {"v": values})


@QUICK
@given(st.text("%+-# 0123456789.*[]vTdsqxXobOcUeEfFgGptwz!é", max_size=20), st.lists(SCALARS))
def test_any_format_is_written(template: str, values: list[Any]) -> None:
    """No format raises anything but a limit."""
    try:
        assert isinstance(sprintf(template, values, Budget(SMALL)), str)
    except GoTemplateError:
        return


@QUICK
@given(st.text())
def test_text_outside_actions_is_kept(text: str) -> None:
    """What has no delimiters renders as it is."""
    plain = text.replace("{{", "")
    while "{{" in plain:
        plain = plain.replace("{{", "")
    encodable = plain.encode("utf-8", "surrogateescape").decode("utf-8", "replace")

    assert Template(plain).render(None) == encodable


@QUICK
@given(st.text())
def test_quoting_is_undone_by_unquoting(text: str) -> None:
    """A quoted text reads back as itself, as a literal and through a template."""
    assert unquote(quote(text)) == text
    assert Template(f"{{{{ {quote(text)} }}}}").render(None) == text


@QUICK
@given(st.lists(PIECES, max_size=30))
def test_tokens_cover_the_text_in_order(words: list[str]) -> None:
    """Tokens stand where they say, one after the other, and end with the end or an error."""
    text = " ".join(words)
    tokens = tokenize(text)

    assert tokens[-1].kind in (EOF, ERROR)
    for token in tokens[:-1]:
        assert text.startswith(token.text, token.position)
    if tokens[-1].kind == EOF:
        positions = [token.position for token in tokens]
        assert positions == sorted(positions)
        kinds = [token.kind for token in tokens]
        assert kinds.count(LEFT_DELIM) == kinds.count(RIGHT_DELIM)


@QUICK
@given(VALUES)
def test_json_and_yaml_read_back_what_they_wrote(value: Any) -> None:
    """A map survives toJson | fromJson and toYaml | fromYaml, but for a whole float's type."""
    # toYaml takes the last newline away, and so may not end with a text of the value's.
    both = "{{ .v | toJson }}\n{{ dict `v` .v `w` 1 | toYaml | fromYaml | toJson }}"
    data = json.loads(json.dumps({"v": value}))
    # Go too writes the key << without quotes, and reads it back as a merge.
    assume('"<<":' not in json.dumps(data))
    written, read = Template(both, funcs=FUNCTIONS).render(data).split("\n")

    assert json.loads(read) == {"v": json.loads(written), "w": 1}


@QUICK
@given(VALUES)
def test_rendering_leaves_the_data_unchanged(value: Any) -> None:
    """Not even the functions that write into their arguments change what was given."""
    data = {"m": {"a": value}, "v": value}
    before = deepcopy(data)
    text = (
        '{{ set .m "b" 1 }}{{ unset .m "a" }}{{ merge .m (dict "c" 2) }}'
        '{{ mergeOverwrite .m (dict "a" 3) }}{{ setField .m "x.y" 1 }}{{ removeField .m "a" }}'
    )

    attempt(text, data)

    assert data == before


def test_one_template_renders_in_many_threads() -> None:
    """Renders of one template at the same time do not meet.

    It takes seconds: four threads render thirty times each.
    """
    template = Template(
        '{{ define "t" }}{{ $x := . }}{{ range 20 }}{{ $x = print $x "." }}{{ end }}'
        "{{ $x }}{{ end }}"
        '{{ range .items }}{{ template "t" . }};{{ end }}',
        funcs=FUNCTIONS,
    )
    wrong: list[str] = []

    def render(name: str) -> None:
        expected = "".join(f"{name}{n}{'.' * 20};" for n in range(20))
        for _ in range(30):
            got = template.render({"items": [f"{name}{n}" for n in range(20)]})
            if got != expected:
                wrong.append(got)

    threads = [threading.Thread(target=render, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert wrong == []


def test_a_parse_error_shows_the_line() -> None:
    """An error carries the name, line, column and the line itself."""
    try:
        Template("a: 1\nb: {{ .x | nope }}\nc: 2", name="ingress.yaml")
    except ParseError as error:
        shown = (str(error), error.name, error.line, error.column, error.excerpt)

    assert shown == (
        'template: ingress.yaml:2: function "nope" not defined',
        "ingress.yaml",
        2,
        11,
        "b: {{ .x | nope }}",
    )
