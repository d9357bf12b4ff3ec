"""YAML composed into nodes, within bounds, and syntax errors with their line.

Nodes know their lines, and `resolve_plain` what a plain scalar means.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

import yaml

from bellhop.documents.document import Bounds, Path, TooMuchError, UnreadableError
from bellhop.errors import InvalidError

_WORDS: dict[str, bool | None] = {
    **dict.fromkeys(["y", "Y", "yes", "Yes", "YES"], True),
    **dict.fromkeys(["true", "True", "TRUE"], True),
    **dict.fromkeys(["on", "On", "ON"], True),
    **dict.fromkeys(["n", "N", "no", "No", "NO"], False),
    **dict.fromkeys(["false", "False", "FALSE"], False),
    **dict.fromkeys(["off", "Off", "OFF"], False),
    **dict.fromkeys(["", "~", "null", "Null", "NULL"], None),
}
_NOT_JSON = frozenset(
    sign + word for word in (".inf", ".Inf", ".INF") for sign in ("", "+", "-")
) | {".nan", ".NaN", ".NAN"}
_MAY_MEAN_MORE = frozenset("yYnNtTfFoO~+-.0123456789")
_INTEGER = re.compile(
    r"([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]*))\Z"
)
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?\Z")
# Python neither reads nor writes integers of more than 4,300 decimal digits, lest a document costs
# quadratic time; so many hexadecimal digits are written in fewer.
_LONGEST_INTEGER = 3500

Scalar = str | int | float | bool | None


class NotJsonError(ValueError):
    """The scalar is an infinity or not a number, for which JSON has no spelling."""


def resolve_plain(text: str) -> Scalar:
    """Read a scalar that was written without quotes.

    The rules are those of Kubernetes' Go library for YAML 1.1, and differ from PyYAML's: `y` and
    `n` are booleans, timestamps and sexagesimal numbers stay strings, a leading zero and `0o` are
    octal, and integers have any size.

    Raises:
        NotJsonError: for `.inf` and `.nan`.
    """
    if text and text[0] not in _MAY_MEAN_MORE:
        return text
    if text in _WORDS:
        return _WORDS[text]
    if text in _NOT_JSON:
        raise NotJsonError(text)
    if text[0] in "yYnNtTfFoO~":
        return text
    digits = text if text[0] == "." else text.replace("_", "")
    if (integer := _INTEGER.match(digits)) and len(digits) <= _LONGEST_INTEGER:
        return _integer(integer)
    if _FLOAT.match(digits):
        number = float(digits)
        # Go answers "out of range" here, and then the text is a string like any other.
        return number if math.isfinite(number) else text
    return text


def _integer(match: re.Match[str]) -> int:
    sign, hexadecimal, binary, octal, decimal = match.groups()
    if hexadecimal:
        value = int(hexadecimal, 16)
    elif binary:
        value = int(binary, 2)
    elif octal:
        value = int(octal, 8)
    else:
        value = int(decimal)
    return -value if sign == "-" else value


DEEPEST = 100

PLAIN = "plain"

TAG = "tag:yaml.org,2002:"

_INDENTATION = ("did not find expected key", "could not find expected ':'", "expected <block end>")


def line_under(node: yaml.Node, path: Path) -> int | None:
    """Find the line of a path below a node, or of its nearest parent that was written down."""
    line = None
    current: yaml.Node | None = node
    for step in path:
        found = _find_child(current, step)
        if found is None:
            break
        mark, current = found
        line = mark.start_mark.line + 1
    return line


class _DeepError(yaml.YAMLError):
    """The text nests deeper than any manifest does."""


class _ManyError(yaml.YAMLError):
    """The text has more nodes than are read; `line` is where it went beyond."""

    def __init__(self, line: int) -> None:
        super().__init__()
        self.line = line


# The C parser is several times faster; without it time and the words of syntax errors differ.
_Parser: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_Parser):  # type: ignore[misc]
    """Composes nodes only, without deciding what plain scalars mean."""

    _depth = 0
    left = 0
    """Nodes that may still be composed."""

    def descend_resolver(self, parent: Any, _index: Any) -> None:
        # The parser recurses in C, where only this hook can stop it: before the stack ends, and
        # before a text of some bytes a node has become a tree of some hundred.
        self._depth += 1
        if self._depth > DEEPEST:
            raise _DeepError
        self.left -= 1
        if self.left < 0:
            raise _ManyError(_last_line(parent))

    def ascend_resolver(self) -> None:
        self._depth -= 1

    def resolve(self, kind: Any, value: Any, implicit: Any) -> str:
        if kind is yaml.ScalarNode and implicit[0]:
            return PLAIN
        return str(super().resolve(kind, value, implicit))


def _last_line(parent: yaml.Node | None) -> int:
    """Return the line, from 1, of what was composed last below a node that is not finished."""
    last: Any = parent
    while isinstance(last, yaml.CollectionNode) and last.value:
        last = last.value[-1]
        last = last[1] if isinstance(last, tuple) else last
    return last.start_mark.line + 1 if last else 0


def compose(content: str, source: str, bounds: Bounds) -> Iterator[tuple[int, yaml.Node]]:
    index = 1
    loader = None
    try:
        loader = _Loader(content)
        loader.left = bounds.nodes
        while loader.check_node():
            node = loader.get_node()
            if node is not None:
                yield index, node
            index += 1
    except _DeepError as error:
        raise TooMuchError(
            f"the document nests deeper than {DEEPEST} levels",
            where=f"{source}, document {index}",
        ) from error
    except _ManyError as error:
        place = f", line {error.line}" if error.line else ""
        raise TooMuchError(
            f"this has more than the {bounds.nodes:,} values that are read",
            where=f"{source}, document {index}{place}",
        ) from error
    except yaml.YAMLError as error:
        raise _syntax_error(error, content, source, index) from error
    finally:
        if loader is not None:
            loader.dispose()


def _syntax_error(error: yaml.YAMLError, content: str, source: str, index: int) -> InvalidError:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
    where = f"{source}, document {index}"
    if mark is None:
        position = getattr(error, "position", None)
        if isinstance(position, int):
            where += f", line {content.count(chr(10), 0, position) + 1}"
        return UnreadableError(
            f"this is not YAML: {problem}", plain="this is not YAML", where=where
        )
    line = mark.line + 1
    where += f", line {line}"
    lines = content.splitlines()
    written = lines[mark.line] if mark.line < len(lines) else ""
    indent = written[: len(written) - len(written.lstrip())]
    if "\t" in indent or written[mark.column : mark.column + 1] == "\t":
        tab = "a tab indents this line; YAML is indented with spaces"
        return UnreadableError(tab, plain=tab, where=where)
    sentence = f"this is not YAML: {problem}{_guess(problem, written)}"
    # libyaml's own words are constants; those of the parser in Python may quote the text.
    plain = sentence if _Parser is not yaml.SafeLoader else "this is not YAML"
    return UnreadableError(sentence, plain=plain, where=where)


def _guess(problem: str, written: str) -> str:
    if "anchor" in problem or "alias" in problem:
        return ""
    if "mapping values are not allowed" in problem:
        return "; quote a text that holds ': ', or put the key at its parents' indentation"
    if "{{" in written:
        return "; put quotes around a text that begins with {{"
    if any(word in problem for word in _INDENTATION):
        return "; look at the indentation of this line and of the one before"
    return ""


def _find_child(node: yaml.Node | None, step: str | int) -> tuple[yaml.Node, yaml.Node] | None:
    if isinstance(node, yaml.SequenceNode):
        if isinstance(step, int) and step < len(node.value):
            return node.value[step], node.value[step]
        return None
    if not isinstance(node, yaml.MappingNode):
        return None
    for key, value in node.value:
        if isinstance(key, yaml.ScalarNode) and key.value == step:
            return key, value
    for key, value in node.value:
        if is_merge_key(key):
            for merged in value.value if isinstance(value, yaml.SequenceNode) else [value]:
                found = _find_child(merged, step)
                if found:
                    return found
    return None


def descend(node: yaml.Node, path: Path) -> yaml.Node | None:
    for step in path:
        found = _find_child(node, step)
        if found is None:
            return None
        node = found[1]
    return node


def is_merge_key(key: yaml.Node) -> bool:
    plain = key.tag == PLAIN and not key.style if isinstance(key, yaml.ScalarNode) else False
    return (plain and key.value == "<<") or key.tag == f"{TAG}merge"
