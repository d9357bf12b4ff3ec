"""From rendered text to Kubernetes objects, with errors that show the rendered line.

An error in the output of a template names the line of the output and that of the template;
the template is rendered once more for that, so that what is right pays nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from bellhop.api.names import RULES
from bellhop.core.sveltos_annotations import ADOPT, ADOPTIONS
from bellhop.documents.document import Bounds, Document, read_documents
from bellhop.errors import InvalidError, TooLargeError
from bellhop.gotemplate import Limits
from bellhop.rendering.secrecy import LOCALLY

_PLACE = re.compile(r", document \d+(?:, line (\d+))?\Z")
_LONGEST = 80
BOUNDS = Bounds(nodes=100_000, documents=10_000)
"""The most that one entry may hold: a short text may be a tree of gigabytes."""

_CLUSTER = "SveltosCluster"
_GROUPS = ("lib.projectsveltos.io", "config.projectsveltos.io")
_MAY_DECLARE = re.compile(r"projectsveltos\.io/v1")

_Explain = Callable[[int], str]


class NotObjectsError(InvalidError):
    """A text is not YAML, or a document of it is not a Kubernetes object."""


class Text(Protocol):
    """A template or a script that writes manifests; what is `secret` is not quoted."""

    @property
    def text(self) -> str:
        """Return it as its author wrote it."""

    @property
    def name(self) -> str:
        """Return what errors call it."""

    @property
    def secret(self) -> bool:
        """Say whether nobody may quote it."""

    def render(self, variables: Mapping[str, Any], limits: Limits, /) -> str:
        """Return what it writes."""

    def origins(self, variables: Mapping[str, Any], limits: Limits, /) -> list[int]:
        """Return its line for each line that it writes; nothing where nobody knows."""


def read_manifests(text: str, *, source: str, secret: bool = False) -> tuple[dict[str, Any], ...]:
    """Read the objects of a text as it stands, in order; nothing at all is fine.

    Lists are taken apart. Empty documents are skipped. A `secret` text is not quoted.

    Raises:
        NotObjectsError: the text is not YAML, or a document is not a Kubernetes object.
    """
    lines = [] if secret else text.splitlines()

    def explain(line: int) -> str:
        return _quoted("the line is", lines, line)

    return _read(text, source, "line", explain, secret=secret)


def declaration_in(text: str) -> str:
    """Say which object of a text is a declaration, if one is, and why it cannot stand there.

    A text that is rendered first is no YAML yet: it passes.
    """
    if not _MAY_DECLARE.search(text):
        return ""
    try:
        documents = read_documents(text, source="", bounds=BOUNDS, repeats=True)
    except InvalidError:
        return ""
    items = (item for document in documents for item in _expanded(document))
    return next(filter(None, (_declaration(each) for each in items)), "")


def kinds_defined(manifests: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str], bool]:
    """Return of each group and kind that manifests define whether it is namespaced."""
    found = {}
    for manifest in manifests:
        if manifest["kind"] == "CustomResourceDefinition":
            spec = _mapping(manifest.get("spec"))
            kind = str(_mapping(spec.get("names")).get("kind", ""))
            found[str(spec.get("group", "")), kind] = spec.get("scope") != "Cluster"
    return found


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _declaration(data: Any, *, secret: bool = False) -> str:
    """Say that an object is a declaration, and what to do with it; empty for any other."""
    if not isinstance(data, dict) or data.get("kind") not in (*RULES, _CLUSTER):
        return ""
    if str(data.get("apiVersion")).partition("/")[0] not in _GROUPS:
        return ""
    name = "" if secret else f"{data['kind']} "
    if data["kind"] == _CLUSTER:
        return (
            f"the {name or 'object '}registers a cluster, which no deployed object does: run"
            " `bellhop register cluster`, and take it out of what is deployed"
        )
    return (
        f"the {name or 'object '}is a manifest for Bellhop, which reads it only from `bellhop"
        " apply` and from no cluster; apply it separately, and take it out of what is deployed"
    )


def render_manifests(
    template: Text, variables: Mapping[str, Any], limits: Limits
) -> tuple[dict[str, Any], ...]:
    """Render a template and read the objects it wrote, in order; nothing at all is fine.

    Raises:
        TemplateError: the template fails.
        ScriptError: the script fails.
        NotObjectsError: what it wrote is not YAML, or not Kubernetes objects.
    """
    text = template.render(variables, limits)

    def explain(line: int) -> str:
        origins = template.origins(variables, limits)
        origin = origins[line - 1] if 0 < line <= len(origins) else 0
        written = [] if template.secret else text.splitlines()
        source = [] if template.secret else template.text.splitlines()
        return (
            _quoted("the template wrote", written, line)
            + _quoted("after", written, line - 1, mark="")
            + (f", from its line {origin}" if origin else "")
            + (_quoted("", source, origin) if origin and source != written else "")
        )

    return _read(text, template.name, "rendered line", explain, secret=template.secret)


def _quoted(words: str, lines: list[str], line: int, *, mark: str = ";") -> str:
    if not 0 < line <= len(lines) or not lines[line - 1].strip():
        return ""
    shown = lines[line - 1].rstrip()
    shown = shown if len(shown) <= _LONGEST else shown[:_LONGEST] + "…"
    return f"{mark} {words} '{shown}'" if words else f", '{shown.strip()}'"


def _read(
    text: str, source: str, line_word: str, explain: _Explain, *, secret: bool
) -> tuple[dict[str, Any], ...]:
    def refuse(sentence: str, line: int) -> NotObjectsError:
        where = f"{source}, {line_word} {line}" if line else source
        shown = f"; {LOCALLY}" if secret else ""
        return NotObjectsError(f"{sentence}{explain(line)}{shown}", where=where)

    try:
        documents = read_documents(text, source=source, bounds=BOUNDS, repeats=True)
    except InvalidError as error:
        place = _PLACE.search(error.where)
        sentence = str(error).removeprefix(f"{error.where}: ")
        if secret and not isinstance(error, TooLargeError):
            sentence = getattr(error, "plain", "this is not YAML")
        refusal = refuse(sentence, int(place[1] or 0) if place else 0)
        raise refusal from (None if secret else error)
    found: list[dict[str, Any]] = []
    for document in documents:
        for item in _expanded(document):
            wrong = _mistake(item, secret=secret) or _declaration(item, secret=secret)
            if wrong:
                raise refuse(wrong, document.line)
            if len(found) == BOUNDS.documents:
                many = f"this has more than the {BOUNDS.documents:,} objects that are read"
                raise refuse(many, document.line)
            found.append(item)
    return tuple(found)


def _expanded(document: Document) -> list[Any]:
    data = document.data
    if isinstance(data, dict) and str(data.get("kind")).endswith("List"):
        items = data.get("items")
        if isinstance(items, list):
            return items
    return [data]


def _mistake(data: Any, *, secret: bool) -> str:
    if not isinstance(data, dict):
        return "not a Kubernetes object but " + ("a list" if isinstance(data, list) else "a scalar")
    for field in ("apiVersion", "kind"):
        if not isinstance(data.get(field), str) or not data[field]:
            return f"the object has no '{field}'"
    kind = "object" if secret else data["kind"]
    metadata = data.get("metadata")
    if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str):
        return f"the {kind} has no 'metadata.name'"
    if not metadata["name"]:
        return f"the {kind} has an empty 'metadata.name'"
    for field in ("labels", "annotations"):
        if not isinstance(metadata.get(field) or {}, dict):
            return f"'metadata.{field}' of the {kind} must be a map"
    if not isinstance(metadata.get("namespace") or "", str):
        return f"'metadata.namespace' of the {kind} must be a string"
    if (metadata.get("annotations") or {}).get(ADOPT, "true") not in ADOPTIONS:
        words = ", ".join(f'"{word}"' for word in ADOPTIONS)
        return f"the annotation {ADOPT} of the {kind} must be one of {words}, in quotes"
    return _unnameable(data, metadata)


def _unnameable(data: Mapping[str, Any], metadata: Mapping[str, Any]) -> str:
    """Say which name has a slash too many: names are parts of paths, in an API and in our keys."""
    parts = {
        "apiVersion": data["apiVersion"].replace("/", "", 1),
        "kind": data["kind"],
        "metadata.namespace": metadata.get("namespace") or "",
        "metadata.name": metadata["name"],
    }
    wrong = [field for field, value in parts.items() if "/" in value]
    return f"'{wrong[0]}' of the object is not a name: it has a slash" if wrong else ""
