"""Make the expectations again with real Go: `python -m tests.golden.gotemplate.regenerate`.

`tests.golden.programs` builds the oracle from Go and from Debian's sprig; none of that is needed
to compare with what is committed.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

from tests.golden import programs
from tests.golden.gotemplate.corpus import HERE, Case, corpus


def ask(program: Path, cases: list[Case]) -> list[dict[str, str]]:
    """Let the oracle answer."""
    questions = "\n".join(json.dumps(case._asdict()) for case in cases)
    done = subprocess.run(
        [program], input=questions, capture_output=True, text=True, check=True, env={"TZ": "UTC"}
    )
    return [json.loads(line) for line in done.stdout.split("\n") if line]


def main() -> None:
    """Write one file of expectations for each file of cases."""
    program = programs.oracle()
    shutil.rmtree(HERE / "expected", ignore_errors=True)
    (HERE / "expected").mkdir()
    total = 0
    for name, cases in corpus().items():
        answers = ask(program, cases)
        lines = []
        for case, answer in zip(cases, answers, strict=True):
            kept = {"error": answer["error"]} if "error" in answer else {"output": answer["output"]}
            lines.append(json.dumps({"template": case.template} | kept, ensure_ascii=False))
        text = "[\n" + ",\n".join(lines) + "\n]\n"
        (HERE / "expected" / f"{name}.json").write_text(text)
        total += len(cases)
    sys.stdout.write(f"{total} cases\n")


if __name__ == "__main__":
    main()
