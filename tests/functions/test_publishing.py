"""Each stage has the right to publish all that its code can publish.

Situations show that no right is too many; what no situation plays nobody would miss there until a
message is denied. Here what may be published is read from the code that a stage imports: where a
message is made, it goes out, or into a timer, which the schedule publishes.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from bellhop.state import messages
from bellhop.state.envelope import Envelope
from bellhop.state.messages import INBOXES
from tests.functions.lab import SHARED
from tests.functions.rights import rights

ROOT = Path(messages.__file__).parents[2]
MESSAGES = {
    name: each
    for name, each in vars(messages).items()
    if isinstance(each, type) and issubclass(each, Envelope) and each is not Envelope
}
NEVER = {
    ("ingest", "review"): "an event that it takes is sent",
    ("schedule", "evaluate"): "no timer is due",
}
"""What a stage's imports could publish, and the stage does not, with why."""


class Making(NamedTuple):
    """A message that is made in a module: into which inboxes it goes, and whether by a timer."""

    inboxes: frozenset[str]
    timed: bool


class Module(NamedTuple):
    imports: frozenset[Path]
    makes: frozenset[Making]


@cache
def read(path: Path) -> Module:
    """Read which modules of Bellhop a module imports, and which messages it makes."""
    tree = ast.parse(path.read_text())
    imports: set[Path] = set()
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("bellhop"):
            assert node.module
            for each in node.names:
                imports.update(_paths(node.module), _paths(f"{node.module}.{each.name}"))
                if node.module == "bellhop.state.messages" and each.name in MESSAGES:
                    names[each.asname or each.name] = each.name
    timed = {
        id(node.value.func.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and node.attr == "body"
        and isinstance(node.value, ast.Call)
        and isinstance(node.value.func, ast.Attribute)
    }
    makes = {
        Making(_inboxes(names[node.func.id]), id(node) in timed)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names
    }
    return Module(frozenset(imports), frozenset(makes))


def _inboxes(name: str) -> frozenset[str]:
    usual = MESSAGES[name].usual
    return frozenset({"evaluate", "review"} if usual == "evaluate" else {usual})


def _paths(module: str) -> Iterator[Path]:
    place = ROOT.joinpath(*module.split("."))
    found = (place.with_suffix(".py"), place / "__init__.py")
    return (each for each in found if each.exists() and each != Path(messages.__file__))


def reached(stage: str) -> Iterator[Module]:
    """Yield all modules that a function's module leads to."""
    todo, seen = [ROOT.parent / "functions" / stage / "aws.py"], set[Path]()
    while todo:
        path = todo.pop()
        if path not in seen:
            seen.add(path)
            yield read(path)
            todo += read(path).imports


def publishes(stage: str) -> set[str]:
    """Return the inboxes into which a stage's code writes."""
    found = [each for module in reached(stage) for each in module.makes if not each.timed]
    if stage == "schedule":
        found += [each for path in ROOT.rglob("*.py") for each in read(path).makes if each.timed]
    inboxes = {inbox for each in found for inbox in each.inboxes}
    return {each for each in inboxes if (stage, each) not in NEVER}


@pytest.mark.parametrize("stage", ["ingest", "evaluate", "deploy", "charts", "sweep", "schedule"])
def test_may_publish_what_its_code_publishes(stage: str) -> None:
    """And has no right to a queue that nothing in its reach writes into, but to its own.

    What fails is published again into the queue that it came from.
    """
    granted = {
        each.resource.removeprefix("sqs NAME-")
        for each in rights()
        if (each.role, each.action) == (stage, "sqs:SendMessage")
    }

    own = {SHARED.get(inbox, inbox) for inbox, of in INBOXES.items() if of == stage}
    written = {SHARED.get(inbox, inbox) for inbox in publishes(stage)}
    assert written | own == granted & INBOXES.keys()
