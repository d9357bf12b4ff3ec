"""Rendering one text with one set of variables, boxed, with errors that point."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bellhop import gotemplate
from bellhop.errors import TemplateError


@dataclass(frozen=True, slots=True)
class Limits:
    """What one rendering may take: seconds of wall time, characters of output."""

    seconds: float = 5.0
    output: int = 8 * 1024 * 1024


def render(
    text: str,
    variables: Mapping[str, Any],
    *,
    name: str,
    limits: Limits,
    functions: gotemplate.FunctionSet | None = None,
) -> str:
    """Render a Go template; `functions` default to those of event time.

    Raises:
        TemplateError: in Go's wording, with the template's name, line and column.
    """
    if "{{" not in text:
        return text
    try:
        template = gotemplate.compile_template(
            text, name=name, funcs=functions or gotemplate.event_functions()
        )
        return template.render(
            variables,
            limits=gotemplate.Limits(seconds=limits.seconds, output=limits.output),
        )
    except gotemplate.GoTemplateError as error:
        raise TemplateError(
            str(error), name=error.name, line=error.line, column=error.column
        ) from error
