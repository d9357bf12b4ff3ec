"""Finds all files that a kustomization reads, before kustomize does, and refuses all else.

kustomize fetches what is a URL, clones what may be a git repository, and opens folders anywhere.
Here each entry must be a file or folder of the source, or the sentence says why it is not. Then
kustomize gets only these files, and its plans as they were checked, written as JSON: where two
parsers read YAML differently, it sees what was checked here.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from bellhop.core.printable import escaped_json, visible
from bellhop.documents.document import Bounds, read_documents
from bellhop.documents.tarball import Folder
from bellhop.errors import InvalidError, MissingError, TooLargeError

NAMES = ("kustomization.yaml", "kustomization.yml", "Kustomization")
LARGEST = 4 << 20
"""Bytes of all plans of a build, read and written."""

_BOUNDS = Bounds(nodes=100_000, documents=100)

_FOLDERS = ("resources", "bases", "components")
_FILES = ("crds", "configurations")
_PLUGINS = ("generators", "transformers", "validators")
_READERS = (
    *("configMapGenerator", "secretGenerator", "patches", "patchesJson6902", "replacements"),
    "openapi",
)
"""Fields whose mappings may name files."""

_CHARTS = ("helmCharts", "helmChartInflationGenerator")
_FUNCTIONS = ("config.kubernetes.io/function", "config.k8s.io/function")
_LOGIN = re.compile(r"//[^/]*@")
_LONGEST_SHOWN = 200


class _Entry(NamedTuple):
    """The value of a field of a plan, and its place for people."""

    where: str
    text: str


def restated(error: InvalidError, before: str) -> InvalidError:
    """Return an error with words before its own."""
    kind = TooLargeError if isinstance(error, TooLargeError) else InvalidError
    return kind(f"{before}{error}")


def normalise(path: str, place: str = "") -> str:
    """Return a path from a place of the folder as one from its top, which is empty."""
    joined = posixpath.normpath(posixpath.join(place, path))
    if path.startswith("/") or joined.split("/")[0] == "..":
        raise InvalidError(f"the path '{path}' leads out of the source")
    return "" if joined == "." else joined


def collect(
    folder: Folder, place: str, components: Sequence[str] = (), namespace: str = ""
) -> Folder:
    """Return the files that the kustomization at a place reads, with what is added to it.

    Raises:
        MissingError: there is no such place.
        InvalidError: something that it reads is not in the folder, or is not built here.
        TooLargeError: its plans are larger than is read.
    """
    collecting = _Collecting(folder)
    if place and place not in collecting.folders:
        what = "is a file" if place in folder else "is not there"
        raise MissingError(f"cannot build the kustomization '{place}': in the source it {what}")
    collecting.visit(place, components, namespace)
    while collecting.waiting:
        collecting.visit(collecting.waiting.pop())
    return {**collecting.files, **collecting.plans}


class _Collecting:
    """The files found so far, plans as they are read, and folders to visit."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self.folders = {
            path[:at] for path in folder for at, letter in enumerate(path) if letter == "/"
        }
        self.files: dict[str, bytes] = {}
        self.plans: dict[str, bytes] = {}
        self.waiting: list[str] = []
        self.visited: set[str] = set()
        self.left = LARGEST

    def visit(self, place: str, components: Sequence[str] = (), namespace: str = "") -> None:
        """Read the kustomization of a folder, and note what it reads."""
        if place in self.visited:
            return
        self.visited.add(place)
        file = self._kustomization(place)
        plan = self._plan(file)
        if components and isinstance(plan.get("components", []), list):
            plan["components"] = [*plan.get("components", []), *components]
        if namespace:
            plan["namespace"] = namespace
        try:
            self._follow(plan, place)
        except InvalidError as error:
            raise restated(error, f"'{file}': ") from error
        self.plans[file] = self._write(plan)

    def _kustomization(self, place: str) -> str:
        found = [path for name in NAMES if (path := posixpath.join(place, name)) in self.folder]
        if not found:
            raise InvalidError(
                f"the folder '{place or '.'}' has no kustomization.yaml; write one that lists its"
                " files under 'resources'"
            )
        if len(found) > 1:
            raise InvalidError(f"there are both '{found[0]}' and '{found[1]}'; keep one of them")
        return found[0]

    def _plan(self, file: str) -> dict[str, Any]:
        documents = self._read(self.folder[file], file)
        if len(documents) != 1 or not isinstance(documents[0], dict):
            raise InvalidError(f"'{file}' must hold one mapping, and holds {_count(documents)}")
        return documents[0]

    def _read(self, text: bytes | str, source: str) -> list[Any]:
        """Read YAML of a plan or plugin; as in kustomize, the last of repeated keys counts."""
        self._charge(len(text))
        found = read_documents(
            text, source=source, expand_lists=False, bounds=_BOUNDS, repeats=True
        )
        return [document.data for document in found]

    def _write(self, data: Any) -> bytes:
        """Return a plan or plugin as kustomize gets it."""
        # kustomize reads it as YAML, where half a character is no escape, and U+2028 ends a line.
        written = escaped_json(json.dumps(data, ensure_ascii=False)).encode()
        # What aliases repeat counts too.
        self._charge(len(written))
        return written

    def _charge(self, size: int) -> None:
        self.left -= size
        if self.left < 0:
            raise TooLargeError(
                f"its kustomization files have more than the {LARGEST:,} bytes that are read"
            )

    def _follow(self, plan: dict[str, Any], place: str) -> None:
        """Note all that a plan reads."""
        for name in _CHARTS:
            if _field(plan, name):
                raise InvalidError(
                    f"'{name}' is not inflated; deploy a chart by 'spec.helmCharts' of a profile"
                )
        for name in (*_FOLDERS, *_FILES):
            for entry in _texts(plan, name):
                self._take(entry, place, may_be_folder=name in _FOLDERS)
        self._take_paths(plan, "patchesStrategicMerge", "", place)
        for name in _READERS:
            self._read_by_each(plan, name, "", place)
        for name in _PLUGINS:
            for number, entry in enumerate(_texts(plan, name)):
                self._plugin(plan[name], number, entry, place)

    def _read_by_each(self, mapping: dict[str, Any], name: str, within: str, place: str) -> None:
        """Take the files that the mappings of a field name."""
        found = _field(mapping, name)
        for each in found if isinstance(found, list) else [found]:
            if isinstance(each, dict):
                self._read_by(each, f"{within}{name}: ", place)

    def _read_by(self, mapping: dict[str, Any], within: str, place: str) -> None:
        """Take the files that a generator, a patch or a replacement names."""
        for name in ("path", "env"):
            text = _field(mapping, name)
            if text and isinstance(text, str):
                self._take(_Entry(within + name, text), place)
        for name in ("envs", "files"):
            for where, text in _texts(mapping, name):
                # `key=path`, or a path.
                path = text.partition("=")[2] or text if name == "files" else text
                self._take(_Entry(within + where, path), place)
        self._take_paths(mapping, "paths", within, place)

    def _take_paths(self, mapping: dict[str, Any], name: str, within: str, place: str) -> None:
        """Take the patches of a list that are files."""
        for where, text in _texts(mapping, name):
            if not _is_inline(text):
                self._take(_Entry(within + where, text), place)

    def _plugin(self, entries: list[Any], number: int, entry: _Entry, place: str) -> None:
        """Take what configures kustomize's own plugins, in a file or in the plan itself."""
        if _is_inline(entry.text):
            written = self._builtin(entry.text, entry.where, place)
            entries[number] = written.decode()
            return
        path = self._take(entry, place)
        self.plans[path] = self._builtin(self.folder[path], path, place)

    def _builtin(self, text: bytes | str, source: str, place: str) -> bytes:
        plugins = self._read(text, source)
        for plugin in plugins:
            if not _is_builtin(plugin):
                raise InvalidError(
                    f"{source} is not a builtin plugin that is run; programs, functions and charts"
                    " of kustomizations are not run"
                )
            self._read_by(plugin, f"{source}: ", place)
            self._read_by_each(plugin, "replacements", f"{source}: ", place)
        return b"\n---\n".join(map(self._write, plugins))

    def _take(self, entry: _Entry, place: str, *, may_be_folder: bool = False) -> str:
        """Note a file that is read, or a folder that is to be visited; return its path."""
        shown = f"{entry.where} '{_shorten(entry.text)}'"
        if _is_remote(entry.text):
            raise InvalidError(
                f"{shown} is remote, and nothing is fetched while a kustomization is built; put it"
                " into the source"
            )
        try:
            path = normalise(entry.text, place)
        except InvalidError as error:
            raise InvalidError(f"{shown} leads out of the source; put it there") from error
        if path in self.folder:
            self.files[path] = self.folder[path]
        elif may_be_folder and (path in self.folders or not path):
            self.waiting.append(path)
        else:
            what = "a folder" if path in self.folders or not path else "not there"
            raise InvalidError(f"{shown} is {what}; name a file of the source")
        return path


