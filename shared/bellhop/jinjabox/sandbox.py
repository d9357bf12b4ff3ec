"""The environment of one render: its tables, its budget, and the only ways into values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NoReturn

from jinja2 import StrictUndefined, TemplateSyntaxError, nodes, pass_context
from jinja2.lexer import Token, TokenStream
from jinja2.runtime import Context, LoopContext, Macro
from jinja2.sandbox import SandboxedEnvironment
from jinja2.utils import Namespace

from bellhop.core.suggestion import closest
from bellhop.gotemplate import Budget, DepthLimitError
from bellhop.jinjabox import rewriter
from bellhop.jinjabox.checks import TESTS
from bellhop.jinjabox.filters import Table
from bellhop.jinjabox.lists import ALL, PARTS, Group
from bellhop.jinjabox.methods import method_of
from bellhop.jinjabox.operations import OPERATORS, calculate, compare, cut
from bellhop.jinjabox.values import (
    Bound,
    RefusedError,
    defined,
    items_of,
    key,
    kind,
    shown,
    string,
    whole,
)

MAX_TOKENS = 30_000
"""How many words and signs a template may have: what parsing it costs at most."""

_LOOP = frozenset(
    {"index", "index0", "revindex", "revindex0", "first", "last", "length", "depth", "depth0"}
    | {"previtem", "nextitem"}
)


class Literal(str):
    """A text of the template itself, distinguished from values where lines are counted."""

    __slots__ = ()

    def __str__(self) -> str:
        return self


class Missing(StrictUndefined):
    """An undefined value: any use fails, and suggests the name that may have been meant."""

    __slots__ = ()

    @property
    def _undefined_message(self) -> str:
        place, name = self._undefined_obj, self._undefined_name
        if self._undefined_hint or not isinstance(place, dict) or not isinstance(name, str):
            return super()._undefined_message
        near = closest(name, [each for each in place if isinstance(each, str)])
        guess = f" (did you mean '{near}'?)" if near else ""
        return f"'dict object' has no attribute {name[:80]!r}{guess}"


class Sandbox(SandboxedEnvironment):
    """An environment that belongs to one render; making one is cheap."""

    intercepted_binops = OPERATORS

    def __init__(self, budget: Budget, *, marked: bool = False) -> None:
        super().__init__(
            keep_trailing_newline=True,
            undefined=Missing,
            finalize=_written,
            optimized=False,
            cache_size=0,
        )
        self.budget = budget
        self._marked = marked
        self._depth = 0
        self.filters = _FILTERS
        self.tests = _TESTS
        self.globals = _GLOBALS

    def _tokenize(
        self, source: str, name: str | None, filename: str | None = None, state: str | None = None
    ) -> TokenStream:
        stream = super()._tokenize(source, name, filename, state)
        return TokenStream(_counted(stream), name, filename)

    def _generate(
        self,
        source: nodes.Template,
        name: str | None,
        filename: str | None,
        defer_init: bool = False,  # noqa: FBT001, FBT002 - Jinja2's signature
    ) -> str:
        tree = rewriter.rewrite(source, self, marked=self._marked)
        return super()._generate(tree, name, filename, defer_init)

    def getattr(self, obj: Any, attribute: str) -> Any:
        """Look up a part by name, never an attribute."""
        return self.getitem(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        """Look up an entry, an item or a method."""
        if isinstance(obj, dict):
            if key(argument) in obj:
                return obj[argument]
        elif isinstance(obj, list | str) and isinstance(argument, int):
            inside = -len(obj) <= argument < len(obj)
            return obj[argument] if inside else self.undefined(obj=obj, name=argument)  # type: ignore[arg-type] # Jinja2 does, too
        elif not isinstance(obj, str):
            return self._part(obj, argument)
        method = method_of(obj, argument) if isinstance(argument, str) else None
        if method is not None:
            return Bound(argument, method, obj)
        return self.undefined(obj=obj, name=argument)

    def _part(self, obj: Any, argument: Any) -> Any:
        """Look up a part of what templates have beside data."""
        name = argument if isinstance(argument, str) else ""
        if isinstance(obj, Group) and name in PARTS:
            return obj[PARTS[name]]
        if isinstance(obj, LoopContext) and name in _LOOP:
            return getattr(obj, name)
        if isinstance(obj, LoopContext) and name == "cycle":
            return Bound("loop.cycle", lambda _budget, *each: obj.cycle(*each))
        if isinstance(obj, Namespace) and name and not name.startswith("_"):
            return getattr(obj, name, None) if name in _names(obj) else self._absent(obj, argument)
        return self._absent(obj, argument)

    def _absent(self, obj: Any, argument: Any) -> Any:
        defined(obj)
        return self.undefined(f"{kind(obj)} has no attribute {string(argument)[:80]!r}")

    def call(self, context: Context, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Call a function, a method, a macro or a recursive loop."""
        del context
        kwargs.pop("_loop_vars", None)
        kwargs.pop("_block_vars", None)
        budget = self.budget
        budget.spend(1 + len(args) + len(kwargs))
        if isinstance(function, Bound):
            return function.call(budget, *function.subject, *args, **kwargs)
        if not isinstance(function, Macro | LoopContext):
            raise RefusedError(f"{kind(defined(function))} cannot be called")
        if isinstance(function, LoopContext):
            args = tuple(items_of(budget, each) for each in args)
        if self._depth >= budget.limits.depth:
            raise DepthLimitError(f"macros and loops nested more than {budget.limits.depth} deep")
        self._depth += 1
        try:
            return function(*args, **kwargs)
        finally:
            self._depth -= 1

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        del context
        return calculate(self.budget, operator, left, right)


