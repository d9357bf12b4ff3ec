"""Template text to tokens, as Go's text/template/parse reads it.

The lexer goes over the whole text at once and ends with EOF, LIMIT or ERROR; what an error means
is the parser's to say, when it gets there. Positions are indexes of characters; lines and columns
are counted only once somebody needs them.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, NamedTuple

from bellhop.gotemplate.limits import MAX_TOKENS
from bellhop.gotemplate.literals import quote

if TYPE_CHECKING:
    from collections.abc import Container

LEFT, RIGHT = "{{", "}}"

ERROR = "error"
EOF = "EOF"
LIMIT = "limit"
TEXT = "text"
SPACE = "space"
LEFT_DELIM = "left delim"
RIGHT_DELIM = "right delim"
LEFT_PAREN = "("
RIGHT_PAREN = ")"
PIPE = "|"
ASSIGN = "="
DECLARE = ":="
CHAR = "char"
BOOL = "bool"
FIELD = "field"
VARIABLE = "variable"
IDENTIFIER = "identifier"
NUMBER = "number"
COMPLEX = "complex"
CHAR_CONSTANT = "char constant"
STRING = "string"
RAW_STRING = "raw string"
DOT = "."

KEYWORDS = frozenset(
    "block break continue define else end if nil range template with".split()  # noqa: SIM905 - reads as the grammar does
)

_SPACES = " \t\r\n"
_LONG_TOKEN = 10
_ASCII = 128

_OPEN = re.compile(r"\{\{(-(?=[ \t\r\n]))?")
_CLOSE = re.compile(r"([ \t\r\n]-)?\}\}")
_BLANK = re.compile(r"(?:(?![ \t\r\n]-\}\})[ \t\r\n])++")
_WORD = re.compile(r"\w+")
_TERMINATOR = re.compile(r"[ \t\r\n.,|:)(]|\}\}|\Z")
_QUOTED = re.compile(r'"(?:[^"\\\n]++|\\[^\n])*+"')
_CHARACTER = re.compile(r"'(?:[^'\\\n]++|\\[^\n])*+'")
_DELIMITED = {
    '"': (_QUOTED, STRING, "unterminated quoted string"),
    "'": (_CHARACTER, CHAR_CONSTANT, "unterminated character constant"),
    "`": (re.compile("`[^`]*`"), RAW_STRING, "unterminated raw quoted string"),
}
_NUMBER = re.compile(
    r"[+-]?(?:"
    r"0[xX][0-9a-fA-F_]*(?:\.[0-9a-fA-F_]*)?(?:[pP][+-]?[0-9_]*)?"
    r"|0[oO][0-7_]*(?:\.[0-7_]*)?"
    r"|0[bB][01_]*(?:\.[01_]*)?"
    r"|[0-9_]*(?:\.[0-9_]*)?(?:[eE][+-]?[0-9_]*)?"
    r")i?"
)


class Token(NamedTuple):
    """A piece of the text: its kind, where it starts, and itself (or an error's message)."""

    kind: str
    position: int
    text: str

    def __str__(self) -> str:
        if self.kind == EOF:
            return "EOF"
        if self.kind == ERROR:
            return self.text
        if self.kind in KEYWORDS or self.kind == DOT:
            return f"<{self.text}>"
        if len(self.text) > _LONG_TOKEN:
            return quote(self.text[:_LONG_TOKEN]) + "..."
        return quote(self.text)


def tokenize(text: str, functions: Container[str] = ()) -> list[Token]:
    """Split a template into tokens; `break` and `continue` are words where functions say so."""
    return _Lexer(text, functions).run()


class _LexError(Exception):
    """Ends the scan; carries the error token."""

    def __init__(self, position: int, message: str) -> None:
        super().__init__(message)
        self.token = Token(ERROR, position, message)


class _Lexer:
    """One pass over one text."""

    def __init__(self, text: str, functions: Container[str]) -> None:
        self.text = text
        self.functions = functions
        self.position = 0
        self.depth = 0
        self.tokens: list[Token] = []

    def run(self) -> list[Token]:
        """Alternate between text and actions until the end or an error."""
        try:
            while self._plain_text() and len(self.tokens) <= MAX_TOKENS:
                self._action()
        except _LexError as error:
            self.tokens.append(error.token)
        else:
            end = EOF if len(self.tokens) <= MAX_TOKENS else LIMIT
            self.tokens.append(Token(end, self.position, "EOF"))
        return self.tokens

    def _emit(self, kind: str, start: int, end: int) -> None:
        self.tokens.append(Token(kind, start, self.text[start:end]))
        self.position = end

    def _plain_text(self) -> bool:
        """Take text and comments up to the next action; return whether there is one."""
        text = self.text
        while True:
            start = self.position
            found = text.find(LEFT, start)
            if found < 0:
                if start < len(text):
                    self._emit(TEXT, start, len(text))
                self.position = len(text)
                return False
            opening = _OPEN.match(text, found)
            trims = opening is not None and opening[1] is not None
            plain = text[start:found]
            if trims:
                plain = plain.rstrip(_SPACES)
            if plain:
                self.tokens.append(Token(TEXT, start, plain))
            inside = found + len(LEFT) + (2 if trims else 0)
            if not text.startswith("/*", inside):
                self.tokens.append(Token(LEFT_DELIM, found, LEFT))
                self.position = inside
                self.depth = 0
                return True
            self._comment(inside)

    def _comment(self, start: int) -> None:
        end = self.text.find("*/", start + 2)
        if end < 0:
            raise _LexError(start, "unclosed comment")
        closing = _CLOSE.match(self.text, end + 2)
        if closing is None:
            raise _LexError(start, "comment ends before closing delimiter")
        self.position = closing.end()
        if closing[1]:
            self._skip_blanks()

    def _skip_blanks(self) -> None:
        text, position = self.text, self.position
        while position < len(text) and text[position] in _SPACES:
            position += 1
        self.position = position

    def _action(self) -> None:
        """Take the tokens of one action and its closing delimiter."""
        text = self.text
        while len(self.tokens) <= MAX_TOKENS:
            start = self.position
            closing = _CLOSE.match(text, start)
            if closing is not None:
                if self.depth:
                    raise _LexError(start, "unclosed left paren")
                self.tokens.append(Token(RIGHT_DELIM, closing.end() - len(RIGHT), RIGHT))
                self.position = closing.end()
                if closing[1]:
                    self._skip_blanks()
                return
            if start >= len(text):
                raise _LexError(start, "unclosed action")
            blank = _BLANK.match(text, start)
            if blank is not None:
                self._emit(SPACE, start, blank.end())
            else:
                self._inside(text[start], start)

    def _inside(self, first: str, start: int) -> None:
        """Take one token inside an action; it is known to be neither space nor the end."""
        if first == ".":
            following = self.text[start + 1 : start + 2]
            if following and not ("0" <= following <= "9"):
                self._field_or_variable(start, FIELD, DOT)
            else:
                self._number(start)
        elif first == "$":
            self._field_or_variable(start, VARIABLE, VARIABLE)
        elif first in "+-0123456789":
            self._number(start)
        elif first == "_" or _is_word(first):
            self._identifier(start)
        else:
            self._sign(first, start)

    def _sign(self, first: str, start: int) -> None:
        if first in _DELIMITED:
            self._delimited(start, *_DELIMITED[first])
        elif first == ":":
            if not self.text.startswith(DECLARE, start):
                raise _LexError(start, "expected :=")
            self._emit(DECLARE, start, start + 2)
        elif first in "=|":
            self._emit(first, start, start + 1)
        elif first in "()":
            self._parenthesis(first, start)
        elif ord(first) < _ASCII and first.isprintable():
            self._emit(CHAR, start, start + 1)
        else:
            raise _LexError(start, f"unrecognized character in action: {_name(first)}")

    def _parenthesis(self, first: str, start: int) -> None:
        self.depth += 1 if first == LEFT_PAREN else -1
        if self.depth < 0:
            raise _LexError(start, "unexpected right paren")
        self._emit(first, start, start + 1)

    def _delimited(self, start: int, pattern: re.Pattern[str], kind: str, complaint: str) -> None:
        found = pattern.match(self.text, start)
        if found is None:
            raise _LexError(start, complaint)
        self._emit(kind, start, found.end())

    def _word_end(self, start: int) -> int:
        found = _WORD.match(self.text, start)
        if found is None:
            return start
        word = found[0]
        if not word.isascii():
            for offset, character in enumerate(word):
                if not _is_word(character):
                    return start + offset
        return found.end()

    def _must_terminate(self, start: int, end: int) -> None:
        if _TERMINATOR.match(self.text, end) is None:
            raise _LexError(start, f"bad character {_name(self.text[end])}")

    def _field_or_variable(self, start: int, kind: str, bare: str) -> None:
        if _TERMINATOR.match(self.text, start + 1) is not None:
            self._emit(bare, start, start + 1)
            return
        end = self._word_end(start + 1)
        self._must_terminate(start, end)
        self._emit(kind, start, end)

    def _identifier(self, start: int) -> None:
        end = self._word_end(start)
        self._must_terminate(start, end)
        word = self.text[start:end]
        kind = IDENTIFIER
        if word in KEYWORDS:
            if word not in ("break", "continue") or word not in self.functions:
                kind = word
        elif word in ("true", "false"):
            kind = BOOL
        self._emit(kind, start, end)

    def _number(self, start: int) -> None:
        end = self._number_end(start, start)
        if self.text[end : end + 1] in ("+", "-"):
            end = self._number_end(start, end)
            if self.text[end - 1] != "i":
                raise _LexError(start, f"bad number syntax: {quote(self.text[start:end])}")
            self._emit(COMPLEX, start, end)
        else:
            self._emit(NUMBER, start, end)

    def _number_end(self, start: int, begin: int) -> int:
        found = _NUMBER.match(self.text, begin)
        end = found.end() if found is not None else begin
        following = self.text[end : end + 1]
        if following and _is_word(following):
            raise _LexError(start, f"bad number syntax: {quote(self.text[start : end + 1])}")
        return end


def _is_word(character: str) -> bool:
    """Return whether Go calls this a letter, a decimal digit or an underscore."""
    if ord(character) < _ASCII:
        return character == "_" or character.isalnum()
    return unicodedata.category(character) in ("Lu", "Ll", "Lt", "Lm", "Lo", "Nd")


def _name(character: str) -> str:
    """Write a character as Go's %#U does."""
    code = f"U+{ord(character):04X}"
    return f"{code} '{character}'" if character.isprintable() else code
