"""Write the tables of docs/reference/settings.md from what reads and sets each setting.

Settings and their meanings are those of `bellhop.settings`, flags are those of `bellhop serve`,
Terraform's variables are read from the modules, and so is what they set for functions. Run as
`python -m infra.settings_page`, it writes the tables between the marks that are there.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import click
from msgspec.structs import fields

from bellhop.adapters.programs.program import HELM, KUBECTL
from bellhop.cli.commands.serve import command as serve
from bellhop.settings import Settings
from infra.generated_blocks import fill, table
from infra.terraform_tables import MODULES, read

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "reference" / "settings.md"
LIBRARY = ROOT / "shared" / "bellhop"

CLOUDS: Mapping[str, str] = {"aws": "AWS", "gcp": "Google Cloud"}

UNITS = {
    "image": "image",
    "_seconds": "seconds",
    "_days": "days",
    "_megabytes": "MiB",
    "_memory": "bytes",
    "_output": "bytes",
    "_limit": "bytes",
    "_bytes": "bytes",
    "_share": "share",
}
"""The unit of a number, by how its setting ends; others are counts, and durations are seconds."""

_OF_ONE = re.compile(r"^  environments = \{\n(.*?)^  \}", re.MULTILINE | re.DOTALL)
_VARIABLE = re.compile(r"\b(?:BELLHOP_[A-Z_]*[A-Z]|THREADS)\b")
_MEANING = re.compile(r"((?:BELLHOP_[A-Z_]*[A-Z]|THREADS) +.*?)(?= {2,}BELLHOP_|$)", re.MULTILINE)


def written() -> str:
    """Return the page with its tables as they have to be."""
    made = {
        "settings": settings_table(),
        "serve": serve_table(),
        "terraform": terraform_table(),
        "environment": environment_table(),
    }
    return fill(PAGE.read_text(), made)


# Settings -----------------------------------------------------------------------------------------


def settings_table() -> str:
    """Return a row for each setting: its default, its unit, where it counts, and what it means."""
    meaning_of = meanings(LIBRARY / "settings.py")
    rows = [
        (
            f"`BELLHOP_{field.name.upper()}`",
            _number(field.default),
            unit(field.name, field.default),
            homes(field.name),
            meaning_of[field.name],
        )
        for field in fields(Settings)
    ]
    return table(("Variable", "Default", "Unit", "Counts", "Meaning"), rows)


def meanings(module: Path) -> dict[str, str]:
    """Return what is written below each attribute of a module's classes."""
    found = {}
    for each in ast.walk(ast.parse(module.read_text())):
        if isinstance(each, ast.ClassDef):
            for before, after in zip(each.body, each.body[1:], strict=False):
                if isinstance(before, ast.AnnAssign) and isinstance(after, ast.Expr):
                    name, text = ast.unparse(before.target), ast.literal_eval(after.value)
                    found[name] = " ".join(text.split())
    return found


def unit(name: str, default: object) -> str:
    if isinstance(default, timedelta):
        return "seconds"
    if isinstance(default, str) and not name.endswith("image"):
        return "word" if default else "list"
    return next((each for end, each in UNITS.items() if name.endswith(end)), "count")


def homes(name: str) -> str:
    """Return the stages that read a setting."""
    asked = re.compile(rf"settings\.{name}\b")
    readers = {
        _composition(path) for path in LIBRARY.rglob("*.py") if asked.search(path.read_text())
    }
    assert readers, f"nobody reads the setting {name}"
    if readers <= {"embedded"}:
        return "`bellhop serve`"
    return "AWS, Google Cloud" if readers <= {"cloud", *CLOUDS} else "everywhere"


def _composition(path: Path) -> str:
    parts = path.relative_to(LIBRARY).parts
    return parts[1] if parts[0] == "runtime" else parts[0]


def _number(value: Any) -> str:
    if isinstance(value, str):
        return f"`{value}`" if value else ""
    number = value.total_seconds() if isinstance(value, timedelta) else float(value)
    return f"{int(number) if number.is_integer() else number}"


