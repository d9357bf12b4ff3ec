"""Compiling a template once and rendering it any number of times, from any thread."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from types import CodeType, TracebackType
from typing import Any

from jinja2 import Template, TemplateError, TemplateSyntaxError

from bellhop.gotemplate import Budget, GoTemplateError, Limits, Mark, OutputLimitError, lines_of
from bellhop.jinjabox.sandbox import Literal, Sandbox
from bellhop.jinjabox.values import RefusedError, paid, shown

_CACHED = 256
_TAG = re.compile(r"\{[{%#]")
_LONGEST = 256


class JinjaError(Exception):
    """A template failed; `line` counts from 1, 0 where there is none."""

    def __init__(self, message: str, *, name: str, line: int, excerpt: str) -> None:
        place = f"{name}:{line}" if line else name
        super().__init__(f"template: {place}: {message}")
        self.name = name
        self.line = line
        self.excerpt = excerpt


def render(text: str, variables: Mapping[str, Any], *, name: str, limits: Limits) -> str:
    """Render a template; `name` is what errors call it.

    Raises:
        JinjaError: the template is wrong, does not fit its data, or needs more than its limits.
    """
    if not _TAG.search(text):
        return text
    return "".join(_Run(text, name, limits, marked=False).pieces(variables))


def origins(text: str, variables: Mapping[str, Any], *, name: str, limits: Limits) -> list[int]:
    """Return the template's line for each line that `render` writes: to explain its output.

    Raises:
        JinjaError: as `render` does.
    """
    if not _TAG.search(text):
        return list(range(1, text.count("\n") + 2))
    return lines_of(_Run(text, name, limits, marked=True).pieces(variables))


class _Run:
    """One render of one template."""

    def __init__(self, text: str, name: str, limits: Limits, *, marked: bool) -> None:
        self._text = text
        self._name = name
        self._marked = marked
        self._budget = Budget(limits)
        self._template: Template | None = None
        self._output: Any = None

    def pieces(self, variables: Mapping[str, Any]) -> list[str]:
        """Return what is written, in order."""
        try:
            return list(self._written(variables))
        except TemplateSyntaxError as error:
            raise self._error(error.message or "it is not a template", error.lineno) from error
        except GoTemplateError as error:
            raise self._error(str(error), self._line(error.__traceback__)) from error
        except RecursionError as error:
            raise self._error("nested too deeply", self._line(error.__traceback__)) from error
        except SyntaxError as error:
            # Python has no more than 20 loops, or 100 blocks, inside each other.
            raise self._error("nested too deeply", 0) from error
        except (RefusedError, TemplateError) as error:
            raise self._error(str(error), self._line(error.__traceback__)) from error
        except Exception as error:
            # Whatever an expression raises is the template's mistake.
            message = str(error) or "an expression fails"
            raise self._error(message, self._line(error.__traceback__)) from error

    def _written(self, variables: Mapping[str, Any]) -> Iterator[str]:
        environment = Sandbox(self._budget, marked=self._marked)
        code = _compiled(self._text, self._name, self._marked)
        self._template = template = Template.from_code(environment, code, environment.globals)
        space = template.root_render_func.__globals__
        space.update(str_join=self._shown, markup_join=self._shown)
        # Blocks, macros and calls take theirs from the environment.
        environment.concat = self._joined  # type: ignore[method-assign]
        self._output = output = template.root_render_func(template.new_context(dict(variables)))
        left = self._budget.limits.output
        for piece in output:
            left -= len(piece)
            if left < 0:
                raise OutputLimitError(
                    f"more than {self._budget.limits.output} characters of output"
                )
            self._budget.spend(1)
            if self._marked:
                yield Mark(self._here(), literal=isinstance(piece, Literal))
            yield piece if piece.isascii() else _sound(piece)

    def _joined(self, pieces: Iterable[str]) -> str:
        found = list(pieces)
        self._budget.reserve(sum(map(len, found)))
        return paid(self._budget, "".join(found))

    def _shown(self, values: Iterable[Any]) -> str:
        return self._joined([shown(self._budget, each) for each in values])

    def _here(self) -> int:
        """Return the template's line that has just written something."""
        frame = getattr(self._output, "gi_frame", None)
        if frame is None or self._template is None:
            return 0
        return self._template.get_corresponding_lineno(frame.f_lineno)

    def _line(self, trace: TracebackType | None) -> int:
        """Find the template's line that was at work, the innermost one."""
        if self._template is None:
            return 0
        space, line = self._template.root_render_func.__globals__, self._here()
        while trace is not None:
            if trace.tb_frame.f_globals is space:
                line = self._template.get_corresponding_lineno(trace.tb_lineno)
            trace = trace.tb_next
        return line

    def _error(self, message: str, line: int) -> JinjaError:
        lines = self._text.splitlines()
        excerpt = lines[line - 1].strip() if 0 < line <= len(lines) else ""
        return JinjaError(message[:_LONGEST], name=self._name, line=line, excerpt=excerpt)


def _sound(piece: str) -> str:
    """Return a text without halves of characters, which nothing could store."""
    return piece.encode("utf-8", "replace").decode()


@lru_cache(maxsize=_CACHED)
def _compiled(text: str, name: str, marked: bool) -> CodeType:  # noqa: FBT001 - the cache's key
    return Sandbox(Budget(Limits()), marked=marked).compile(text, name)
