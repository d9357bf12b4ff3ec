"""A document that a user wrote, with the line of each field.

A manifest read from the store is a document too, without lines. The YAML library is loaded by the
first text, so that stages that read only the store start without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from bellhop.errors import InvalidError, TooLargeError

Path = tuple[str | int, ...]

LARGEST = 16 * 1024 * 1024


class Bounds(NamedTuple):
    """Limits of a text, with aliases expanded: small texts can be large trees.

    The largest definitions that people apply have some 30,000 values each.
    """

    nodes: int = 500_000
    """Scalars, lists and mappings together."""
    documents: int = 50_000


BOUNDS = Bounds()
"""The bounds of a file that a user applies."""


class TooMuchError(TooLargeError):
    """A text holds more than is read, or nests more deeply."""


class UnreadableError(InvalidError):
    """A text is not what can be read; `plain` says so without a word of the text."""

    def __init__(self, message: str, *, plain: str, where: str) -> None:
        super().__init__(message, where=where)
        self.plain = plain


class InvalidDocuments(InvalidError):  # noqa: N818 - it is a group; each problem is the error
    """Several inputs are wrong; `problems` has one error for each mistake, in reading order."""

    def __init__(self, problems: Sequence[InvalidError]) -> None:
        first, *rest = problems
        more = f" (and {len(rest)} more)" if rest else ""
        super().__init__(f"{first}{more}")
        self.problems = tuple(problems)


@dataclass(frozen=True, slots=True)
class Document:
    """One document of a file; `index` and `line` count from 1, `prefix` leads to it in a List."""

    data: Any
    source: str = ""
    index: int = 1
    line: int = 1
    prefix: Path = ()
    node: Any = field(default=None, repr=False, compare=False)

    def line_of(self, path: Path) -> int:
        """Find the line of a field, or of its nearest parent that was written down."""
        if self.node is None:
            return self.line
        from bellhop.documents.yaml_nodes import line_under  # noqa: PLC0415 - the node came from there

        return line_under(self.node, path) or self.line

    def where(self, path: Path = ()) -> str:
        """Say where a field is: file, document and line if it was read from one, and path."""
        place = self.source
        if self.node is not None:
            place += f", document {self.index}, line {self.line_of(path)}"
        spelled = spell((*self.prefix, *path))
        return f"{place}, {spelled}" if spelled else place


def spell(path: Path) -> str:
    """Write a path as manifests' readers know it: `spec.policyRefs[0].kind`."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif "." in step or "/" in step:
            text += f"['{step}']"
        else:
            text += f".{step}" if text else step
    return text


def read_documents(
    text: str | bytes,
    *,
    source: str,
    largest: int = LARGEST,
    expand_lists: bool = True,
    bounds: Bounds = BOUNDS,
    repeats: bool = False,
) -> list[Document]:
    """Read every document of a YAML or JSON text; empty ones are skipped, v1 Lists unpacked.

    By `repeats` the last one counts of a key that stands twice, which else is a mistake.

    Raises:
        TooLargeError: for a text of more than `largest` bytes, or beyond the bounds.
        InvalidError: for the first thing that is not YAML, or has no meaning in JSON.
    """
    from bellhop.documents import yaml_reader as reading  # noqa: PLC0415 - what is stored is read without YAML

    return reading.read(
        text,
        source=source,
        largest=largest,
        expand_lists=expand_lists,
        bounds=bounds,
        repeats=repeats,
    )


def dump(data: Any) -> str:
    """Write YAML for people: keys in their order, long texts as blocks, no aliases."""
    from bellhop.documents import yaml_writer  # noqa: PLC0415 - most that is read is never shown

    return yaml_writer.write(data)
