"""The page on sizes has the figures of the pages that measured them, and names real settings."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from msgspec.structs import fields

from bellhop.settings import Settings
from infra.generated_blocks import fill
from tests.benchmarks import capacity
from tests.benchmarks.clouds.sizes import aws_sizes
from tests.docs.test_readme_figures import figures
from tests.missing import required

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/how-to/size-an-installation.md").read_text()
MODULES = [ROOT / "terraform/modules" / cloud for cloud in ("aws", "gcp")]


MACHINE = r"one machine, one process \| 100 \| 10 \| (\d+) \| ([\d.]+) of 1 \| (\d+ ms) \| (\d+ ms)"
LARGER = r"\| \| 500 \| 50 \| (\d+) \| ([\d.]+) of 1 \| (\d+ ms) \| (\d+ ms)"
CLOUD = r" \| 5,000 \| 500 \| ([\d,]+) \| (\d+ of 1,000) \| ([\d.]+ s) \| ([\d.]+ s)"
HOUR = r"\n\| 60 minutes \| (\d+ MB) \| \d+ \| \d+ \| ([\d.]+ MB) \| ([\d.]+ MB)"
IDLE = r"\*\*together\*\* \| \*\*(\$[\d.]+)\*\* \| \*\*(\$[\d.]+)\*\* "
MILLION = r"an event, 1 destination \|(?: \$[\d.]+ \|)+ (\$[\d.]+) \|\n"
THEN = r"(?s:.*)"

IN_PERFORMANCE = [
    (MACHINE, "without them gives {0} |"),
    (MACHINE, "| 100 | 10 | one machine | {1} of 1 process | {2} | {3} |"),
    (LARGER, "| 500 | 50 | one machine | {1} of 1 process | {2} | {3} |"),
    (
        r"\| \| 5,000 \| 500 \| \d+ \| ([\d.]+) of 1 \| falls behind",
        "| 5,000 | 500 | one machine | {} of 1 process: it falls behind",
    ),
    (f"AWS{CLOUD}", "| 5,000 | 500 | AWS | {1} workers | {2} | {3} |"),
    (f"Google Cloud{CLOUD}", "| 5,000 | 500 | Google Cloud | {1} workers | {2} | {3} |"),
    (f"AWS{CLOUD}{THEN}Cloud{CLOUD}", "with 1,000 workers (simulated) | {0} | {4} |"),
    (r"a thousand changes at once[^\n]*: (\d+) a second", "plan with {}, measured"),
    (r"`serve` with nothing to do \| `idle` \| quiet: ([\d.]+ %)", "nothing to do | {} of a core"),
    (HOUR, "20 events a second | {0} |"),
    (HOUR, "store {1}, queue {2}"),
    (r"an hour of (\d+) events a second \| `soak`", "an hour of {} events a second"),
    (
        r"a trigger on ([\d,]+) existing objects[^\n]*; (\d+ MB) of memory at most",
        "with {} matching objects deployed and withdrawn | {} at most",
    ),
    (r"child processes take (\d+ MiB) at most", "included | {} at most"),
    (r"some ([\d.]+ KB) an event", "growth of the disk | {} an event"),
    (r"200 clusters[^\n]*load 3: (\d+) clusters a second", "| {} clusters a second"),
    (r"a thousand objects applied[^\n]*Xeon: (\d+) objects a second", "| {} objects a second"),
]
IN_COSTS = [
    (r"requests of the deploy function at a time \| (\d+) \|", "| {} requests of deploy at a time"),
    (r"An event took ([\d.]+) seconds \(p99 ([\d.]+), [\d.]+ while", "at a time | {} s | {} s |"),
    (f"{IDLE}{THEN}{IDLE}", "of the installation | {0} | {2} |"),
    (f"{IDLE}{THEN}{IDLE}", "of each cluster | {1} | {3} |"),
    (f"{MILLION}{THEN}{MILLION}", "with one destination | {} | {} |"),
    (
        r"A new database allows (\d+) operations a second: (\w+) events",
        "{} operations a second of a new database: {} events",
    ),
    (
        r"200 events a second are [^\n]* allows about (\d+) minutes",
        "200 events a second need about {} minutes",
    ),
]
FIGURES = [
    *(("performance.md", *each) for each in IN_PERFORMANCE),
    *(("costs.md", *each) for each in IN_COSTS),
]


@pytest.mark.parametrize(("page", "pattern", "words"), FIGURES)
def test_a_figure_is_what_its_page_says(page: str, pattern: str, words: str) -> None:
    """A figure that is measured again changes in both places."""
    assert words.format(*figures(page, pattern)) in PAGE


def test_settings_are_named_as_they_are_read() -> None:
    """The defaults beside them, too."""
    named = set(re.findall(r"`BELLHOP_(\w+)`", PAGE))
    known = {each.name.upper() for each in fields(Settings)}
    defaults = Settings()

    assert named
    assert named <= known
    assert f"`BELLHOP_LEDGER_MEGABYTES` ({defaults.ledger_megabytes})" in PAGE
    assert f"`BELLHOP_LEDGER_DAYS` ({defaults.ledger_days})" in PAGE


def test_variables_are_those_of_the_modules() -> None:
    """A variable in a cloud's column is one of its module."""
    table = PAGE.partition("### When a cloud is too small")[2].partition("\n\n##")[0]
    for row in re.findall(r"^\| [^|]+ \| ([^|]+) \| ([^|]+) \|$", table, re.MULTILINE)[1:]:
        for module, cell in zip(MODULES, row, strict=True):
            text = (module / "variables.tf").read_text()
            variables = set(re.findall(r'^variable "(\w+)"', text, re.MULTILINE))
            fields_of = set(re.findall(r"^    (\w+) +=", text, re.MULTILINE))
            stages = {"ingest", "schedule"}
            named = {each.partition(" ")[0] for each in re.findall(r"`([^`]+)`", cell)}
            assert named <= variables | fields_of | stages


def test_the_tables_of_capacity_are_what_was_simulated() -> None:
    """Results and tables are written together: `python -m tests.benchmarks.capacity`."""
    assert fill(PAGE, capacity.blocks(capacity.stored())) == PAGE


@pytest.mark.parametrize(("cloud", "size"), sorted({each[:2] for each in capacity.LOADS}))
def test_the_capacity_is_that_of_the_module(cloud: str, size: int) -> None:
    """Other queues or limits of a module need another simulation."""
    with required():
        limits = capacity.read_limits(cloud, size)

    results = capacity.stored()
    loads = [each for each in capacity.LOADS if each[:2] == (cloud, size)]
    assert [results[capacity.name(*load[:3])]["at_once"] for load in loads] == [limits] * len(loads)


@pytest.mark.parametrize("concurrency", [10, 100, 1000])
def test_no_execution_is_left_idle_by_all(concurrency: int) -> None:
    """The queues share all but the tenth, and at least two, of ingest and the schedule."""
    with required():
        sizes = aws_sizes(concurrency)

    spared = max(2, concurrency // 10)
    assert sum(each.most for each in sizes.feeds.values()) == concurrency - spared


def test_the_benchmark_is_there() -> None:
    """Its arguments are clusters, sources and events."""
    for module in re.findall(r"python -m ([\w.]+)", PAGE):
        assert (ROOT / f"{module.replace('.', '/')}.py").exists()
