"""Write down what kustomize makes of the cases beside this script.

    python -m tests.golden.patches.make [KUBECTL]

A case has objects and patches. By its name `expected.json` has the objects that
`kubectl kustomize` writes, or null where it refuses. A case that `differs` says why, and what
Bellhop does: `ours` has a path into the first object and the value there, `refusal` a part of the
sentence.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).parent
EXPECTED = HERE / "expected.json"

Case = dict[str, Any]


def cases() -> Iterator[Case]:
    """Yield all cases, in their order."""
    for path in sorted((HERE / "cases").glob("*.yaml")):
        yield from yaml.safe_load(path.read_text())


def kustomized(kubectl: str, case: Case) -> list[dict[str, Any]] | None:
    """Return what kustomize makes of a case."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "objects.yaml").write_text(yaml.safe_dump_all(case["objects"]))
        plan = {"resources": ["objects.yaml"], "patches": case["patches"]}
        (folder / "kustomization.yaml").write_text(yaml.safe_dump(plan))
        done = subprocess.run(
            [kubectl, "kustomize", folder], capture_output=True, text=True, check=False
        )
    return None if done.returncode else [each for each in yaml.safe_load_all(done.stdout) if each]


def main(arguments: Sequence[str]) -> None:
    """Write all again."""
    kubectl = arguments[0] if arguments else "kubectl"
    made = {case["name"]: kustomized(kubectl, case) for case in cases()}
    EXPECTED.write_text(json.dumps(made, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
