"""Charts in HTTP repositories, whose `index.yaml` names the addresses of archives.

An index may have tens of thousands of entries: read whole, 20 MB are half a gigabyte of objects.
So its events are passed over until those of the chart come, and of these each field but three is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import urljoin, urlsplit

import yaml
from msgspec import Struct

from bellhop.adapters.egress.download import origin, shown
from bellhop.adapters.egress.source_client import Limits, basic
from bellhop.adapters.sources.charts.client import ChartClient, Descriptor, digest_of
from bellhop.adapters.sources.charts.versions import choose, newest_first
from bellhop.core.address_policy import AddressPolicy
from bellhop.errors import InvalidError, MissingError, TooLargeError
from bellhop.state.chart import Place

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

    An index may have tens of thousands of entries: read whole, 20 MB are half a gigabyte of
    objects. So its events are passed over until those of the chart come, and of these each field
    but three is.

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


INDEX = Limits(64 << 20, 120.0)
ARCHIVE = Limits(32 << 20, 120.0)


class Repository:
    """A chart in a repository; `index` returns the cached index, or calls its argument."""

    def __init__(
        self, place: Place, reach: AddressPolicy, index: Callable[[Callable[[], bytes]], bytes]
    ) -> None:
        # Sveltos writes the repository's name before it.
        self._chart = place.chart.rpartition("/")[2]
        self._address = place.repository
        origin(self._address)
        self._of = f"chart {self._chart!r} in {shown(self._address)}"
        self._client = ChartClient(f"cannot find {self._of}", place.login, reach)
        self._index = index

    def versions(self) -> Sequence[str]:
        return newest_first(each.version for each in self._entries())

    def find(self, version: str) -> Descriptor:
        entries = self._entries()
        chosen = choose((each.version for each in entries), version, of=self._of)
        entry = next(each for each in entries if each.version == chosen)
        try:
            url = _resolve(self._address, entry.urls[0])
        except (IndexError, ValueError) as error:
            raise InvalidError(
                f"{self._client.task}: the index has no address of version {chosen!r}; have the"
                " index re-created"
            ) from error
        return Descriptor(self._chart, chosen, url, entry.digest.lower())

    def fetch(self, found: Descriptor) -> bytes:
        """Download an archive; by default the credentials go only to the repository's origin.

        Raises:
            InvalidError: its digest is not that of the index.
        """
        content = self._client.content(found.url, ARCHIVE, self._headers(found.url))
        if found.digest and digest_of(content) != found.digest:
            raise InvalidError(
                f"{self._client.task}: the digest of the archive {shown(found.url)} is not that of"
                " the index; have the index re-created"
            )
        return content

    def _headers(self, url: str) -> dict[str, str]:
        """Return the credentials for an archive; those of an https:// origin stay on https://."""
        there, home = origin(url), origin(self._address)
        as_safe = there[0] == "https" or home[0] == "http"
        allowed = there == home or (self._client.login.everywhere and as_safe)
        return basic(self._client.login) if allowed else {}

    def _entries(self) -> tuple[Entry, ...]:
        index = self._index(self._read)
        try:
            entries = entries_of(index, self._chart)
        except InvalidError as error:
            raise InvalidError(f"{self._client.task}: {error}; check its address") from error
        if not entries:
            raise MissingError(
                f"{self._client.task}: the index does not have this chart; check its name"
            )
        return entries

    def _read(self) -> bytes:
        url = _below(self._address, "index.yaml")
        return self._client.content(url, INDEX, basic(self._client.login))


def _below(address: str, path: str) -> str:
    """Return the address of a file in a repository, with the query of the repository."""
    parts = urlsplit(address)
    return parts._replace(path=f"{parts.path.rstrip('/')}/{path}", fragment="").geturl()


def _resolve(address: str, url: str) -> str:
    """Resolve an address in an index as Helm does: a relative one gets the repository's query."""
    if urlsplit(url).scheme:
        return url
    there = urljoin(_below(address, ""), url)
    return urlsplit(there)._replace(query=urlsplit(address).query).geturl()
