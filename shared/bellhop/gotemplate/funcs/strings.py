"""Sprig's functions on text. Lengths and cuts count bytes, as in Go."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING, Any

from bellhop.gotemplate.errors import FunctionError
from bellhop.gotemplate.funcs.casting import out_of_range, strings_of, to_text_of
from bellhop.gotemplate.functions import Table
from bellhop.gotemplate.limits import CUTTING, SLOW
from bellhop.gotemplate.literals import quote, to_bytes, to_text
from bellhop.gotemplate.values import ANY, StringList, StringMap, to_string

if TYPE_CHECKING:
    from bellhop.gotemplate.limits import Budget

FUNCTIONS = Table()
_add = FUNCTIONS.add

SPACE = "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009"
SPACE += "\u200a\u2028\u2029\u202f\u205f\u3000"
_MIN_WIDTH, _MIN_WIDTH_WITH_OFFSET, _FREE_OFFSET, _ELLIPSIS = 4, 7, 4, "..."


@_add("hello")
def hello() -> str:
    return "Hello!"


# -- case


def _upper(character: str) -> str:
    changed = character.upper()
    return changed if len(changed) == 1 else character


def _lower(character: str) -> str:
    changed = character.lower()
    return changed if len(changed) == 1 else "i" if character == "\u0130" else character


def _title(character: str) -> str:
    changed = character.title()
    return changed if len(changed) == 1 else character


@_add("upper", "string", most=SLOW)
def upper(text: str) -> str:
    return text.upper() if text.isascii() else "".join(map(_upper, text))


@_add("lower", "string", most=SLOW)
def lower(text: str) -> str:
    return text.lower() if text.isascii() else "".join(map(_lower, text))


def _separates(character: str) -> bool:
    if character.isascii():
        return not (character.isalnum() or character == "_")
    return not (character.isalpha() or character.isdecimal()) and character in SPACE


@_add("title", "string", most=SLOW)
def title(text: str) -> str:
    """Begin each word with a capital letter."""
    out, start = [], True
    for character in text:
        out.append(_title(character) if start else character)
        start = _separates(character)
    return "".join(out)


@_add("untitle", "string", most=SLOW)
def untitle(text: str) -> str:
    """Begin each word with a small letter."""
    out, start = [], True
    for character in text:
        space = character in SPACE
        out.append(_lower(character) if start and not space else character)
        start = space
    return "".join(out)


@_add("swapcase", "string", most=SLOW)
def swapcase(text: str) -> str:
    """Swap the case of letters; a small letter at a word's start becomes a capital one."""
    out, start = [], True
    for character in text:
        category = unicodedata.category(character)
        if category in ("Lu", "Lt"):
            out.append(_lower(character))
            start = False
        elif category == "Ll":
            out.append(_title(character) if start else _upper(character))
            start = False
        else:
            out.append(character)
            start = character in SPACE
    return "".join(out)


# -- cutting


@_add("trim", "string")
def trim(text: str) -> str:
    return text.strip(SPACE)


@_add("trimAll trimall", "string", "string", budgeted=True)
def trim_all(budget: Budget, cutset: str, text: str) -> str:
    """Cut any of the characters off both ends."""
    budget.multiply(CUTTING, len(cutset), len(text))
    return text.strip(cutset) if cutset else text


@_add("trimSuffix", "string", "string")
def trim_suffix(suffix: str, text: str) -> str:
    return text.removesuffix(suffix)


@_add("trimPrefix", "string", "string")
def trim_prefix(prefix: str, text: str) -> str:
    return text.removeprefix(prefix)


@_add("nospace", "string", most=SLOW)
def nospace(text: str) -> str:
    return "".join(character for character in text if character not in SPACE)


@_add("trunc", "int", "string")
def trunc(count: int, text: str) -> str:
    """Keep the first bytes, or the last ones for a negative count."""
    data = to_bytes(text)
    if count < 0 and len(data) + count > 0:
        return to_text(data[len(data) + count :])
    if 0 <= count < len(data):
        return to_text(data[:count])
    return text


@_add("substr", "int", "int", "string")
def substr(start: int, end: int, text: str) -> str:
    """Return the bytes from start up to end; a negative one stands for that end of the text."""
    data = to_bytes(text)
    size = len(data)
    if start < 0:
        if not 0 <= end <= size:
            out_of_range(None, end, size)
        return to_text(data[:end])
    if end < 0 or end > size:
        end = size
    if start > end:
        out_of_range(start, end, size)
    return to_text(data[start:end])


@_add("abbrev", "int", "string")
def abbrev(width: int, text: str) -> str:
    """Shorten to a width, with an ellipsis."""
    return text if width < _MIN_WIDTH else _abbreviate(to_bytes(text), 0, width)


@_add("abbrevboth", "int", "int", "string")
def abbrevboth(left: int, right: int, text: str) -> str:
    """Shorten on both sides, with ellipses."""
    if right < _MIN_WIDTH or (left > 0 and right < _MIN_WIDTH_WITH_OFFSET):
        return text
    return _abbreviate(to_bytes(text), left, right)


def _abbreviate(data: bytes, offset: int, width: int) -> str:
    if len(data) <= width:
        return to_text(data)
    space = width - len(_ELLIPSIS)
    offset = min(offset, len(data))
    if len(data) - offset < space:
        offset = len(data) - space
    if offset <= _FREE_OFFSET:
        return to_text(data[:space]) + _ELLIPSIS
    if width < _MIN_WIDTH_WITH_OFFSET:
        return ""
    if offset + space < len(data):
        return _ELLIPSIS + _abbreviate(data[offset:], 0, space)
    return _ELLIPSIS + to_text(data[len(data) - space :])


