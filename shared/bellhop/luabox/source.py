"""Refuses what may be loaded but must not be run.

Two things can corrupt the memory of the process, sandbox or not: precompiled code, which
Lua 5.1 loads unchecked, and CVE-2014-5461: calling a function that names parameters before
`...` with fewer arguments writes beyond the stack, one slot for each that is missing. The
stack has three slots to spare, so three names are harmless.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

MOST_NAMED = 3

_OPENING = re.compile(r"""--\[=*\[|--|\[=*\[|["']""")
_LINE_END = re.compile(r"[\r\n]")
_CONCAT = re.compile(r"(?<!\.)\.\.(?!\.)")
_JOINT = "__joint"
_JOINED = f"..{_JOINT}.."
_FUNCTION = re.compile(r"\bfunction\b", re.ASCII)
_LOCAL_FUNCTION = re.compile(r"\blocal\s+function\s+\w+", re.ASCII)
_ANY_GLOBAL = re.compile(r"\b(?:_G|getfenv|setfenv|loadstring|load)\b", re.ASCII)
_PARENTHESIS = re.compile(r"([()])")
_SURROGATE = re.compile("[\ud800-\udfff]")


def objection(text: str) -> tuple[int, str] | None:
    """Return the line and the reason why a script must not be loaded, or None."""
    if text.startswith("\x1b"):
        return 1, "precompiled code is not accepted"
    half = _SURROGATE.search(text)
    if half:
        line = text.count("\n", 0, half.start()) + 1
        return line, "it has half a letter, a surrogate without its pair"
    if "..." not in text:
        return None
    for line, before, names in _parenthesized(_blank_words(text)):
        many = names[-1].strip() == "..." and len(names) - 1 > MOST_NAMED
        if many and _FUNCTION.search(before):
            return line, f"a function with '...' may name at most {MOST_NAMED} parameters"
    return None


def may_define(text: str, name: str) -> bool:
    """Return whether a script may define a global function of a name, as far as its text shows.

    One that never says the name, or only as that of a local function, does not, unless it reaches
    its globals by names that it makes up.
    """
    code = "".join(code + ("" if word.startswith("--") else word) for code, word in parted(text))
    if _ANY_GLOBAL.search(code):
        return True
    said = re.compile(rf"\b{re.escape(name)}\b", re.ASCII)
    return bool(said.search(_LOCAL_FUNCTION.sub(" ", code)))


def _parenthesized(code: str) -> Iterator[tuple[int, str, list[str]]]:
    """Yield what innermost parentheses hold, parted, with the line and what stands before them.

    Each letter is looked at once: one pattern for all of it would search on from every `function`.
    """
    parts = _PARENTHESIS.split(code)
    line = 1
    for before, opening, held, closing in zip(
        parts[::2], parts[1::2], parts[2::2], parts[3::2], strict=False
    ):
        line += before.count("\n")
        if opening == "(" and closing == ")":
            yield line, before, held.split(",")


def jointed(text: str) -> str | None:
    """Return a text with a joint in each `..`, which is what the chunk is called with.

    None where nothing is joined, or where the script says itself how its tables are.
    """
    if ".." not in text or "__concat" in text:
        return None
    made = "".join(_CONCAT.sub(_JOINED, code) + word for code, word in parted(text))
    return None if made == text else f"local {_JOINT} = ... {made}"


def parted(text: str) -> Iterator[tuple[str, str]]:
    """Yield code, each with the comment or string behind it; the last piece has none.

    One that never ends goes to the end of the text: Lua will say so.
    """
    at = 0
    while found := _OPENING.search(text, at):
        end = _end_of(text, found)
        yield text[at : found.start()], text[found.start() : end]
        at = end
    yield text[at:], ""


def _blank_words(text: str) -> str:
    """Return the text without comments and strings, its line ends kept."""
    return "".join(code + " " + "\n" * word.count("\n") for code, word in parted(text))


def _end_of(text: str, opening: re.Match[str]) -> int:
    """Return where a comment or string ends: with the text, if it never does."""
    mark, start = opening[0], opening.end()
    if mark.endswith("["):
        closing = mark.lstrip("-").replace("[", "]")
        end = text.find(closing, start)
        return end + len(closing) if end >= 0 else len(text)
    if mark == "--":
        line_end = _LINE_END.search(text, start)
        return line_end.start() if line_end else len(text)
    while start < len(text):
        if text[start] == mark:
            return start + 1
        start += 2 if text[start] == "\\" else 1
    return len(text)
