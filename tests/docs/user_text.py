"""Text that users read, wherever it stands: pages, help, messages, comments of examples.

Each reader yields (file, line, text). Names of code are left out: inline code of Markdown,
identifiers, docstrings, and literals without a space.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from infra.cli_page import commands

ROOT = Path(__file__).parents[2]

Text = tuple[str, int, str]

_CODE = re.compile(r"\s*(?:bellhop [a-z]|CREATE |INSERT |SELECT |UPDATE |DELETE |do\n)")
"""A command line, SQL or Lua, which a literal may also be."""

_COMMENTED = {".yaml", ".yml", ".toml", ".service", ".hcl"}
_INLINE_CODE = re.compile(r"`[^`\n]+`")
_LINK_TARGET = re.compile(r"\]\([^)\s]+\)")
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')
_TF_COMMENT = re.compile(r"(?:^|\s)(?:#|//)\s?(.*)$")
_HEREDOC = re.compile(r"<<-?(\w+)\s*$")
_SVG_TEXT = re.compile(r">([^<>]+)<")


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


def markdown(path: Path) -> Iterator[Text]:
    """Yield the lines of a page, without inline code and the targets of links."""
    for number, line in enumerate(path.read_text().splitlines(), 1):
        yield named(path), number, _LINK_TARGET.sub("]", _INLINE_CODE.sub("`…`", line))


def comments(path: Path) -> Iterator[Text]:
    """Yield the comments of YAML and its like."""
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if found := re.search(r"(?:^|\s)#\s?(.*)$", line):
            yield named(path), number, found[1]


def terraform(path: Path) -> Iterator[Text]:
    """Yield comments, heredocs and quoted sentences of a Terraform file."""
    until = None
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if until:
            until = None if line.strip() == until else until
            yield named(path), number, _INLINE_CODE.sub("`…`", line)
            continue
        if found := _HEREDOC.search(line):
            until = found[1]
        for quoted in _QUOTED.findall(line):
            if " " in quoted:
                yield named(path), number, _INLINE_CODE.sub("`…`", quoted.strip('"'))
        if found := _TF_COMMENT.search(_QUOTED.sub('""', line)):
            yield named(path), number, _INLINE_CODE.sub("`…`", found[1])


def literals(path: Path) -> Iterator[Text]:
    """Yield the string literals of a module that have a space, but no docstring and no code.

    An f-string is one text, with `…` where a value stands.
    """
    tree = ast.parse(path.read_text())
    seen = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            seen.update(map(id, node.values))
            text = "".join(_part(each) for each in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
        else:
            continue
        if " " in text and id(node) not in seen and not _CODE.match(text):
            yield named(path), node.lineno, _INLINE_CODE.sub("`…`", text)


def _part(node: ast.expr) -> str:
    return str(node.value) if isinstance(node, ast.Constant) else "…"


def images(path: Path) -> Iterator[Text]:
    """Yield the words in a picture."""
    for number, line in enumerate(path.read_text().splitlines(), 1):
        for text in _SVG_TEXT.findall(line):
            yield named(path), number, text


def helps() -> Iterator[Text]:
    """Yield the help of each command and option."""
    for name, command in commands().items():
        for text in (command.help, command.short_help, command.epilog):
            yield f"`{name} --help`", 0, _INLINE_CODE.sub("`…`", text or "")
        for each in command.params:
            option = " ".join(each.opts)
            text = getattr(each, "help", None) or ""
            yield f"`{name} {option}`", 0, _INLINE_CODE.sub("`…`", text)


def files(*patterns: str) -> Iterator[Path]:
    """Yield the files of glob patterns, each once, in order."""
    found = {path for pattern in patterns for path in ROOT.glob(pattern) if path.is_file()}
    yield from sorted(found)


def read(path: Path) -> Iterator[Text]:
    """Yield the text of a file by its kind; nothing for one that has none."""
    if path.suffix == ".md":
        yield from markdown(path)
    elif path.suffix == ".py":
        yield from literals(path)
    elif path.suffix in {".tf", ".tfvars"}:
        yield from terraform(path)
    elif path.suffix == ".svg":
        yield from images(path)
    elif path.suffix in _COMMENTED:
        yield from comments(path)
