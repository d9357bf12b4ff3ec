"""The package needs no other, and starts at once."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from bellhop.gotemplate import (
    ExecError,
    Function,
    Struct,
    Template,
    compile_template,
    deploy_functions,
)

HEAVY = ("pydantic", "jinja2", "yaml", "cryptography", "re2", "dataclasses", "inspect", "asyncio")


def test_importing_it_loads_nothing_dear() -> None:
    """Neither third parties' libraries nor the rest of the system come with the import."""
    script = (
        "import sys; import bellhop; before = set(sys.modules); import bellhop.gotemplate;"
        "print(*sorted(set(sys.modules) - before))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    loaded = done.stdout.split()

    assert [name for name in loaded if name.partition(".")[0] in HEAVY] == []
    assert [
        name
        for name in loaded
        if name.startswith("bellhop.") and not name.startswith("bellhop.gotemplate")
    ] == []
    assert not any(name.startswith("bellhop.gotemplate.funcs.") for name in loaded)


def shout(text: str, *more: str) -> str:
    """Be a plain callable that templates are given."""
    return " ".join((text, *more)).upper() + "!"


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        pytest.param('{{ shout "a" }}', "A!", id="plain callable"),
        pytest.param('{{ "c" | shout "a" "b" }}', "A B C!", id="variadic"),
        pytest.param('{{ twice "ab" }}', "abab", id="declared function"),
        pytest.param("{{ .r.Name }} {{ .r }}", "web {Service web}", id="struct"),
    ],
)
def test_functions_and_structs_of_ones_own(template: str, expected: str) -> None:
    """Plain callables, declared functions and structs take part in a template."""
    twice = Function("twice", lambda text: text * 2, ("string",))
    data = {"r": Struct({"Kind": "Service", "Name": "web"}, "v1.ObjectReference")}

    assert Template(template, funcs={"shout": shout, "twice": twice}).render(data) == expected


@pytest.mark.parametrize(
    ("template", "message"),
    [
        pytest.param("{{ shout }}", "wrong number of args for shout: want at least", id="too few"),
        pytest.param("{{ twice 3 }}", "expected string; found 3", id="wrong literal"),
        pytest.param("{{ shout 3 }}", "error calling shout: sequence", id="failed"),
        pytest.param("{{ .r.Zip }}", "can't evaluate field Zip in type v1.Ref", id="no such field"),
    ],
)
def test_mistakes_with_ones_own_are_template_errors(template: str, message: str) -> None:
    """What a caller's function raises is worded as Go words a function's failure."""
    twice = Function("twice", lambda text: text * 2, ("string",))
    data = Struct({"r": Struct({"Kind": "Service"}, "v1.Ref")}, "root")

    with pytest.raises(ExecError, match=re.escape(message)):
        Template(template, funcs={"shout": shout, "twice": twice}).render(data)


def test_a_text_seen_before_is_not_compiled_again() -> None:
    """Templates of one text and one set of functions share a program; resources may differ."""
    text = '{{ (getResource "A").data }}'
    first, second = (
        compile_template(text, funcs=deploy_functions({"A": {"data": value}})) for value in "xy"
    )

    assert (first.render(None), second.render(None)) == ("x", "y")
    assert first._program is second._program
