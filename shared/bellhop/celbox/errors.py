"""Errors of a rule, in the words of CEL's own runtime, with the place.

CelError                .name of the rule, .line and .column (from 1, or None), .wording
├─ CelSyntaxError       the text is no expression that can be true or false
├─ CelRuntimeError      the rule failed on this object, or gave something that is no bool
├─ CelLimitError        the rule was stopped; .kind says by which limit
└─ CelMissingError      CEL's runtime is not installed

The engine maps them to its own errors; this package knows nothing of the rest of Bellhop.
"""

from __future__ import annotations

from typing import Literal

LimitKind = Literal["time", "iterations", "memory", "depth", "size"]


class CelError(Exception):
    """A rule failed; the text is `name:line:column: wording`."""

    def __init__(
        self, wording: str, *, name: str, line: int | None = None, column: int | None = None
    ) -> None:
        super().__init__(f"{name}:{line}:{column}: {wording}" if line else f"{name}: {wording}")
        self.name = name
        self.line = line
        self.column = column
        self.wording = wording

    @property
    def plain(self) -> str:
        """Say what failed without words that may quote what the rule was given."""
        return str(self)


class CelSyntaxError(CelError):
    """The text is no CEL, names something that is not there, or can never be a bool."""


class CelRuntimeError(CelError):
    """The rule failed on this object; for Sveltos, and so for us, it does not hold then."""

    @property
    def plain(self) -> str:
        """Say it without the words of the runtime, which quotes keys and numbers."""
        return f"{self.name}: the rule fails on this object"


class CelLimitError(CelError):
    """The rule, or the object, went beyond a limit: nobody knows whether it holds."""

    def __init__(self, wording: str, *, kind: LimitKind, name: str) -> None:
        super().__init__(wording, name=name)
        self.kind = kind


class CelMissingError(CelError):
    """CEL's runtime is not installed here."""

    def __init__(self, *, name: str) -> None:
        super().__init__(
            "CEL's runtime is not installed; install Bellhop with its dependencies (pip install"
            " bellhop-fleet), or in a cloud set `cel = true` in the Terraform module",
            name=name,
        )
