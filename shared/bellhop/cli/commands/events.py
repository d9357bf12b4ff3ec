"""`bellhop events`: the timeline, as `bellhop show events` has it."""

from __future__ import annotations

from bellhop.cli.commands.show import events as command

__all__ = ["command"]
