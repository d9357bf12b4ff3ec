"""The page on CEL has every function, and the limits that hold."""

from __future__ import annotations

import re
from pathlib import Path

from bellhop.celbox.library import functions
from bellhop.celbox.limits import Limits

PAGE = (Path(__file__).parents[2] / "docs/how-to/write-cel.md").read_text()


def test_every_function_is_named() -> None:
    """The table has what is declared, and the limits are those that hold."""
    table = PAGE[PAGE.index("| Of | Functions |") : PAGE.index("Sveltos has CEL")]

    assert {each.name for each in functions()} <= set(re.findall(r"`([\w.]+)`", table))
    assert f"| {Limits().size // 1024} KiB |" in PAGE
    assert f"| {Limits().memory // 1024**2} MiB," in PAGE
    assert f"| {Limits().depth} |" in PAGE
