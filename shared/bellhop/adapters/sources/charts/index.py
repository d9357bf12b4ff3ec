"""The index of a chart repository, of which the entries of one chart are read.

An index may have tens of thousands of entries: read whole, 20 MB are half a gigabyte of objects.
So its events are passed over until those of the chart come, and of these each field but three is.
"""

from __future__ import annotations

from typing import Any

import yaml
from msgspec import Struct

from bellhop.errors import InvalidError, TooLargeError

_MOST_VERSIONS = 20_000
_MOST_URLS = 100
_MOST_EVENTS = 5_000_000
"""Scalars and brackets until the last version: the largest public indexes have a third of it."""

_MOST_DEPTH = 32

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Entry(Struct, frozen=True):
    """One version of a chart, and where its archive is, as the index has it."""

    version: str
    urls: tuple[str, ...]
    digest: str = ""


def entries_of(index: bytes, chart: str) -> tuple[Entry, ...]:
    """Return the first versions of a chart, 20,000 at most; none if the index does not have it.

    Raises:
        InvalidError: it is no index.
        TooLargeError: it has more scalars and brackets than are read.
    """
    events = _Events(index)
    try:
        return tuple(_versions(events, chart))
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise _no_index() from error
    finally:
        events.close()


def _no_index() -> InvalidError:
    return InvalidError("what is there is no index of a chart repository")


class _Events:
    """The events of a YAML document, one after the other."""

    def __init__(self, text: bytes) -> None:
        self._loader = _Loader(text)
        self._left = _MOST_EVENTS

    def peek(self) -> Any:
        """Return the next event, which stays the next one."""
        return self._loader.peek_event()

    def take(self) -> Any:
        """Return the next event."""
        self._left -= 1
        if self._left < 0:
            raise TooLargeError(
                f"the index of the chart repository has more than the {_MOST_EVENTS:,} values that"
                " are read; use a smaller repository, or the chart's OCI registry"
            )
        return self._loader.get_event()

    def pass_over(self) -> None:
        """Take all events of one value."""
        depth = 0
        while True:
            event = self.take()
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
            if depth > _MOST_DEPTH:
                raise _no_index()
            if depth == 0:
                return

    def close(self) -> None:
        self._loader.dispose()


def _versions(events: _Events, chart: str) -> list[Entry]:
    if not isinstance(events.take(), yaml.StreamStartEvent) or not isinstance(
        events.take(), yaml.DocumentStartEvent
    ):
        raise _no_index()
    if not (_find(events, "entries") and _find(events, chart)):
        return []
    if not isinstance(events.take(), yaml.SequenceStartEvent):
        raise _no_index()
    found: list[Entry] = []
    while len(found) < _MOST_VERSIONS and not isinstance(events.peek(), yaml.SequenceEndEvent):
        if isinstance(events.peek(), yaml.MappingStartEvent):
            found.append(_entry(events))
        else:
            events.pass_over()
    return found


def _find(events: _Events, name: str) -> bool:
    """Pass over the fields of a mapping up to the value of one; say whether it is there."""
    if not isinstance(events.take(), yaml.MappingStartEvent):
        raise _no_index()
    while not isinstance(events.peek(), yaml.MappingEndEvent):
        key = events.take()
        if not isinstance(key, yaml.ScalarEvent):
            raise _no_index()
        if key.value == name:
            return True
        events.pass_over()
    return False


def _entry(events: _Events) -> Entry:
    """Take the mapping of a version; what a scalar may mean besides its text does not count."""
    version = digest = ""
    urls: tuple[str, ...] = ()
    events.take()
    while not isinstance(events.peek(), yaml.MappingEndEvent):
        name = events.peek()
        events.pass_over()
        value = events.peek()
        if not isinstance(name, yaml.ScalarEvent):
            events.pass_over()
        elif name.value == "urls" and isinstance(value, yaml.SequenceStartEvent):
            urls = _scalars(events)
        else:
            events.pass_over()
            if isinstance(value, yaml.ScalarEvent):
                version = value.value if name.value == "version" else version
                digest = value.value if name.value == "digest" else digest
    events.take()
    return Entry(version, urls, digest.removeprefix("sha256:"))


def _scalars(events: _Events) -> tuple[str, ...]:
    """Take a list, and return the first scalars in it."""
    found: list[str] = []
    events.take()
    while not isinstance(events.peek(), yaml.SequenceEndEvent):
        each = events.peek()
        events.pass_over()
        if isinstance(each, yaml.ScalarEvent) and len(found) < _MOST_URLS:
            found.append(each.value)
    events.take()
    return tuple(found)
