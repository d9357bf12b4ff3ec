"""Where a parser is: its place among the tokens, its depth, and how it refuses a text."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from bellhop.gotemplate import lexer
from bellhop.gotemplate.errors import DepthLimitError, ParseError, StepLimitError, place_at
from bellhop.gotemplate.limits import MAX_NESTING, MAX_TOKENS

if TYPE_CHECKING:
    from bellhop.gotemplate.lexer import Token

ENDS = (lexer.EOF, lexer.ERROR, lexer.LIMIT)
"""The kinds of token that nothing follows."""


class Cursor:
    """A position in the tokens of a text; it replaces Go's three tokens of look-ahead."""

    def __init__(self, name: str, text: str, tokens: list[Token]) -> None:
        self.name = name
        self.text = text
        self.tokens = tokens
        self.index = 0
        self.furthest = 0
        self.nesting = 0
        self.action_start: int | None = None

    def _next(self) -> Token:
        token = self.tokens[self.index]
        self.furthest = max(self.furthest, self.index)
        if token.kind in ENDS:
            self._ended(token)
        else:
            self.index += 1
        return token

    def _ended(self, token: Token) -> None:
        if token.kind == lexer.LIMIT:
            place = place_at(self.name, self.text, token.position)
            raise StepLimitError(f"more than {MAX_TOKENS} words and signs", place)

    def _peek(self) -> Token:
        self.furthest = max(self.furthest, self.index)
        return self.tokens[self.index]

    def _next_word(self) -> Token:
        token = self._next()
        if token.kind == lexer.SPACE:
            token = self._next()
        return token

    def _peek_word(self) -> Token:
        if self._peek().kind == lexer.SPACE:
            self._next()
        return self._peek()

    def _expect(self, kinds: tuple[str, ...], context: str) -> Token:
        token = self._next_word()
        if token.kind not in kinds:
            self._unexpected(token, context)
        return token

    # -- errors

    def _line(self, position: int) -> int:
        return self.text.count("\n", 0, position) + 1

    def _fail(self, message: str) -> NoReturn:
        place = place_at(self.name, self.text, self.tokens[self.furthest].position)
        raise ParseError(f"template: {self.name}:{place.line}: {message}", place)

    def _unexpected(self, token: Token, context: str) -> NoReturn:
        if token.kind != lexer.ERROR:
            self._fail(f"unexpected {token} in {context}")
        extra = ""
        if self.action_start is not None:
            line = self._line(self.action_start)
            if line != self._line(token.position):
                extra = f" in action started at {self.name}:{line}"
                if token.text.endswith(" action"):
                    extra = extra.removeprefix(" in action")
        self._fail(f"{token}{extra}")

    def _deeper(self) -> None:
        self.nesting += 1
        if self.nesting > MAX_NESTING:
            place = place_at(self.name, self.text, self.tokens[self.furthest].position)
            raise DepthLimitError(f"nested more than {MAX_NESTING} deep", place)
