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
from bellhop.diagnosis.overview import object_name
from bellhop.diagnosis.source_evaluation import Object, SourceTrial, Tried, objects
from bellhop.documents.document import Document
from bellhop.errors import BellhopError, InvalidError, MissingError, ScriptError

SOURCE, MATCHING, OTHERS = "eventsource", "matching", "non-matching"
_SUFFIXES = (".yaml", ".yml", ".json")

Reading = Callable[[Sequence[str]], list[Document]]
Declaring = Callable[[Sequence[Document]], list[Declaration]]


class Case(Struct, frozen=True):
    """One thing that was tested, in a folder and a file of it: what is wrong, if anything is.

    `broken` says that it could not be tested.
    """

    folder: str
    file: str
    name: str
    wrong: str = ""
    broken: bool = False
    took_ms: float = 0.0


class Folders:
    """Tests what lies in a folder and all below it."""

    def __init__(self, read: Reading, declare: Declaring, trial: SourceTrial) -> None:
        self._read = read
        self._declare = declare
        self._trial = trial

    def run(self, root: Path) -> Iterator[Case]:
        """Yield each case as it was tested, folders in the order of their names.

        Raises:
            MissingError: there is no such folder, or no source in it.
        """
        found = sorted({each.parent for each in root.rglob(f"{SOURCE}.*") if _counts(each)})
        if not found:
            what = f"no {SOURCE}.yaml is in it or below" if root.is_dir() else "it is not a folder"
            raise MissingError(f"cannot test '{root}': {what}")
        for folder in found:
            yield from self._test(folder, str(folder))

    def _test(self, folder: Path, name: str) -> Iterator[Case]:
        path = _file(folder, SOURCE)
        try:
            source = self._source(path)
        except BellhopError as error:
            yield Case(name, path.name, SOURCE, _told(error), broken=True)
            return
        yield Case(name, path.name, f"EventSource {source.name}")
        found: dict[Path, list[Object]] = {}
        for path in (_file(folder, word) for word in (MATCHING, OTHERS)):
            try:
                found |= {path: self._objects(path)} if path.is_file() else {}
            except BellhopError as error:
                yield Case(name, path.name, path.stem, _told(error), broken=True)
        for path, tried in self._try(source, found):
            for each in tried:
                yield _case(name, path, each)

    def _objects(self, path: Path) -> list[Object]:
        """Read the objects of a file.

        Raises:
            InvalidError: there is none in it, or something else.
        """
        found = list(objects(self._read([str(path)])))
        if not found:
            raise InvalidError(f"cannot test '{path}': it is empty")
        return found

    def _try(
        self, source: EventSource, found: Mapping[Path, Sequence[Object]]
    ) -> Iterator[tuple[Path, list[Tried]]]:
        """Try the objects of each file, for which the report is made of all of them."""
        if not source.aggregation:
            for path, each in found.items():
                yield path, self._trial.attempt_all(source, each)
            return
        every = [each for objects in found.values() for each in objects]
        try:
            told = {each.key: each for each in self._trial.attempt_all(source, every)}
        except ScriptError as error:
            failed = (replace(_tried(each), because=str(error), error=error) for each in every)
            told = {each.key: each for each in failed}
        for path, each in found.items():
            yield path, [told[key] for key, _ in each]

    def _source(self, path: Path) -> EventSource:
        given = self._declare(self._read([str(path)]))
        found = [each for each in given if isinstance(each, EventSource)]
        if len(found) != 1:
            raise InvalidError(f"cannot test '{path}': it has {len(found)} EventSources, not one")
        return found[0]


def _case(folder: str, path: Path, tried: Tried) -> Case:
    """Hold what came of an object against the file that it lies in."""
    wrong = ""
    if tried.error:
        wrong = tried.because
    elif tried.matching is not (path.stem == MATCHING):
        does = "it matches" if tried.matching else "it does not match"
        wrong = f"{does}: {tried.because}"
    broken, name = tried.error is not None, object_name(tried.key)
    return Case(folder, path.name, name, wrong, broken=broken, took_ms=tried.took_ms)


def _tried(each: Object) -> Tried:
    return Tried(*each, matching=False, because="")


def _file(folder: Path, word: str) -> Path:
    """Return a file of that word, with whichever ending; with the usual one if there is none."""
    names = [folder / f"{word}{suffix}" for suffix in _SUFFIXES]
    return next((each for each in names if each.is_file()), names[0])


def _counts(path: Path) -> bool:
    return path.suffix in _SUFFIXES and path.is_file()


def _told(error: BellhopError) -> str:
    return "; ".join(map(str, getattr(error, "problems", ()) or (error,)))
