"""Breaks the code in each listed way, and tells who notices: `python -m tests.mutants [WORD]`.

Each mutant gets a copy of the package of its own. Histories are asked first, then the other tests
of the stages; the first failure is enough. The exit status says whether any mutant survived that
is not explained, or more than one in ten did.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tests.mutants.listed import EXPLAINED, MUTANTS
from tests.mutants.mutant import PACKAGE, Mutant

_ROOT = PACKAGE.parents[1]
_LONGEST = 900
"""Seconds after which tests that do not end have noticed something."""

JURIES = {
    "histories": ("tests/unit/stages/test_interleaving.py", "tests/unit/stages/test_properties.py"),
    "contracts": ("tests/unit/stages", "tests/unit/records", "tests/unit/engine"),
}
"""Who may notice, in this order."""


@dataclass(frozen=True)
class Verdict:
    """Who noticed a mutant; "" for nobody."""

    mutant: Mutant
    jury: str
    test: str
    seconds: float


def judge(mutant: Mutant | None) -> Verdict | None:
    """Let all who may notice try; None, which is no mutant, must go unnoticed."""
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        package = Path(folder) / PACKAGE.name
        shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
        if mutant:
            mutant.apply(package)
        for jury in JURIES:
            test = _noticed(jury, Path(folder))
            if test:
                seconds = time.monotonic() - begun
                return Verdict(mutant or MUTANTS[0], jury, test, seconds)
    return Verdict(mutant, "", "", time.monotonic() - begun) if mutant else None


def _noticed(jury: str, folder: Path) -> str:
    """Run tests against a copy; return the first that fails, "" if none does."""
    before = [path for name, paths in JURIES.items() if name != jury for path in paths]
    command = [
        *(sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"),
        *(path for path in JURIES[jury] if (_ROOT / path).exists()),
        *(f"--ignore={path}" for path in before if path.endswith(".py")),
    ]
    environment = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            command,
            check=False,
            cwd=_ROOT,
            env=environment,
            capture_output=True,
            text=True,
            timeout=_LONGEST,
        )
    except subprocess.TimeoutExpired:
        return "they never end"
    if done.returncode == 0:
        return ""
    found = re.search(r"^(?:FAILED|ERROR) (\S+?::.+?)(?: - .*)?$", done.stdout, re.MULTILINE)
    return found[1].removeprefix("tests/unit/stages/") if found else done.stdout[-200:]


def main(arguments: Sequence[str]) -> int:
    """Judge all mutants, or those whose file or story has a word."""
    word = " ".join(arguments)
    chosen = [each for each in MUTANTS if word in each.file or word in each.story]
    sound = judge(None)
    if sound:
        print(f"Without any mutant '{sound.test}' fails: nothing can be told.")
        return 1
    survived = 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for verdict in pool.map(judge, chosen):
            assert verdict
            survived += not verdict.jury
            print(_line(verdict), flush=True)
    caught = len(chosen) - survived
    print(f"{caught} of {len(chosen)} mutants were noticed ({100 * caught // len(chosen)} %).")
    unexplained = survived - sum(each.story in EXPLAINED for each in chosen)
    return int(unexplained > 0 or caught < 0.9 * len(chosen))


def _line(verdict: Verdict) -> str:
    mutant = verdict.mutant
    if verdict.jury:
        told = f"noticed by {verdict.jury} ({verdict.test})"
    else:
        told = f"SURVIVED: {EXPLAINED.get(mutant.story, 'unexplained')}"
    return f"{mutant.file}: {mutant.story}\n    {told}, {verdict.seconds:.0f} s"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
