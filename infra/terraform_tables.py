"""Read variables, outputs and files of a Terraform module, and write its README's tables.

The files are formatted by `terraform fmt`: a block begins and ends in the first column, and its
attributes stand two blanks to the right. Run as `python -m infra.terraform_tables`, it writes the
tables of each module's README between the marks that are there.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from infra.generated_blocks import fill, table

MODULES = Path(__file__).parents[1] / "terraform" / "modules"

_BLOCK = re.compile(r'^(\w+) "([\w-]+)"(?: "([\w-]+)")? \{\n(.*?)^\}', re.MULTILINE | re.DOTALL)
_ATTRIBUTE = re.compile(r"^  (\w+) += (.*?)(?=^$|^  \w|\Z)", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A block of a module: its kind, its labels, and its attributes as they are written."""

    kind: str
    labels: tuple[str, ...]
    attributes: dict[str, str]

    @property
    def name(self) -> str:
        """The last label."""
        return self.labels[-1]

    def text(self, attribute: str) -> str:
        """Return the value of an attribute that is a plain string; empty if there is none."""
        value = self.attributes.get(attribute, "")
        return value.removeprefix('"').removesuffix('"').replace('\\"', '"')


def read(module: Path) -> Iterator[Block]:
    """Yield the blocks of a module, file by file."""
    for path in sorted(module.glob("*.tf")):
        for kind, first, second, body in _BLOCK.findall(path.read_text()):
            attributes = {name: value.strip() for name, value in _ATTRIBUTE.findall(body)}
            yield Block(kind, tuple(filter(None, (first, second))), attributes)


def tables(module: Path) -> dict[str, str]:
    """Return the tables of a module's variables and outputs."""
    blocks = list(read(module))
    variables = (_row(each) for each in blocks if each.kind == "variable")
    outputs = (
        (f"`{each.name}`", each.text("description")) for each in blocks if each.kind == "output"
    )
    return {
        "variables": table(("Variable", "Type", "Default", "What it is"), variables),
        "outputs": table(("Output", "What it is"), outputs),
    }


def written(module: Path) -> str:
    """Return a module's README with its tables as they have to be."""
    return fill((module / "README.md").read_text(), tables(module))


def _row(variable: Block) -> tuple[str, ...]:
    default = variable.attributes.get("default")
    usual = "needed" if default is None else f"`{default}`"
    kind = re.sub(r" *\n *", ", ", variable.attributes["type"])
    kind = re.sub(r" +", " ", kind).replace("{, ", "{ ").replace(", }", " }")
    return f"`{variable.name}`", f"`{kind}`", usual, variable.text("description")


def main() -> None:
    """Write the tables of all modules."""
    for module in sorted(MODULES.iterdir()):
        (module / "README.md").write_text(written(module))
        sys.stdout.write(f"wrote {module / 'README.md'}\n")


if __name__ == "__main__":
    main()
