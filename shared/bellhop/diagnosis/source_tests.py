"""Folders of tests for EventSources: a source, and objects that match it or do not.

    FOLDER/eventsource.yaml      the source
    FOLDER/matching.yaml         objects that match it, if there is the file
    FOLDER/non-matching.yaml     objects that do not

as Sveltos' own agent has them for its sources (pkg/evaluation/events). A file may hold several
objects, and end in .yml or .json. With an aggregatedSelection all that lies in a folder is one
cluster's; matching.yaml has what is to be in the report, which the script may have made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from bellhop.api.kinds import Declaration, EventSource
from bellhop.diagnosis.names import object_name
from bellhop.diagnosis.source_evaluation import (
    EvaluatedObject,
    Object,
    SourceEvaluator,
    read_objects,
)
from bellhop.documents.document import Document
from bellhop.errors import BellhopError, InvalidError, MissingError, ScriptError

SOURCE, MATCHING, OTHERS = "eventsource", "matching", "non-matching"
_SUFFIXES = (".yaml", ".yml", ".json")

Reading = Callable[[Sequence[str]], list[Document]]
Declaring = Callable[[Sequence[Document]], list[Declaration]]


class Case(Struct, frozen=True):
    """The result of one test: its folder, file and object, and what is wrong, if anything is.

    A `broken` one could not be tested.
    """

    folder: str
    file: str
    name: str
    wrong: str = ""
    broken: bool = False
    took_ms: float = 0.0


class SourceTests:
    """The tests in a folder and all below it."""

    def __init__(self, read: Reading, declare: Declaring, evaluator: SourceEvaluator) -> None:
        self._read = read
        self._declare = declare
        self._evaluator = evaluator

    def run(self, root: Path) -> Iterator[Case]:
        """Yield the result of each test, folders in the order of their names.

        Raises:
            MissingError: there is no such folder, or no source in it.
        """
        found = sorted({each.parent for each in root.rglob(f"{SOURCE}.*") if _is_source_file(each)})
        if not found:
            what = f"no {SOURCE}.yaml is in it or below" if root.is_dir() else "it is not a folder"
            raise MissingError(f"cannot test '{root}': {what}")
        for folder in found:
            yield from self._test(folder, str(folder))

    def _test(self, folder: Path, name: str) -> Iterator[Case]:
        path = _find_file(folder, SOURCE)
        try:
            source = self._source(path)
        except BellhopError as error:
            yield Case(name, path.name, SOURCE, _format_error(error), broken=True)
            return
        yield Case(name, path.name, f"EventSource {source.name}")
        found: dict[Path, list[Object]] = {}
        for path in (_find_file(folder, word) for word in (MATCHING, OTHERS)):
            try:
                found |= {path: self._objects(path)} if path.is_file() else {}
            except BellhopError as error:
                yield Case(name, path.name, path.stem, _format_error(error), broken=True)
        for path, tried in self._try(source, found):
            for each in tried:
                yield _make_case(name, path, each)

    def _objects(self, path: Path) -> list[Object]:
        found = list(read_objects(self._read([str(path)])))
        if not found:
            raise InvalidError(f"cannot test '{path}': it is empty")
        return found

    def _try(
        self, source: EventSource, found: Mapping[Path, Sequence[Object]]
    ) -> Iterator[tuple[Path, list[EvaluatedObject]]]:
        """Evaluate the objects of each file; an aggregatedSelection gets all of them."""
        if not source.aggregation:
            for path, each in found.items():
                yield path, self._evaluator.attempt_all(source, each)
            return
        every = [each for objects in found.values() for each in objects]
        try:
            results = {each.key: each for each in self._evaluator.attempt_all(source, every)}
        except ScriptError as error:
            failed = (
                replace(_unevaluated(each), because=str(error), error=error) for each in every
            )
            results = {each.key: each for each in failed}
        for path, each in found.items():
            yield path, [results[key] for key, _ in each]

    def _source(self, path: Path) -> EventSource:
        given = self._declare(self._read([str(path)]))
        found = [each for each in given if isinstance(each, EventSource)]
        if len(found) != 1:
            raise InvalidError(f"cannot test '{path}': it has {len(found)} EventSources, not one")
        return found[0]


def _make_case(folder: str, path: Path, tried: EvaluatedObject) -> Case:
    wrong = ""
    if tried.error:
        wrong = tried.because
    elif tried.matching is not (path.stem == MATCHING):
        does = "it matches" if tried.matching else "it does not match"
        wrong = f"{does}: {tried.because}"
    broken, name = tried.error is not None, object_name(tried.key)
    return Case(folder, path.name, name, wrong, broken=broken, took_ms=tried.took_ms)


def _unevaluated(each: Object) -> EvaluatedObject:
    return EvaluatedObject(*each, matching=False, because="")


def _find_file(folder: Path, word: str) -> Path:
    """Return the file of that name, with any of the suffixes; else with the first."""
    names = [folder / f"{word}{suffix}" for suffix in _SUFFIXES]
    return next((each for each in names if each.is_file()), names[0])


def _is_source_file(path: Path) -> bool:
    return path.suffix in _SUFFIXES and path.is_file()


def _format_error(error: BellhopError) -> str:
    return "; ".join(map(str, getattr(error, "problems", ()) or (error,)))
