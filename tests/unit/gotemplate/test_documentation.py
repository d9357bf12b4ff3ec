"""The page of template functions is true: every example runs, and every function has one."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from bellhop.gotemplate import (
    FunctionSet,
    GoTemplateError,
    Template,
    deploy_functions,
    event_functions,
    sprig_functions,
)
from bellhop.gotemplate.funcs.builtins import FUNCTIONS as BUILTINS

PAGE = (Path(__file__).parents[3] / "docs/reference/template-functions.md").read_text()
DATA, CONFIG = (json.loads(text) for text in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL))
SECTION = re.compile(r"^## (.+?)\n(.*?)(?=^## |\Z)", re.DOTALL | re.MULTILINE)
ENTRY = re.compile(r"^### (.+?)\n\n(.+?)\n(.+)\n", re.MULTILINE)
EXAMPLE = re.compile(r"(`+) ?(.+?) ?\1 (?:gives|fails:) (?:(`+) ?(.+?) ?\3|nothing)\.$")


class Example(NamedTuple):
    """A heading's names, a template and what it gives, or how it fails."""

    section: str
    names: list[str]
    template: str
    result: str


def examples() -> list[Example]:
    """Read the page."""
    found = []
    for section, text in SECTION.findall(PAGE):
        for names, _, line in ENTRY.findall(text):
            match = EXAMPLE.match(line)
            assert match is not None, f"no example under {names}: {line}"
            result = (match[4] or "").replace("⏎", "\n")
            found.append(Example(section, names.split(", "), match[2].replace("⏎", "\n"), result))
    return found


def functions(example: Example) -> FunctionSet | None:
    """Return the functions that an example's section is about."""
    if example.section == "Go's own":
        return None
    if example.section.endswith("deploy time"):
        return deploy_functions({"Config": CONFIG})
    return sprig_functions() if example.section == "JSON" else event_functions()


def outcome(example: Example) -> str:
    """Render an example; a failure gives its message."""
    try:
        return Template(example.template, funcs=functions(example)).render(DATA)
    except GoTemplateError as error:
        return re.sub(r".*: error calling \w+: ", "", str(error))


@pytest.mark.parametrize("example", [pytest.param(e, id=e.names[0]) for e in examples()])
def test_the_example_gives_what_the_page_says(example: Example) -> None:
    """An example renders to the text beside it, or fails as it says."""
    assert example.result == outcome(example)
    assert any(re.search(rf"\b{name}\b", example.template) for name in example.names)


@pytest.mark.parametrize(
    ("known", "at_deploy_time"),
    [
        pytest.param({**BUILTINS, **event_functions()}, False, id="event time"),
        pytest.param({**BUILTINS, **deploy_functions({})}, True, id="deploy time"),
    ],
)
def test_every_function_has_an_example(known: dict[str, Any], at_deploy_time: bool) -> None:  # noqa: FBT001 - pytest passes it by name
    """The headings name all functions, and none that is not there."""
    other = "at event time" if at_deploy_time else "at deploy time"
    named = {
        name
        for example in examples()
        if not example.section.endswith(other)
        for name in example.names
    }

    assert set(known) == named
