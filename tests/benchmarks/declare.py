"""Applying, the event log, commands: `python -m tests.benchmarks.declare [RULES] [LINES] [ROUNDS]`.

RULES sources and as many triggers beside a tenth of them, in one process and from one file; one
more beside RULES and beside ten; the last lines of an event log of LINES beside those of a
hundredth of it; commands beside an empty Python.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path

import yaml

from bellhop.api.kinds import of
from bellhop.runtime.embedded.state import open_state
from bellhop.settings import Settings
from bellhop.state.cluster import Cluster
from bellhop.state.event_log import Entry
from tests.benchmarks.catalog import rules
from tests.benchmarks.figures import ROOT, in_turns, run, spread, table
from tests.fakes.fleet import Fleet

SMALLEST = (2, 40, 1)
CLUSTERS = 3
MORE = 9
"""How often one more is applied in a round: the blob is rewritten now and then."""

Pairs = Sequence[tuple[str, str, str]]
"""Rows: what they are called, which figures, and beside which."""


def timed(act: Callable[[], object]) -> float:
    """Return the ms that something takes."""
    begun = time.perf_counter()
    act()
    return (time.perf_counter() - begun) * 1000


def declaring(count: int) -> list[float]:
    """Declare many rules at once, and then one more several times; return the ms of both."""
    with tempfile.TemporaryDirectory() as folder:
        fleet = Fleet(Path(folder))
        for number in range(CLUSTERS):
            labels, digest = {"env": "prod"}, f"{number:064}"
            made = Cluster("fleet", f"c{number}", labels, "v1.34.2", digest, fleet.clock.now())
            fleet.declare.register(made)
        many = [of(each) for number in range(count) for each in rules(number)]
        took = timed(lambda: fleet.declare.apply(many))
        more = []
        for number in range(count, count + MORE):
            one = [of(rules(number)[0])]
            more.append(timed(lambda one=one: fleet.declare.apply(one)))
        fleet.close()
    return [took, statistics.median(more)]


def command(state: Path, *arguments: str) -> list[float]:
    """Return the ms that a command takes, from the start of its process to its end."""
    program = [sys.executable, "-m", "bellhop.cli.main", *arguments]
    if not arguments:
        program = [sys.executable, "-c", "pass"]
    environment = {**os.environ, "BELLHOP_STATE": str(state)}
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    return [timed(lambda: subprocess.run(program, check=True, env=environment, cwd=ROOT, **quiet))]


def applying(count: int) -> list[float]:
    """Apply one file of many rules, and then one of one more; return the ms of both."""
    with tempfile.TemporaryDirectory() as folder:
        state, many, one = (Path(folder) / name for name in ("state", "many.yaml", "one.yaml"))
        many.write_text(yaml.safe_dump_all(e for number in range(count) for e in rules(number)))
        one.write_text(yaml.safe_dump(rules(count)[0]))
        return [*command(state, "apply", "-f", str(many)), *command(state, "apply", "-f", str(one))]


def write_lines(state: Path, lines: int) -> None:
    """Note lines of the last hour, four an event, and write them as often as `serve` does."""
    opened = open_state(state, Settings())
    event_log, now = opened.installation.records.ledger, opened.installation.records.clock.now()
    event_log.gather()
    written = 0
    for number in range(lines):
        since = 3500 * number / lines
        at = now - timedelta(seconds=3500 - since)
        what = ("rang", "matched", "rendered", "applied")[number % 4]
        key = f"/v1/Service/default/s{number // 4}"
        event_log.note(Entry(at, f"{number // 4:032x}", what, "fleet/c0", key, took_ms=1.5))
        if int(2 * since) > written:
            written = int(2 * since)
            event_log.flush()
    event_log.flush()
    opened.close()


def rows(pairs: Pairs, found: Mapping[str, Sequence[float]]) -> dict[str, list[str]]:
    """Return a row for each figure, with how many times another one it is, round by round."""
    made = {}
    for name, which, beside in pairs:
        ratios = [ms / under for ms, under in zip(found[which], found[beside], strict=True)]
        made[name] = [spread(found[which]), spread(ratios, 2)]
    return made


def declared(count: int, few: int, rounds: int) -> None:
    """Print what declaring costs, in one process and by the command line."""
    blocks = {
        "many": partial(declaring, count),
        "tenth": partial(declaring, few),
        "ten": partial(declaring, 10),
        "file": partial(applying, count),
        "ten_by_file": partial(applying, 10),
    }
    found = {}
    for name, measured in in_turns(rounds, **blocks).items():
        found[name] = [each[0] for each in measured]
        found[f"beside {name}"] = [each[1] for each in measured]
    pairs = [
        (f"Declare.apply, {few} and {few}", "tenth", "tenth"),
        (f"Declare.apply, {count} and {count}", "many", "tenth"),
        ("one more beside 10", "beside ten", "beside ten"),
        (f"one more beside {count}", "beside many", "beside ten"),
        (f"bellhop apply, {count} and {count}", "file", "many"),
        ("bellhop apply, one more beside 10", "beside ten_by_file", "beside ten_by_file"),
        (f"bellhop apply, one more beside {count}", "beside file", "beside ten_by_file"),
    ]
    table("declaring", rows(pairs, found), "ms", "ratio")


def measure_commands(lines: int, rounds: int) -> None:
    """Print the cost of commands, and the event log's bytes."""
    few = max(4, lines // 100)
    with tempfile.TemporaryDirectory() as folder:
        much, little = Path(folder) / "much", Path(folder) / "little"
        write_lines(much, lines)
        write_lines(little, few)
        blocks = {
            "bare": partial(command, little),
            "help": partial(command, little, "--help"),
            "clusters": partial(command, little, "get", "clusters"),
            "few": partial(command, little, "show", "events"),
            "many": partial(command, much, "show", "events"),
            "all": partial(command, much, "show", "events", "--limit", "0", "-o", "json"),
        }
        measured = in_turns(rounds, **blocks)
        size = sum(path.stat().st_size for path in much.glob("store.db*")) / 1024
    found = {name: [each[0] for each in values] for name, values in measured.items()}
    pairs = [
        ("python -c pass", "bare", "bare"),
        ("bellhop --help", "help", "bare"),
        ("bellhop get clusters", "clusters", "bare"),
        (f"bellhop show events, of {few} lines", "few", "bare"),
        (f"bellhop show events, of {lines} lines", "many", "few"),
        (f"bellhop show events, all {lines} lines", "all", "few"),
    ]
    table("commands", rows(pairs, found), "ms", "ratio")
    print(f"{lines} lines of an hour, four an event: {size * 4000 / lines:.0f} KiB a 1,000 events")


def main(count: int = 1000, lines: int = 100_000, rounds: int = 5) -> None:
    """Print what each takes, and how many times what stands beside it."""
    declared(count, max(1, count // 10), rounds)
    measure_commands(lines, rounds)


if __name__ == "__main__":
    run(main)
