"""Pipelines of a template: declarations, commands and operands, and the variables they see."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bellhop.gotemplate import lexer, nodes
from bellhop.gotemplate.cursor import ENDS, Cursor
from bellhop.gotemplate.literals import (
    parse_character,
    parse_complex,
    parse_number,
    quote,
    unquote,
)

if TYPE_CHECKING:
    from collections.abc import Container

    from bellhop.gotemplate.lexer import Token

UNDEFINED = -1
"""The slot of a variable that the grammar lets pass, though it has no value when it is read."""

STRINGS = (lexer.STRING, lexer.RAW_STRING)
_NUMBERS = (lexer.NUMBER, lexer.COMPLEX, lexer.CHAR_CONSTANT)
_OPERANDS = frozenset(
    (
        lexer.BOOL,
        lexer.DOT,
        lexer.FIELD,
        lexer.IDENTIFIER,
        "nil",
        lexer.VARIABLE,
        lexer.LEFT_PAREN,
        *STRINGS,
        *_NUMBERS,
    )
)
_NOT_EXECUTABLE = (nodes.Bool, nodes.Dot, nodes.Nil, nodes.NumberConstant, nodes.String)


class Scope:
    """The variables one body can see, and how many slots its frame needs."""

    def __init__(self) -> None:
        self.visible: list[tuple[str, int]] = [("$", 0)]
        self.slots = 1
        self.loops = 0

    def find(self, name: str) -> int | None:
        """Return the slot of the innermost variable of that name."""
        for known, slot in reversed(self.visible):
            if known == name:
                return slot
        return None

    def leave(self, mark: int) -> None:
        """Forget what one arm declared, for the next: there its names are known, and not set.

        As Go has it, which parses all arms as one scope, and looks variables up as it runs.
        """
        left = dict.fromkeys(name for name, _ in self.visible[mark:])
        del self.visible[mark:]
        if left:
            known = {name for name, _ in self.visible}
            self.visible.extend((name, UNDEFINED) for name in left if name not in known)

    def mention(self, name: str) -> None:
        """Let a name be used from here on that has no value yet."""
        if self.find(name) is None:
            self.visible.append((name, UNDEFINED))

    def declare(self, name: str) -> int:
        """Give a new variable its slot."""
        slot = self.slots
        self.slots += 1
        self.visible.append((name, slot))
        return slot


class PipelineParser(Cursor):
    """The rules of pipelines, one method each."""

    def __init__(
        self, name: str, text: str, tokens: list[Token], functions: Container[str]
    ) -> None:
        super().__init__(name, text, tokens)
        self.functions = functions
        self.scope = Scope()

    def _pipeline(self, context: str, end: str) -> nodes.Pipeline:
        pipeline = nodes.Pipeline(self._peek_word().position)
        names = self._declarations(pipeline, context)
        while True:
            token = self._next_word()
            if token.kind == end:
                self._check(pipeline, context)
                break
            if token.kind not in _OPERANDS:
                self._unexpected(token, context)
            self.index -= 1
            pipeline.commands.append(self._command())
        for name, position in names:
            slot = self.scope.find(name) if pipeline.assigns else self.scope.declare(name)
            pipeline.variables.append(
                nodes.Variable(position, name, UNDEFINED if slot is None else slot)
            )
        return pipeline

    def _declarations(self, pipeline: nodes.Pipeline, context: str) -> list[tuple[str, int]]:
        """Read `$x :=`, `$x =` or range's `$i, $x :=`; a mere `$x` is left for the commands."""
        names: list[tuple[str, int]] = []
        while self._peek_word().kind == lexer.VARIABLE:
            start = self.index
            variable = self._next()
            following = self._peek_word()
            if following.kind in (lexer.ASSIGN, lexer.DECLARE):
                pipeline.assigns = following.kind == lexer.ASSIGN
                self._next_word()
                self._name_variable(variable, names)
            elif following.kind == lexer.CHAR and following.text == ",":
                self._next_word()
                self._name_variable(variable, names)
                if context != "range" or len(names) > 1:
                    self._fail(f"too many declarations in {context}")
                after = self._peek_word().kind
                if after in (lexer.VARIABLE, lexer.RIGHT_DELIM, lexer.RIGHT_PAREN):
                    continue
                self._fail("range can only initialize variables")
            else:
                self.index = start
            break
        return names

    def _name_variable(self, token: Token, names: list[tuple[str, int]]) -> None:
        """Let a variable be named from here on, although it gets its value later."""
        names.append((token.text, token.position))
        self.scope.mention(token.text)

    def _check(self, pipeline: nodes.Pipeline, context: str) -> None:
        if not pipeline.commands:
            self._fail(f"missing value for {context}")
        for stage, command in enumerate(pipeline.commands[1:], 2):
            if isinstance(command.arguments[0], _NOT_EXECUTABLE):
                self._fail(f"non executable command in pipeline stage {stage}")

    def _command(self) -> nodes.Command:
        command = nodes.Command(self._peek_word().position)
        while True:
            self._peek_word()
            operand = self._operand()
            if operand is not None:
                command.arguments.append(operand)
            token = self._next()
            if token.kind == lexer.SPACE:
                continue
            if token.kind in (lexer.RIGHT_DELIM, lexer.RIGHT_PAREN):
                self.index -= 1
            elif token.kind != lexer.PIPE:
                self._unexpected(token, "operand")
            break
        if not command.arguments:
            self._fail("empty command")
        return command

    def _operand(self) -> nodes.Operand | None:
        term = self._term()
        if term is None or self._peek().kind != lexer.FIELD:
            return term
        position = self._peek().position
        names: list[str] = []
        while self._peek().kind == lexer.FIELD:
            names.append(self._next().text[1:])
        if isinstance(term, nodes.Field):
            return nodes.Field(position, term.names + tuple(names))
        if isinstance(term, nodes.Variable):
            return nodes.Variable(position, term.name, term.slot, tuple(names))
        if isinstance(term, _NOT_EXECUTABLE):
            self._fail(f"unexpected . after term {quote(str(term))}")
        return nodes.Chain(position, term, tuple(names))

    def _term(self) -> nodes.Operand | None:
        token = self._next_word()
        kind, position = token.kind, token.position
        if kind == lexer.FIELD:
            return nodes.Field(position, (token.text[1:],))
        if kind == lexer.IDENTIFIER:
            if token.text not in self.functions:
                self._fail(f"function {quote(token.text)} not defined")
            return nodes.Identifier(position, token.text)
        if kind == lexer.VARIABLE:
            return self._variable(token)
        if kind in STRINGS:
            return nodes.String(position, token.text, self._unquote(token))
        if kind == lexer.DOT:
            return nodes.Dot(position)
        if kind == lexer.LEFT_PAREN:
            self._deeper()
            pipeline = self._pipeline("parenthesized pipeline", lexer.RIGHT_PAREN)
            self.nesting -= 1
            return pipeline
        return self._constant(token)

    def _constant(self, token: Token) -> nodes.Operand | None:
        if token.kind == lexer.BOOL:
            return nodes.Bool(token.position, value=token.text == "true")
        if token.kind == "nil":
            return nodes.Nil(token.position)
        if token.kind in _NUMBERS:
            return self._number(token)
        if token.kind not in ENDS:
            self.index -= 1
        return None

    def _variable(self, token: Token) -> nodes.Variable:
        slot = self.scope.find(token.text)
        if slot is None:
            self._fail(f"undefined variable {quote(token.text)}")
        return nodes.Variable(token.position, token.text, slot)

    def _number(self, token: Token) -> nodes.NumberConstant:
        read = {lexer.COMPLEX: parse_complex, lexer.CHAR_CONSTANT: parse_character}
        try:
            number = read.get(token.kind, parse_number)(token.text)
        except ValueError as error:
            self._fail(str(error))
        return nodes.NumberConstant(token.position, token.text, number)

    def _unquote(self, token: Token) -> str:
        try:
            return unquote(token.text)
        except ValueError as error:
            self._fail(str(error))
