"""Write the tables of docs/how-to/install-with-helm.md from the values of the charts.

The comment above a value is its meaning, as `helm show values` prints it. Run as
`python -m infra.charts_page`, it writes the tables between the marks that are there.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from functools import reduce
from typing import Any

import yaml

from infra.charts.build import BELLHOP, CHARTS, FORWARDER, ROOT
from infra.generated_blocks import fill, table

PAGE = ROOT / "docs/how-to/install-with-helm.md"
_KEY = re.compile(r"( *)(\w+):")


def written() -> str:
    """Return the page with its tables as they have to be."""
    return fill(PAGE.read_text(), {name: values_table(name) for name in (BELLHOP, FORWARDER)})


def values_table(name: str) -> str:
    """Return a row for each value: its default, and its meaning."""
    text = (CHARTS / name / "values.yaml").read_text()
    values = yaml.safe_load(text)
    meanings = dict(read_meanings(text))
    rows = [
        (f"`{path}`", f"`{json.dumps(_find(values, path))}`", meaning)
        for path, meaning in meanings.items()
        if not any(each.startswith(f"{path}.") for each in meanings)
    ]
    return table(("Value", "Default", "Meaning"), rows)


def read_meanings(text: str) -> Iterator[tuple[str, str]]:
    """Yield the dotted name of each value with a comment above it, and that comment."""
    place: list[str] = []
    comment: list[str] = []
    for line in text.splitlines():
        if line.lstrip().startswith("#"):
            comment.append(line.strip("# "))
            continue
        if found := _KEY.match(line):
            place[len(found[1]) // 2 :] = [found[2]]
            if comment:
                yield ".".join(place), " ".join(comment)
        comment = []


def _find(values: Mapping[str, Any], path: str) -> Any:
    return reduce(lambda place, key: place[key], path.split("."), values)


def main() -> None:
    """Write the page."""
    PAGE.write_text(written())
    sys.stdout.write(f"wrote {PAGE}\n")


if __name__ == "__main__":
    main()
