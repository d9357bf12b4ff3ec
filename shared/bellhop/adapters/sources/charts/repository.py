"""Charts in HTTP repositories, whose `index.yaml` names the addresses of archives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from urllib.parse import urljoin, urlsplit

from bellhop.adapters.egress.download import origin, shown
from bellhop.adapters.egress.source_client import Limits, basic
from bellhop.adapters.sources.charts.client import ChartClient
from bellhop.adapters.sources.charts.descriptor import Descriptor, digest_of
from bellhop.adapters.sources.charts.index import Entry, entries_of
from bellhop.adapters.sources.charts.versions import choose, newest_first
from bellhop.core.address_policy import AddressPolicy
from bellhop.errors import InvalidError, MissingError
from bellhop.state.chart import Place

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
        """Return all versions, the newest one first."""
        return newest_first(each.version for each in self._entries())

    def find(self, version: str) -> Descriptor:
        """Return the archive of a version or range."""
        entries = self._entries()
        chosen = choose((each.version for each in entries), version, of=self._of)
        entry = next(each for each in entries if each.version == chosen)
        try:
            url = _resolved(self._address, entry.urls[0])
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


def _resolved(address: str, url: str) -> str:
    """Resolve an address in an index as Helm does: a relative one gets the repository's query."""
    if urlsplit(url).scheme:
        return url
    there = urljoin(_below(address, ""), url)
    return urlsplit(there)._replace(query=urlsplit(address).query).geturl()