# Flags and variables ------------------------------------------------------------------------------


def serve_table() -> str:
    """Return a row for each flag of `bellhop serve`."""
    rows = []
    for each in serve.params:
        assert isinstance(each, click.Option)
        default = f"`{each.default}`" if each.show_default else ""
        rows.append((f"`{each.opts[0]}`", default, each.help or ""))
    return table(("Flag", "Default", "Meaning"), rows)


def terraform_table() -> str:
    """Return a row for each variable of the modules, with each module's default."""
    variables = {
        cloud: {each.name: each for each in read(MODULES / cloud) if each.kind == "variable"}
        for cloud in CLOUDS
    }
    rows = []
    for name in sorted({name for of in variables.values() for name in of}):
        blocks = [of.get(name) for of in variables.values()]
        defaults = [_default(each) for each in blocks]
        meaning_of = [each.text("description") if each else "" for each in blocks]
        rows.append((f"`{name}`", *defaults, _meaning(meaning_of)))
    return table(("Variable", *CLOUDS.values(), "Meaning"), rows)


def _default(variable: Any) -> str:
    if variable is None:
        return ""
    default = variable.attributes.get("default")
    return "needed" if default is None else f"`{default}`"


# What Terraform sets for functions ----------------------------------------------------------------


def environment_table() -> str:
    """Return a row for each variable that a module sets for its functions."""
    rows = []
    for name in sorted({name for cloud in CLOUDS for name in set_by(cloud)}):
        stages = [", ".join(set_by(cloud).get(name, ())) for cloud in CLOUDS]
        rows.append(
            (f"`{name}`", *stages, _meaning([describe(cloud).get(name, "") for cloud in CLOUDS]))
        )
    return table(("Variable", *CLOUDS.values(), "Meaning"), rows)


def set_by(cloud: str) -> dict[str, Sequence[str]]:
    """Name the variables that a module sets, each with the functions for which it does."""
    text = (MODULES / cloud / "functions.tf").read_text()
    own = _OF_ONE.search(text)
    assert own, f"the module for {cloud} says nothing of single functions"
    found = {name: ["all"] for name in _names(text[: own.start()] + text[own.end() :])}
    for stage, meaning_of in re.findall(r"^    (\w+) += (.*)$", own[1], re.MULTILINE):
        for name in _names(meaning_of):
            if found.setdefault(name, []) != ["all"]:
                found[name].append(stage)
    return dict(found)


def read_by(cloud: str) -> set[str]:
    """Name the variables that a cloud's functions read when they begin."""
    tree = ast.parse((LIBRARY / "runtime" / cloud / "resources.py").read_text())
    texts = [
        each.value
        for each in ast.walk(tree)
        if isinstance(each, ast.Constant) and isinstance(each.value, str)
    ]
    return {text for text in texts if _VARIABLE.fullmatch(text)} | {HELM.variable, KUBECTL.variable}


def describe(cloud: str) -> dict[str, str]:
    """Return what the modules that read them say of each."""
    readers = (
        LIBRARY / "runtime" / cloud / "resources.py",
        LIBRARY / "runtime" / "cloud" / "charts.py",
    )
    trees = (ast.parse(each.read_text()) for each in readers)
    text = "\n".join(ast.get_docstring(each) or "" for each in trees)
    return {
        name: meaning.strip()
        for name, meaning in (each.split(None, 1) for each in _MEANING.findall(text))
    }


def _meaning(meanings: Sequence[str]) -> str:
    """Return the one meaning of all clouds, or that of each."""
    if len({*meanings} - {""}) == 1:
        return "".join(dict.fromkeys(meanings))
    return " ".join(
        f"{cloud}: {each}" for cloud, each in zip(CLOUDS.values(), meanings, strict=True)
    )


def _names(text: str) -> list[str]:
    return sorted(set(_VARIABLE.findall(text)))


def main() -> None:
    PAGE.write_text(written())
    sys.stdout.write(f"wrote {PAGE}\n")


if __name__ == "__main__":
    main()
