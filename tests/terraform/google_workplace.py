"""Terraform at work on the module for Google Cloud, only by the schema of the provider."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any

from tests.lab.google_schema_provider import SchemaProvider
from tests.lab.terraform import ROOT

MODULE = ROOT / "modules" / "gcp"


_NAMED = (
    "topic",
    "subscription",
    "bucket",
    "secret_id",
    "service_account_id",
    "repository",
    "name",
    "project",
)
"""Arguments of a grant that say what it is on."""


class Workplace:
    """A copy of our modules and examples, without packages: no plan needs them."""

    def __init__(self, folder: Path, program: str, provider: SchemaProvider) -> None:
        shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(".terraform*", "*.tfstate*"))
        for example in folder.glob("examples/gcp-*"):
            local = {"module": {"bellhop": {"source": "../../modules/gcp"}}}
            (example / "local_override.tf.json").write_text(json.dumps(local))
        self.module = folder / "modules" / "gcp"
        self.examples = folder / "examples"
        kept = {name: os.environ[name] for name in ("HOME", "PATH", "TMPDIR") if name in os.environ}
        self._environment = {**kept, **provider.environment, "CHECKPOINT_DISABLE": "1"}
        self._program = program

    def run(self, place: Path, *arguments: str) -> tuple[int, str]:
        """Run a command of Terraform beside a module; return its code and what it said."""
        done = subprocess.run(
            [self._program, *arguments],
            cwd=place,
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr

    def edges(self, place: Path) -> dict[str, set[str]]:
        """Return what each resource of a module or example depends on, by `terraform graph`."""
        code, graph = self.run(place, "graph")
        assert code == 0, graph
        found = re.findall(r'^  +"([^"]+)" \[label=', graph, re.MULTILINE)
        edges = {each: set[str]() for each in found}
        for each, to in re.findall(r'^  +"(.+?)" -> "(.+?)";$', graph, re.MULTILINE):
            edges[each].add(to)
        return edges


def reached(edges: Mapping[str, AbstractSet[str]], front: AbstractSet[str]) -> set[str]:
    """Return these resources and all that they depend on."""
    found: set[str] = set()
    while front:
        found |= front
        front = {to for each in front for to in edges[each]} - found
    return found


class Made:
    """What the first of the module's own tests has made: a state, by the addresses in it."""

    def __init__(self, state: Mapping[str, Any]) -> None:
        found = state["root_module"]["resources"]
        self.resources = {
            each["address"]: each["values"] for each in found if each["mode"] == "managed"
        }
        self.outputs = {name: each["value"] for name, each in state["outputs"].items()}

    def of(self, *types: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the resources of some types."""
        for address, values in self.resources.items():
            if address.partition(".")[0] in types:
                yield address, values

    def rights(self) -> dict[str, dict[str, list[str]]]:
        """Return by account and what it is on which actions or roles it has."""
        granted: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
        roles = {
            each["name"]: each["permissions"]
            for _, each in self.of("google_project_iam_custom_role")
        }
        for address, values in self.resources.items():
            if "_iam_member." in address:
                what = roles.get(values["role"], [values["role"]])
                granted[_plain(values["member"])][_place(address, values)] += what
        return {
            who: {on: sorted(what) for on, what in each.items()} for who, each in granted.items()
        }


def first_state(output: str) -> Made:
    """Return what the first run of `terraform test -json -verbose` has made."""
    return Made(next(each["test_state"] for each in _messages(output) if "test_state" in each))


def plan_of(output: str, run: str) -> dict[str, Any]:
    """Return what a run of `terraform test -json -verbose` would change."""
    plans = (each for each in _messages(output) if each.get("@testrun") == run)
    plan: dict[str, Any] = next(each["test_plan"] for each in plans if "test_plan" in each)
    return plan


def _messages(output: str) -> Iterator[dict[str, Any]]:
    return (json.loads(line) for line in output.splitlines() if line.startswith("{"))


def _place(address: str, values: Mapping[str, Any]) -> str:
    """Say what a right is on, as its resource or its condition has it."""
    kind = address.removeprefix("google_").partition("_iam_member")[0].replace("_", " ")
    for condition in values.get("condition") or []:
        return _plain(condition["expression"])
    key = next((values[key] for key in _NAMED if values.get(key)), "")
    return _plain(f"{kind} {key}")


def _plain(text: str) -> str:
    """Write a name without what is the test's own."""
    plain = text.replace("bellhop_", "NAME_").replace("123456789012", "NUMBER")
    return re.sub(r"\bbellhop\b", "NAME", plain)