def _names(space: Namespace) -> Any:
    return space._Namespace__attrs  # noqa: SLF001 - it has no other list


def _counted(stream: TokenStream) -> Iterator[Token]:
    for number, token in enumerate(stream):
        if number > MAX_TOKENS:
            sentence = f"the template has more than {MAX_TOKENS} words and signs"
            raise TemplateSyntaxError(sentence, token.lineno)
        yield token


@pass_context
def _written(context: Context, value: Any) -> str:
    budget: Budget = context.environment.budget  # type: ignore[attr-defined]
    budget.spend(1)
    return shown(budget, value)


def _range(budget: Budget, *bounds: Any) -> list[int]:
    found = range(*(whole(each, 2**62) for each in bounds))
    budget.spend(len(found))
    return list(found)


def _dict(budget: Budget, *given: Any, **named: Any) -> dict[Any, Any]:
    found: dict[Any, Any] = {}
    for each in given:
        if not isinstance(each, dict):
            raise RefusedError("dict() takes mappings and names")
        budget.spend(len(each))
        found.update(each)
    return {**found, **named}


def _namespace(_budget: Budget, **named: Any) -> Namespace:
    return Namespace(**named)


def _fail(_budget: Budget, message: Any = "the template says so") -> NoReturn:
    raise RefusedError(string(message)[:512])


_GLOBALS: dict[str, Any] = {
    "dict": Bound("dict", _dict),
    "fail": Bound("fail", _fail),
    "namespace": Bound("namespace", _namespace),
    "range": Bound("range", _range),
}

_HIDDEN = Table()
_HIDDEN.add(rewriter.COMPARE)(compare)
_HIDDEN.add(rewriter.CUT)(cut)
_HIDDEN.add(rewriter.ITERATE)(items_of)
_HIDDEN.add(rewriter.KEY)(lambda _budget, value: key(value))
_HIDDEN.add(rewriter.MADE)(lambda budget, value: budget.spend(len(value)) or value)
_HIDDEN.add(rewriter.TICK)(lambda _budget, value: value)
_HIDDEN.add(rewriter.LITERAL)(lambda _budget, value: Literal(value))


@_HIDDEN.add(rewriter.NAMED)
def _read_keywords(budget: Budget, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise RefusedError(f"cannot take names from {kind(value)}")
    budget.spend(len(value))
    return {string(each): value[each] for each in value}


_TESTS: dict[str, Any] = dict(TESTS)
_FILTERS: dict[str, Any] = {**ALL, **_HIDDEN}
