"""The page on CEL has every function, and the limits that hold."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from bellhop.celbox.library import functions
from bellhop.celbox.limits import Limits

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/how-to/write-cel.md").read_text()


def test_every_function_is_named() -> None:
    """The table has what is declared, and the limits are those that hold."""
    table = PAGE[PAGE.index("| Of | Functions |") : PAGE.index("Sveltos has CEL")]

    assert {each.name for each in functions()} <= set(re.findall(r"`([\w.]+)`", table))
    assert f"| {Limits().size // 1024} KiB |" in PAGE
    assert f"| {Limits().memory // 1024**2} MiB," in PAGE
    assert f"| {Limits().depth} |" in PAGE


def test_the_plain_installation_has_the_runtime() -> None:
    """As the page says; the extra of that name is still accepted."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

    assert "CEL is part of the [plain installation](install.md)." in PAGE
    assert [each for each in project["dependencies"] if each.startswith("cel-expr-python>=")]
    assert "cel" in project["optional-dependencies"]
