"""YAML as people write it for Kubernetes, read so that every mistake can name its line.

The reading follows kubectl, except that duplicate keys are mistakes and nothing is guessed:
a file that would mean something else to an API server is refused here. Output of
templates is read as Kubernetes' own tools do: of a repeated key the last one counts.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from typing import Any

import yaml

from bellhop.documents.document import Bounds, Document, TooMuchError, UnreadableError
from bellhop.documents.yaml_nodes import (
    PLAIN,
    TAG,
    NotJsonError,
    compose,
    descend,
    is_merge_key,
    resolve_plain,
)
from bellhop.errors import InvalidError, TooLargeError

# Aliases may repeat so many characters beyond those of the text: one long scalar that is named a
# thousand times is a small tree, and an endless JSON.
REPEATED = 1024 * 1024

_STRING_TAGS = frozenset({f"{TAG}str", f"{TAG}timestamp", "!"})
_NUMBER_TAGS = frozenset({f"{TAG}{name}" for name in ("int", "float", "bool", "null")})
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
    content = _decode(text, source)
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
    return [part for document in documents for part in _unpack(document)]


def _documents(content: str, source: str, bounds: Bounds, *, repeats: bool) -> Iterator[Document]:
    builder = _Builder(source, bounds, len(content) + REPEATED, repeats=repeats)
    found = 0
    for index, node in compose(content, source, bounds):
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


def _decode(text: str | bytes, source: str) -> str:
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


def _unpack(document: Document) -> Iterator[Document]:
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
        found = document.node and descend(document.node, ("items", position))
        line = document.line_of(("items", position))
        prefix = (*document.prefix, "items", position)
        yield from _unpack(
            Document(item, document.source, document.index, line, prefix, found or None)
        )


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
        if tag == PLAIN:
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
        name = node.tag.removeprefix(TAG)
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
            if is_merge_key(key_node):
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
        if node.tag not in {f"{TAG}{name}", "!"}:
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
        return f"{self.source}, document {self.index}, line {node.start_mark.line + 1}"


def _is_braces(node: yaml.Node) -> bool:
    return isinstance(node, yaml.MappingNode) and bool(node.flow_style)


def _short(tag: str) -> str:
    return tag.replace(TAG, "!!")
