"""Breaks the code in each listed way, and tells who notices: `python -m tests.mutants [WORD]`.

Each mutant gets a copy of the package of its own. The tests nearest to it are asked first, then
all those of the stages and the records, then the histories; the first failure is enough. The
exit status says whether any mutant survived that is not explained, or more than one in ten did.
"""

from __future__ import annotations

import compileall
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

ROOT = PACKAGE.parents[1]
_LONGEST = 300
"""Seconds after which tests that do not end have noticed something, or so many times as long as
those of the sound code took."""

_PATIENCE = 5
_STAGES = "tests/unit/stages/test_"
_LONG = (f"{_STAGES}ingest_hostile.py", f"{_STAGES}dialects.py")
_HISTORIES = (f"{_STAGES}interleaving.py", f"{_STAGES}properties.py")
_DEPLOYED = (
    "phases giving_up paused_clusters checks order order_races turns dry_run outcomes holding"
    " races ownership overlap hosting hosting_faults elsewhere referring turn_races"
    " revoking_races"
)
_NEAR = {
    "stages/checks": "checks check_jobs hosting",
    "stages/jobs": "check_jobs",
    "engine/jobs": "check_jobs",
    "stages/metrics": "check_metrics",
    "engine/checking": "checks",
    "fleet/redeploying": "checks giving_up",
    "stages/claim": "ownership transitions failures overlap",
    "stages/work": "dry_run giving_up once reloading",
    "stages/deployer": _DEPLOYED,
    "stages/execute": _DEPLOYED,
    "stages/ending": (
        "giving_up paused_clusters checks outcomes failures order pipeline overlap races dry_run"
        " contests departures"
    ),
    "stages/hands": "hands phases",
    "stages/lease": "holding races ownership overlap hosting_faults",
    "stages/features/resources/step": (
        "handling ownership holding failures races role_requests adopting drift"
    ),
    "stages/features/helm": "chart_readiness chart_lane charts",
    "stages/features/resources/preview": "dry_run drift",
    "stages/features/resources/comparing": "dry_run",
    "stages/features/resources/reading": "service_accounts tenants referring",
    "stages/features/resources/reloading": "reloading",
    "stages/renderings": "rollback",
    "stages/elsewhere": "elsewhere",
    "stages/mounts": "elsewhere reloading",
    "stages/watch": "elsewhere reloading drift",
    "fleet/rollback": "rollback",
    "engine/scripting": "scripted",
    "stages/features/resources/executor": (
        "service_accounts phases ownership holding races overlap hosting_faults"
    ),
    "stages/features/resources/wants": "hosting hosting_faults",
    "stages/features/resources/adopting": "adopting profiles",
    "stages/features/resources/drift": "drift contests",
    "stages/features/resources/planning": (
        "adopting hosting phases ownership overlap failures pipeline"
    ),
    "stages/hosting": "hosting hosting_faults",
    "stages/features/": "phases ownership holding races overlap failures pipeline",
    "stages/pacing": "patience",
    "stages/permitting": "permits role_requests",
    "stages/evaluate": "permits patience trails cloud_events overlap pipeline lost failures",
    "stages/objects": "gathering guard",
    "stages/guard": "guard agreeing assessing",
    "stages/agreeing": "agreeing",
    "stages/reports": "gathering guard",
    "engine/guarding": "guard",
    "stages/loops": "loops",
    "engine/looping": "loops",
    "stages/titles": "titles named_profiles generators",
    "stages/instantiate": (
        "paused_clusters named_profiles loops gathering overlap pipeline profiles failures dry_run"
    ),
    "stages/resolve": (
        "races checks order order_races service_accounts own_profiles pipeline profiles"
    ),
    "stages/writer": (
        "named_profiles rollback scripted departures titles races gathering overlap pipeline"
        " profiles failures"
    ),
    "stages/aggregate": "aggregate classifying assessing",
    "stages/declare": (
        "declaring new_names classifying order touched overlap pipeline healing races hosting"
    ),
    "stages/consequences": (
        "drift hosting rollback elsewhere touched overlap pipeline healing races paused_sources"
    ),
    "stages/choosing": "sets",
    "stages/classifying": "classifying",
    "stages/following": "cloud_events classifying",
    "stages/arriving": "cloud_events",
    "stages/concluding": "cloud_events",
    "stages/expiry": "cloud_events",
    "stages/look": "cloud_events",
    "stages/hearing": "hearing",
    "stages/subscribing": "subscribing",
    "stages/granting": "role_requests role_request_races",
    "stages/revoking": "revoking revoking_races",
    "stages/transitions": "transitions",
    "engine/leaving": "revoking",
    "stages/order": "order order_races named_profiles revoking_races revoking",
    "stages/turns": "turns turn_races paused_clusters",
    "stages/pauses": "paused_clusters",
    "engine/order": "order",
    "stages/hints": "elsewhere drift sweep",
    "stages/in": "ingest outside cloud_events drift overlap",
    "stages/batch": "ingest own_writes drift overlap",
    "stages/recorder": "ingest cloud_events drift overlap",
    "stages/outside": "outside",
    "stages/sweep": (
        "elsewhere classifying permits sweep survey walks healing cloud_events guard sets"
    ),
    "stages/survey": "survey drift once",
    "stages/schedule": "full_ticks schedule",
    "stages/": "sweep survey walks healing schedule ingest pipeline",
    "engine/assessing": "assessing",
    "engine/catalog": "permits tenants touched sets order assessing",
    "engine/classifying": "classifying",
    "engine/choosing": "sets",
    "engine/excluding": "drift",
    "engine/instantiate": "scripted touched order pipeline",
    "engine/contending": "contests",
    "engine/difference": "healing tenants classifying touched order named_profiles assessing",
    "engine/granting": "role_requests",
    "engine/generating": "generators checks service_accounts permits pipeline named_profiles",
    "engine/listening": "cloud_events",
    "engine/": "touched order pipeline ownership races tenants",
    "model/record": "named_profiles outside",
    "model/rollout": "turns",
    "model/": "tenants",
    "records/timers": "schedule",
    "records/versions": "service_accounts paused_clusters sets",
    "records/catalogs": "tenants",
    "records/departures": "departures",
    "records/senders": "outside",
    "records/readers": "elsewhere",
    "records/records": "elsewhere",
    "records/": "overlap races sweep",
    "messages": "overlap ownership",
    "fleet/noticing": "assessing",
    "": "lost",
}
"""The tests that are asked first about a file, by how its name begins."""

