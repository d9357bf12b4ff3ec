"""Statements compiled to closures, and the program they make up.

A program is compiled once and may run in many threads at a time: all that changes during a run
lives in its frames and its budget.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from bellhop.gotemplate import nodes
from bellhop.gotemplate.errors import DepthLimitError
from bellhop.gotemplate.expressions import Expressions
from bellhop.gotemplate.frames import BREAK, CONTINUE, Frame, Site
from bellhop.gotemplate.literals import quote
from bellhop.gotemplate.loops import MANY, loop, loop_with_jumps, make_iterable
from bellhop.gotemplate.origins import Mark
from bellhop.gotemplate.parser import parse
from bellhop.gotemplate.values import NO_VALUE, to_string

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bellhop.gotemplate.frames import Code, Evaluate, Run
    from bellhop.gotemplate.functions import FunctionSet


class Compiled(NamedTuple):
    """A body ready to run."""

    code: Code
    slots: int


class Program:
    """A text with all it defines, compiled."""

    def __init__(
        self, name: str, text: str, functions: FunctionSet, missing: str, *, marked: bool = False
    ) -> None:
        self.name = name
        self.text = text
        self.marked = marked
        self.bodies: dict[str, Compiled] = {}
        self.mutates = False
        parsed = parse(name, text, functions)
        for body in parsed.values():
            site = Site(name, text, body.name, missing, functions)
            code = _Statements(self, site).block(body.nodes)
            self.bodies[body.name] = Compiled(code, body.slots)
        self.mutates = any(f.mutates and f.name in text for f in functions.values())

    def run(self, frame: Frame, dot: Any) -> None:
        for run in self.bodies[self.name].code:
            run(frame, dot)


class _Statements:
    """Compiles the statements of one body."""

    def __init__(self, program: Program, site: Site) -> None:
        self.program = program
        self.site = site
        self.expressions = Expressions(site)

    def block(self, found: Sequence[nodes.Node]) -> Code:
        """Compile a list; neighbouring texts become one, and text joins the action after it."""
        if self.program.marked:
            return self._marked(found)
        code: list[Run] = []
        pending = ""
        for node in found:
            if isinstance(node, nodes.Text):
                pending += node.text
            elif isinstance(node, nodes.Action) and not node.pipeline.variables:
                code.append(self._write(node, pending))
                pending = ""
            else:
                if pending:
                    code.append(_text(pending))
                    pending = ""
                code.append(self._statement(node))
        if pending:
            code.append(_text(pending))
        return tuple(code)

    def _marked(self, found: Sequence[nodes.Node]) -> Code:
        """Compile a list with a mark before each text and each action."""
        code: list[Run] = []
        for node in found:
            literal = isinstance(node, nodes.Text)
            code.append(_text(Mark(self.site.place(node).line, literal=literal)))
            if isinstance(node, nodes.Text):
                code.append(_text(node.text))
            elif isinstance(node, nodes.Action) and not node.pipeline.variables:
                code.append(self._write(node, ""))
            else:
                code.append(self._statement(node))
        return tuple(code)

    def _statement(self, node: nodes.Node) -> Run:
        if isinstance(node, nodes.Action):
            return _silent(self.expressions.pipeline(node.pipeline).evaluate)
        if isinstance(node, nodes.If):
            return self._if(node)
        if isinstance(node, nodes.With):
            return self._with(node)
        if isinstance(node, nodes.Range):
            return self._range(node)
        if isinstance(node, nodes.TemplateCall):
            return self._template(node)
        return _jump(BREAK if isinstance(node, nodes.Break) else CONTINUE)

    def _write(self, node: nodes.Action, before: str) -> Run:
        evaluate = self.expressions.bare(node.pipeline).evaluate
        if before:

            def text_and_value(frame: Frame, dot: Any) -> None:
                frame.write(before)
                value = evaluate(frame, dot)
                frame.write(value if value.__class__ is str else _shown(value, frame))

            return text_and_value

        def write_value(frame: Frame, dot: Any) -> None:
            value = evaluate(frame, dot)
            frame.write(value if value.__class__ is str else _shown(value, frame))

        return write_value

    # -- branches

    def _if(self, node: nodes.If) -> Run:
        """Compile a chain of else-ifs into one loop over its arms."""
        arms: list[tuple[Evaluate, Code]] = []
        current: nodes.If = node
        while True:
            arms.append((self._condition(current), self.block(current.body)))
            rest = current.otherwise
            if rest is None or len(rest) != 1 or not isinstance(rest[0], nodes.If):
                break
            current = rest[0]
        otherwise = self.block(rest or ())
        jumps = _may_jump(node)
        if len(arms) == 1 and not jumps:
            return _plain_if(arms[0][0], arms[0][1], otherwise)
        return _chain(arms, otherwise)

    def _condition(self, node: nodes.Branch) -> Evaluate:
        return self.expressions.bare(node.pipeline).evaluate

    def _with(self, node: nodes.With) -> Run:
        """Compile a chain of else-withs into one loop over its arms."""
        arms: list[tuple[Evaluate, Code]] = []
        current: nodes.With = node
        while True:
            condition = self.expressions.pipeline(current.pipeline).evaluate
            arms.append((condition, self._with_dot(current.body, element=False)))
            rest = current.otherwise
            if rest is None or len(rest) != 1 or not isinstance(rest[0], nodes.With):
                break
            current = rest[0]
        return _with_chain(arms, self.block(rest or ()))

    def _with_dot(self, found: Sequence[nodes.Node], *, element: bool) -> Code:
        outer = self.expressions.dot_is_element
        self.expressions.dot_is_element = element
        code = self.block(found)
        self.expressions.dot_is_element = outer
        return code

    # -- range

    def _range(self, node: nodes.Range) -> Run:
        pipeline = node.pipeline
        if pipeline.variables:
            value = self.expressions.value_of(pipeline)
            evaluate = self.expressions.storing(pipeline, value)
        else:
            value = self.expressions.pipeline(pipeline)
            evaluate = value.evaluate
        slots = [variable.slot for variable in pipeline.variables]
        self.expressions.elements.update(slots)
        body = self._with_dot(node.body, element=True)
        otherwise = self.block(node.otherwise or ())
        jumps = _may_jump(node)
        run_loop = loop_with_jumps if jumps else loop
        site, blamed = self.site, value.last

        def run(frame: Frame, dot: Any) -> object:
            items = evaluate(frame, dot)
            if items.__class__ is not list:
                items = make_iterable(items, len(slots), frame, site, blamed)
            if items:
                if items.__class__ is list and not slots and not jumps:
                    frame.budget.spend(len(items))
                    for item in items if len(items) < MANY else frame.budget.metered(items):
                        for step in body:
                            step(frame, item)
                    return None
                return run_loop(frame, items, slots, body)
            for step in otherwise:
                signal = step(frame, dot)
                if signal is not None:
                    return None if signal is BREAK else signal
            return None

        return run

    def _template(self, node: nodes.TemplateCall) -> Run:
        site, bodies, name = self.site, self.program.bodies, node.name
        evaluate = None
        if node.pipeline is not None:
            evaluate = self.expressions.pipeline(node.pipeline).evaluate

        def run(frame: Frame, dot: Any) -> None:
            body = bodies.get(name)
            if body is None:
                site.fail(node, f"template {quote(name)} not defined")
            budget = frame.budget
            if frame.depth >= budget.limits.depth:
                message = f"templates nested more than {budget.limits.depth} deep"
                raise DepthLimitError(message, site.place(node))
            budget.spend(1)
            inner = NO_VALUE if evaluate is None else evaluate(frame, dot)
            variables = [NO_VALUE] * body.slots
            variables[0] = inner
            called = Frame(frame.write, variables, budget, frame.depth + 1)
            for step in body.code:
                step(called, inner)

        return run


def _shown(value: Any, frame: Frame) -> str:
    if value is None:
        return "<no value>"
    if value.__class__ is int:
        return str(value)
    return to_string(value, frame.budget)


def _text(text: str) -> Run:
    def run(frame: Frame, dot: Any) -> None:
        del dot
        frame.write(text)

    return run


def _silent(evaluate: Evaluate) -> Run:
    def run(frame: Frame, dot: Any) -> None:
        evaluate(frame, dot)

    return run


def _jump(signal: str) -> Run:
    def run(frame: Frame, dot: Any) -> object:
        del frame, dot
        return signal

    return run


def _may_jump(node: nodes.Node) -> bool:
    """Return whether break or continue may leave a node; those inside an inner range do not."""
    waiting: list[nodes.Node] = []
    if isinstance(node, nodes.Branch):
        waiting = [*node.body, *(node.otherwise or ())]
    while waiting:
        inner = waiting.pop()
        if isinstance(inner, nodes.Break | nodes.Continue):
            return True
        if isinstance(inner, nodes.Range):
            waiting.extend(inner.otherwise or ())
        elif isinstance(inner, nodes.Branch):
            waiting.extend(inner.body)
            waiting.extend(inner.otherwise or ())
    return False


def _plain_if(condition: Evaluate, body: Code, otherwise: Code) -> Run:
    def run(frame: Frame, dot: Any) -> None:
        for step in body if condition(frame, dot) else otherwise:
            step(frame, dot)

    return run


def _chain(arms: Sequence[tuple[Evaluate, Code]], otherwise: Code) -> Run:
    def run(frame: Frame, dot: Any) -> object:
        for condition, body in arms:
            if condition(frame, dot):
                chosen = body
                break
        else:
            chosen = otherwise
        for step in chosen:
            signal = step(frame, dot)
            if signal is not None:
                return signal
        return None

    return run


def _with_chain(arms: Sequence[tuple[Evaluate, Code]], otherwise: Code) -> Run:
    def run(frame: Frame, dot: Any) -> object:
        for condition, body in arms:
            inner = condition(frame, dot)
            if inner:
                chosen = body
                break
        else:
            chosen, inner = otherwise, dot
        for step in chosen:
            signal = step(frame, inner)
            if signal is not None:
                return signal
        return None

    return run
