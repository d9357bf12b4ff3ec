"""Keys of an object that a script can read, so that nothing else is converted for Lua.

A script gets at a key by saying it, or by going through all keys there are. Most say all that they
ask for: `obj.spec.ports` takes what stands at two keys, whatever else there is. For these an
object of any size costs what they say of it.
"""

from __future__ import annotations

import re

from bellhop.luabox import source

Keys = frozenset[str]

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)

REACHING = frozenset(
    _NAME.findall(
        "_G foreach foreachi getAnnotation getLabel getResource getfenv getmetatable gsub load "
        "loadstring next pairs rawget require setfenv setmetatable time"
    )
)
"""Names that read keys which a script does not spell out, or that lead to such names.

`gsub` looks up in a table what it found, and `os.time` reads the fields of a date.
"""

_ALWAYS = frozenset(("obj", "matching", "message"))
"""The object itself, and what is read of a table that a script returns, be it a part of that."""

_KEYWORDS = frozenset(
    _NAME.findall(
        "and break do else elseif end false for function if in local nil not or repeat return "
        "then true until while"
    )
)
_NUMBERED = re.compile(r"\[\s*\d+\s*\]", re.ASCII)


def keys_said(text: str) -> Keys | None:
    """Return all keys that a script may ask a table for by name, or None: any key there is.

    They are the names in its code, and the texts that it indexes by. By a number it gets at items
    of lists, which are kept whole; any other index may be any key.
    """
    texts: set[str] = set()
    code: list[str] = []
    for piece, word in source.parted(text):
        code.append(piece)
        if not word:
            continue
        if piece.rstrip().endswith("["):
            if word[0] not in "\"'" or "\\" in word:
                return None
            texts.add(word[1:-1])
            # Lua refuses an index by a text that is not closed: `[` and `]` are a pair here.
            code.append("1")
        else:
            code.append(" ")
    plain = "".join(code)
    if not plain.isascii() or "[" in _NUMBERED.sub("", plain):
        return None
    said = texts.union(_NAME.findall(plain)) - _KEYWORDS
    return None if said & REACHING else _ALWAYS | said
