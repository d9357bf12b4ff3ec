"""What a command loads is most of what it takes: none loads what it does not need."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bellhop.fleet.installation import Installation
from tests.unit.cli import fleet

HEAVY = {
    "bellhop.adapters.kube.client": "the Kubernetes client",
    "bellhop.engine.render": "templates",
    "bellhop.gotemplate": "templates",
    "bellhop.model.kinds": "kinds",
    "bellhop.records.catalogs": "the catalog",
    "bellhop.stages.declare": "declaring",
    "cryptography": "sealing",
    "functions_framework": "the server",
    "jinja2": "Jinja",
    "lupa": "Lua",
    "pydantic": "kinds",
    "sqlite3": "the store",
    "urllib3": "the Kubernetes client",
    "yaml": "YAML",
}
"""Modules that take long to load, by what they are for."""

STORE = {"the store", "sealing"}
KINDS = STORE | {"the catalog", "kinds", "templates"}

RUN = """
import sys
from bellhop.cli.main import cli
try:
    cli.main(sys.argv[1:])
except SystemExit as end:
    assert not end.code, end.code
print(*sys.modules, file=sys.stderr)
"""


def loaded(state: Path, arguments: str) -> set[str]:
    """Run a command by itself, and name what it loaded."""
    done = subprocess.run(
        [sys.executable, "-c", RUN, *arguments.split()],
        env={**os.environ, "BELLHOP_STATE": str(state)},
        capture_output=True,
        text=True,
        check=True,
    )
    return {HEAVY[name] for name in done.stderr.split() if name in HEAVY}


# Whatever traces the lines loads modules of its own.
@pytest.mark.timed
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("--help", set()),
        ("get --help", set()),
        ("get clusters", STORE),
        ("get clusters -n default -o wide", STORE),
        ("show events", STORE),
        ("show events -o json", STORE),
        ("show addons", KINDS),
        ("context list", {"YAML"}),
        ("get eventsources", KINDS),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_a_command_loads_what_it_needs(
    state: Path, here: Installation, arguments: str, expected: set[str]
) -> None:
    """Whoever adds to this list of modules makes a command slower."""
    fleet.populate(here)
    here.records.ledger.note(fleet.entry("rang", ago=5))

    assert loaded(state, arguments) <= expected


def test_what_a_command_needs_is_there_though_it_was_not_loaded(
    state: Path, here: Installation
) -> None:
    """What stands for it is asked, and finds it."""
    fleet.populate(here)

    assert "declaring" in loaded(state, "label cluster default/workload a=b")
