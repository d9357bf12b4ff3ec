"""Errors of a template, with the place in its text.

GoTemplateError                  .name .line .column .excerpt; str() is Go's own wording
├─ ParseError                    the text is not a template
├─ ExecError                     the template and its data do not fit together
└─ LimitError                    the template asked for more than it was given
   ├─ OutputLimitError           too many characters, written or held
   ├─ StepLimitError             too many iterations, items or calls
   ├─ DepthLimitError            templates, parentheses or data nested too deeply
   └─ TimeLimitError             too many seconds

`FunctionError` is what a template function raises; it reaches users as an `ExecError`.
"""

from __future__ import annotations

from typing import NamedTuple


class Place(NamedTuple):
    """A point in a template's text: line counts from 1, column in bytes from 0, as in Go."""

    name: str
    line: int
    column: int
    excerpt: str


NOWHERE = Place("", 0, 0, "")


def place_at(name: str, text: str, position: int) -> Place:
    """Find the line and the column of a character's position."""
    start = text.rfind("\n", 0, position) + 1
    end = text.find("\n", position)
    return Place(
        name=name,
        line=text.count("\n", 0, position) + 1,
        column=len(text[start:position].encode("utf-8", "surrogatepass")),
        excerpt=text[start : end if end >= 0 else len(text)],
    )


class GoTemplateError(Exception):
    """A template failed; says which, where, and shows the line."""

    def __init__(self, message: str, place: Place = NOWHERE) -> None:
        super().__init__(message)
        self.place = place

    @property
    def name(self) -> str:
        return self.place.name

    @property
    def line(self) -> int:
        """Return the line, from 1; 0 where there is none."""
        return self.place.line

    @property
    def column(self) -> int:
        """Return the column in bytes, from 0."""
        return self.place.column

    @property
    def excerpt(self) -> str:
        return self.place.excerpt


class ParseError(GoTemplateError):
    """The text is not a template."""


class ExecError(GoTemplateError):
    """A template and its data, or its functions, do not fit together."""


class LimitError(GoTemplateError):
    """A template asked for more than it was given."""

    def __str__(self) -> str:
        if not self.line:
            return f"template: {self.name}: {self.args[0]}" if self.name else str(self.args[0])
        return f"template: {self.name}:{self.line}:{self.column}: {self.args[0]}"


class OutputLimitError(LimitError):
    """More characters were written, or held in values, than allowed."""


class StepLimitError(LimitError):
    """More iterations, items or calls were asked for than allowed."""


class DepthLimitError(LimitError):
    """Templates, parentheses or data are nested more deeply than allowed."""


class TimeLimitError(LimitError):
    """Rendering took longer than allowed."""


class FunctionError(Exception):
    """A template function cannot do what it was asked; the message is Go's wording."""
