"""Read from a cloud's Terraform module the functions and queues that it deploys, with their limits.

A simulation plays them for a `concurrency` or a number of `instances`. Formulas that were written a
second time here would differ from the module's one day. So Terraform's console evaluates the local
values themselves, in a copy without resources and providers, within a second.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bellhop.errors import MissingError, PermanentError
from infra.terraform_tables import MODULES, read

_LOCALS = re.compile(r"^locals \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_VALUE = re.compile(r"^  (\w+) += (.*?)(?=^  [\w#]|\Z)", re.MULTILINE | re.DOTALL)
_READS = re.compile(r"\b(local|var)\.(\w+)")


GoogleSizes = Mapping[str, Mapping[str, int]]


@dataclass(frozen=True)
class Feed:
    """A queue of AWS, and the mapping from it to a stage's function.

    `batch` is how many messages an invocation has at most, `most` how many invocations there are
    at a time, and `visibility` for how many seconds messages in flight are hidden.
    """

    stage: str
    batch: int
    most: int
    visibility: int


@dataclass(frozen=True)
class AwsSizes:
    """The functions and queues that the module for AWS deploys for a `concurrency`."""

    concurrency: int
    functions: Mapping[str, Mapping[str, int]]
    queue_of: Mapping[str, str]
    feeds: Mapping[str, Feed]


def aws_sizes(concurrency: int) -> AwsSizes:
    """Return what the module for AWS deploys, by default but for its `concurrency`."""
    per_queue = ("queues", "batches", "concurrency_of", "visibility")
    found = evaluate(MODULES / "aws", "functions", "queue_of", *per_queue, concurrency=concurrency)
    feeds = {queue: Feed(*(found[name][queue] for name in per_queue)) for queue in found["queues"]}
    return AwsSizes(concurrency, found["functions"], found["queue_of"], feeds)


def google_sizes(instances: int) -> GoogleSizes:
    """Return the functions of the module for Google Cloud for a number of `instances`.

    Each has its `instances`, and its `concurrency`: the requests of an instance at a time.
    """
    functions: GoogleSizes = evaluate(MODULES / "gcp", "functions", instances=instances)[
        "functions"
    ]
    return functions


def evaluate(module: Path, *names: str, **variables: Any) -> dict[str, Any]:
    """Return the local values of these names, with some variables set and the defaults of others.

    Raises:
        MissingError: there is no Terraform.
        PermanentError: a value reads a resource, or Terraform refuses it for another reason.
    """
    program = shutil.which("terraform")
    if program is None:
        raise MissingError("cannot evaluate the module: install Terraform 1.11 or newer on PATH")
    values = ", ".join(f"{each} = local.{each}" for each in names)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "main.tf").write_text(_excerpt(module, names))
        Path(folder, "terraform.tfvars.json").write_text(json.dumps(variables))
        done = subprocess.run(
            [program, f"-chdir={folder}", "console"],
            input=f"jsonencode({{{values}}})",
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        raise PermanentError(f"cannot evaluate the module: Terraform says {done.stderr}")
    found: dict[str, Any] = json.loads(json.loads(done.stdout))
    return found


def _excerpt(module: Path, names: tuple[str, ...]) -> str:
    """Return the local values, and the local values and variables that they read."""
    values = _locals(module)
    declared: Mapping[str, Mapping[str, str]] = {
        each.name: each.attributes for each in read(module) if each.kind == "variable"
    }
    excerpt, lines = [("local", name) for name in names], {}
    while excerpt:
        kind, name = each = excerpt.pop()
        if each in lines:
            continue
        if kind == "local":
            lines[each] = f"locals {{\n  {name} = {values[name]}\n}}\n"
            excerpt += _READS.findall(values[name])
        else:
            kept = (f"  {key} = {declared[name][key]}\n" for key in ("type", "default"))
            lines[each] = f'variable "{name}" {{\n{"".join(kept)}}}\n'
    return "".join(lines.values())


def _locals(module: Path) -> dict[str, str]:
    return {
        name: value.strip()
        for path in sorted(module.glob("*.tf"))
        for body in _LOCALS.findall(path.read_text())
        for name, value in _VALUE.findall(body)
    }
