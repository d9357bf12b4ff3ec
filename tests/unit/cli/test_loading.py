"""The modules that a command loads take most of its time: none loads more than it needs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bellhop.installation import Installation
from tests.unit.cli import fleet, logins

HEAVY = {
    "bellhop.adapters.kube.client": "the Kubernetes client",
    "bellhop.rendering.templates": "templates",
    "bellhop.gotemplate": "templates",
    "bellhop.api.kinds": "kinds",
    "bellhop.catalog.cache": "the catalog",
    "bellhop.declarations.apply": "declaring",
    "cryptography": "sealing",
    "functions_framework": "the server",
    "jinja2": "Jinja",
    "kubernetes": "the official client",
    "lupa": "Lua",
    "pydantic": "kinds",
    "sqlite3": "the store",
    "urllib3": "the Kubernetes client",
    "yaml": "YAML",
}
"""Modules that take long to load, by what they are for."""

STORE = {"the store", "sealing"}
CALLS = STORE | {"the Kubernetes client"}
"""Of clusters that were not reached lately."""

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
@pytest.mark.clocked
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("--help", set()),
        ("get --help", set()),
        ("register cluster --help", set()),
        ("get clusters", CALLS),
        ("get clusters -n default -o wide", CALLS),
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
    """An addition to this list of modules makes a command slower."""
    fleet.populate(here)
    here.records.ledger.note(fleet.entry("rang", ago=5))

    assert loaded(state, arguments) <= expected


def test_what_a_command_needs_is_there_though_it_was_not_loaded(
    state: Path, here: Installation
) -> None:
    fleet.populate(here)

    assert "declaring" in loaded(state, "label cluster default/workload a=b")


@pytest.mark.clocked
@pytest.mark.parametrize(("user", "expected"), [({"token": "t"}, False), (None, True)])
def test_only_a_login_loads_the_official_client(
    tmp_path: Path, user: dict[str, Any] | None, *, expected: bool
) -> None:
    """It takes two seconds, which a kubeconfig with a token does not pay for."""
    path = logins.write(tmp_path, user or logins.plugin(tmp_path, logins.answer(token="t")))
    program = (
        "import sys; from pathlib import Path\n"
        "from bellhop.cli.credentials import read_kubeconfig\n"
        "read_kubeconfig(Path(sys.argv[1]), None); print('kubernetes' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, path], capture_output=True, text=True, check=True
    )

    assert done.stdout.strip() == str(expected)
