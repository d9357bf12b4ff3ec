"""Pipelines compiled to closures: each takes the frame and the cursor and gives a value.

`Expression.last` is the node Go would blame for what goes wrong next: Go remembers the node it
looked at most recently, and its errors name that one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from bellhop.gotemplate import nodes
from bellhop.gotemplate.arguments import (
    LITERALS,
    checked,
    constant,
    failing,
    literal_as,
    literal_of,
    nil_as,
)
from bellhop.gotemplate.calls import call, call_code, decide, method_code, short_circuit
from bellhop.gotemplate.frames import follow
from bellhop.gotemplate.pipelines import UNDEFINED
from bellhop.gotemplate.values import NO_VALUE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bellhop.gotemplate.frames import Evaluate, Frame, Site
    from bellhop.gotemplate.nodes import Node

_MISS = (KeyError, TypeError, IndexError)


class Expression(NamedTuple):
    """Code for a value, the node that the next error names, and whether it is an element."""

    evaluate: Evaluate
    last: Node
    element: bool = False


class Expressions:
    """Compiles the expressions of one body."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.dot_is_element = False
        self.elements: set[int] = set()
        """Slots of variables that range sets to elements."""

    # -- pipelines and commands

    def pipeline(self, node: nodes.Pipeline) -> Expression:
        """Compile a pipeline, its variables included."""
        expression = self.value_of(node)
        if not node.variables:
            return expression
        return Expression(self.storing(node, expression), expression.last)

    def value_of(self, node: nodes.Pipeline) -> Expression:
        """Compile a pipeline's commands; the value is never a typed nil."""
        expression: Expression | None = None
        for command in node.commands:
            if expression is not None:
                expression = _settled(expression)
            expression = self._command(command, expression, node)
        assert expression is not None
        return _settled(expression)

    def bare(self, node: nodes.Pipeline) -> Expression:
        """Compile a pipeline where a typed nil does no harm: to be written or tested."""
        if len(node.commands) == 1 and not node.variables:
            return self._command(node.commands[0], None, node)
        return self.pipeline(node)

    def storing(self, node: nodes.Pipeline, expression: Expression) -> Evaluate:
        """Let the variables take the value."""
        evaluate = expression.evaluate
        slots = [variable.slot for variable in node.variables]
        if UNDEFINED in slots:
            name = node.variables[slots.index(UNDEFINED)].name
            site, last = self.site, expression.last

            def undefined(frame: Frame, dot: Any) -> Any:
                evaluate(frame, dot)
                site.fail(last, f"undefined variable: {name}")

            return undefined
        slot, rest = slots[0], slots[1:]
        self.elements.difference_update(slots)

        def store(frame: Frame, dot: Any) -> Any:
            value = evaluate(frame, dot)
            frame.variables[slot] = value
            for other in rest:
                frame.variables[other] = value
            return value

        return store

    def _command(
        self, node: nodes.Command, final: Expression | None, whole: nodes.Pipeline
    ) -> Expression:
        first, arguments = node.arguments[0], node.arguments[1:]
        if isinstance(first, nodes.Identifier):
            return self._call(first, node, arguments, final)
        if isinstance(first, nodes.Field | nodes.Variable | nodes.Chain) and (
            arguments or final is not None
        ):
            return self._with_arguments(first, arguments, final)
        if arguments or final is not None:
            return self._not_a_function(first, final, whole)
        if isinstance(first, nodes.Nil):
            return Expression(failing(self.site, first, "nil is not a command"), first)
        return self._operand(first)

    def _not_a_function(
        self, first: nodes.Operand, final: Expression | None, whole: Node
    ) -> Expression:
        blamed: Node = first
        if isinstance(first, nodes.Pipeline):
            blamed = whole if final is None else final.last
        code = failing(self.site, blamed, f"can't give argument to non-function {first}")
        return Expression(self._after(final, code), first)

    def _after(self, final: Expression | None, code: Evaluate) -> Evaluate:
        """Evaluate the pipeline's value before failing, for its own errors come first."""
        if final is None:
            return code
        before = final.evaluate

        def evaluate(frame: Frame, dot: Any) -> Any:
            before(frame, dot)
            return code(frame, dot)

        return evaluate

    # -- operands

    def _operand(self, node: Node) -> Expression:
        """Compile a term by itself, or as an argument of any type."""
        if isinstance(node, nodes.Field):
            return self._field(node)
        if isinstance(node, nodes.Variable):
            return self._variable(node)
        if isinstance(node, nodes.Pipeline):
            return self.pipeline(node)
        if isinstance(node, nodes.Identifier):
            return self._call(node, node, [], None)
        if isinstance(node, nodes.Chain):
            return self._chain(node)
        if isinstance(node, nodes.Dot):
            return Expression(_dot, node, self.dot_is_element)
        return Expression(literal_of(self.site, node), node)

    def argument(self, node: Node, expected: str) -> Expression:
        """Compile an argument held to its parameter's type."""
        if isinstance(node, LITERALS):
            return Expression(literal_as(self.site, node, expected), node)
        if isinstance(node, nodes.Nil):
            return Expression(nil_as(self.site, node, expected), node)
        expression = self._operand(node)
        code = checked(self.site, expression.last, expression.evaluate, expected)
        return Expression(code, expression.last)

    def _field(self, node: nodes.Field) -> Expression:
        return Expression(
            field_code(self.site, node, node.names, element=self.dot_is_element), node, element=True
        )

    def _variable(self, node: nodes.Variable) -> Expression:
        slot, names = node.slot, node.names
        if slot == UNDEFINED:
            return Expression(failing(self.site, node, f"undefined variable: {node.name}"), node)
        if not names:
            return Expression(_variable_code(slot), node, slot in self.elements)
        code = variable_field_code(self.site, node, element=slot in self.elements)
        return Expression(code, node, element=True)

    def _chain(self, node: nodes.Chain) -> Expression:
        if isinstance(node.term, nodes.Nil):
            return Expression(
                failing(self.site, node, f"indirection through explicit nil in {node}"), node
            )
        inner = self._operand(node.term)
        code = inner_field_code(self.site, inner, node.names)
        return Expression(code, inner.last, element=True)

    # -- calls

    def _call(
        self,
        name: nodes.Identifier,
        node: Node,
        arguments: Sequence[Node],
        final: Expression | None,
    ) -> Expression:
        function = self.site.functions.get(name.name)
        if function is None:
            message = f'"{name.name}" is not a defined function'
            return Expression(failing(self.site, name, message), name)
        given = len(arguments) + (final is not None)
        complaint = ""
        if function.variadic is None and given != function.least:
            complaint = f"want {function.least} got {given}"
        elif given < function.least:
            complaint = f"want at least {function.least} got {len(arguments)}"
        if complaint:
            message = f"wrong number of args for {name.name}: {complaint}"
            return Expression(self._after(final, failing(self.site, name, message)), name)
        expected = list(function.parameters)
        expected += [function.variadic or ""] * (given - len(expected))
        compiled = [
            self.argument(node, kind) for node, kind in zip(arguments, expected, strict=False)
        ]
        last = compiled[-1].last if compiled else name
        codes = [argument.evaluate for argument in compiled]
        if function.call is decide:
            return Expression(short_circuit(name.name, codes, final and final.evaluate), last)
        if final is None:
            if function.call is call:
                codes.insert(0, constant(str(arguments[0])))
            return Expression(call_code(self.site, node, function, codes, None), last)
        if function.call is call:
            codes.insert(0, constant(str(arguments[0]) if arguments else "<value>"))
        held = _Held()
        check = checked(self.site, last, held, expected[-1])
        code = call_code(self.site, node, function, codes, (final.evaluate, held, check))
        return Expression(code, last)

    def _with_arguments(
        self,
        first: nodes.Field | nodes.Variable | nodes.Chain,
        arguments: Sequence[Node],
        final: Expression | None,
    ) -> Expression:
        """Compile arguments given to a field: only a method of an opaque value takes any."""
        names = first.names
        if not names:
            return self._not_a_function(first, final, first)
        inner = self._receiver(first)
        given = [self._operand(argument) for argument in arguments]
        codes = [argument.evaluate for argument in given]
        if final is not None:
            codes.append(final.evaluate)
        return Expression(method_code(self.site, inner.last, inner.evaluate, names, codes), first)

    def _receiver(self, first: nodes.Field | nodes.Variable | nodes.Chain) -> Expression:
        if isinstance(first, nodes.Field):
            return Expression(_dot, first)
        if isinstance(first, nodes.Variable):
            return Expression(_variable_code(first.slot), first)
        inner = self._operand(first.term)
        return Expression(inner.evaluate, inner.last)


