r"""Go's text/template and the functions of sprig, Helm and Sveltos, for Python.

A text is compiled once and rendered many times, from any thread, within limits:

    Template("{{ range .items }}- {{ .name | upper }}\n{{ end }}", funcs=sprig_functions())

Errors carry Go's wording and the place. Data is plain JSON-like Python; attributes are never read.
The package imports nothing of the rest of Bellhop, and nothing that costs start-up time.
"""

from __future__ import annotations

from bellhop.gotemplate.errors import (
    DepthLimitError,
    ExecError,
    FunctionError,
    GoTemplateError,
    LimitError,
    OutputLimitError,
    ParseError,
    StepLimitError,
    TimeLimitError,
)
from bellhop.gotemplate.functions import Function, FunctionSet
from bellhop.gotemplate.limits import Budget, Limits
from bellhop.gotemplate.origins import Mark, lines_of
from bellhop.gotemplate.sets import deploy_functions, event_functions, sprig_functions
from bellhop.gotemplate.template import MissingKey, Template, compile_template
from bellhop.gotemplate.values import Int, Struct

__all__ = [
    "Budget",
    "DepthLimitError",
    "ExecError",
    "Function",
    "FunctionError",
    "FunctionSet",
    "GoTemplateError",
    "Int",
    "LimitError",
    "Limits",
    "Mark",
    "MissingKey",
    "OutputLimitError",
    "ParseError",
    "StepLimitError",
    "Struct",
    "Template",
    "TimeLimitError",
    "compile_template",
    "deploy_functions",
    "event_functions",
    "lines_of",
    "sprig_functions",
]
