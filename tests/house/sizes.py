"""How large the product is, and how it is cut into files."""

from __future__ import annotations

from tests.house import source

LONG, SHORT = 400, 30


def sizes() -> dict[str, int]:
    """Count lines by what they are, and files by their length.

    An `__init__.py` is a file like another, also where it only has a docstring.
    """
    files = source.product()
    return {
        "product lines": sum(each.lines for each in files),
        "product code lines": sum(len(each.code) for each in files),
        "product import lines": sum(len(each.imports) for each in files),
        "product files": len(files),
        f"product files over {LONG} lines": sum(each.lines > LONG for each in files),
        f"product files under {SHORT} lines": sum(each.lines < SHORT for each in files),
        "test lines": sum(each.lines for each in source.tests()),
    }
