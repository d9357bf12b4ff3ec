"""Every Python file of the project, read once: its lines by what they are, and its syntax tree.

Nothing here knows a folder inside the packages, so that files may move between them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from functools import cached_property, lru_cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PRODUCT = ("shared", "infra", "functions")
TESTS = ("tests",)

_SCOPES = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
_COMMENT = re.compile(r"(?:^\s*|\s\s)(#.*)$")


class Source:
    """One file; `name` is its path in the repository."""

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.text = text
        self.lines = text.count("\n")

    @cached_property
    def tree(self) -> ast.Module:
        """Return the syntax tree."""
        return ast.parse(self.text)

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """Return all nodes of the tree."""
        return list(ast.walk(self.tree))

    @cached_property
    def docstrings(self) -> list[ast.Constant]:
        """Return the docstrings, and the strings below fields and constants that document them."""
        return [
            node.value
            for scope in self.nodes
            if isinstance(scope, _SCOPES)
            for node in scope.body
            if isinstance(node, ast.Expr)
            if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        ]

    @cached_property
    def prose(self) -> list[str]:
        """Return the texts of all docstrings and comments."""
        return [*(str(each.value) for each in self.docstrings), *self.comments.values()]

    @cached_property
    def code(self) -> set[int]:
        """Return the numbers of lines with code: no blanks, docstrings, comments or imports."""
        lines = enumerate(self.text.splitlines(), 1)
        written = {number for number, line in lines if line.strip()}
        return written - self._own_comments - lines_of(self.docstrings) - self.imports

    @cached_property
    def imports(self) -> set[int]:
        """Return the numbers of lines of import statements, also of those inside functions."""
        return lines_of([n for n in self.nodes if isinstance(n, ast.Import | ast.ImportFrom)])

    @cached_property
    def comments(self) -> dict[int, str]:
        """Return the comments by line; two spaces tell one behind code from a `#` in a string."""
        return {
            number: hit[1]
            for number, line in enumerate(self.text.splitlines(), 1)
            if "#" in line and number not in self._strings
            if (hit := _COMMENT.search(line))
        }

    @cached_property
    def _own_comments(self) -> set[int]:
        lines = self.text.splitlines()
        return {number for number in self.comments if lines[number - 1].lstrip().startswith("#")}

    @cached_property
    def _strings(self) -> set[int]:
        strings = [n for n in self.nodes if isinstance(n, ast.Constant | ast.JoinedStr)]
        return lines_of([n for n in strings if n.end_lineno != n.lineno])


def lines_of(nodes: Iterable[ast.expr | ast.stmt]) -> set[int]:
    """Return the numbers of all lines of some nodes."""
    return {
        line for node in nodes for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }


@lru_cache(1)
def product() -> tuple[Source, ...]:
    """Return the files of the product."""
    return tuple(_read(PRODUCT))


def tests() -> Iterator[Source]:
    """Yield the files of the tests, which are many: none is remembered with its tree."""
    return _read(TESTS)


def _read(folders: tuple[str, ...]) -> Iterator[Source]:
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield Source(str(path.relative_to(ROOT)), path.read_text(encoding="utf-8"))
