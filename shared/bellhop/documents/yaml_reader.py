"""YAML as people write it for Kubernetes, read so that every mistake can name its line.

The reading follows kubectl, except that duplicate keys are mistakes and nothing is guessed:
a file that would mean something else to an API server is refused here. What templates wrote is
read as Kubernetes' own tools do: of a key that stands twice the last one counts.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from typing import Any

import yaml

from bellhop.core.printable import escaped_yaml, steers
from bellhop.core.scalars import NotJsonError, resolve_plain
from bellhop.documents.document import Bounds, Document, Path, TooMuchError, UnreadableError
from bellhop.errors import InvalidError, TooLargeError

DEEPEST = 100
# Aliases may repeat so many characters beyond those of the text: one long scalar that is named a
# thousand times is a small tree, and an endless JSON.
REPEATED = 1024 * 1024

_PLAIN = "plain"
_TAG = "tag:yaml.org,2002:"
_STRING_TAGS = frozenset({f"{_TAG}str", f"{_TAG}timestamp", "!"})
_NUMBER_TAGS = frozenset({f"{_TAG}{name}" for name in ("int", "float", "bool", "null")})
_INDENTATION = ("did not find expected key", "could not find expected ':'", "expected <block end>")
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_TEXTS = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)
"""The texts of JSON: a comma in one of them parts no values.