def _settled(expression: Expression) -> Expression:
    """Make a typed nil no value at all, as the end of a pipeline does."""
    evaluate = expression.evaluate

    def settled(frame: Frame, dot: Any) -> Any:
        value = evaluate(frame, dot)
        return NO_VALUE if value is None else value

    return Expression(settled, expression.last)


class _Held:
    """Stands for a value that was computed before: the one that a pipeline passes on."""

    def __call__(self, frame: Frame, dot: Any) -> Any:
        """Return the value, which is passed in the cursor's place."""
        del frame
        return dot


def _dot(frame: Frame, dot: Any) -> Any:
    del frame
    return dot


def _variable_code(slot: int) -> Evaluate:
    def evaluate(frame: Frame, dot: Any) -> Any:
        del dot
        return frame.variables[slot]

    return evaluate


def field_code(site: Site, node: Node, names: tuple[str, ...], *, element: bool) -> Evaluate:
    """Return code for fields of the cursor: plain lookups, and Go's rules when one fails."""
    if len(names) == 1:
        name = names[0]

        def one(frame: Frame, dot: Any) -> Any:
            try:
                return dot[name]
            except _MISS:
                return follow(site, node, dot, names, frame.budget, element=element)

        return one
    if len(names) == 2:  # noqa: PLR2004 - the two commonest lengths are unrolled
        name, second = names

        def two(frame: Frame, dot: Any) -> Any:
            try:
                return dot[name][second]
            except _MISS:
                return follow(site, node, dot, names, frame.budget, element=element)

        return two

    def many(frame: Frame, dot: Any) -> Any:
        value = dot
        try:
            for name in names:
                value = value[name]
        except _MISS:
            return follow(site, node, dot, names, frame.budget, element=element)
        return value

    return many


def variable_field_code(site: Site, node: nodes.Variable, *, element: bool) -> Evaluate:
    """Return code for fields of a variable."""
    slot, names = node.slot, node.names
    inner = field_code(site, node, names, element=element)
    if len(names) == 1:
        name = names[0]

        def one(frame: Frame, dot: Any) -> Any:
            del dot
            value = frame.variables[slot]
            try:
                return value[name]
            except _MISS:
                return inner(frame, value)

        return one
    return lambda frame, dot: inner(frame, frame.variables[slot])  # noqa: ARG005 - the shape of all code


def inner_field_code(site: Site, inner: Expression, names: tuple[str, ...]) -> Evaluate:
    """Return code for fields of what an expression gives."""
    evaluate = inner.evaluate
    fields = field_code(site, inner.last, names, element=inner.element)
    return lambda frame, dot: fields(frame, evaluate(frame, dot))