_ELSEWHERE = {
    "adapters/notices": "tests/unit/adapters/notices",
    "engine/catalog": "tests/unit/engine/test_catalog.py",
    "engine/classifying": "tests/unit/engine/test_classifying.py",
    "engine/leaving": "tests/unit/engine/test_leaving.py",
    "engine/liveness": "tests/unit/engine/test_liveness.py",
    "engine/pausing": "tests/unit/engine/test_pausing.py",
    "fleet/noticing": "tests/unit/fleet/test_noticing.py",
    "records/": "tests/unit/records",
    "stages/sweep": "tests/unit/fleet/test_noticing.py",
    "engine/assessing": "tests/unit/engine/test_assessing.py",
    "engine/checking": "tests/unit/engine/test_checking.py",
    "engine/wording": "tests/unit/fleet/test_noticing.py",
    "forwarder/debt": "tests/infra/test_forwarder_desk.py",
    "forwarder/desk": "tests/infra/test_forwarder_desk.py",
    "messages": "tests/unit/test_messages.py tests/unit/records/test_versions.py",
}
"""Tests that lie elsewhere than those of the stages, and are asked before them."""

_FAILED = (1, 2)
"""What pytest ends with where a test fails, or cannot be read; all else tells of the question."""

JURIES = ("its own tests", "contracts", "histories")
"""Who may notice, in this order."""


@dataclass(frozen=True)
class Verdict:
    """Who noticed a mutant; "" for nobody."""

    mutant: Mutant
    jury: str
    test: str
    seconds: float


def judge(mutant: Mutant | None, longest: float = 3600) -> Verdict | None:
    """Let all who may notice try; None, which is no mutant, must go unnoticed."""
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        package = Path(folder) / PACKAGE.name
        shutil.copytree(PACKAGE, package)
        if mutant:
            mutant.apply(package)
        for jury in JURIES:
            test = _noticed(jury, mutant.file if mutant else "", Path(folder), longest)
            if test:
                seconds = time.monotonic() - begun
                return Verdict(mutant or MUTANTS[0], jury, test, seconds)
    return Verdict(mutant, "", "", time.monotonic() - begun) if mutant else None


def _noticed(jury: str, file: str, folder: Path, longest: float) -> str:
    """Run tests against a copy; return the first that fails, "" if none does."""
    command = [
        *(sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"),
        *asked(jury, file),
    ]
    # A mutant's copy has the bytecode of what it left as it was: compiling takes longer than tests.
    environment = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": ""}
    try:
        done = subprocess.run(
            command,
            check=False,
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            timeout=longest,
        )
    except subprocess.TimeoutExpired:
        return "they never end"
    if done.returncode == 0:
        return ""
    if done.returncode not in _FAILED:
        raise RuntimeError(f"cannot ask {jury} about {file}: {done.stderr.strip()[-200:]}")
    found = re.search(r"^(?:FAILED|ERROR) (\S+?::.+?)(?: - .*)?$", done.stdout, re.MULTILINE)
    return found[1].removeprefix("tests/unit/stages/") if found else done.stdout[-200:]


def asked(jury: str, file: str) -> list[str]:
    """Say which tests are asked about a file, and in which order."""
    words = next(words for name, words in _NEAR.items() if file.startswith(name)).split()
    near = [f"{_STAGES}{word}.py" for word in words]
    found = (tests for name, tests in _ELSEWHERE.items() if file.startswith(name))
    near[:0] = [each for tests in found for each in tests.split()]
    if jury == "its own tests":
        return near
    if jury == "histories":
        return [*_HISTORIES]
    every = sorted((ROOT / "tests/unit/stages").glob("test_*.py"))
    names = (str(path.relative_to(ROOT)) for path in every)
    quick = [name for name in names if name not in {*near, *_LONG, *_HISTORIES}]
    return [*quick, "tests/unit/records", "tests/unit/test_messages.py", *_LONG]


def main(arguments: Sequence[str]) -> int:
    """Judge all mutants, or those whose file or story has a word."""
    word = " ".join(arguments)
    chosen = [each for each in MUTANTS if word in each.file or word in each.story]
    compileall.compile_dir(PACKAGE, quiet=2)
    begun = time.monotonic()
    sound = judge(None)
    longest = max(_LONGEST, _PATIENCE * (time.monotonic() - begun))
    if sound:
        print(f"Without any mutant '{sound.test}' fails: nothing can be told.")
        return 1
    survived = 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for verdict in pool.map(lambda each: judge(each, longest), chosen):
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