@_add("initials", "string", most=SLOW)
def initials(text: str) -> str:
    """Return the first letter of each word."""
    out, gap = [], True
    for character in text:
        if character in SPACE:
            gap = True
        elif gap:
            out.append(character)
            gap = False
    return "".join(out)


# -- asking


@_add("contains", "string", "string")
def contains(part: str, text: str) -> bool:
    return part in text


@_add("hasPrefix", "string", "string")
def has_prefix(prefix: str, text: str) -> bool:
    return text.startswith(prefix)


@_add("hasSuffix", "string", "string")
def has_suffix(suffix: str, text: str) -> bool:
    return text.endswith(suffix)


# -- building


@_add("repeat", "int", "string", budgeted=True)
def repeat(budget: Budget, count: int, text: str) -> str:
    if count < 0:
        raise FunctionError("strings: negative Repeat count")
    budget.reserve(count * len(text))
    return text * count


@_add("indent", "int", "string", budgeted=True)
def indent(budget: Budget, spaces: int, text: str) -> str:
    """Begin every line with spaces."""
    if spaces < 0:
        raise FunctionError("strings: negative Repeat count")
    budget.reserve(len(text) + (text.count("\n") + 1) * spaces)
    pad = " " * spaces
    return pad + text.replace("\n", "\n" + pad)


@_add("nindent", "int", "string", budgeted=True)
def nindent(budget: Budget, spaces: int, text: str) -> str:
    """Begin a new line, then every line with spaces."""
    return "\n" + indent(budget, spaces, text)


@_add("replace", "string", "string", "string", budgeted=True)
def replace(budget: Budget, old: str, new: str, text: str) -> str:
    budget.reserve(len(text) + (text.count(old) if old else len(text) + 1) * len(new))
    return text.replace(old, new)


@_add("quote", f"...{ANY}", budgeted=True, most=SLOW)
def quote_all(budget: Budget, *values: Any) -> str:
    """Put values into double quotes, leaving nils out."""
    return " ".join(quote(to_text_of(v, budget)) for v in values if v is not None)


@_add("squote", f"...{ANY}", budgeted=True)
def squote(budget: Budget, *values: Any) -> str:
    """Put values into single quotes, leaving nils out."""
    return " ".join(f"'{to_string(v, budget)}'" for v in values if v is not None)


@_add("cat", f"...{ANY}", budgeted=True)
def cat(budget: Budget, *values: Any) -> str:
    """Write values with a space between them, leaving nils out."""
    return " ".join(to_string(v, budget) for v in values if v is not None)


@_add("plural", "string", "string", "int")
def plural(one: str, many: str, count: int) -> str:
    """Choose between the words for one and for many."""
    return one if count == 1 else many


@_add("toString", ANY, budgeted=True)
def to_string_(budget: Budget, value: Any) -> str:
    return to_text_of(value, budget)


@_add("toStrings", ANY, budgeted=True)
def to_strings(budget: Budget, value: Any) -> StringList:
    return StringList(strings_of(value, budget))


@_add("join", "string", ANY, budgeted=True)
def join(budget: Budget, separator: str, value: Any) -> str:
    items = strings_of(value, budget)
    budget.reserve(sum(map(len, items)) + len(separator) * len(items))
    return separator.join(items)


def _split(budget: Budget, separator: str, text: str, most: int = -1) -> list[str]:
    if most == 0:
        return []
    count = text.count(separator) + 1
    budget.spend(count if most < 0 or not separator else min(most, count))
    if not separator:
        parts = list(text)
        return parts if most < 0 or len(parts) <= most else [*parts[: most - 1], text[most - 1 :]]
    return text.split(separator, most - 1 if most > 0 else -1)


@_add("splitList", "string", "string", budgeted=True)
def split_list(budget: Budget, separator: str, text: str) -> StringList:
    return StringList(_split(budget, separator, text))


@_add("split", "string", "string", budgeted=True)
def split(budget: Budget, separator: str, text: str) -> StringMap:
    """Split a text into a map with the keys _0, _1 and so on."""
    return StringMap({f"_{i}": part for i, part in enumerate(_split(budget, separator, text))})


@_add("splitn", "string", "int", "string", budgeted=True)
def splitn(budget: Budget, separator: str, most: int, text: str) -> StringMap:
    """Split a text into at most so many parts."""
    return StringMap(
        {f"_{i}": part for i, part in enumerate(_split(budget, separator, text, most))}
    )


# -- wrapping


@_add("wrap", "int", "string", budgeted=True, most=SLOW)
def wrap(budget: Budget, width: int, text: str) -> str:
    """Break lines at spaces; long words stay whole."""
    budget.spend(len(text) // max(width, 1))
    return _wrap(text, width, "\n", cut_words=False)


@_add("wrapWith", "int", "string", "string", budgeted=True, most=SLOW)
def wrap_with(budget: Budget, width: int, newline: str, text: str) -> str:
    """Break lines with the given text; long words are cut."""
    budget.spend(len(text) // max(width, 1))
    budget.reserve(len(text) + len(text) // max(width, 1) * max(len(newline), 1))
    return _wrap(text, width, newline or "\n", cut_words=True)


def _wrap(text: str, width: int, newline: str, *, cut_words: bool) -> str:
    data, separator = to_bytes(text), to_bytes(newline)
    width = max(width, 1)
    out, offset = [], 0
    while len(data) - offset > width:
        if data[offset] == ord(" "):
            offset += 1
            continue
        end = offset + width
        space = data.rfind(b" ", offset, end + 1)
        if space < 0 and not cut_words:
            space = data.find(b" ", end)
            if space < 0:
                break
        if space >= 0:
            out += [data[offset:space], separator]
            offset = space + 1
        else:
            out += [data[offset:end], separator]
            offset = end
    out.append(data[offset:])
    return to_text(b"".join(out))
