"""The tree of errors: drawn as it is, and safe to show."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from bellhop import errors
from bellhop.errors import (
    BellhopError,
    InvalidError,
    LostWriteError,
    PermanentError,
    StaleError,
    TemporaryError,
)

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "errors.md"
OTHERS_WORDS = ("gotemplate/", "Value is immutable")
"""Sentences that are worded as Go's templates and as API servers word them."""
TREE = {
    name: each
    for name, each in vars(errors).items()
    if isinstance(each, type) and issubclass(each, BellhopError)
}


def drawn(text: str) -> dict[str, str]:
    """Read the parents that a drawing shows, by name."""
    found: dict[str, str] = {}
    above: list[tuple[int, str]] = []
    for line in text.splitlines():
        match = re.match(r"[│├└─ ]*(\w+Error)\b", line)
        if not match:
            continue
        column = match.start(1)
        above = [each for each in above if each[0] < column]
        found[match[1]] = above[-1][1] if above else ""
        above.append((column, match[1]))
    return found


def test_the_tree_is_drawn_as_it_is() -> None:
    """Every class stands in the module's drawing, under the class it derives from."""
    parents = {name: each.__bases__[0].__name__ for name, each in TREE.items()}

    assert drawn(errors.__doc__ or "") == {**parents, "BellhopError": ""}


def test_the_page_names_every_code_and_its_temperament() -> None:
    """What users may meet is explained; only the three trunks have no line of their own."""
    row = re.compile(r"^\| `(\w+)` \| (permanent|temporary) \|", re.MULTILINE)
    told = dict(row.findall(PAGE.read_text()))
    leaves = set(TREE.values()) - {BellhopError, PermanentError, TemporaryError}

    assert told == {
        each.code: "permanent" if issubclass(each, PermanentError) else "temporary"
        for each in leaves
    }


def test_codes_tell_errors_apart() -> None:
    """A code names one class, but for lost writes: users meet them as stale reads."""
    distinct = set(TREE.values()) - {LostWriteError}
    assert len({each.code for each in distinct}) == len(distinct)
    assert LostWriteError.code == StaleError.code


@pytest.mark.parametrize("error", [pytest.param(each, id=name) for name, each in TREE.items()])
def test_every_error_is_one_temperament_with_context(error: type[BellhopError]) -> None:
    """The context is kept beside the sentence, which shows nothing of it."""
    raised = error("cannot do it", cluster="fleet/east", tries=3)

    assert str(raised) == "cannot do it"
    assert raised.context == {"cluster": "fleet/east", "tries": 3}
    kinds = [kind for kind in (PermanentError, TemporaryError) if isinstance(raised, kind)]
    assert len(kinds) == (error is not BellhopError)


def test_a_sentence_is_never_a_payload() -> None:
    """What is longer than any sentence is cut."""
    text = str(PermanentError("x" * 100_000))

    assert len(text) == 2050
    assert text.endswith("x …")


def test_a_place_comes_before_the_sentence() -> None:
    """Where it is wrong stands first, and by itself."""
    error = InvalidError("it is too short", where="a.yaml, line 3")

    assert (str(error), error.where) == ("a.yaml, line 3: it is too short", "a.yaml, line 3")


def test_a_temporary_error_may_say_how_long_to_wait() -> None:
    """Without a delay the queue decides."""
    assert TemporaryError("wait").delay is None
    assert TemporaryError("wait", delay=timedelta(seconds=7)).delay == timedelta(seconds=7)


def sentences(tree: ast.AST) -> Iterator[str]:
    """Yield the sentences that code gives to errors; what is put in later stands as {}."""
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and call.args:
            name = getattr(call.func, "id", "") or getattr(call.func, "attr", "")
            if name.endswith("Error") or name == "mistake":
                yield from _text(call.args[0])


def _text(node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.JoinedStr):
        yield "".join(
            getattr(each, "value", "") if isinstance(each, ast.Constant) else "{}"
            for each in node.values
        )
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value


@pytest.mark.parametrize("folder", ["shared/bellhop", "infra"])
def test_errors_speak_one_dialect(folder: str) -> None:
    """A sentence goes on from "cannot …": no capital but a name's, no full stop, one sentence.

    It takes seconds: every module of the folder is parsed.
    """
    told = [
        f"{path}: {each}"
        for path in sorted((ROOT / folder).rglob("*.py"))
        for each in sentences(ast.parse(path.read_text()))
        if re.search(r"^[A-Z][a-z ]|\.$|\. |could not be", each)
    ]

    assert [each for each in told if not any(word in each for word in OTHERS_WORDS)] == []


def test_no_sentence_loses_its_second_line() -> None:
    """Python takes a line of text without parentheses for a statement, and drops it."""
    dropped = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for folder in ("shared", "functions", "infra")
        for path in (ROOT / folder).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Expr) and is_rest(node.value)
    ]

    assert dropped == []


def is_rest(value: ast.expr) -> bool:
    """Tell the rest of a sentence from a docstring, which begins with no space."""
    text = value.value if isinstance(value, ast.Constant) else ""
    return isinstance(value, ast.JoinedStr) or (isinstance(text, str) and text.startswith(" "))