def _field(mapping: Mapping[str, Any], name: str) -> Any:
    """Return a field; kustomize, too, reads those in other cases, which nobody means."""
    folded = name.casefold()
    for key in mapping:
        if key != name and key.casefold() == folded:
            raise InvalidError(f"'{key}' is not a field; write '{name}'")
    return mapping.get(name)


def _texts(mapping: Mapping[str, Any], name: str) -> Iterator[_Entry]:
    """Yield the texts of a list; of another type kustomize refuses it."""
    found = _field(mapping, name)
    for number, text in enumerate(found if isinstance(found, list) else ()):
        if not isinstance(text, str) or not text:
            raise InvalidError(f"{name}[{number}] must be a string")
        yield _Entry(f"{name}[{number}]", text)


def _is_remote(text: str) -> bool:
    """Say whether kustomize may take a text for a URL or for an address of git."""
    text = text.lower()
    host, _, path = text.partition("/")
    return (
        ":" in host
        or text.startswith(("git@", "github.com/", "www.github.com/"))
        or ("." in host[1:-1] and "//" in path)
        or "?ref=" in text
        or "?version=" in text
    )


def _shorten(text: str) -> str:
    """Return an entry for a sentence, without the password that a URL may have."""
    return visible(_LOGIN.sub("//…@", text)[:_LONGEST_SHOWN])


def _is_inline(text: str) -> bool:
    """Say whether a text is YAML and no path; neither a URL nor one of git has several lines."""
    return "\n" in text.strip() or text.startswith("{")


def _is_builtin(plugin: Any) -> bool:
    if not isinstance(plugin, dict) or _field(plugin, "apiVersion") != "builtin":
        return False
    metadata = _field(plugin, "metadata")
    if not isinstance(metadata, dict) or not _field(metadata, "name"):
        return False
    annotations = _field(metadata, "annotations") or {}
    kind = _field(plugin, "kind")
    return kind != "HelmChartInflationGenerator" and not any(
        name in annotations for name in _FUNCTIONS
    )


def _count(documents: Sequence[Any]) -> str:
    return f"{len(documents)} documents" if len(documents) != 1 else "something else"
