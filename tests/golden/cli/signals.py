"""The words of logs and metrics that dashboards and alarms read, as the source spells them.

A log line is its severity, its message and the names of its fields. A line whose fields are
computed where it is written ends with `…`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

_ROOT = Path(__file__).parents[3]
_SEVERITIES = {"info": "INFO", "warning": "WARNING", "error": "ERROR"}
_METRIC = re.compile(r"bellhop_[a-z_]+[a-z]")
_NO_METRICS = {"bellhop_fields"}


def signals() -> str:
    """Return all log lines and metrics, sorted, in the text of a golden file."""
    trees = [
        ast.parse(path.read_text(encoding="utf-8"))
        for folder in ("shared", "functions")
        for path in sorted((_ROOT / folder).rglob("*.py"))
    ]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    lines, names = sorted(set(_log_lines(nodes))), sorted(set(_metrics(nodes)))
    return "".join(f"{each}\n" for each in ("Log lines", *lines, "", "Metrics", *names))


def _log_lines(nodes: list[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        logger = ast.unparse(node.func.value).lower().rpartition(".")[2]
        if node.func.attr not in _SEVERITIES or not logger.endswith("log") or not node.args:
            continue
        fields = sorted(each.arg for each in node.keywords if each.arg)
        more = ["…"] if any(each.arg is None for each in node.keywords) else []
        text = _text(node.args[0]) or "…"
        severity = _SEVERITIES[node.func.attr]
        yield " ".join([severity, f"{text}:", *fields, *more]).removesuffix(":")


def _metrics(nodes: list[ast.AST]) -> Iterator[str]:
    for text in map(_text, nodes):
        if _METRIC.fullmatch(text) and text not in _NO_METRICS:
            yield text


def _text(node: ast.AST) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
