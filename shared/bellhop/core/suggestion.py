"""The known word that an unknown one probably meant.

Both may come from a template's data, and comparing two long words takes `difflib` time in
proportion to the product of their lengths; so long words are not compared, nor very many.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from itertools import islice

_LONGEST = 100
"""Characters; comparing two words of so many takes 2 ms at worst."""

_MOST = 500


def closest(word: str, known: Iterable[str]) -> str:
    """Return the known word that is most like a word; empty when none is close."""
    if len(word) > _LONGEST:
        return ""
    short = (each for each in known if len(each) <= _LONGEST)
    return next(iter(difflib.get_close_matches(word, list(islice(short, _MOST)), n=1)), "")
