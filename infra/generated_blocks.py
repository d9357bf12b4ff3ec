"""Fill the generated blocks of a Markdown page, and leave the prose around them.

A block stands between `<!-- NAME -->` and `<!-- end -->`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

_BLOCK = re.compile(r"(<!-- (?!end -->)([\w -]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def fill(text: str, blocks: Mapping[str, str]) -> str:
    """Return a page with each block filled.

    Raises:
        ValueError: the page lacks a block, has one twice, or has one that nothing fills.
    """
    found = [name for _, name, _ in _BLOCK.findall(text)]
    if sorted(found) != sorted(blocks):
        odd = sorted({*found} ^ {*blocks}) or sorted({n for n in found if found.count(n) > 1})
        raise ValueError(f"these blocks are missing, unknown or twice on the page: {odd}")
    return _BLOCK.sub(lambda block: block[1] + blocks[block[2]] + block[3], text)


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown, ending with a newline."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines).replace("|  |", "| |")
