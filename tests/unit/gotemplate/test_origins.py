"""Where the lines of an output come from."""

from __future__ import annotations

import pytest

from bellhop.gotemplate import Template, event_functions


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("a\nb\n", [1, 2, 3], id="plain text"),
        pytest.param(
            "{{ range .items }}\n- {{ . }}\n{{- end }}\nend",
            [1, 2, 2, 4],
            id="a loop repeats a line",
        ),
        pytest.param("x:\n{{ .many }}\ny", [1, 2, 2, 3], id="a value of two lines has one origin"),
        pytest.param(
            '{{ define "t" }}one\ntwo{{ end }}\n{{- template "t" }}', [1, 2], id="inside a define"
        ),
        pytest.param("{{ if .no }}\na\n{{ else }}\nb{{ end }}", [1, 4], id="the arm that is taken"),
    ],
)
def test_names_the_line_of_the_template(text: str, expected: list[int]) -> None:
    """Each line written has the line of the first thing that stands in it."""
    template = Template(text, funcs=event_functions())
    data = {"items": ["a", "b"], "many": "1\n2", "no": False}

    assert template.origins(data) == expected
    assert len(expected) == template.render(data).count("\n") + 1
