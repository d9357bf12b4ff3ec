"""JSON that is nested too deep for Python's decoder, with the depths of it cut off.

The decoder recurses, and fails on the whole of an answer where one object is nested some thousand
levels deep: a custom resource may be. What is cut off leaves enough to see which object it was.
"""

from __future__ import annotations

import json
import re
from typing import Any

from bellhop.core.nesting import DEEPEST

_KEPT = DEEPEST + 20
"""Levels that are kept: an object in a list is still seen to be nested too deep."""

# Possessive: a text of megabytes leaves no way back. One that never ends is a text up to the end:
# else each quote in it begins another search for its end.
_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)|[\[\]{}]', re.DOTALL)


def read_shallow(text: bytes) -> Any:
    """Return the value of JSON of any depth, in which null stands for what is nested too deep.

    Raises:
        ValueError: it is not JSON.
    """
    pieces, depth, kept = [], 0, 0
    for token in _TOKEN.finditer(text):
        mark = token[0][:1]
        if mark in b"[{":
            depth += 1
            if depth == _KEPT + 1:
                pieces.append(text[kept : token.start()] + b"null")
        elif mark in b"]}":
            if depth == _KEPT + 1:
                kept = token.end()
            depth -= 1
    if depth:
        raise ValueError("the JSON ends early")
    return json.loads(b"".join(pieces) + text[kept:])
