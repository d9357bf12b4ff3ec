"""The port `Repositories`: finds charts over HTTP and in OCI registries, checks and caches them.

Fifty releases of one repository read its index once and download an archive once: indexes and
resolved versions are cached for a minute, archives until others need their space.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from bellhop.adapters.egress.download import shown
from bellhop.adapters.egress.registry import SCHEME
from bellhop.adapters.sources.charts import archive
from bellhop.adapters.sources.charts.client import MOST_BYTES, ArchiveCache, Descriptor, digest_of
from bellhop.adapters.sources.charts.registry import Registry
from bellhop.adapters.sources.charts.repository import INDEX, Repository
from bellhop.core.address_policy import AddressPolicy
from bellhop.documents.tarball import Folder
from bellhop.errors import DeniedError, InvalidError, MissingError
from bellhop.ports.charts import Archive
from bellhop.ports.clock import Clock
from bellhop.state.chart import ANONYMOUS, Login, Place
from bellhop.state.ttl_cache import SingleFlight, TtlCache

LIFETIME_SECONDS = 60.0
"""How long indexes and resolved versions are cached."""

_MOST_SOURCES = 1_000

T = TypeVar("T")


class _Source(Struct, frozen=True):
    """A descriptor, and the way to fetch its archive."""

    found: Descriptor
    fetch: Callable[[Descriptor], bytes]


class ChartRepositories:
    """Finds charts by HTTP and in OCI registries; shared between threads.

    The `folder` holds nothing else; several processes may share it.
    """

    def __init__(
        self, reach: AddressPolicy, folder: Path, clock: Clock, most: int = MOST_BYTES
    ) -> None:
        self._reach = reach
        self._archives = ArchiveCache(folder, most)
        self._indexes: TtlCache[tuple[str, Login], bytes] = TtlCache(
            clock, LIFETIME_SECONDS, INDEX.largest, len
        )
        self._sources: TtlCache[Place, _Source] = TtlCache(clock, LIFETIME_SECONDS, _MOST_SOURCES)
        self._fetches: SingleFlight[str, Archive] = SingleFlight()

    def find(self, place: Place) -> Archive:
        source = self._sources.get(place, partial(self._look_up, place))
        return self._fetches.join(_key(place, source.found), partial(self._archive, place, source))

    def open(self, content: bytes, digest: str) -> Archive:
        chart = archive.read(content)
        return Archive(self._archives.put(digest, content), chart.name, chart.version, digest)

    def pack(self, files: Folder, path: str, revision: str) -> Archive:
        place = posixpath.normpath(path.strip("/")).removeprefix(".")
        key = f"{revision}\n{place}"
        return self._fetches.join(key, lambda: self._pack(files, place, key))

    def _pack(self, files: Folder, place: str, key: str) -> Archive:
        kept = self._archives.get(key)
        if kept:
            file, content = kept
            chart = archive.read(content)
        else:
            of = f"the chart at '{place or '.'}' of {key.partition(chr(10))[0]}"
            chart = archive.pack(files, place, of)
            file = self._archives.put(key, chart.content)
        return Archive(file, chart.name, chart.version, digest_of(chart.content))

    def versions(self, place: Place) -> Sequence[str]:
        if repository := self._repository(place):
            return repository.versions()
        return self._first(place, lambda registry: registry.versions())

    def _look_up(self, place: Place) -> _Source:
        if repository := self._repository(place):
            source = _Source(repository.find(place.version), repository.fetch)
        else:
            source = self._first(place, lambda each: _Source(each.find(place.version), each.fetch))
        if source.found.url.startswith(SCHEME):
            source = self._link(place, source.found)
        if source.found.digest:
            return source
        # The index has no digest: only the content identifies the archive.
        content = source.fetch(source.found)
        known = replace(source.found, digest=digest_of(content))
        self._keep(place, known, content)
        return _Source(known, source.fetch)

    def _archive(self, place: Place, source: _Source) -> Archive:
        found = source.found
        kept = self._archives.get(_key(place, found))
        if kept:
            path, content = kept
            chart = archive.read(content)
            return Archive(path, chart.name, chart.version, found.digest)
        return self._keep(place, found, source.fetch(found))

    def _keep(self, place: Place, found: Descriptor, content: bytes) -> Archive:
        """Check an archive and write it into the cache."""
        of = f"chart {found.chart!r} {found.version} of {shown(place.repository or place.chart)}"
        chart = archive.check(content, of)
        path = self._archives.put(_key(place, found), chart.content)
        return Archive(path, chart.name, chart.version, found.digest)

    def _repository(self, place: Place) -> Repository | None:
        """Return the HTTP repository of a place; None if it is a registry."""
        if place.chart.startswith(SCHEME) or place.repository.startswith(SCHEME):
            return None
        if not place.repository.startswith(("http://", "https://")):
            raise InvalidError(
                f"cannot find chart {place.chart!r}: the repository's address begins with none of"
                " http://, https:// and oci://"
            )
        key = (place.repository, place.login)
        return Repository(place, self._reach, lambda read: self._indexes.get(key, read))

    def _first(self, place: Place, ask: Callable[[Registry], T]) -> T:
        """Return the answer of the first address that has the chart."""
        failure: Exception | None = None
        for address, login in _addresses(place):
            try:
                return ask(Registry(address, login, self._reach))
            except (MissingError, DeniedError) as error:
                # Many registries deny what they do not have.
                failure = failure or error
        assert failure
        raise failure

    def _link(self, place: Place, found: Descriptor) -> _Source:
        """Resolve an oci:// address in the index of a repository."""
        address, _, tag = found.url.rpartition(":")
        login = place.login if place.login.everywhere else _drop_credentials(place.login)
        registry = Registry(address, login, self._reach)
        return _Source(registry.find(tag.replace("_", "+")), registry.fetch)


def _addresses(place: Place) -> list[tuple[str, Login]]:
    """Return the addresses that a chart may have in a registry, with the login for each.

    Users repeat the chart's name at the end of the repository or not, or write the whole address as
    the chart.
    """
    base = place.repository.rstrip("/")
    if not place.chart:
        return [(base, place.login)]
    if place.chart.startswith(SCHEME):
        ours = place.login.everywhere or base.split("/")[2:3] == place.chart.split("/")[2:3]
        return [(place.chart, place.login if ours else _drop_credentials(place.login))]
    whole = (f"{base}/{place.chart.strip('/')}", place.login)
    repeated = base.rpartition("/")[2] == place.chart.strip("/").rpartition("/")[2]
    return [whole, (base, place.login)] if repeated else [whole]


def _drop_credentials(login: Login) -> Login:
    return replace(login, username=ANONYMOUS.username, password=ANONYMOUS.password)


def _key(place: Place, found: Descriptor) -> str:
    """Return the key of an archive: nobody gets what another repository or login has fetched."""
    login = msgspec.json.encode(place.login).decode()
    return f"{place.repository}\n{place.chart.rpartition('/')[0]}\n{found.digest}\n{login}"
