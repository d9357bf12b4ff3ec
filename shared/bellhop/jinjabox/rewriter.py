"""Replaces what Jinja2 would compile to Python's own operations by filters that pay first.

Comparisons, slices, keys, stars, loops, lists and mappings become calls of filters that no template
can call by name. Tags that need a second template (include, extends, blocks …) are refused here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeVar

from jinja2 import Environment, TemplateSyntaxError, nodes
from jinja2.visitor import NodeTransformer

COMPARE, CUT, ITERATE, KEY, TICK, NAMED, LITERAL, MADE = (
    f"\0{name}" for name in ("compare", "cut", "iterate", "key", "tick", "named", "literal", "made")
)
"""The hidden filters: no word of a template begins with a zero byte, though a text of it may."""

_REFUSED: dict[type[nodes.Node], str] = {
    nodes.Block: "block",
    nodes.Extends: "extends",
    nodes.FromImport: "from … import",
    nodes.Import: "import",
    nodes.Include: "include",
    nodes.ScopedEvalContextModifier: "autoescape",
}

_Made = TypeVar("_Made", bound=nodes.Node)
_Starred = TypeVar("_Starred", nodes.Call, nodes.Filter, nodes.Test)


def rewrite(tree: nodes.Template, environment: Environment, *, marked: bool) -> nodes.Template:
    """Return the tree with paying operations; `marked` keeps each text apart, with its line.

    Raises:
        TemplateSyntaxError: the template asks for other templates.
    """
    found: nodes.Template = _Rewriter(environment, marked=marked).visit(tree)
    return found


class _Rewriter(NodeTransformer):
    def __init__(self, environment: Environment, *, marked: bool) -> None:
        self._environment = environment
        self._marked = marked
        self._visitors: dict[type[nodes.Node], Callable[..., Any]] = {
            **dict.fromkeys(_REFUSED, self._refuse),
            nodes.Call: self._unstarred,
            nodes.Compare: self._compare,
            nodes.Filter: self._unstarred,
            nodes.Dict: self._made,
            nodes.For: self._for,
            nodes.Getitem: self._getitem,
            nodes.List: self._made,
            nodes.Name: self._name,
            nodes.Output: self._output,
            nodes.Pair: self._pair,
            nodes.Test: self._unstarred,
            nodes.Tuple: self._tuple,
        }

    def get_visitor(self, node: nodes.Node) -> Callable[..., Any] | None:
        """Find what replaces a node; Jinja2 would look for a method named after its class."""
        return self._visitors.get(type(node))

    def _refuse(self, node: nodes.Node) -> NoReturn:
        sentence = f"'{_REFUSED[type(node)]}' is not available: a template cannot use others"
        raise TemplateSyntaxError(sentence, node.lineno)

    def _compare(self, node: nodes.Compare) -> nodes.Expr:
        self.generic_visit(node)
        steps: list[nodes.Expr] = []
        for operand in node.ops:
            steps += [self._const(operand.op, node), operand.expr]
        return self._filtered(COMPARE, node.expr, steps)

    def _getitem(self, node: nodes.Getitem) -> nodes.Expr:
        self.generic_visit(node)
        part = node.arg
        if not isinstance(part, nodes.Slice):
            return node
        bounds = [each or self._const(None, node) for each in (part.start, part.stop, part.step)]
        return self._filtered(CUT, node.node, bounds)

    def _tuple(self, node: nodes.Tuple) -> nodes.Expr:
        self.generic_visit(node)
        if node.ctx != "load":
            return node
        return self._filtered(MADE, self._placed(nodes.List(node.items), node))

    def _made(self, node: nodes.List | nodes.Dict) -> nodes.Expr:
        self.generic_visit(node)
        return self._filtered(MADE, node)

    def _pair(self, node: nodes.Pair) -> nodes.Pair:
        self.generic_visit(node)
        node.key = self._filtered(KEY, node.key)
        return node

    def _name(self, node: nodes.Name) -> nodes.Expr:
        # Jinja2 makes no other tuple, and tuples may be keys whose hash costs all that they hold.
        starred = node.name == "varargs" and node.ctx == "load"
        return self._filtered(ITERATE, node) if starred else node

    def _for(self, node: nodes.For) -> nodes.For:
        self.generic_visit(node)
        node.iter = self._filtered(ITERATE, node.iter)
        tick = self._filtered(TICK, self._const(value=True, near=node))
        node.body.insert(0, self._placed(nodes.ExprStmt(tick), node))
        if node.test is not None:
            again = self._filtered(TICK, self._const(value=True, near=node.test))
            node.test = self._placed(nodes.And(again, node.test), node.test)
        return node

    def _output(self, node: nodes.Output) -> nodes.Output:
        self.generic_visit(node)
        if self._marked:
            node.nodes = [
                self._filtered(LITERAL, self._const(each.data, each))
                if isinstance(each, nodes.TemplateData)
                else each
                for each in node.nodes
            ]
        return node

    def _unstarred(self, node: _Starred) -> _Starred:
        self.generic_visit(node)
        if node.dyn_args is not None:
            node.dyn_args = self._filtered(ITERATE, node.dyn_args)
        if node.dyn_kwargs is not None:
            node.dyn_kwargs = self._filtered(NAMED, node.dyn_kwargs)
        return node

    def _filtered(
        self, name: str, value: nodes.Node, arguments: Sequence[nodes.Expr] = ()
    ) -> nodes.Filter:
        return self._placed(nodes.Filter(value, name, list(arguments), [], None, None), value)

    def _const(self, value: Any, near: nodes.Node) -> nodes.Const:
        return self._placed(nodes.Const(value), near)

    def _placed(self, made: _Made, near: nodes.Node) -> _Made:
        made.set_lineno(near.lineno)
        made.set_environment(self._environment)
        return made
