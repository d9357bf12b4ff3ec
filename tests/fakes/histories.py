"""Plays thousands of histories: `python -m tests.fakes.histories 5000`, or a failure's note.

Four fifths are overlaps, interrupted at every step and at draws of steps; the rest are random
worlds. A wrong end is printed so that it can be played again; the exit status says whether
anything did. `BELLHOP_ALL_HISTORIES=1` plays those too that are known to end wrong.
"""

from __future__ import annotations

import os
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed

import hypothesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.fakes.declared import Key
from tests.fakes.draws import HISTORIES, STARTS, run
from tests.fakes.known import played
from tests.fakes.overlaps import OVERLAPS, SORTS, again, play, plays
from tests.fakes.world import Step

_CHUNK = 50
"""Worlds that one task plays."""

Result = tuple[str, int, list[str]]
"""What was played, how many histories, and what ended wrong."""


def overlaps(number: int, sort: str, count: int, seed: int) -> Result:
    """Play an overlap's histories; a half of one interruption, the others of two or any."""
    overlap = OVERLAPS[number]
    done, wrong = 0, []
    seeds = range(seed, seed + max(count // 4, 1))
    try:
        for chooser in plays(overlap, sort, most=max(count // 2, 1), twice=count // 4, seeds=seeds):
            done += 1
            try:
                play(overlap, chooser)
            except Exception as error:  # noqa: BLE001 - all are played, and reported
                wrong.append(_describe(error))
    except Exception as error:  # noqa: BLE001 - it ends wrong with nobody interrupted
        wrong.append(_describe(error))
    return f"{overlap.name} {sort}".strip(), done, wrong


def worlds(count: int, seed: int) -> Result:
    """Play random worlds."""
    done, failed = 0, False

    @hypothesis.seed(seed)
    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    @given(declared=STARTS, steps=HISTORIES, lively=st.booleans())
    def world(declared: dict[Key, int], steps: list[Step], lively: bool) -> None:  # noqa: FBT001
        nonlocal done, failed
        # What is tried to make a failure shorter is no history of its own.
        done += not failed
        try:
            run(declared, steps, lively=lively)
        except BaseException:
            failed = True
            raise

    try:
        world()
    except Exception as error:  # noqa: BLE001 - all are played, and reported
        return "a world", done, [f"the seed {seed}: {_describe(error)}"]
    return "a world", done, []


def main(arguments: Sequence[str]) -> int:
    """Play as many histories as asked for, or one that a failure printed."""
    if arguments and not arguments[0].isdigit():
        again(arguments[0])
        print("ended well")
        return 0
    count = int(arguments[0]) if arguments else 5000
    seed = int(arguments[1]) if len(arguments) > 1 else random.randrange(1_000_000)
    print(f"Playing {count} histories from the seed {seed} …", flush=True)
    begun = time.monotonic()
    counts: Counter[str] = Counter()
    wrong = []
    for name, done, failures in _all(count, seed):
        counts[name] += done
        wrong += failures
        for failure in failures:
            print(f"{name}: {failure}", flush=True)
    took = time.monotonic() - begun
    print(f"Played {counts.total()} histories of {len(counts)} sorts in {took:.0f} s;", end=" ")
    print(f"{len(wrong)} ended wrong." if wrong else "all ended well.")
    return bool(wrong)


def _all(count: int, seed: int) -> Iterator[Result]:
    chosen = [
        (number, sort)
        for number, overlap in enumerate(OVERLAPS)
        for sort in SORTS
        if played(overlap.name, sort)
    ]
    each = -(-count * 4 // 5 // len(chosen))
    chunks = -(-count // 5 // _CHUNK)
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        tasks = [pool.submit(overlaps, *one, each, seed) for one in chosen]
        tasks += [pool.submit(worlds, _CHUNK, seed + chunk) for chunk in range(chunks)]
        for task in as_completed(tasks):
            yield task.result()


def _describe(error: BaseException) -> str:
    lines = [f"{type(error).__name__}: {error}", *getattr(error, "__notes__", ())]
    return "\n    ".join(line for line in lines if line)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
