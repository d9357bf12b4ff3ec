"""camelCase, snake_case and kebab-case, with the word boundaries that sprig knows."""

from __future__ import annotations

import unicodedata
from typing import NamedTuple

from bellhop.gotemplate.funcs.strings import SPACE
from bellhop.gotemplate.functions import Table
from bellhop.gotemplate.limits import SLOWER

FUNCTIONS = Table()
_add = FUNCTIONS.add

_NUMBER, _UPPER, _ALPHABET, _CONNECTOR, _PUNCTUATION, _OTHER = range(6)


class _Word(NamedTuple):
    kind: int
    text: str


def _connects(character: str) -> bool:
    return character in "-_" or character in SPACE


def _category(character: str) -> str:
    return unicodedata.category(character)


def _is_upper(character: str) -> bool:
    return _category(character) == "Lu"


def _is_letter(character: str) -> bool:
    return _category(character) in ("Lu", "Ll") or _category(character) in ("Lt", "Lm", "Lo")


def _is_small(character: str) -> bool:
    return _is_letter(character) and not _is_upper(character)


def _is_number(character: str) -> bool:
    return _category(character).startswith("N")


def _is_punctuation(character: str) -> bool:
    return _category(character).startswith("P")


def _is_other(character: str) -> bool:
    return not (
        _connects(character)
        or _is_letter(character)
        or _is_number(character)
        or _is_punctuation(character)
    )


_KINDS = (
    (_CONNECTOR, _connects),
    (_PUNCTUATION, _is_punctuation),
    (_UPPER, _is_upper),
    (_ALPHABET, _is_letter),
    (_NUMBER, _is_number),
)


def _words(text: str) -> list[_Word]:
    """Split a text where the kind of character changes."""
    words, start = [], 0
    while start < len(text):
        kind, end = _word_at(text, start)
        words.append(_Word(kind, text[start:end]))
        start = end
    return words


def _word_at(text: str, start: int) -> tuple[int, int]:
    first = text[start]
    kind = next((kind for kind, test in _KINDS if test(first)), _OTHER)
    if kind == _UPPER:
        return kind, _capitals_end(text, start)
    test = {_CONNECTOR: _connects, _PUNCTUATION: _is_punctuation, _NUMBER: _is_number}.get(kind)
    if kind == _ALPHABET:
        test = _is_small
    return kind, _run(text, start + 1, test or _is_other)


def _run(text: str, position: int, test: object) -> int:
    while position < len(text) and test(text[position]):  # type: ignore[operator]
        position += 1
    return position


def _capitals_end(text: str, start: int) -> int:
    """End after `Word`, or before the last capital of `HTTPServer`."""
    end = start + 1
    if end < len(text) and _is_upper(text[end]):
        end = _run(text, end, _is_upper)
        return end - 1 if end < len(text) and _is_letter(text[end]) else end
    return _run(text, end, _is_small)


def _joined(text: str, connector: str) -> str:
    """Write words in small letters with connectors between them; digits stick to what follows."""
    words = _words(text)
    out: list[str] = []
    position = 0
    while position < len(words):
        word = words[position]
        following = words[position + 1] if position + 1 < len(words) else None
        out.append(_small(word, connector))
        position += 1
        if following is None:
            break
        if word.kind == _NUMBER:
            position = _glue(words, position, out, connector)
        elif word.kind in (_UPPER, _ALPHABET, _OTHER):
            if following.kind == _NUMBER:
                position = _number_after(words, position, out, connector)
            elif following.kind not in (_CONNECTOR, _PUNCTUATION):
                out.append(connector)
    return "".join(out)


def _glue(words: list[_Word], position: int, out: list[str], connector: str) -> int:
    """Take small words and numbers after a number without a connector."""
    while position < len(words) and words[position].kind in (_ALPHABET, _NUMBER):
        out.append(_small(words[position], connector))
        position += 1
    if position < len(words) and words[position].kind not in (_PUNCTUATION, _CONNECTOR):
        out.append(connector)
    return position


def _number_after(words: list[_Word], position: int, out: list[str], connector: str) -> int:
    """Decide whether a number belongs to the word before it or to the one after."""
    number = words[position]
    if position + 1 == len(words):
        return position
    if words[position + 1].kind != _ALPHABET:
        out.append(_small(number, connector))
        if words[position + 1].kind not in (_CONNECTOR, _PUNCTUATION):
            out.append(connector)
        return position + 1
    out.append(connector)
    out.append(_small(number, connector))
    return _glue(words, position + 1, out, connector)


def _small(word: _Word, connector: str) -> str:
    if word.kind not in (_UPPER, _CONNECTOR):
        return word.text
    return "".join(connector if _connects(c) else c.lower() for c in word.text)


@_add("snakecase", "string", most=SLOWER)
def snakecase(text: str) -> str:
    """Write words with underscores between them."""
    return _joined(text, "_")


@_add("kebabcase", "string", most=SLOWER)
def kebabcase(text: str) -> str:
    """Write words with hyphens between them."""
    return _joined(text, "-")


@_add("camelcase", "string", most=SLOWER)
def camelcase(text: str) -> str:
    """Write words together, each with a capital."""
    lead = 0
    while lead < len(text) and _connects(text[lead]):
        lead += 1
    if lead == len(text):
        return text + text[-1:]
    out, previous = [text[:lead]], text[lead].upper()
    for character in text[lead + 1 :]:
        if _connects(character) and _connects(previous):
            out.append(previous)
            continue
        if _connects(previous):
            previous = character.upper()
        else:
            out.append(previous)
            previous = character.lower()
    return "".join([*out, previous])
