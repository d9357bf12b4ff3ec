"""Print the figures of the project beside the most that each may be; fail if one rose.

--lower     write those that fell into the ratchet file
--word WORD list the files that have a word of `tests/house/words.py`
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Mapping

from tests.house import ratchet, source, words


def main() -> int:
    """Run what the command line says; return its exit code."""
    parser = ArgumentParser("python -m tests.house", description=__doc__.partition("\n")[0])
    parser.add_argument("--lower", action="store_true", help="write the figures that fell")
    parser.add_argument("--word", help="list the files that have this word", choices=words.WORDS)
    asked = parser.parse_args()
    if asked.word:
        _list(asked.word)
        return 0
    now = ratchet.figures()
    if asked.lower:
        ratchet.lower(now)
    _print(now, ratchet.most())
    problems = ratchet.risen(now)
    print("\n".join(problems), file=sys.stderr, end="\n" * bool(problems))
    return bool(problems)


def _print(now: Mapping[str, int], most: Mapping[str, int]) -> None:
    width = max(map(len, now))
    print(f"{'FIGURE':{width}}   {'NOW':>9}   {'AT MOST':>9}")
    for name, value in now.items():
        print(f"{name:{width}}   {value:9,}   {most.get(name, 0):9,}")


def _list(word: str) -> None:
    files = (*source.product(), *source.tests())
    counts = Counter(file for found, file in words.places(files) if found == word)
    for file, count in counts.most_common():
        print(f"{count:5} {file}")


sys.exit(main())
