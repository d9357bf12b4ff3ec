"""The index of a chart repository, of which the entries of one chart are read.

An index may have tens of thousands of entries: read whole, 20 MB are half a gigabyte of objects.
So its events are passed over until those of the chart come.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml
from msgspec import Struct

from bellhop.errors import InvalidError

_MOST_VERSIONS = 20_000
_MOST_DEPTH = 32

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Entry(Struct, frozen=True):
    """One version of a chart, and where its archive is, as the index has it."""

    version: str
    urls: tuple[str, ...]
    digest: str = ""


def entries_of(index: bytes, chart: str) -> tuple[Entry, ...]:
    """Return all versions of a chart; none if the index does not have it.

    Raises:
        InvalidError: it is no index.
    """
    loader = _Loader(index)
    try:
        if not loader.check_event(yaml.StreamStartEvent):
            raise _no_index()
        loader.get_event()
        loader.get_event()
        found = _value_of(loader, ("entries", chart))
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise _no_index() from error
    finally:
        loader.dispose()
    if found is None:
        return ()
    if not isinstance(found, list):
        raise _no_index()
    return tuple(_entry(each) for each in found[:_MOST_VERSIONS] if isinstance(each, dict))


def _no_index() -> InvalidError:
    return InvalidError("what is there is no index of a chart repository")


def _entry(told: dict[str, Any]) -> Entry:
    urls = told.get("urls")
    return Entry(
        version=str(told.get("version") or ""),
        urls=tuple(map(str, urls)) if isinstance(urls, list) else (),
        digest=str(told.get("digest") or "").removeprefix("sha256:"),
    )


def _value_of(loader: Any, path: tuple[str, ...]) -> Any:
    """Return what lies at a path of mappings, and pass over all else."""
    if not isinstance(loader.peek_event(), yaml.MappingStartEvent):
        raise _no_index()
    loader.get_event()
    while not isinstance(loader.peek_event(), yaml.MappingEndEvent):
        key = loader.get_event()
        if isinstance(key, yaml.ScalarEvent) and key.value == path[0]:
            return _value_of(loader, path[1:]) if path[1:] else _built(loader)
        if not isinstance(key, yaml.ScalarEvent):
            raise _no_index()
        _pass_over(loader)
    return None


def _pass_over(loader: Any) -> None:
    for _ in _events(loader):
        pass


def _events(loader: Any) -> Iterator[Any]:
    """Yield the events of one value."""
    depth = 0
    while True:
        event = loader.get_event()
        yield event
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > _MOST_DEPTH:
            raise _no_index()
        if depth == 0:
            return


def _built(loader: Any) -> Any:
    """Build a value of texts, lists and mappings; whatever else a scalar may mean is its text."""
    return _build(_events(loader))


def _build(events: Iterator[Any]) -> Any:
    event = next(events)
    if isinstance(event, yaml.SequenceStartEvent):
        return list(_items(events))
    if isinstance(event, yaml.MappingStartEvent):
        flat = list(_items(events))
        return dict(zip(map(str, flat[::2]), flat[1::2], strict=False))
    return event.value if isinstance(event, yaml.ScalarEvent) else None


def _items(events: Iterator[Any]) -> Iterator[Any]:
    """Yield the values of a collection until its end."""
    stack: list[list[Any]] = [[]]
    opened: list[Any] = []
    for event in events:
        if isinstance(event, yaml.CollectionStartEvent):
            stack.append([])
            opened.append(event)
        elif isinstance(event, yaml.CollectionEndEvent):
            done = stack.pop()
            if not stack:
                yield from done
                return
            start = opened.pop()
            made: Any = done
            if isinstance(start, yaml.MappingStartEvent):
                made = dict(zip(map(str, done[::2]), done[1::2], strict=False))
            stack[-1].append(made)
        else:
            stack[-1].append(event.value if isinstance(event, yaml.ScalarEvent) else None)
