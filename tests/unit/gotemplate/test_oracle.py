"""Ours against Go on templates nobody has thought of: a grammar makes them, real Go is asked.

`make oracle` builds what is asked. Without it these tests are skipped, except in CI, which has it.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bellhop.gotemplate import Limits
from tests.golden import programs
from tests.golden.gotemplate.corpus import Case
from tests.golden.gotemplate.regenerate import ask
from tests.missing import missing
from tests.unit.gotemplate.grammar import DATA, templates
from tests.unit.gotemplate.test_golden import PLACE, ours

MISSING_KEY = st.sampled_from(("error", "default", "zero"))
BATCHES = st.builds(
    lambda texts, data, missing: [Case(text, data, "event", missing) for text in texts],
    st.lists(templates(), min_size=1, max_size=8),
    DATA,
    MISSING_KEY,
)
PAID = f"more than {Limits().steps} steps"
COLUMN = re.compile(r"^(template: template:\d+):\d+(:.*) at <.*?>", re.DOTALL)
STOPS = re.compile(r"\b(and|or)\b")
# Go names the type that an element was declared with, which plain data does not carry.
DECLARED = re.compile(r"(can't evaluate field \S+ in type ).*")


@pytest.fixture(scope="module")
def oracle() -> Path:
    """Return the built oracle."""
    path = programs.oracle_path()
    if not path.exists():
        missing(f"'{path}' is not there; `make oracle` builds it")
    return path


def comparable(answer: dict[str, Any], *, column: bool) -> dict[str, Any]:
    """Return what must agree of an answer: the output, or the error's place and wording."""
    if "error" not in answer:
        return {"output": answer["output"]}
    error = DECLARED.sub(r"\1", answer["error"])
    return {"error": error if column else COLUMN.sub(r"\1 \2", error)}


def placed(answer: dict[str, Any], theirs: str) -> bool:
    """Return whether our error's line and column are those that Go's message names."""
    place = PLACE.match(theirs)
    if place is None:
        return True
    return answer["line"] == int(place[1]) and place[2] in (None, str(answer["column"]))


def agree(oracle: Path, batch: list[Case]) -> None:
    """Ask both, and complain of the first case on which they differ."""
    for case, theirs in zip(batch, ask(oracle, batch), strict=True):
        mine = ours(case)
        if mine.get("error", "").endswith(PAID):
            # A million rounds are paid for before the first; Go, which has no such limit, begins.
            continue

        # Go blames the argument at which `and` and `or` stopped; ours, that of the last of them.
        column = not STOPS.search(case.template)
        assert (case, comparable(theirs, column=column)) == (case, comparable(mine, column=column))
        assert "error" not in mine or not column or placed(mine, theirs["error"])


@pytest.mark.timeout(600)  # It took 130 s beside ten other processes.
@settings(
    max_examples=150,
    deadline=None,
    # A red run must be about the change it runs on; `make fuzz` tries other templates each time.
    derandomize=not os.environ.get("BELLHOP_FUZZ"),
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(batch=BATCHES)
def test_agrees_with_go_on_any_template(oracle: Path, batch: list[Case]) -> None:
    """Whatever the grammar makes, output or failure, its place and its wording are Go's.

    It takes long: Hypothesis draws 150 batches, and both languages render each template.
    """
    agree(oracle, batch)


def test_notices_where_they_differ(oracle: Path) -> None:
    """The comparison is not blind: a case that differs on purpose is complained of."""
    batch = [Case("{{ .a }}", {"a": 1}), Case("{{ keys . | len }}", {}, "go")]
    agree(oracle, batch)

    with pytest.raises(AssertionError, match="deepCopy"):
        agree(oracle, [*batch, Case("{{ deepCopy nil }}{{ deepCopy .a }}", {"a": None}, "event")])
