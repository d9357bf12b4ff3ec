"""Evaluation of an EventSource on objects from files, without state and cluster."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from bellhop import luabox
from bellhop.api.kinds import EventSource
from bellhop.core.digest import content, digest
from bellhop.core.gvk import ObjectKey
from bellhop.documents.document import Document
from bellhop.errors import InvalidError, ScriptError
from bellhop.events.aggregation import Resource, aggregate
from bellhop.events.rules_match import Candidate, Ruling, evaluate_rules, why, why_not
from bellhop.rendering.cloud_events import parse
from bellhop.rendering.observation import observe
from bellhop.settings import Settings

_NOWHERE = "files/files"
"""A cluster's name that is never displayed."""

CHOSEN = "its aggregatedSelection chooses it"
LEFT_OUT = "its aggregatedSelection leaves it out"
MADE = "its aggregatedSelection makes it"
NOTHING = "the source selects nothing of this kind"

Object = tuple[ObjectKey, dict[str, Any]]


class EvaluatedObject(Struct, frozen=True):
    """The result of a source for an object: whether it matches, by which selector, and why.

    Selectors count from 1; 0 is none of them. `message` is that of the script or rule.
    """

    key: ObjectKey
    manifest: dict[str, Any]
    matching: bool
    because: str
    message: str = ""
    selector: int = 0
    took_ms: float = 0.0
    error: ScriptError | None = None


class SourceEvaluator:
    """Evaluates sources within the limits of all scripts.

    By `quoting` errors and results show values of Secrets.
    """

    def __init__(self, settings: Settings, *, quoting: bool = False) -> None:
        self._limits = luabox.Limits(seconds=settings.script_seconds, memory=settings.script_memory)
        self._quoting = quoting

    def attempt_all(self, source: EventSource, found: Iterable[Object]) -> list[EvaluatedObject]:
        """Evaluate a source on all objects of a cluster.

        With an aggregatedSelection its result comes first, in its order, and then the other
        objects.

        Raises:
            ScriptError: the aggregatedSelection fails without any matching object.
        """
        tried = [self.attempt(source, *each) for each in found]
        return self._aggregate(source, tried) if source.aggregation else tried

    def _aggregate(
        self, source: EventSource, tried: Sequence[EvaluatedObject]
    ) -> list[EvaluatedObject]:
        given = {each.key: each for each in tried if each.matching}
        matching = [given[key].manifest for key in sorted(given)]
        begun = time.perf_counter()
        try:
            made = aggregate(source, matching, self._limits, quoting=self._quoting)
        except ScriptError as error:
            if not given:
                raise
            cause = replace(next(iter(given.values())), because=str(error), error=error)
            failed = {each.key: replace(cause, key=each.key) for each in given.values()}
            return [replace(failed.get(each.key, each), matching=False) for each in tried]
        took = round((time.perf_counter() - begun) * 1000, 3)
        said = f": {made.message}" if made.message else ""
        chosen = {each.key for each in made.resources}
        return [
            *(
                _apply_choice(each, given.get(each.key), made.message, took)
                for each in made.resources
            ),
            *(
                replace(each, matching=False, because=LEFT_OUT + said, selector=0)
                if each.matching
                else each
                for each in tried
                if each.key not in chosen
            ),
        ]

    def attempt(
        self, source: EventSource, key: ObjectKey, manifest: dict[str, Any]
    ) -> EvaluatedObject:
        begun = time.perf_counter()

        def took() -> float:
            return round((time.perf_counter() - begun) * 1000, 3)

        try:
            ruling = evaluate_rules(
                source, Candidate(manifest), self._limits, quoting=self._quoting
            )
        except ScriptError as error:
            return EvaluatedObject(key, manifest, False, str(error), took_ms=took(), error=error)  # noqa: FBT003
        ended = took()
        number = len(ruling.declined) + 1 if ruling.matching else 0
        because = explain_ruling(ruling, manifest)
        return EvaluatedObject(
            key, manifest, ruling.matching, because, ruling.message, number, ended
        )


def explain_ruling(ruling: Ruling, manifest: Mapping[str, Any]) -> str:
    """Return why the selectors of a source take an object, or why each of them does not."""
    if ruling.matching:
        return why(ruling)
    reasons = dict.fromkeys(why_not(each, manifest) for each in ruling.declined)
    return "; ".join(reasons) or NOTHING


def read_objects(documents: Sequence[Document]) -> Iterator[Object]:
    """Yield documents as objects of a cluster, as a forwarder would send them, or as CloudEvents.

    Raises:
        InvalidError: a document is no Kubernetes object, and no CloudEvent.
    """
    for document in documents:
        data = document.data
        if isinstance(data, dict) and "specversion" in data:
            yield _read_event(document)
            continue
        if not isinstance(data, dict) or not data.get("apiVersion") or not data.get("kind"):
            raise InvalidError("this is not a Kubernetes object", where=document.where())
        if not isinstance(data.get("metadata"), dict) or not data["metadata"].get("name"):
            raise InvalidError("the object has no metadata.name", where=document.where())
        seen = observe(_NOWHERE, data, datetime.now(UTC))
        assert seen.manifest is not None
        yield seen.key, dict(seen.manifest)


def _read_event(document: Document) -> Object:
    try:
        event = parse(document.data)
    except InvalidError as error:
        raise InvalidError(str(error), where=document.where()) from error
    return event.key(), event.manifest()


def _apply_choice(
    made: Resource, old: EvaluatedObject | None, message: str, took: float
) -> EvaluatedObject:
    said = f": {message}" if message else ""
    if old is None:
        because = MADE + said
        return EvaluatedObject(made.key, made.manifest, True, because, message, took_ms=took)  # noqa: FBT003
    same = made.digest == digest(content(old.manifest))
    because = CHOSEN + ("" if same else ", changed") + said
    return replace(old, manifest=made.manifest, because=because, message=message)
