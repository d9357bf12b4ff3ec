"""Ours against Go: every golden case renders, or fails, as the oracle did."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from bellhop.gotemplate import (
    GoTemplateError,
    Limits,
    Struct,
    Template,
    deploy_functions,
    event_functions,
    sprig_functions,
)
from tests.golden.gotemplate.corpus import HERE, Case, corpus

SETS = {
    "go": lambda data: None,  # noqa: ARG005 - one shape for all
    "sprig": lambda data: sprig_functions(),  # noqa: ARG005 - as above
    "event": lambda data: event_functions(),  # noqa: ARG005 - as above
    "deploy": lambda data: deploy_functions(data["resources"]),
}
CORPUS = corpus()
PATIENT = Limits(seconds=60)
PLACE = re.compile(r"template: template:(\d+)(?::(\d+))?: ")


def pairs() -> list[Any]:
    """Join the cases with the oracle's answers."""
    found = []
    for name, cases in CORPUS.items():
        answers = json.loads((HERE / "expected" / f"{name}.json").read_text())
        for number, (case, answer) in enumerate(zip(cases, answers, strict=True)):
            assert answer["template"] == case.template, "the expectations are out of date"
            found.append(pytest.param(case, answer, id=f"{name}-{number}"))
    return found


def structs(value: Any) -> Any:
    """Make what the corpus marks a reference the struct that templates are given."""
    if isinstance(value, list):
        return [structs(item) for item in value]
    if not isinstance(value, dict):
        return value
    if "@reference" in value:
        names = ("Kind", "Namespace", "Name", "UID", "APIVersion", "ResourceVersion", "FieldPath")
        fields = {name: value["@reference"].get(name, "") for name in names}
        return Struct(fields, "v1.ObjectReference")
    return {key: structs(item) for key, item in value.items()}


def ours(case: Case) -> dict[str, Any]:
    """Render a case, and describe what comes of it as the oracle does."""
    try:
        template = Template(
            case.template,
            funcs=SETS[case.functions](case.data),
            missingkey=case.missingkey,  # type: ignore[arg-type]
        )
        # Keys are drawn at random, and some take long: that is no difference between the two.
        return {"output": template.render(structs(case.data), limits=PATIENT)}
    except GoTemplateError as error:
        return {"error": str(error), "line": error.line, "column": error.column}


@pytest.mark.parametrize(("case", "answer"), pairs())
def test_renders_as_go_does(case: Case, answer: dict[str, str]) -> None:
    """Output, or error with its place and wording, is Go's."""
    expected: dict[str, Any] = {key: answer[key] for key in ("output", "error") if key in answer}
    got = ours(case)
    place = PLACE.match(answer.get("error", ""))
    if place is not None:
        expected |= {"line": int(place[1]), "column": int(place[2] or got["column"])}

    assert expected == got


def test_the_corpus_is_large() -> None:
    """There are at least six hundred cases made by real Go."""
    assert sum(map(len, CORPUS.values())) >= 600
