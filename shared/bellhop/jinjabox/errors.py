"""What a Jinja2 template can fail with, and where."""

from __future__ import annotations


class JinjaError(Exception):
    """A template failed; `line` counts from 1, 0 where there is none."""

    def __init__(self, message: str, *, name: str, line: int, excerpt: str) -> None:
        place = f"{name}:{line}" if line else name
        super().__init__(f"template: {place}: {message}")
        self.name = name
        self.line = line
        self.excerpt = excerpt


class RefusedError(Exception):
    """An operation cannot be done on what it was given; it names kinds of values, never values."""
