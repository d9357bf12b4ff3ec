"""Tokens to nodes: one method per rule of Go's template grammar.

Everything a text can be refused for is refused here, through `_fail`. Variables are resolved to
slots of a frame as they are read, so that execution never looks for a name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bellhop.gotemplate import lexer, nodes
from bellhop.gotemplate.literals import quote
from bellhop.gotemplate.pipelines import STRINGS, PipelineParser, Scope

if TYPE_CHECKING:
    from collections.abc import Container

    from bellhop.gotemplate.lexer import Token


def parse(name: str, text: str, functions: Container[str]) -> dict[str, nodes.Body]:
    """Parse a template and those it defines, by name.

    Raises:
        ParseError: with Go's wording.
        DepthLimitError: for structures nested beyond all use.
    """
    tokens = lexer.tokenize(text, functions)
    return _Parser(name, text, tokens, functions).run()


class _Parser(PipelineParser):
    """One text, one method per rule."""

    def __init__(
        self, name: str, text: str, tokens: list[Token], functions: Container[str]
    ) -> None:
        super().__init__(name, text, tokens, functions)
        self.bodies: dict[str, nodes.Body] = {}

    # -- lists and actions

    def run(self) -> dict[str, nodes.Body]:
        found: list[nodes.Node] = []
        while self._peek().kind != lexer.EOF:
            if self._at_definition():
                self._definition()
                continue
            node = self._text_or_action()
            if isinstance(node, nodes.End | nodes.Else):
                self._fail(f"unexpected {node}")
            found.append(node)
        self._add(nodes.Body(self.name, found, self.scope.slots))
        return self.bodies

    def _at_definition(self) -> bool:
        if self._peek().kind != lexer.LEFT_DELIM:
            return False
        start = self.index
        self._next()
        if self._next_word().kind == "define":
            return True
        self.index = start
        return False

    def _add(self, body: nodes.Body) -> None:
        known = self.bodies.get(body.name)
        if known is None or known.is_empty():
            self.bodies[body.name] = body
        elif not body.is_empty():
            self._fail(f"template: multiple definition of template {quote(body.name)}")

    def _definition(self) -> None:
        context = "define clause"
        token = self._expect(STRINGS, context)
        name = self._unquote(token)
        self._expect((lexer.RIGHT_DELIM,), context)
        self._body(name, context)

    def _body(self, name: str, context: str) -> None:
        outer, self.scope = self.scope, Scope()
        self._deeper()
        action_start, self.action_start = self.action_start, None
        found, end = self._item_list()
        if isinstance(end, nodes.Else):
            self._fail(f"unexpected {end} in {context}")
        self._add(nodes.Body(name, found, self.scope.slots))
        self.action_start = action_start
        self.nesting -= 1
        self.scope = outer

    def _item_list(self) -> tuple[list[nodes.Node], nodes.Node]:
        found: list[nodes.Node] = []
        while True:
            if self._peek_word().kind == lexer.EOF:
                self._fail("unexpected EOF")
            node = self._text_or_action()
            if isinstance(node, nodes.End | nodes.Else):
                return found, node
            found.append(node)

    def _text_or_action(self) -> nodes.Node:
        token = self._next_word()
        if token.kind == lexer.TEXT:
            return nodes.Text(token.position, token.text)
        if token.kind != lexer.LEFT_DELIM:
            self._unexpected(token, "input")
        self.action_start = token.position
        node = self._action()
        self.action_start = None
        return node

    def _action(self) -> nodes.Node:
        token = self._peek_word()
        rule = self._RULES.get(token.kind)
        if rule is not None:
            self._next()
            return rule(self, token)
        return nodes.Action(token.position, self._pipeline("command", lexer.RIGHT_DELIM))

    # -- control structures

    def _jump(self, token: Token) -> nodes.Node:
        following = self._next_word()
        if following.kind != lexer.RIGHT_DELIM:
            self._unexpected(following, f"{{{{{token.text}}}}}")
        if not self.scope.loops:
            self._fail(f"{{{{{token.text}}}}} outside {{{{range}}}}")
        if token.kind == "break":
            return nodes.Break(token.position)
        return nodes.Continue(token.position)

    def _end(self, token: Token) -> nodes.Node:
        del token
        return nodes.End(self._expect((lexer.RIGHT_DELIM,), "end").position)

    def _else(self, token: Token) -> nodes.Node:
        del token
        following = self._peek_word()
        if following.kind not in ("if", "with"):
            following = self._expect((lexer.RIGHT_DELIM,), "else")
        return nodes.Else(following.position)

    def _if(self, token: Token) -> nodes.Node:
        del token
        return self._chain_of("if", nodes.If)

    def _with(self, token: Token) -> nodes.Node:
        del token
        return self._chain_of("with", nodes.With)

    def _chain_of(self, keyword: str, kind: type[nodes.Branch]) -> nodes.Node:
        """Parse if or with; `else if` is an else holding an if, read in a loop."""
        self._deeper()
        marks = []
        branches: list[nodes.Branch] = []
        while True:
            marks.append(len(self.scope.visible))
            pipeline = self._pipeline(keyword, lexer.RIGHT_DELIM)
            body, end = self._arm()
            branch = kind(pipeline.position, pipeline, body, None)
            if branches:
                branches[-1].otherwise = [branch]
            branches.append(branch)
            if isinstance(end, nodes.Else) and self._peek().kind == keyword:
                self._next()
                continue
            break
        if isinstance(end, nodes.Else):
            branch.otherwise = self._else_list()
        del self.scope.visible[marks[0] :]
        self.nesting -= 1
        return branches[0]

    def _arm(self) -> tuple[list[nodes.Node], nodes.Node]:
        mark = len(self.scope.visible)
        found = self._item_list()
        self.scope.leave(mark)
        return found

    def _else_list(self) -> list[nodes.Node]:
        found, end = self._item_list()
        if isinstance(end, nodes.Else):
            self._fail(f"expected end; found {end}")
        return found

    def _range(self, token: Token) -> nodes.Node:
        del token
        self._deeper()
        mark = len(self.scope.visible)
        pipeline = self._pipeline("range", lexer.RIGHT_DELIM)
        self.scope.loops += 1
        body, end = self._arm()
        self.scope.loops -= 1
        otherwise = self._else_list() if isinstance(end, nodes.Else) else None
        del self.scope.visible[mark:]
        self.nesting -= 1
        return nodes.Range(pipeline.position, pipeline, body, otherwise)

    def _template_name(self, context: str) -> tuple[Token, str]:
        token = self._next_word()
        if token.kind not in STRINGS:
            self._unexpected(token, context)
        return token, self._unquote(token)

    def _template(self, token: Token) -> nodes.Node:
        del token
        context = "template clause"
        token, name = self._template_name(context)
        pipeline = None
        if self._peek_word().kind == lexer.RIGHT_DELIM:
            self._next()
        else:
            pipeline = self._pipeline(context, lexer.RIGHT_DELIM)
        return nodes.TemplateCall(token.position, name, pipeline)

    def _block(self, token: Token) -> nodes.Node:
        del token
        context = "block clause"
        token, name = self._template_name(context)
        pipeline = self._pipeline(context, lexer.RIGHT_DELIM)
        self._body(name, context)
        return nodes.TemplateCall(token.position, name, pipeline)

    _RULES = {  # noqa: RUF012 - a table of the class's own methods, never written
        "block": _block,
        "break": _jump,
        "continue": _jump,
        "else": _else,
        "end": _end,
        "if": _if,
        "range": _range,
        "template": _template,
        "with": _with,
    }