Possessive, for else a hundred bytes are kept of each escape. One that never ends is a text up to
the end: else each quote in it begins another search for its end.
"""


def read(
    text: str | bytes,
    *,
    source: str,
    largest: int,
    expand_lists: bool,
    bounds: Bounds,
    repeats: bool,
) -> list[Document]:
    """Read every document of a text, as `read_documents` says."""
    size = len(text) if isinstance(text, bytes) else len(text.encode("utf-8", "replace"))
    if size > largest:
        raise TooLargeError(
            f"the file has {size:,} bytes and at most {largest:,} are read; split it", where=source
        )
    content = _decoded(text, source)
    try:
        documents = list(_documents(content, source, bounds, repeats=repeats))
    except TooMuchError:
        raise
    except InvalidError:
        plain = _json(content, source, bounds, repeats=repeats)
        if plain is None:
            raise
        documents = [plain]
    if not expand_lists:
        return documents
    return [part for document in documents for part in _unpacked(document)]


def _documents(content: str, source: str, bounds: Bounds, *, repeats: bool) -> Iterator[Document]:
    builder = _Builder(source, bounds, len(content) + REPEATED, repeats=repeats)
    found = 0
    for index, node in _nodes(content, source, bounds):
        data = builder.document(node, index)
        if data is None:
            continue
        found += 1
        if found > bounds.documents:
            raise builder.beyond(
                node, f"this has more than the {bounds.documents:,} documents that are read"
            )
        yield Document(data, source, index, node.start_mark.line + 1, (), node)


def _json(content: str, source: str, bounds: Bounds, *, repeats: bool) -> Document | None:
    """Read JSON that is no YAML: it may escape surrogates and be indented with tabs."""
    if not content.lstrip().startswith("{"):
        return None
    if sum(map(_TEXTS.sub("", content).count, ",[{")) > bounds.nodes:
        raise TooMuchError(
            f"this JSON has more than the {bounds.nodes:,} values that are read", where=source
        )
    try:
        data = json.loads(
            content, object_pairs_hook=dict if repeats else _unique, parse_constant=_refuse_constant
        )
        json.dumps(data, ensure_ascii=False).encode()  # half a surrogate pair fails here
    except (ValueError, RecursionError):
        return None
    return Document(data, source)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError
    return found


def _refuse_constant(_name: str) -> None:
    raise ValueError


def write(data: Any) -> str:
    """Write YAML, as `dump` says."""
    text: str = escaped_yaml(
        yaml.dump(
            data,
            Dumper=_Dumper,
            sort_keys=False,
            allow_unicode=True,
            default_flow_style=False,
            width=1 << 30,
        )
    )
    return text


def line_under(node: yaml.Node, path: Path) -> int | None:
    """Find the line of a path below a node, or of its nearest parent that was written down."""
    line = None
    current: yaml.Node | None = node
    for step in path:
        found = _child(current, step)
        if found is None:
            break
        mark, current = found
        line = mark.start_mark.line + 1
    return line


def _decoded(text: str | bytes, source: str) -> str:
    if isinstance(text, str):
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise InvalidError("the text holds half of a character", where=source) from error
        return text.removeprefix("\ufeff")
    if text.startswith(_UTF16):
        raise InvalidError("the file is UTF-16; save it as UTF-8", where=source)
    try:
        return text.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = text.count(b"\n", 0, error.start) + 1
        raise InvalidError(
            "the file is not UTF-8 here; save it as UTF-8", where=f"{source}, line {line}"
        ) from error


def _unpacked(document: Document) -> Iterator[Document]:
    data = document.data
    is_list = (
        isinstance(data, dict)
        and data.get("kind") == "List"
        and data.get("apiVersion") == "v1"
        and isinstance(data.get("items"), list)
    )
    if not is_list:
        yield document
        return
    for position, item in enumerate(data["items"]):
        found = document.node and _descend(document.node, ("items", position))
        line = document.line_of(("items", position))
        prefix = (*document.prefix, "items", position)
        yield from _unpacked(
            Document(item, document.source, document.index, line, prefix, found or None)
        )


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
            return _PLAIN
        return str(super().resolve(kind, value, implicit))


def _last_line(parent: yaml.Node | None) -> int:
    """Return the line, from 1, of what was composed last below a node that is not finished."""
    last: Any = parent
    while isinstance(last, yaml.CollectionNode) and last.value:
        last = last.value[-1]
        last = last[1] if isinstance(last, tuple) else last
    return last.start_mark.line + 1 if last else 0


def _nodes(content: str, source: str, bounds: Bounds) -> Iterator[tuple[int, yaml.Node]]:
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


def _child(node: yaml.Node | None, step: str | int) -> tuple[yaml.Node, yaml.Node] | None:
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
        if _merges(key):
            for merged in value.value if isinstance(value, yaml.SequenceNode) else [value]:
                found = _child(merged, step)
                if found:
                    return found
    return None


def _descend(node: yaml.Node, path: Path) -> yaml.Node | None:
    for step in path:
        found = _child(node, step)
        if found is None:
            return None
        node = found[1]
    return node


def _merges(key: yaml.Node) -> bool:
    plain = key.tag == _PLAIN and not key.style if isinstance(key, yaml.ScalarNode) else False
    return (plain and key.value == "<<") or key.tag == f"{_TAG}merge"


class _Builder:
    """Turns the nodes of a text's documents into what JSON can hold, aliases as copies."""

    def __init__(self, source: str, bounds: Bounds, characters: int, *, repeats: bool) -> None:
        self.source = source
        self.repeats = repeats
        self.index = 1
        self.nodes = bounds.nodes
        self.characters = characters
        self.open: set[int] = set()

    def document(self, node: yaml.Node, index: int) -> Any:
        """Build one document."""
        self.index = index
        return self.build(node)

    def build(self, node: yaml.Node) -> Any:
        self.nodes -= 1
        if self.nodes < 0 or self.characters < 0:
            raise self.beyond(node, "the aliases of this document expand without measure")
        if isinstance(node, yaml.ScalarNode):
            return self.scalar(node)
        if id(node) in self.open:
            raise self.error(node, "this anchor contains an alias of itself")
        self.open.add(id(node))
        built: Any = None
        if isinstance(node, yaml.SequenceNode):
            self.expect(node, "seq")
            built = [self.build(item) for item in node.value]
        elif isinstance(node, yaml.MappingNode):
            self.expect(node, "map")
            built = self.mapping(node)
        self.open.discard(id(node))
        return built

    def scalar(self, node: yaml.ScalarNode) -> Any:
        tag = node.tag
        self.characters -= len(node.value)
        if tag == _PLAIN:
            return str(node.value) if node.style else self.plain(node)
        if tag in _STRING_TAGS:
            return str(node.value)
        if tag in _NUMBER_TAGS:
            return self.tagged(node)
        raise self.error(node, "the tag '{}' has no meaning in a manifest", _short(tag))

    def plain(self, node: yaml.ScalarNode) -> Any:
        try:
            return resolve_plain(node.value)
        except NotJsonError as error:
            raise self.error(
                node, "'{}' cannot be said in JSON; quote it if it is a text", node.value
            ) from error

    def tagged(self, node: yaml.ScalarNode) -> Any:
        value = self.plain(node)
        name = node.tag.removeprefix(_TAG)
        if name == "float" and isinstance(value, int) and not isinstance(value, bool):
            return float(value)
        if name != {bool: "bool", int: "int", float: "float", type(None): "null"}.get(type(value)):
            raise self.error(node, "'{}' is not what its tag '!!{}' says", node.value, name)
        return value

    def mapping(self, node: yaml.MappingNode) -> dict[str, Any]:
        built: dict[str, Any] = {}
        marks: dict[str, yaml.Node] = {}
        merges: list[yaml.Node] = []
        for key_node, value_node in node.value:
            if _merges(key_node):
                merges.append(value_node)
                continue
            key = self.key(key_node)
            if key in marks and not self.repeats:
                first = marks[key].start_mark.line + 1
                raise self.error(
                    key_node, f"the key '{{}}' is already on line {first}; keep one of them", key
                )
            marks[key] = key_node
            built[key] = self.build(value_node)
        for merge in merges:
            self.merge(built, merge)
        return built

    def merge(self, built: dict[str, Any], node: yaml.Node) -> None:
        sources = node.value if isinstance(node, yaml.SequenceNode) else [node]
        for source in sources:
            if not isinstance(source, yaml.MappingNode):
                raise self.error(source, "'<<' merges mappings only")
            for key, value in self.build(source).items():
                built.setdefault(key, value)

    def key(self, node: yaml.Node) -> str:
        value = self.scalar(node) if isinstance(node, yaml.ScalarNode) else None
        if isinstance(value, str):
            return value
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, int | float):
            return str(value)
        hint = "; put quotes around a text that begins with {{{{" if _is_braces(node) else ""
        raise self.error(node, f"a key must be a text{hint}")

    def expect(self, node: yaml.Node, name: str) -> None:
        if node.tag not in {f"{_TAG}{name}", "!"}:
            raise self.error(node, "the tag '{}' has no meaning in a manifest", _short(node.tag))

    def error(self, node: yaml.Node, sentence: str, *quoted: str) -> InvalidError:
        """Word a mistake; `quoted` are the parts of the text that stand in the sentence."""
        return UnreadableError(
            sentence.format(*quoted),
            plain=sentence.format(*("…" for _ in quoted)),
            where=self.where(node),
        )

    def beyond(self, node: yaml.Node, sentence: str) -> InvalidError:
        """Word that a bound is passed."""
        return TooMuchError(sentence, where=self.where(node))

    def where(self, node: yaml.Node) -> str:
        """Say where a node stands."""
        return f"{self.source}, document {self.index}, line {node.start_mark.line + 1}"


def _is_braces(node: yaml.Node) -> bool:
    return isinstance(node, yaml.MappingNode) and bool(node.flow_style)


def _short(tag: str) -> str:
    return tag.replace(_TAG, "!!")


_Emitter: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class _Dumper(_Emitter):  # type: ignore[misc]
    def ignore_aliases(self, _data: Any) -> bool:
        return True


def _represent_text(dumper: Any, text: str) -> yaml.Node:
    node: yaml.Node = dumper.represent_scalar(f"{_TAG}str", text, _style(text))
    return node


def _style(text: str) -> str | None:
    if steers(text):
        # Only between double quotes can such characters be written as escapes.
        return '"'
    if "\n" in text:
        return "|"
    try:
        return None if isinstance(resolve_plain(text), str) else '"'
    except NotJsonError:
        return '"'


_Dumper.add_representer(str, _represent_text)
