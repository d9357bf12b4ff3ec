"""Read the golden cases: one-line templates in cases/*.txt, whole documents in documents/*.tmpl.

A line of a case file is a template, `⏎` standing for a newline, unless it begins with
  #            a comment
  data JSON    the data of what follows
  functions X  go, sprig, event or deploy: the functions of what follows
  missingkey X error, default or zero
A document has its data beside it in a file of the same name ending in .json. One whose name ends in
.deploy is rendered with the functions of deploy time, over its data's `resources`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).parent


class Case(NamedTuple):
    """What is asked, of the oracle and of ours."""

    template: str
    data: Any = None
    functions: str = "go"
    missingkey: str = "error"


def cases(path: Path) -> list[Case]:
    """Read one file of one-line cases."""
    found = []
    state = Case("")
    for line in path.read_text().splitlines():
        word, _, rest = line.partition(" ")
        if not line or word == "#":
            continue
        if word == "data":
            state = state._replace(data=json.loads(rest))
        elif word == "functions":
            state = state._replace(functions=rest)
        elif word == "missingkey":
            state = state._replace(missingkey=rest)
        else:
            found.append(state._replace(template=line.replace("⏎", "\n")))
    return found


def document(path: Path) -> Case:
    """Read one document with its data."""
    data = json.loads(path.with_name(f"{path.stem}.json").read_text())
    phase = "deploy" if path.stem.endswith(".deploy") else "event"
    return Case(path.read_text(), data, phase)


def corpus() -> dict[str, list[Case]]:
    """Read all cases, by the name of the file with their expectations."""
    found = {path.stem: cases(path) for path in sorted((HERE / "cases").glob("*.txt"))}
    documents = sorted((HERE / "documents").glob("*.tmpl"))
    found["documents"] = [document(path) for path in documents]
    return found
